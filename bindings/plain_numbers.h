// Numbers of other types as the Python numbers they hold: NumPy scalars, subclasses of float and
// int, and, where an annotation asks for a conversion, any numbers.Real.
#pragma once

#include <Python.h>

#include <cstddef>

#include "parse.h"

namespace tack {

// A new reference to the float, int or bool that `object` holds; an empty object, without an
// exception, if it is one already or is no number; an empty object with an exception if the
// conversion raised one.
nb::object plain_number(PyObject* object, bool annotated);

}  // namespace tack
