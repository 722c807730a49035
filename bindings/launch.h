// Running a variant whose arguments are packed: host program, choice of the entry point, and the
// call of the kernel, on this thread.
#pragma once

#include <Python.h>

#include "arguments.h"
#include "launchable.h"

namespace tack {

// None, or null with ValueError or OverflowError set.
PyObject* launch(const Launchable& variant, PackedCall& call);

// What every launch hands to its kernel: nothing in it depends on the call yet.
inline constexpr tack_context kContext{TACK_ABI, sizeof(tack_context), nullptr, nullptr, nullptr,
                                       nullptr};

}  // namespace tack
