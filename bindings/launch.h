// Running a variant whose arguments are packed: host program, choice of the entry point, and the
// call of the kernel, on this thread.
#pragma once

#include <Python.h>

#include <algorithm>
#include <cstdint>

#include "arguments.h"
#include "launchable.h"

namespace tack {

// Work below this is not worth the 22-47 ns of releasing the GIL, nor the wait to get it back
// while another Python thread is busy.
inline constexpr std::uint64_t kReleaseGilFrom = 65536;

// Null with ValueError or OverflowError set.
PyObject* refuse_launch(const Launchable& variant, HostStatus status, const std::int64_t* extents);

// False if the product does not fit. An empty loop is empty whatever the others are.
inline bool total_iterations(const std::int64_t* extents, std::size_t loops, std::int64_t* total) {
  std::int64_t product = extents[0];
  bool overflow = false;
  for (std::size_t i = 1; i < loops; ++i) {
    overflow |= __builtin_mul_overflow(product, extents[i], &product);
  }
  if (TACK_UNLIKELY(overflow)) {
    if (std::find(extents, extents + loops, 0) == extents + loops) return false;
    product = 0;
  }
  *total = product;
  return true;
}

// None, or null with an exception set.
inline PyObject* launch(const Launchable& variant, PackedCall& call) {
  std::int64_t extents[kMaxLoops];
  const HostStatus status = variant.host().run(call.slots, extents);
  if (TACK_UNLIKELY(status != HostStatus::ok)) return refuse_launch(variant, status, extents);
  std::int64_t total;
  if (TACK_UNLIKELY(!total_iterations(extents, variant.host().loops(), &total))) {
    return refuse_launch(variant, HostStatus::too_many_iterations, extents);
  }
  if (total > 0) {
    for (const LoopSlot& entry : variant.loop_slots()) {
      call.slots[entry.slot].i64 = extents[entry.loop];
    }
    const bool separate = variant.noalias() != nullptr && is_disjoint(variant, call);
    const tack_entry entry = separate ? variant.noalias() : variant.general();
    const tack_context context{TACK_ABI, sizeof(tack_context), nullptr, nullptr, nullptr, nullptr};
    const auto work = std::max(static_cast<std::uint64_t>(total), call.elements);
    if (TACK_LIKELY(work < kReleaseGilFrom)) {
      entry(&context, call.slots, 0, total);
    } else {
      // The variant outlives the call even if its table is cleared meanwhile (variant_table.h).
      PyThreadState* state = PyEval_SaveThread();
      entry(&context, call.slots, 0, total);
      PyEval_RestoreThread(state);
    }
  }
  Py_RETURN_NONE;
}

}  // namespace tack
