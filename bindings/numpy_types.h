// NumPy's types, taken from sys.modules when a call first needs them: tack imports nothing for
// itself, and without NumPy there are no arrays to recognise.
#pragma once

#include <Python.h>

#include <atomic>

namespace tack {

struct NumPyTypes {
  PyTypeObject* ndarray;
  PyTypeObject* boolean;
  PyTypeObject* integer;
  PyTypeObject* floating;
  PyTypeObject* timedelta;  // an np.integer by inheritance, and no number
};

// Null until find_numpy_types() has found them; never changes afterwards.
extern std::atomic<const NumPyTypes*> numpy_types;
extern std::atomic<PyTypeObject*> ndarray_type;

// True if NumPy's types are known, now or from before. Raises nothing.
bool find_numpy_types();

inline bool is_ndarray(PyObject* object) {
  PyTypeObject* ndarray = ndarray_type.load(std::memory_order_relaxed);
  PyTypeObject* type = Py_TYPE(object);
  return type == ndarray || (ndarray != nullptr && PyType_IsSubtype(type, ndarray));
}

}  // namespace tack
