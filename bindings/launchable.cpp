#include "launchable.h"

#include <algorithm>
#include <string_view>

#include "numpy_layout.h"
#include "signature_hash.h"

namespace tack {
namespace {

constexpr std::uint16_t kUnset = UINT16_MAX;

std::string numbered(std::string_view what, std::size_t index) {
  return std::string(what) + " " + std::to_string(index);
}

Parameter array_parameter(const Items& entry, const std::string& where) {
  entry.expect_size(4);
  Parameter result{};
  result.kind = Parameter::Kind::array;
  result.type = entry.dtype(1);
  if (result.type == DType::boolean) refuse(where, "arrays of bool are not supported");
  result.rank = static_cast<std::uint8_t>(entry.integer(2, 1, kMaxRank));
  const TypeNumbers numbers = type_numbers(result.type);
  result.type_number = numbers.first;
  result.other_type_number = numbers.second;
  result.required_flags = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
  const Items pins(entry[3], where);
  pins.expect_size(result.rank);
  for (std::size_t axis = 0; axis < kMaxRank; ++axis) {
    result.pins[axis] = axis < pins.size() ? pins.integer(axis, -1, INT64_MAX) : -1;
    result.pinned |= result.pins[axis] >= 0;
  }
  return result;
}

// Which values an unannotated scalar takes follows from the call alone: an int is i64, a float is
// f64 where an f64 array is among the arguments and else f32. A row that says otherwise is never
// selected.
Parameter::Kind scalar_kind(DType type, bool annotated, bool has_f64_array) {
  switch (type) {
    case DType::boolean:
      return Parameter::Kind::boolean;
    case DType::f32:
      return annotated || !has_f64_array ? Parameter::Kind::f32 : Parameter::Kind::unreachable;
    case DType::f64:
      return annotated || has_f64_array ? Parameter::Kind::f64 : Parameter::Kind::unreachable;
    case DType::i64:
      return Parameter::Kind::integer;
    case DType::u64:
      return annotated ? Parameter::Kind::u64 : Parameter::Kind::unreachable;
    default:
      return annotated ? Parameter::Kind::integer : Parameter::Kind::unreachable;
  }
}

Parameter scalar_parameter(const Items& entry) {
  entry.expect_size(3);
  Parameter result{};
  result.kind = Parameter::Kind::unreachable;  // until all arrays are known
  result.type = entry.dtype(1);
  result.annotated = entry.boolean(2);
  std::fill(std::begin(result.pins), std::end(result.pins), -1);
  return result;
}

}  // namespace

Launchable::Launchable(nb::handle params, nb::handle slots, nb::handle host, nb::handle written,
                       std::uint64_t general, std::uint64_t noalias, std::string label,
                       nb::object keepalive)
    : general_(reinterpret_cast<tack_entry>(static_cast<std::uintptr_t>(general))),
      noalias_(reinterpret_cast<tack_entry>(static_cast<std::uintptr_t>(noalias))),
      label_(std::move(label)),
      keepalive_(std::move(keepalive)) {
  if (general_ == nullptr) refuse("entries", "the general entry point is null");
  read_parameters(params);
  read_written(written);
  const std::vector<SlotAccess> readable = read_slots(slots);
  host_ = std::make_unique<const HostProgram>(host, readable);
  for (const LoopSlot& entry : loop_slots_) {
    if (entry.loop >= host_->loops()) {
      refuse(numbered("slot", entry.slot), "the host program does not set its loop");
    }
  }
}

void Launchable::read_parameters(nb::handle params) {
  const Items entries(params, "parameters");
  if (entries.size() > kMaxParameters) refuse("parameters", "there are more than 255");
  SignatureHash hash;
  bool has_f64_array = false;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string where = numbered("parameter", i);
    const Items entry(entries[i], where);
    const std::string_view form = entry.text(0);
    if (form == "array") {
      const Parameter array = array_parameter(entry, where);
      has_f64_array |= array.type == DType::f64;
      pinned_ += static_cast<std::size_t>(
          std::count_if(array.pins, array.pins + kMaxRank, [](auto pin) { return pin >= 0; }));
      hash.add_array(array.type, array.rank);
      parameters_.push_back(array);
    } else if (form == "scalar") {
      hash.add_scalar();
      parameters_.push_back(scalar_parameter(entry));
    } else {
      refuse(where, "'" + std::string(form) + "' is neither array nor scalar");
    }
  }
  for (Parameter& parameter : parameters_) {
    if (parameter.kind != Parameter::Kind::array) {
      parameter.kind = scalar_kind(parameter.type, parameter.annotated, has_f64_array);
    }
  }
  key_ = hash.value();
}

void Launchable::read_written(nb::handle written) {
  const Items entries(written, "written");
  std::vector<bool> is_written(parameters_.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto last = static_cast<std::int64_t>(parameters_.size()) - 1;
    const auto index = static_cast<std::size_t>(entries.integer(i, 0, last));
    if (parameters_[index].kind != Parameter::Kind::array) {
      refuse("written", "parameter " + std::to_string(index) + " is not an array");
    }
    is_written[index] = true;
    parameters_[index].required_flags |= NPY_ARRAY_WRITEABLE;
  }
  std::vector<std::size_t> arrays;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].kind == Parameter::Kind::array) arrays.push_back(i);
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    for (std::size_t j = i + 1; j < arrays.size(); ++j) {
      if (is_written[arrays[i]] || is_written[arrays[j]]) {
        hazards_.push_back({static_cast<std::uint16_t>(i), static_cast<std::uint16_t>(j)});
      }
    }
  }
}

std::vector<SlotAccess> Launchable::read_slots(nb::handle slots) {
  const Items entries(slots, "slots");
  if (entries.size() > kMaxSlots) refuse("slots", "there are more than 1024");
  const auto sink = static_cast<std::uint16_t>(entries.size());
  for (Parameter& parameter : parameters_) {
    parameter.slot = kUnset;
    std::fill(std::begin(parameter.extents), std::end(parameter.extents), kUnset);
  }
  std::vector<SlotAccess> readable(entries.size());
  const auto last_parameter = static_cast<std::int64_t>(parameters_.size()) - 1;
  // The first slot of a part is filled while packing, further ones are copies of it.
  const auto assign = [this](std::uint16_t& target, std::uint16_t slot) {
    if (target == kUnset) {
      target = slot;
    } else {
      copies_.push_back({target, slot});
    }
  };
  for (std::uint16_t i = 0; i < sink; ++i) {
    const std::string where = numbered("slot", i);
    const Items entry(entries[i], where);
    const std::string_view form = entry.text(0);
    if (form == "loop") {
      entry.expect_size(2);
      loop_slots_.push_back(
          {i, static_cast<std::uint16_t>(entry.integer(1, 0, static_cast<int>(kMaxLoops) - 1))});
      continue;
    }
    Parameter& parameter =
        parameters_[static_cast<std::size_t>(entry.integer(1, 0, last_parameter))];
    const bool is_array = parameter.kind == Parameter::Kind::array;
    if (form == "pointer") {
      entry.expect_size(2);
      if (!is_array) refuse(where, "its parameter is not an array");
      assign(parameter.slot, i);
    } else if (form == "extent") {
      entry.expect_size(3);
      if (!is_array) refuse(where, "its parameter is not an array");
      assign(parameter.extents[entry.integer(2, 0, parameter.rank - 1)], i);
      readable[i] = {SlotAccess::Kind::exact, DType::i64};
    } else if (form == "scalar") {
      entry.expect_size(3);
      if (is_array) refuse(where, "its parameter is an array");
      if (entry.dtype(2) != parameter.type) refuse(where, "its dtype is not its parameter's");
      assign(parameter.slot, i);
      if (!facts(parameter.type).is_float) readable[i] = {SlotAccess::Kind::exact, parameter.type};
    } else {
      refuse(where, "'" + std::string(form) + "' is not pointer, extent, scalar or loop");
    }
  }
  for (Parameter& parameter : parameters_) {
    if (parameter.slot == kUnset) parameter.slot = sink;
    for (std::uint16_t& slot : parameter.extents) {
      if (slot == kUnset) slot = sink;
    }
  }
  return readable;
}

}  // namespace tack
