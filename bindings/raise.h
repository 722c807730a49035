// Raising a Python exception from C++ that Python has called.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace tack {

namespace nb = nanobind;

[[noreturn]] inline void raise(PyObject* type, const std::string& message) {
  PyErr_SetString(type, message.c_str());
  throw nb::python_error();
}

}  // namespace tack
