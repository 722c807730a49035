#include "parse.h"

namespace tack {

void refuse(std::string_view where, std::string_view what) {
  std::string message = "malformed launch record: ";
  message.append(where).append(": ").append(what);
  raise(PyExc_ValueError, message);
}

Items::Items(nb::handle object, std::string_view where) : where_(where) {
  if (!PyList_Check(object.ptr()) && !PyTuple_Check(object.ptr())) {
    refuse(where_, "a list was expected");
  }
  // A list could change while it is read, a tuple cannot.
  sequence_ = nb::steal(PySequence_Tuple(object.ptr()));
  if (!sequence_.is_valid()) throw nb::python_error();
  size_ = static_cast<std::size_t>(PyTuple_GET_SIZE(sequence_.ptr()));
}

nb::handle Items::operator[](std::size_t index) const {
  if (index >= size_) refuse(where_, "an operand is missing");
  return PyTuple_GET_ITEM(sequence_.ptr(), static_cast<Py_ssize_t>(index));
}

std::string_view Items::text(std::size_t index) const {
  nb::handle item = (*this)[index];
  if (!PyUnicode_Check(item.ptr())) refuse(where_, "a string was expected");
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(item.ptr(), &size);
  if (data == nullptr) {
    PyErr_Clear();
    refuse(where_, "a string is not valid Unicode");
  }
  return {data, static_cast<std::size_t>(size)};
}

std::int64_t Items::integer(std::size_t index, std::int64_t min, std::int64_t max) const {
  nb::handle item = (*this)[index];
  if (!PyLong_Check(item.ptr()) || PyBool_Check(item.ptr())) {
    refuse(where_, "an integer was expected");
  }
  int overflow = 0;
  const std::int64_t value = PyLong_AsLongLongAndOverflow(item.ptr(), &overflow);
  if (overflow != 0 || value < min || value > max) {
    refuse(where_, "an integer is outside " + std::to_string(min) + " .. " + std::to_string(max));
  }
  return value;
}

std::size_t Items::index(std::size_t index, std::size_t count) const {
  return static_cast<std::size_t>(integer(index, 0, static_cast<std::int64_t>(count) - 1));
}

std::int64_t bits_of(nb::handle object, std::string_view where) {
  if (!PyLong_Check(object.ptr())) refuse(where, "an integer was expected");
  int overflow = 0;
  const std::int64_t value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  if (overflow == 0) return value;
  const std::uint64_t large = PyLong_AsUnsignedLongLong(object.ptr());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    refuse(where, "an integer needs more than 64 bits");
  }
  return static_cast<std::int64_t>(large);
}

std::int64_t Items::bits(std::size_t index) const { return bits_of((*this)[index], where_); }

bool Items::boolean(std::size_t index) const {
  nb::handle item = (*this)[index];
  if (!PyBool_Check(item.ptr())) refuse(where_, "true or false was expected");
  return item.ptr() == Py_True;
}

DType Items::dtype(std::size_t index) const {
  const std::string_view name = text(index);
  const auto type = dtype_named(name);
  if (!type) refuse(where_, "'" + std::string(name) + "' is not a dtype");
  return *type;
}

void Items::expect_size(std::size_t size) const {
  if (size_ != size) {
    refuse(where_, "it has " + std::to_string(size_) + " entries, not " + std::to_string(size));
  }
}

}  // namespace tack
