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
  // (Null for those that are not NumPy's.)
  std::array<const PyArray_Descr*, kDTypes.size()> descr;
};

// Finds the types, importing NumPy if nobody has; raises what that raises.
void import_numpy();

bool is_numpy_known();
const NumPy& numpy();  // only once they are known; never changes

// The descriptor of a dtype that NumPy gets from ml_dtypes, or null: while nobody has imported that
// there are no such arrays. Never imports it; raises nothing. Null for NumPy's own dtypes.
const PyArray_Descr* ml_dtypes_descr(DType type);

// Whether an object is a scalar of one of those dtypes.
bool is_scalar_of_ml_dtypes(PyObject* object);

// The descriptor of arrays of a dtype, NumPy's own or that of ml_dtypes.
const PyArray_Descr* descr_of(DType type);

// Whether NumPy's type number is one of the dtype.
bool has_number(DType type, int number);

// Whether an object is an ndarray or of a subclass, but a masked one: a kernel sees no mask. False
// before NumPy is known.
bool is_ndarray(PyObject* object);

}  // namespace tack
