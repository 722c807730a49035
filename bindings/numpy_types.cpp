#include "numpy_types.h"

#include "numpy_layout.h"

namespace tack {

std::atomic<const NumPyTypes*> numpy_types{nullptr};
std::atomic<PyTypeObject*> ndarray_type{nullptr};

namespace {

// A new reference, or null.
PyTypeObject* type_named(PyObject* numpy, const char* name) {
  PyObject* found = PyObject_GetAttrString(numpy, name);
  if (found != nullptr && PyType_Check(found)) return reinterpret_cast<PyTypeObject*>(found);
  PyErr_Clear();
  Py_XDECREF(found);
  return nullptr;
}

}  // namespace

bool find_numpy_types() {
  if (numpy_types.load(std::memory_order_acquire) != nullptr) return true;
  PyObject* modules = PyImport_GetModuleDict();  // borrowed
  PyObject* numpy = modules == nullptr ? nullptr : PyDict_GetItemString(modules, "numpy");
  if (numpy == nullptr) return false;
  NumPyTypes found{type_named(numpy, "ndarray"), type_named(numpy, "bool_"),
                   type_named(numpy, "integer"), type_named(numpy, "floating"),
                   type_named(numpy, "timedelta64")};
  const bool complete =
      found.ndarray != nullptr && found.boolean != nullptr && found.integer != nullptr &&
      found.floating != nullptr && found.timedelta != nullptr &&
      found.ndarray->tp_basicsize >= static_cast<Py_ssize_t>(sizeof(PyArrayObject_fields));
  if (!complete) return false;  // NumPy is being imported; ask again at the next call
  // The types live as long as the process, and so does this record of them.
  const NumPyTypes* expected = nullptr;
  const auto* record = new NumPyTypes(found);
  if (!numpy_types.compare_exchange_strong(expected, record)) delete record;
  ndarray_type.store(found.ndarray, std::memory_order_release);
  return true;
}

}  // namespace tack
