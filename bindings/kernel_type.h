// The callable that @tack.kernel returns: a vectorcall type with the manners of a Python function.
#pragma once

#include <nanobind/nanobind.h>

#include "parse.h"

namespace tack {

// Adds the type `Kernel` and the functions make_kernel, install and uninstall.
void add_kernel_type(nb::module_& module);

}  // namespace tack
