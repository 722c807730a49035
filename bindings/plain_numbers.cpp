#include "plain_numbers.h"

#include "numpy_types.h"

namespace tack {
namespace {

bool is_a(PyObject* object, PyTypeObject* type) {
  return PyType_IsSubtype(Py_TYPE(object), type) != 0;
}

// numbers.Real is an abstract class: asking runs Python code.
bool is_real(PyObject* object) {
  const nb::object numbers = nb::steal(PyImport_ImportModule("numbers"));
  if (!numbers.is_valid()) return false;
  const nb::object real = nb::steal(PyObject_GetAttrString(numbers.ptr(), "Real"));
  return real.is_valid() && PyObject_IsInstance(object, real.ptr()) == 1;
}

nb::object as_float(PyObject* object) {
  const double value = PyFloat_AsDouble(object);
  if (value == -1.0 && PyErr_Occurred() != nullptr) {
    // Too large for a float is a mismatch like any other; what else was raised is the caller's.
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) PyErr_Clear();
    return {};
  }
  return nb::steal(PyFloat_FromDouble(value));
}

}  // namespace

nb::object plain_number(PyObject* object) {
  if (PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object)) return {};
  if (!is_numpy_known()) return {};  // there is no variant yet that could take it
  if (Py_TYPE(object) == numpy().ndarray) return {};
  if (PyFloat_Check(object)) return nb::steal(PyFloat_FromDouble(PyFloat_AS_DOUBLE(object)));
  // int.__pos__ gives the plain int of a subclass, whatever the subclass overrides.
  if (PyLong_Check(object)) return nb::steal(PyLong_Type.tp_as_number->nb_positive(object));
  if (is_a(object, numpy().ndarray)) return {};
  if (is_a(object, numpy().boolean)) {
    const int truth = PyObject_IsTrue(object);
    return truth < 0 ? nb::object() : nb::borrow(truth != 0 ? Py_True : Py_False);
  }
  if (is_a(object, numpy().integer)) {
    return is_a(object, numpy().timedelta) ? nb::object() : nb::steal(PyNumber_Index(object));
  }
  if (is_a(object, numpy().floating)) return as_float(object);
  if (is_scalar_of_ml_dtypes(object)) return as_float(object);
  return is_real(object) ? as_float(object) : nb::object();
}

}  // namespace tack
