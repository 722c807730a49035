// Exceptions on their way between C++ and Python.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <new>
#include <string>

namespace tack {

namespace nb = nanobind;

[[noreturn]] inline void raise(PyObject* type, const std::string& message) {
  PyErr_SetString(type, message.c_str());
  throw nb::python_error();
}

// Runs `body` for a slot of a type, which must not throw: null with the exception set instead.
template <typename Body>
PyObject* guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

}  // namespace tack
