#include "arguments.h"

#include "signature_hash.h"

namespace tack {
namespace {

// The dtype that an array has for a kernel; nothing for those that no kernel takes.
bool array_dtype(PyObject* array, DType* type) {
  const int number = array_fields(array).descr->type_num;
  for (std::size_t i = static_cast<std::size_t>(DType::i8); i < kDTypes.size(); ++i) {
    const TypeNumbers numbers = type_numbers(static_cast<DType>(i));
    if (number == numbers.first || number == numbers.second) {
      *type = static_cast<DType>(i);
      return true;
    }
  }
  return false;
}

// Nothing is known to raise here but an int too large for a double.
bool real_number(PyObject* object, double* value) {
  if (PyFloat_CheckExact(object)) {
    *value = PyFloat_AS_DOUBLE(object);
    return true;
  }
  if (!PyLong_CheckExact(object) && !PyBool_Check(object)) return false;
  *value = PyLong_AsDouble(object);
  if (*value == -1.0 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return false;
  }
  return true;
}

bool unsigned_number(PyObject* object, std::uint64_t* value) {
  if (!PyLong_CheckExact(object) && !PyBool_Check(object)) return false;
  *value = PyLong_AsUnsignedLongLong(object);
  if (*value == UINT64_MAX && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return false;
  }
  return true;
}

}  // namespace

bool pack_converted_scalar(const Parameter& parameter, PyObject* object, tack_slot& slot) {
  double real;
  switch (parameter.kind) {
    case Parameter::Kind::f32:
      if (!real_number(object, &real)) return false;
      slot.u64 = 0;
      slot.f32 = static_cast<float>(real);
      return true;
    case Parameter::Kind::f64:
      return real_number(object, &slot.f64);
    case Parameter::Kind::u64:
      return unsigned_number(object, &slot.u64);
    case Parameter::Kind::integer:
      slot.i64 = object == Py_True;
      return PyBool_Check(object);
    default:
      return false;
  }
}

std::uint64_t hash_of(PyObject* const* arguments, std::size_t count) {
  SignatureHash hash;
  for (std::size_t i = 0; i < count; ++i) {
    DType type;
    if (is_ndarray(arguments[i]) && array_dtype(arguments[i], &type)) {
      hash.add_array(type, static_cast<std::size_t>(array_fields(arguments[i]).nd));
    } else {
      hash.add_scalar();
    }
  }
  return hash.value();
}

}  // namespace tack
