// Numbers of other types as the Python numbers they hold: NumPy scalars, subclasses of float and
// int, and whatever else is a numbers.Real.
#pragma once

#include <Python.h>

#include "parse.h"

namespace tack {

// A new reference to the float, int or bool that `object` holds. An empty object if it is one
// already or is no number; then an exception is set if asking or converting raised one.
nb::object plain_number(PyObject* object);

}  // namespace tack
