// A variant that can be launched: what its arguments must be, where each one goes in the slots,
// the host program, and the entry points. Immutable once made, so that calls read it without a
// lock and without counting references; a kernel keeps what it has ever published.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../templates/c/tack_abi.h"
#include "dtype.h"
#include "host_program.h"
#include "parse.h"

namespace tack {

inline constexpr std::size_t kMaxParameters = 255;
inline constexpr std::size_t kMaxSlots = 1024;
inline constexpr std::size_t kMaxRank = 3;

// What one argument must be and where its parts go. Parts that the variant does not use go to the
// sink, the slot after the last one, so that packing needs no branch.
struct Parameter {
  enum class Kind : std::uint8_t { array, f32, f64, integer, u64, boolean, unreachable };

  Kind kind;
  DType type;
  bool annotated;  // scalars only: converts within the real numbers, range-checked
  bool pinned;     // arrays only: some extent is fixed
  std::uint8_t rank;
  std::uint16_t slot;               // the pointer or the scalar
  std::uint16_t extents[kMaxRank];  // slots of the extents
  int type_number;                  // NumPy's number of the dtype,
  int other_type_number;            // and the second C type of the same width, if there is one
  int required_flags;
  std::int64_t pins[kMaxRank];  // -1 where any extent will do
};

struct SlotCopy {
  std::uint16_t from;
  std::uint16_t to;
};

struct LoopSlot {
  std::uint16_t slot;
  std::uint16_t loop;
};

// Two arrays, as numbers among the arrays of the call, of which at least one is written.
struct ArrayPair {
  std::uint16_t first;
  std::uint16_t second;
};

class Launchable {
 public:
  // Raises ValueError for anything that could not be launched safely.
  Launchable(nb::handle params, nb::handle slots, nb::handle host, nb::handle written,
             std::uint64_t general, std::uint64_t noalias, std::string label, nb::object keepalive);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<SlotCopy>& copies() const { return copies_; }
  const std::vector<LoopSlot>& loop_slots() const { return loop_slots_; }
  const std::vector<ArrayPair>& hazards() const { return hazards_; }
  const HostProgram& host() const { return *host_; }
  tack_entry general() const { return general_; }
  tack_entry noalias() const { return noalias_; }  // null if there is none
  const std::string& label() const { return label_; }
  const nb::object& keepalive() const { return keepalive_; }
  nb::object& keepalive() { return keepalive_; }

  std::uint64_t key() const { return key_; }      // see signature_hash.h
  std::size_t pinned() const { return pinned_; }  // how many extents are fixed

 private:
  void read_parameters(nb::handle params);
  void read_written(nb::handle written);
  std::vector<SlotAccess> read_slots(nb::handle slots);

  std::vector<Parameter> parameters_;
  std::vector<SlotCopy> copies_;
  std::vector<LoopSlot> loop_slots_;
  std::vector<ArrayPair> hazards_;
  std::unique_ptr<const HostProgram> host_;
  tack_entry general_ = nullptr;
  tack_entry noalias_ = nullptr;
  std::uint64_t key_ = 0;
  std::size_t pinned_ = 0;
  std::string label_;
  nb::object keepalive_;
};

}  // namespace tack
