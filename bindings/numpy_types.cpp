#include "numpy_types.h"

#include <atomic>

#include "exceptions.h"

namespace tack {

namespace {

std::atomic<const NumPy*> known{nullptr};

PyTypeObject* type_named(const nb::object& module, const char* name) {
  const nb::object found = module.attr(name);
  if (!PyType_Check(found.ptr())) raise(PyExc_TypeError, "numpy has no such type");
  return reinterpret_cast<PyTypeObject*>(found.ptr());
}

NumPy types_of(const nb::object& module) {
  NumPy found{type_named(module, "ndarray"),     type_named(module, "bool_"),
              type_named(module, "integer"),     type_named(module, "floating"),
              type_named(module, "timedelta64"), {}};
  constexpr auto kLeastSize = static_cast<Py_ssize_t>(sizeof(PyArrayObject_fields));
  if (found.ndarray->tp_basicsize < kLeastSize) raise(PyExc_TypeError, "not NumPy's ndarray");
  const nb::object dtype = module.attr("dtype");
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    const nb::object descr = dtype(nb::str(kDTypes[i].numpy_name.data()));
    // NumPy keeps these alive as long as the process, and so does this reference.
    found.descr[i] = reinterpret_cast<const PyArray_Descr*>(descr.inc_ref().ptr());
  }
  return found;
}

// numpy.ma is imported when it is first used: where it is not, nothing is masked.
bool is_masked(PyObject* object) {
  PyObject* modules = PyImport_GetModuleDict();  // borrowed
  PyObject* module = PyDict_GetItemString(modules, "numpy.ma");
  if (module == nullptr) return false;
  const nb::object type = nb::steal(PyObject_GetAttrString(module, "MaskedArray"));
  if (!type.is_valid()) {  // it is being imported
    PyErr_Clear();
    return false;
  }
  return PyType_Check(type.ptr()) &&
         PyType_IsSubtype(Py_TYPE(object), reinterpret_cast<PyTypeObject*>(type.ptr())) != 0;
}

}  // namespace

void import_numpy() {
  if (is_numpy_known()) return;
  const auto* found = new NumPy(types_of(nb::module_::import_("numpy")));
  const NumPy* expected = nullptr;
  if (!known.compare_exchange_strong(expected, found)) delete found;  // another thread's stays
}

bool is_numpy_known() { return known.load(std::memory_order_acquire) != nullptr; }

const NumPy& numpy() { return *known.load(std::memory_order_acquire); }

bool is_ndarray(PyObject* object) {
  if (!is_numpy_known()) return false;
  PyTypeObject* ndarray = numpy().ndarray;
  if (Py_TYPE(object) == ndarray) return true;
  return PyType_IsSubtype(Py_TYPE(object), ndarray) != 0 && !is_masked(object);
}

}  // namespace tack
