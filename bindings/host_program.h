// The host program of a variant: a postfix program that works out the extents of the parallel loop.
//
// It runs over a stack of 64-bit integers (u64 values keep their bits). A typed operation takes its
// operands modulo its dtype and wraps its result to it; division and remainder by zero give 0, the
// least integer by -1 wraps, a shift count is taken modulo the width. Programs are checked when
// they are parsed, so that running one needs no check and has no undefined behaviour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "../templates/c/tack_abi.h"
#include "dtype.h"
#include "parse.h"

namespace tack {

inline constexpr std::size_t kMaxLoops = 3;
inline constexpr std::size_t kMaxStack = 64;

// In the order of kHostOps; `loop_of_slot` is made by the peephole pass and has no name.
enum class HostOp : std::uint8_t {
  constant,
  slot,
  add,
  sub,
  mul,
  floordiv,
  mod,
  neg,
  abs,
  min,
  max,
  bit_and,
  bit_or,
  bit_xor,
  shl,
  shr,
  invert,
  lt,
  le,
  eq,
  ne,
  logical_not,
  select,
  cast,
  range,
  loop,
  loop_of_slot,
};

enum class HostOperand : std::uint8_t { none, value, slot_and_dtype, dtype, loop };

struct HostOpFacts {
  std::string_view name;
  HostOperand operand;
  std::uint8_t pops;
  std::uint8_t pushes;
};

// Indexed by HostOp. tack._core.HOST_OPS publishes the names.
inline constexpr std::array<HostOpFacts, 26> kHostOps = {{
    {"const", HostOperand::value, 0, 1},  {"slot", HostOperand::slot_and_dtype, 0, 1},
    {"add", HostOperand::dtype, 2, 1},    {"sub", HostOperand::dtype, 2, 1},
    {"mul", HostOperand::dtype, 2, 1},    {"floordiv", HostOperand::dtype, 2, 1},
    {"mod", HostOperand::dtype, 2, 1},    {"neg", HostOperand::dtype, 1, 1},
    {"abs", HostOperand::dtype, 1, 1},    {"min", HostOperand::dtype, 2, 1},
    {"max", HostOperand::dtype, 2, 1},    {"and", HostOperand::dtype, 2, 1},
    {"or", HostOperand::dtype, 2, 1},     {"xor", HostOperand::dtype, 2, 1},
    {"shl", HostOperand::dtype, 2, 1},    {"shr", HostOperand::dtype, 2, 1},
    {"invert", HostOperand::dtype, 1, 1}, {"lt", HostOperand::dtype, 2, 1},
    {"le", HostOperand::dtype, 2, 1},     {"eq", HostOperand::dtype, 2, 1},
    {"ne", HostOperand::dtype, 2, 1},     {"not", HostOperand::none, 1, 1},
    {"select", HostOperand::none, 3, 1},  {"cast", HostOperand::dtype, 1, 1},
    {"range", HostOperand::none, 3, 1},   {"loop", HostOperand::loop, 1, 0},
}};

enum class HostStatus : std::uint8_t { ok, step_not_positive, too_many_iterations };

struct HostInstruction {
  HostOp op;
  DType type;
  std::uint16_t slot;
  std::uint16_t loop;
  std::int64_t value;
};

// What a program may read from a slot: nothing, exactly one dtype, or (in tests) anything.
struct SlotAccess {
  enum class Kind : std::uint8_t { none, exact, any } kind = Kind::none;
  DType type = DType::i64;
};

class HostProgram {
 public:
  HostProgram() = default;  // sets no loop

  // Raises ValueError unless `host` is a well-formed program that sets exactly the loops 0 .. n-1,
  // with n from 1 to 3, and leaves nothing on the stack.
  HostProgram(nb::handle host, const std::vector<SlotAccess>& slots);

  std::size_t loops() const { return loops_; }

  // Whether the program is that of "for i in range(n)", whose only work is to read n.
  bool is_one_slot() const { return is_direct_ && loops_ == 1; }
  std::uint16_t slot_of_loop(std::size_t loop) const { return direct_[loop]; }

  // Sets extents[0 .. loops()-1]; on an error it leaves them unspecified.
  HostStatus run(const tack_slot* slots, std::int64_t* extents) const noexcept;

 private:
  HostStatus interpret(const tack_slot* slots, std::int64_t* extents) const noexcept;
  void shorten();
  void find_direct();

  std::vector<HostInstruction> code_;
  std::size_t loops_ = 0;
  // Most programs only name the slots of their extents, as that of "for i, j in ndrange(m, n)".
  bool is_direct_ = false;
  std::array<std::uint16_t, kMaxLoops> direct_{};
};

}  // namespace tack
