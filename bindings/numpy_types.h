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
  // (Null for bf16, which is not NumPy's.)
  std::array<const PyArray_Descr*, kDTypes.size()> descr;
};

// Finds the types, importing NumPy if nobody has; raises what that raises.
void import_numpy();

bool is_numpy_known();
const NumPy& numpy();  // only once they are known; never changes

// The descriptor of ml_dtypes.bfloat16, or null: while nobody has imported ml_dtypes there are no
// such arrays. Never imports it; raises nothing.
const PyArray_Descr* bfloat16_descr();

// Whether NumPy's type number is one of the dtype.
bool has_number(DType type, int number);

// Whether an object is an ndarray or of a subclass, but a masked one: a kernel sees no mask. False
// before NumPy is known.
bool is_ndarray(PyObject* object);

}  // namespace tack
