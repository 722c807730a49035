// NumPy's types, found once when the first launch record is made. Without records there is nothing
// to recognise arrays for.
#pragma once

#include <Python.h>

#include <array>

#include "dtype.h"
#include "numpy_layout.h"

namespace tack {

struct NumPy {
  PyTypeObject* ndarray;
  PyTypeObject* boolean;
  PyTypeObject* integer;
  PyTypeObject* floating;
  PyTypeObject* timedelta;  // an np.integer by inheritance, and no number
  // The descriptor that NumPy itself gives to arrays of each dtype.
  std::array<const PyArray_Descr*, kDTypes.size()> descr;
};

// Finds the types, importing NumPy if nobody has; raises what that raises.
void import_numpy();

bool is_numpy_known();
const NumPy& numpy();  // only once they are known; never changes

// Whether an object is an ndarray or of a subclass, but a masked one: a kernel sees no mask. False
// before NumPy is known.
bool is_ndarray(PyObject* object);

}  // namespace tack
