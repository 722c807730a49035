#include "launch.h"

#include <cxxabi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "warm_path.h"

namespace tack {
namespace {

std::int64_t refuse_step(const Launchable& variant) {
  const std::string message = variant.label() + ": the step of the parallel range must be positive";
  PyErr_SetString(PyExc_ValueError, message.c_str());
  return -1;
}

// `extents` is null where the program itself could not count.
std::int64_t refuse_total(const Launchable& variant, const std::int64_t* extents) {
  std::string message = variant.label() + ": the parallel loop";
  if (extents != nullptr) {
    for (std::size_t i = 0; i < variant.host().loops(); ++i) {
      message += (i == 0 ? " of " : " x ") + std::to_string(extents[i]);
    }
  }
  message += " has more than 2**63 - 1 iterations";
  PyErr_SetString(PyExc_OverflowError, message.c_str());
  return -1;
}

// The number of iterations, with the slots of the loops filled; -1 with an exception set.
std::int64_t count_iterations(const Launchable& variant, PackedCall& call) {
  const std::size_t loops = variant.host().loops();
  std::int64_t extents[kMaxLoops];
  switch (variant.host().run(call.slots, extents)) {
    case HostStatus::step_not_positive:
      return refuse_step(variant);
    case HostStatus::too_many_iterations:
      return refuse_total(variant, nullptr);
    case HostStatus::ok:
      break;
  }
  for (const LoopSlot& entry : variant.loop_slots()) {
    call.slots[entry.slot].i64 = extents[entry.loop];
  }
  // An empty loop is empty however long the others are.
  if (std::find(extents, extents + loops, 0) != extents + loops) return 0;
  std::int64_t total = 1;
  for (std::size_t i = 0; i < loops; ++i) {
    if (__builtin_mul_overflow(total, extents[i], &total)) return refuse_total(variant, extents);
  }
  return total;
}

// An array without a byte shares none, wherever it lies.
bool are_disjoint(const ArrayPair& pair, const PackedCall& call) {
  return lie_apart(&pair, 1, call) || begin_of(call, pair.first) == end_of(call, pair.first) ||
         begin_of(call, pair.second) == end_of(call, pair.second);
}

// Whether no written array shares a byte with another array of the call. The same array passed
// twice is fine as long as it is only read.
bool has_no_hazard(const Launchable& variant, const PackedCall& call) {
  const auto is_fine = [&call](const ArrayPair& pair) { return are_disjoint(pair, call); };
  const ArrayPair* first = variant.first_hazards();
  const std::vector<ArrayPair>& rest = variant.rest_hazards();
  return std::all_of(first, first + variant.first_hazard_count(), is_fine) &&
         std::all_of(rest.begin(), rest.end(), is_fine);
}

bool are_multiples(const Launchable& variant, const PackedCall& call) {
  const std::vector<Multiple>& all = variant.multiples();
  return std::all_of(all.begin(), all.end(), [&call](const Multiple& multiple) {
    return (call.slots[multiple.slot].u64 & multiple.rest) == 0;
  });
}

tack_entry entry_for(const Launchable& variant, const PackedCall& call) {
  if (!has_no_hazard(variant, call)) return variant.general();
  if (variant.wide() != nullptr && are_multiples(variant, call)) return variant.wide();
  return variant.noalias();
}

// Before 3.14, a daemon thread that asks for the GIL while Python ends is ended by unwinding its
// stack, which frames that may not throw turn into an abort. It sleeps instead, as 3.14 has it.
void take_gil(PyThreadState* state) {
  try {
    PyEval_RestoreThread(state);
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

// What Python has written so far comes before what the kernel prints; whatever sys.stdout is.
void flush_python() {
  PyObject* out = PySys_GetObject("stdout");
  if (out == nullptr || out == Py_None) return;
  PyObject* done = PyObject_CallMethod(out, "flush", nullptr);
  if (done == nullptr) PyErr_Clear();
  Py_XDECREF(done);
}

}  // namespace

PyObject* launch(const Launchable& variant, PackedCall& call) {
  const std::int64_t total = count_iterations(variant, call);
  if (total < 0) return nullptr;
  if (total > 0) {
    const tack_entry entry = entry_for(variant, call);
    const bool prints = variant.prints();
    if (prints) flush_python();
    if (std::max(static_cast<std::uint64_t>(total), call.elements) < kReleaseGilFrom && !prints) {
      entry(&kContext, call.slots, 0, total);
    } else {
      // The variant outlives the call even if its table is cleared meanwhile (variant_table.h).
      PyThreadState* state = PyEval_SaveThread();
      entry(&kContext, call.slots, 0, total);
      if (prints) std::fflush(stdout);  // whoever reads it may need the GIL
      take_gil(state);
    }
  }
  Py_RETURN_NONE;
}

}  // namespace tack
