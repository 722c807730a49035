// Checking the arguments of a call against a variant and packing them into slots, in one pass.
//
// Only plain objects are looked at here: ndarrays, exact floats, ints and bools. Nothing runs
// Python code or raises, so that arguments cannot change while they are read; numbers of other
// types are turned into plain ones first (plain_numbers.h).
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>

#include "launchable.h"

namespace tack {

// The arguments of one call in a kernel's terms. Lives on the stack; only what is used is written.
struct PackedCall {
  // The sink follows the last slot of the kernel, and the ranges of general arrays follow the sink:
  // in `slots` where their lowest byte is, in `ends` what follows their highest.
  static constexpr std::size_t kSize = kMaxSlots + 1 + 128;
  static_assert(kMaxParameters < 128);

  tack_slot slots[kSize];
  // Addresses that are equal modulo 4096 hold each other up, so the two tables keep off each other.
  char apart[1024];
  const char* ends[kSize];  // of the bytes behind each pointer
  std::uint64_t elements;   // of all arrays
};

// Whether the arguments, one for each parameter, fit the variant; packs them.
bool pack(const Launchable& variant, PyObject* const* arguments, PackedCall& call);

// The part of pack() that is left after the parameters that lie in the record: the others, pinned
// extents, copies of slots.
bool pack_remainder(const Launchable& variant, PyObject* const* arguments, PackedCall& call);

// See signature_hash.h.
std::uint64_t hash_of(PyObject* const* arguments, std::size_t count);

}  // namespace tack
