#include "launchable.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "numpy_layout.h"
#include "numpy_types.h"
#include "signature_hash.h"

namespace tack {
namespace {

constexpr std::uint16_t kUnset = UINT16_MAX;

std::string numbered(std::string_view what, std::size_t index) {
  return std::string(what) + " " + std::to_string(index);
}

tack_entry entry_at(std::uint64_t address) {
  return reinterpret_cast<tack_entry>(static_cast<std::uintptr_t>(address));
}

// Which values an unannotated scalar takes follows from the call alone: an int is i64, a float is
// f64 where an f64 array is among the arguments and else f32. A row that says otherwise is never
// selected.
Parameter::Kind scalar_kind(const Parameter& scalar, bool has_f64_array) {
  using Kind = Parameter::Kind;
  const bool annotated = scalar.annotated;
  switch (scalar.type) {
    case DType::boolean:
      return Kind::boolean;
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::f16:
    case DType::bf16:
      return annotated ? Kind::narrow_float : Kind::unreachable;
    case DType::f32:
      return annotated || !has_f64_array ? Kind::f32 : Kind::unreachable;
    case DType::f64:
      return annotated || has_f64_array ? Kind::f64 : Kind::unreachable;
    case DType::i64:
      return Kind::integer;
    case DType::u64:
      return annotated ? Kind::u64 : Kind::unreachable;
    default:
      return annotated ? Kind::integer : Kind::unreachable;
  }
}

PyTypeObject* plain_type(DType type) {
  if (type == DType::boolean) return &PyBool_Type;
  return facts(type).is_float ? &PyFloat_Type : &PyLong_Type;
}

Parameter unplaced_parameter(Parameter::Kind kind, DType type) {
  Parameter result{};
  result.kind = kind;
  result.type = type;
  result.slot = kUnset;
  return result;
}

Parameter array_parameter(const Items& entry, const std::string& where) {
  entry.expect_size(5);
  const DType type = entry.dtype(1);
  const std::string_view layout = entry.text(4);
  if (layout != "contiguous" && layout != "strided") {
    refuse(where, "'" + std::string(layout) + "' is neither contiguous nor strided");
  }
  Parameter array = unplaced_parameter(Parameter::Kind::general, type);
  array.rank = static_cast<std::uint8_t>(entry.integer(2, 0, kMaxRank));
  array.takes_contiguous = layout == "contiguous";
  array.descr = descr_of(type);
  array.item_size = facts(type).bytes;
  return array;
}

Parameter scalar_parameter(const Items& entry) {
  entry.expect_size(3);
  Parameter scalar = unplaced_parameter(Parameter::Kind::unreachable, entry.dtype(1));
  scalar.annotated = entry.boolean(2);
  scalar.plain_type = plain_type(scalar.type);
  return scalar;
}

}  // namespace

Launchable::Launchable(nb::handle params, nb::handle slots, nb::handle host, nb::handle written,
                       std::uint64_t general, std::uint64_t noalias, std::string label,
                       nb::object keepalive, nb::handle aligned, std::uint64_t wide,
                       nb::handle multiples, bool prints)
    : general_(entry_at(general)),
      noalias_(entry_at(noalias == 0 ? general : noalias)),
      wide_(entry_at(wide)),
      prints_(prints),
      label_(std::move(label)),
      keepalive_(std::move(keepalive)) {
  if (general_ == nullptr) refuse("entries", "the general entry point is null");
  import_numpy();
  read_parameters(params);
  read_slots(slots);
  read_written(written);
  read_aligned(aligned);
  read_multiples(multiples);
  host_ = HostProgram(host, readable_);
  for (const LoopSlot& entry : loop_slots_) {
    if (entry.loop >= host_.loops()) {
      refuse(numbered("slot", entry.slot), "the host program does not set its loop");
    }
  }
  is_simple_ = size_ <= kInline && rest_hazards_.empty() && pins_.empty() && copies_.empty() &&
               loop_slots_.empty() && host_.is_one_slot() && wide_ == nullptr && !prints_;
  if (is_simple_) slot_of_extent_ = host_.slot_of_loop(0);
}

void Launchable::expect_parameters(const std::vector<bool>& annotated) const {
  if (size_ != annotated.size()) {
    raise(PyExc_ValueError, label_ + " has " + std::to_string(size_) +
                                " parameters, its kernel has " + std::to_string(annotated.size()));
  }
  for (std::size_t i = 0; i < size_; ++i) {
    const Parameter& parameter = (*this)[i];
    if (!parameter.is_array() && parameter.annotated && !annotated[i]) {
      raise(PyExc_ValueError, label_ + " converts to the annotation of parameter " +
                                  std::to_string(i) + ", which has none in its kernel");
    }
  }
}

void Launchable::read_parameters(nb::handle params) {
  const Items entries(params, "parameters");
  if (entries.size() > kMaxParameters) refuse("parameters", "there are more than 127");
  size_ = entries.size();
  if (size_ > kInline) rest_.resize(size_ - kInline);
  SignatureHash hash;
  bool has_f64_array = false;
  for (std::size_t i = 0; i < size_; ++i) {
    const std::string where = numbered("parameter", i);
    const Items entry(entries[i], where);
    const std::string_view form = entry.text(0);
    Parameter& target = parameter(i);
    if (form == "array") {
      target = array_parameter(entry, where);
      target.axes = static_cast<std::uint16_t>(axes_.size());
      axes_.resize(axes_.size() + target.rank, {kUnset, kUnset});
      read_pins(entry[3], i, target.rank);
      has_f64_array |= target.type == DType::f64;
      hash.add_array(target.type, target.rank, target.takes_contiguous);
    } else if (form == "scalar") {
      target = scalar_parameter(entry);
      hash.add_scalar();
    } else {
      refuse(where, "'" + std::string(form) + "' is neither array nor scalar");
    }
  }
  for (std::size_t i = 0; i < size_; ++i) {
    Parameter& scalar = parameter(i);
    if (!scalar.is_array()) scalar.kind = scalar_kind(scalar, has_f64_array);
  }
  key_ = hash.value();
}

void Launchable::read_pins(nb::handle pins, std::size_t parameter, std::size_t rank) {
  const Items entries(pins, numbered("the pins of parameter", parameter));
  entries.expect_size(rank);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::int64_t extent = entries.integer(axis, -1, INT64_MAX);
    if (extent >= 0) {
      pins_.push_back(
          {static_cast<std::uint16_t>(parameter), static_cast<std::uint16_t>(axis), extent});
    }
  }
}

void Launchable::read_slots(nb::handle slots) {
  const Items entries(slots, "slots");
  if (entries.size() > kMaxSlots) refuse("slots", "there are more than 511");
  readable_.resize(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string where = numbered("slot", i);
    read_slot(Items(entries[i], where), where, static_cast<std::uint16_t>(i));
  }
  const auto sink = static_cast<std::uint16_t>(entries.size());
  const auto sink_if_unset = [sink](std::uint16_t& slot) {
    if (slot == kUnset) slot = sink;
  };
  auto ranges = static_cast<std::uint16_t>(sink + 1);
  for (std::size_t i = 0; i < size_; ++i) {
    sink_if_unset(parameter(i).slot);
    if (parameter(i).is_array()) settle_kind(parameter(i), ranges);
  }
  for (AxisSlots& axis : axes_) {
    sink_if_unset(axis.extent);
    sink_if_unset(axis.stride);
  }
  for (std::size_t i = 0; i < size_; ++i) {
    Parameter& array = parameter(i);
    for (std::size_t axis = 0; axis < kMaxPlainRank; ++axis) {
      const bool has = array.is_array() && axis < array.rank;
      array.extents[axis] = has ? axes_[array.axes + axis].extent : sink;
    }
  }
}

// Makes an array plain if the warm path can take it; `ranges` is the next free slot for the range
// of one that is not.
void Launchable::settle_kind(Parameter& array, std::uint16_t& ranges) {
  const auto first = axes_.begin() + array.axes;
  const bool has_strides = std::any_of(first, first + array.rank,
                                       [](const AxisSlots& axis) { return axis.stride != kUnset; });
  if (!array.takes_contiguous || has_strides || array.rank == 0 || array.rank > kMaxPlainRank) {
    array.range = ranges++;
    return;
  }
  array.kind = array.rank == 1 ? Parameter::Kind::vector : Parameter::Kind::array;
  array.required_flags = kContiguous;
  array.plain_type = numpy().ndarray;
}

void Launchable::read_slot(const Items& entry, const std::string& where, std::uint16_t slot) {
  const std::string_view form = entry.text(0);
  if (form == "loop") {
    entry.expect_size(2);
    const std::size_t loop = entry.index(1, kMaxLoops);
    loop_slots_.push_back({slot, static_cast<std::uint16_t>(loop)});
    return;
  }
  if (form != "pointer" && form != "extent" && form != "stride" && form != "scalar") {
    refuse(where, "'" + std::string(form) + "' is not pointer, extent, stride, scalar or loop");
  }
  entry.expect_size(form == "pointer" ? 2 : 3);
  Parameter& source = parameter(entry.index(1, size_));
  const bool is_array = source.is_array();
  if (is_array != (form != "scalar")) {
    refuse(where, is_array ? "its parameter is an array" : "its parameter is a scalar");
  }
  if (form == "stride") {
    assign(axes_[source.axes + entry.index(2, source.rank)].stride, slot);
    return;
  }
  if (form == "extent") {
    assign(axes_[source.axes + entry.index(2, source.rank)].extent, slot);
    readable_[slot] = {SlotAccess::Kind::exact, DType::i64};
    return;
  }
  assign(source.slot, slot);
  if (form == "scalar") {
    if (entry.dtype(2) != source.type) refuse(where, "its dtype is not its parameter's");
    if (!facts(source.type).is_float) readable_[slot] = {SlotAccess::Kind::exact, source.type};
  }
}

// The first slot of a part is filled while packing; further ones are copied from it.
void Launchable::assign(std::uint16_t& target, std::uint16_t slot) {
  if (target == kUnset) {
    target = slot;
  } else {
    copies_.push_back({target, slot});
  }
}

void Launchable::read_written(nb::handle written) {
  const Items entries(written, "written");
  std::vector<bool> is_written(size_);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::size_t index = entries.index(i, size_);
    Parameter& array = parameter(index);
    if (!array.is_array()) {
      refuse("written", numbered("there is no array in parameter", index));
    }
    is_written[index] = true;
    array.required_flags |= NPY_ARRAY_WRITEABLE;
  }
  if (noalias_ == general_ && wide_ == nullptr) return;  // nothing to choose
  for (std::size_t i = 0; i < size_; ++i) {
    for (std::size_t j = i + 1; j < size_; ++j) {
      if (is_accessed(i) && is_accessed(j) && (is_written[i] || is_written[j])) {
        add_hazard({place_of(i), place_of(j)});
      }
    }
  }
}

void Launchable::read_aligned(nb::handle aligned) {
  const Items entries(aligned, "aligned");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::size_t index = entries.index(i, size_);
    if (!parameter(index).is_array()) {
      refuse("aligned", numbered("there is no array in parameter", index));
    }
    parameter(index).required_flags |= NPY_ARRAY_ALIGNED;
  }
}

void Launchable::read_multiples(nb::handle multiples) {
  const Items entries(multiples, "multiples");
  if (entries.size() > 0 && wide_ == nullptr) {
    refuse("multiples", "there is no entry point that asks for them");
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string where = numbered("multiple", i);
    const Items entry(entries[i], where);
    entry.expect_size(2);
    const auto slot = static_cast<std::uint16_t>(entry.index(0, readable_.size()));
    const auto number = static_cast<std::uint64_t>(entry.integer(1, 1, 1 << 16));
    if ((number & (number - 1)) != 0) refuse(where, "its number is not a power of two");
    multiples_.push_back({slot, number - 1});
  }
}

void Launchable::add_hazard(ArrayPair pair) {
  if (first_hazard_count_ < kInlineHazards) {
    first_hazards_[first_hazard_count_++] = pair;
  } else {
    rest_hazards_.push_back(pair);
  }
}

std::uint16_t Launchable::place_of(std::size_t index) const {
  const Parameter& array = (*this)[index];
  return array.kind == Parameter::Kind::general ? array.range : array.slot;
}

// Whether the kernel is given the pointer of a parameter: it may also ask for extents alone.
bool Launchable::is_accessed(std::size_t index) const {
  return (*this)[index].is_array() && (*this)[index].slot != readable_.size();
}

}  // namespace tack
