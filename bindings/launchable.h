// A variant that can be launched: what its arguments must be, where each one goes in the slots,
// the host program, and the entry points. Immutable once made, so that calls read it without a
// lock and without counting references; a kernel keeps what it has ever published.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../templates/c/tack_abi.h"
#include "dtype.h"
#include "host_program.h"
#include "numpy_layout.h"
#include "parse.h"

namespace tack {

inline constexpr std::size_t kMaxParameters = 127;
inline constexpr std::size_t kMaxSlots = 511;  // a pointer and three extents each, and the loops
inline constexpr std::size_t kMaxRank = 8;
inline constexpr std::size_t kMaxPlainRank = 3;  // of the arrays that the warm path takes

// What one argument must be and where its parts go. Parts that the variant does not use go to the
// sink, the slot after the last one, so that packing needs no branch.
struct Parameter {
  // Most arrays are contiguous ones of rank 1, a kind of their own, then those of rank 2 and 3. A
  // `general` one is any other, or one whose strides are asked for; the warm path takes none of
  // them. `end` follows the last parameter.
  enum class Kind : std::uint8_t {
    vector,
    array,
    general,
    f32,
    f64,
    narrow_float,
    integer,
    u64,
    boolean,
    unreachable,
    end
  };

  bool is_array() const { return kind <= Kind::general; }

  PyTypeObject* plain_type;    // of arguments that the warm path takes
  const PyArray_Descr* descr;  // arrays: the one that almost all of the dtype have, or null
  int required_flags;          // arrays, as the next four
  std::uint8_t rank;
  std::uint8_t item_size;
  DType type;
  Kind kind = Kind::end;
  bool takes_contiguous;  // it takes those and no other arrays, or every other array and not those
  bool annotated;         // scalars: converts within the real numbers, range-checked
  std::uint16_t slot;     // of the scalar or the pointer
  std::uint16_t extents[kMaxPlainRank];  // slots, of a vector or array
  std::uint16_t axes;                    // arrays: where theirs begin in Launchable::axes()
  std::uint16_t range;  // general: behind the sink, where the lowest and highest addresses are kept
};

// Where the launcher writes what it finds along one axis of an array.
struct AxisSlots {
  std::uint16_t extent;
  std::uint16_t stride;  // in bytes
};

// An extent that the variant was compiled for.
struct Pin {
  std::uint16_t parameter;
  std::uint16_t axis;
  std::int64_t extent;
};

struct SlotCopy {
  std::uint16_t from;
  std::uint16_t to;
};

struct LoopSlot {
  std::uint16_t slot;
  std::uint16_t loop;
};

// The slots that say where two arrays lie which the kernel accesses, and writes at least one of: of
// the pointer, or the range of a general one.
struct ArrayPair {
  std::uint16_t first;
  std::uint16_t second;
};

// A slot, an address or an extent, whose value is a multiple of a power of two.
struct Multiple {
  std::uint16_t slot;
  std::uint64_t rest;  // the bits that are then 0
};

class Launchable {
 public:
  // So many parameters lie in the record itself: a call reads them without following a pointer.
  static constexpr std::size_t kInline = 8;
  static constexpr std::size_t kInlineHazards = 12;

  // Raises ValueError for anything that could not be launched safely.
  Launchable(nb::handle params, nb::handle slots, nb::handle host, nb::handle written,
             std::uint64_t general, std::uint64_t noalias, std::string label, nb::object keepalive,
             nb::handle aligned, std::uint64_t wide, nb::handle multiples, bool prints);

  std::size_t size() const { return size_; }  // how many parameters
  const Parameter& operator[](std::size_t index) const {
    return index < kInline ? first_[index] : rest_[index - kInline];
  }
  const std::array<Parameter, kInline>& first() const { return first_; }

  // Whether the warm path can run it: parameters and hazards lie in the record, nothing is pinned,
  // and the loop is "for i in range(n)" with n in a slot.
  bool is_simple() const { return is_simple_; }
  std::size_t slot_of_extent() const { return slot_of_extent_; }  // of a simple one

  const std::vector<AxisSlots>& axes() const { return axes_; }
  const std::vector<Pin>& pins() const { return pins_; }
  const std::vector<SlotCopy>& copies() const { return copies_; }
  const std::vector<LoopSlot>& loop_slots() const { return loop_slots_; }
  // Pairs to check before the noalias entry may run; all of them lie in a simple record.
  const ArrayPair* first_hazards() const { return first_hazards_.data(); }
  std::size_t first_hazard_count() const { return first_hazard_count_; }
  const std::vector<ArrayPair>& rest_hazards() const { return rest_hazards_; }
  const HostProgram& host() const { return host_; }
  tack_entry general() const { return general_; }
  // For calls without a hazard; the general one if the variant has no other.
  tack_entry noalias() const { return noalias_; }
  // For calls without a hazard in which all of `multiples` hold; null if the variant has none.
  tack_entry wide() const { return wide_; }
  const std::vector<Multiple>& multiples() const { return multiples_; }
  bool prints() const { return prints_; }  // to C's standard output
  const std::string& label() const { return label_; }
  const nb::object& keepalive() const { return keepalive_; }
  nb::object& keepalive() { return keepalive_; }

  std::uint64_t key() const { return key_; }  // see signature_hash.h

  // Raises ValueError if the variant cannot be one of a kernel with these parameters.
  void expect_parameters(const std::vector<bool>& annotated) const;

 private:
  void read_parameters(nb::handle params);
  void read_pins(nb::handle pins, std::size_t parameter, std::size_t rank);
  void read_written(nb::handle written);
  void read_aligned(nb::handle aligned);
  void read_multiples(nb::handle multiples);
  void add_hazard(ArrayPair pair);
  void read_slots(nb::handle slots);
  void read_slot(const Items& entry, const std::string& where, std::uint16_t slot);
  void settle_kind(Parameter& array, std::uint16_t& ranges);
  bool is_accessed(std::size_t index) const;
  std::uint16_t place_of(std::size_t index) const;
  void assign(std::uint16_t& target, std::uint16_t slot);
  Parameter& parameter(std::size_t index) {
    return index < kInline ? first_[index] : rest_[index - kInline];
  }

  // Read at every call: as few cache lines as it can be.
  tack_entry general_ = nullptr;
  tack_entry noalias_ = nullptr;
  bool is_simple_ = false;
  std::uint16_t slot_of_extent_ = 0;
  std::uint16_t first_hazard_count_ = 0;
  std::array<ArrayPair, kInlineHazards> first_hazards_{};
  std::array<Parameter, kInline> first_{};

  std::size_t size_ = 0;
  std::vector<Parameter> rest_;
  std::vector<ArrayPair> rest_hazards_;
  std::vector<AxisSlots> axes_;  // of every array, one after the other
  std::vector<Pin> pins_;
  std::vector<SlotCopy> copies_;
  std::vector<LoopSlot> loop_slots_;
  tack_entry wide_ = nullptr;
  bool prints_ = false;
  std::vector<Multiple> multiples_;
  HostProgram host_;

  std::vector<SlotAccess> readable_;  // what the host program may read of each slot
  std::uint64_t key_ = 0;
  std::string label_;
  nb::object keepalive_;
};

}  // namespace tack
