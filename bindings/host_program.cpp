#include "host_program.h"

#include <limits>

namespace tack {
namespace {

constexpr std::string_view kWhere = "host program";

HostOp op_named(std::string_view name) {
  for (std::size_t i = 0; i < kHostOps.size(); ++i) {
    if (kHostOps[i].name == name) return static_cast<HostOp>(i);
  }
  refuse(kWhere, "'" + std::string(name) + "' is not an operation");
}

DType integer_dtype(const Items& entry, std::size_t index) {
  const DType type = entry.dtype(index);
  if (facts(type).is_float) {
    refuse(kWhere, "the host computes with integers, not " + std::string(facts(type).name));
  }
  return type;
}

std::uint16_t readable_slot(const Items& entry, DType type, const std::vector<SlotAccess>& slots) {
  const auto index = static_cast<std::uint16_t>(entry.index(1, slots.size()));
  const SlotAccess& access = slots[index];
  if (access.kind == SlotAccess::Kind::none) {
    refuse(kWhere, "slot " + std::to_string(index) + " holds no integer that is known before");
  }
  if (access.kind == SlotAccess::Kind::exact && access.type != type) {
    refuse(kWhere, "slot " + std::to_string(index) + " holds " +
                       std::string(facts(access.type).name) + ", not " +
                       std::string(facts(type).name));
  }
  return index;
}

HostInstruction instruction(nb::handle object, const std::vector<SlotAccess>& slots) {
  const Items entry(object, kWhere);
  HostInstruction result{op_named(entry.text(0)), DType::i64, 0, 0, 0};
  switch (kHostOps[static_cast<std::size_t>(result.op)].operand) {
    case HostOperand::none:
      entry.expect_size(1);
      break;
    case HostOperand::value:
      entry.expect_size(2);
      result.value = entry.bits(1);
      break;
    case HostOperand::slot_and_dtype:
      entry.expect_size(3);
      result.type = integer_dtype(entry, 2);
      result.slot = readable_slot(entry, result.type, slots);
      break;
    case HostOperand::dtype:
      entry.expect_size(2);
      result.type = integer_dtype(entry, 1);
      break;
    case HostOperand::loop:
      entry.expect_size(2);
      result.loop = static_cast<std::uint16_t>(entry.index(1, kMaxLoops));
      break;
  }
  return result;
}

std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

std::int64_t floordiv(DType type, std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (!facts(type).is_signed) return static_cast<std::int64_t>(bits(a) / bits(b));
  if (b == -1) return wrap(type, 0 - bits(a));
  const std::int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}

std::int64_t floormod(DType type, std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (!facts(type).is_signed) return static_cast<std::int64_t>(bits(a) % bits(b));
  if (b == -1) return 0;
  const std::int64_t remainder = a % b;
  return remainder + ((remainder != 0) && ((remainder < 0) != (b < 0)) ? b : 0);
}

bool less(DType type, std::int64_t a, std::int64_t b) {
  return facts(type).is_signed ? a < b : bits(a) < bits(b);
}

std::int64_t shift_left(DType type, std::int64_t a, std::int64_t count) {
  return wrap(type, bits(a) << count);
}

std::int64_t shift_right(DType type, std::int64_t a, std::int64_t count) {
  // Right-shifting a negative integer is arithmetic on every compiler that builds this.
  return facts(type).is_signed ? a >> count : static_cast<std::int64_t>(bits(a) >> count);
}

std::int64_t shift_count(DType type, std::int64_t count) {
  const std::uint64_t width = type == DType::boolean ? 1 : 8U * facts(type).bytes;
  return static_cast<std::int64_t>(bits(count) & (width - 1));
}

std::int64_t binary(HostOp op, DType type, std::int64_t left, std::int64_t right) {
  const std::int64_t a = wrap(type, bits(left));
  const std::int64_t b = wrap(type, bits(right));
  switch (op) {
    case HostOp::add:
      return wrap(type, bits(a) + bits(b));
    case HostOp::sub:
      return wrap(type, bits(a) - bits(b));
    case HostOp::mul:
      return wrap(type, bits(a) * bits(b));
    case HostOp::floordiv:
      return floordiv(type, a, b);
    case HostOp::mod:
      return floormod(type, a, b);
    case HostOp::min:
      return less(type, b, a) ? b : a;
    case HostOp::max:
      return less(type, a, b) ? b : a;
    case HostOp::bit_and:
      return a & b;
    case HostOp::bit_or:
      return a | b;
    case HostOp::bit_xor:
      return a ^ b;
    case HostOp::shl:
      return shift_left(type, a, shift_count(type, b));
    case HostOp::shr:
      return shift_right(type, a, shift_count(type, b));
    case HostOp::lt:
      return less(type, a, b);
    case HostOp::le:
      return !less(type, b, a);
    case HostOp::eq:
      return a == b;
    default:
      return a != b;
  }
}

std::int64_t unary(HostOp op, DType type, std::int64_t operand) {
  const std::int64_t a = wrap(type, bits(operand));
  switch (op) {
    case HostOp::neg:
      return wrap(type, 0 - bits(a));
    case HostOp::abs:
      return facts(type).is_signed && a < 0 ? wrap(type, 0 - bits(a)) : a;
    default:
      return wrap(type, ~bits(a));
  }
}

// The length of range(start, end, step), or nothing if it does not fit in an i64.
bool trip_count(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t* count) {
  if (start >= end) {
    *count = 0;
    return true;
  }
  const std::uint64_t distance = bits(end) - bits(start);  // 1 .. 2^64-1, exact
  const std::uint64_t trips = (distance - 1) / bits(step) + 1;
  *count = static_cast<std::int64_t>(trips);
  return trips <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
}

std::int64_t read(const tack_slot& slot, DType type) {
  // Integers are packed sign- or zero-extended, so that the low bytes are the narrow member.
  return wrap(type, slot.u64);
}

bool is_constant(const HostInstruction& i, std::int64_t value) {
  return i.op == HostOp::constant && i.value == value;
}

}  // namespace

HostProgram::HostProgram(nb::handle host, const std::vector<SlotAccess>& slots) {
  const Items entries(host, kWhere);
  std::size_t depth = 0;
  unsigned loops_set = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const HostInstruction next = instruction(entries[i], slots);
    const HostOpFacts& op = kHostOps[static_cast<std::size_t>(next.op)];
    if (depth < op.pops) refuse(kWhere, std::string(op.name) + " finds too few values");
    depth = depth - op.pops + op.pushes;
    if (depth > kMaxStack) refuse(kWhere, "it keeps more than 64 values");
    if (next.op == HostOp::loop) loops_set |= 1U << next.loop;
    code_.push_back(next);
  }
  if (depth != 0) refuse(kWhere, "it leaves values behind");
  if (loops_set != 1 && loops_set != 3 && loops_set != 7) {
    refuse(kWhere, "it must set loop 0, loops 0 and 1, or loops 0 to 2");
  }
  loops_ = loops_set == 1 ? 1 : loops_set == 3 ? 2 : 3;
  shorten();
}

// "0 slot 1 range loop" is "slot loop", since a loop takes a negative extent for 0 anyway; and
// "slot loop" is one instruction where the slot holds an i64.
void HostProgram::shorten() {
  std::vector<HostInstruction> shorter;
  for (const HostInstruction& next : code_) {
    std::size_t n = shorter.size();
    if (next.op == HostOp::loop) {
      if (n >= 4 && shorter[n - 1].op == HostOp::range && is_constant(shorter[n - 2], 1) &&
          shorter[n - 3].op == HostOp::slot && is_constant(shorter[n - 4], 0)) {
        const HostInstruction slot = shorter[n - 3];
        shorter.resize(n - 4);
        shorter.push_back(slot);
        n = shorter.size();
      }
      if (n >= 1 && shorter[n - 1].op == HostOp::slot && shorter[n - 1].type == DType::i64) {
        shorter[n - 1].op = HostOp::loop_of_slot;
        shorter[n - 1].loop = next.loop;
        continue;
      }
    }
    shorter.push_back(next);
  }
  code_ = std::move(shorter);
  find_direct();
}

void HostProgram::find_direct() {
  is_direct_ = code_.size() == loops_;  // which are all set, so that each is set once
  for (const HostInstruction& next : code_) {
    is_direct_ &= next.op == HostOp::loop_of_slot;
    direct_[next.loop] = next.slot;
  }
}

HostStatus HostProgram::run(const tack_slot* slots, std::int64_t* extents) const noexcept {
  if (!is_direct_) return interpret(slots, extents);
  for (std::size_t loop = 0; loop < loops_; ++loop) {
    const std::int64_t extent = slots[direct_[loop]].i64;
    extents[loop] = extent < 0 ? 0 : extent;
  }
  return HostStatus::ok;
}

HostStatus HostProgram::interpret(const tack_slot* slots, std::int64_t* extents) const noexcept {
  std::int64_t stack[kMaxStack];
  std::int64_t* top = stack;  // one past the last value
  for (const HostInstruction& i : code_) {
    switch (i.op) {
      case HostOp::constant:
        *top++ = i.value;
        break;
      case HostOp::slot:
        *top++ = read(slots[i.slot], i.type);
        break;
      case HostOp::neg:
      case HostOp::abs:
      case HostOp::invert:
        top[-1] = unary(i.op, i.type, top[-1]);
        break;
      case HostOp::logical_not:
        top[-1] = top[-1] == 0;
        break;
      case HostOp::cast:
        // A cast to bool asks whether the value is zero; every other one wraps.
        top[-1] = i.type == DType::boolean ? top[-1] != 0 : wrap(i.type, bits(top[-1]));
        break;
      case HostOp::select:
        top -= 2;
        top[-1] = top[-1] != 0 ? top[0] : top[1];
        break;
      case HostOp::range:
        top -= 2;
        if (top[1] <= 0) return HostStatus::step_not_positive;
        if (!trip_count(top[-1], top[0], top[1], &top[-1])) return HostStatus::too_many_iterations;
        break;
      case HostOp::loop:
        --top;
        extents[i.loop] = *top < 0 ? 0 : *top;
        break;
      case HostOp::loop_of_slot: {
        const std::int64_t extent = slots[i.slot].i64;
        extents[i.loop] = extent < 0 ? 0 : extent;
        break;
      }
      default:
        --top;
        top[-1] = binary(i.op, i.type, top[-1], *top);
        break;
    }
  }
  return HostStatus::ok;
}

}  // namespace tack
