// NumPy's structs, read directly: about 1.4 ns an array where the C API costs 10. Only the fields
// that NumPy 1.26 and 2 agree on are touched (so never `elsize`), and nothing is imported.
#pragma once

#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/ndarraytypes.h>

#include "dtype.h"

namespace tack {

static_assert(NPY_BYTE_ORDER == NPY_LITTLE_ENDIAN,
              "slots are packed as 64-bit integers whose low bytes are the narrow members");

struct TypeNumbers {
  int first;
  int second;  // equal to first where only one C type has the width
};

// NumPy has one type number for each C type, so that two of them may be the same dtype: `long` is
// as wide as `long long` on Linux and as `int` on Windows.
inline constexpr TypeNumbers type_numbers(DType type) {
  constexpr bool kLongIs64 = sizeof(long) == 8;
  switch (type) {
    case DType::boolean:
      return {NPY_BOOL, NPY_BOOL};
    case DType::i8:
      return {NPY_BYTE, NPY_BYTE};
    case DType::i16:
      return {NPY_SHORT, NPY_SHORT};
    case DType::i32:
      return {NPY_INT, kLongIs64 ? NPY_INT : NPY_LONG};
    case DType::i64:
      return {NPY_LONGLONG, kLongIs64 ? NPY_LONG : NPY_LONGLONG};
    case DType::u8:
      return {NPY_UBYTE, NPY_UBYTE};
    case DType::u16:
      return {NPY_USHORT, NPY_USHORT};
    case DType::u32:
      return {NPY_UINT, kLongIs64 ? NPY_UINT : NPY_ULONG};
    case DType::u64:
      return {NPY_ULONGLONG, kLongIs64 ? NPY_ULONG : NPY_ULONGLONG};
    case DType::f16:
      return {NPY_HALF, NPY_HALF};
    case DType::f8e4m3:  // ml_dtypes registers these three: see ml_dtypes_descr
    case DType::f8e5m2:
    case DType::bf16:
      return {-1, -1};
    case DType::f32:
      return {NPY_FLOAT, NPY_FLOAT};
    case DType::f64:
      return {NPY_DOUBLE, NPY_DOUBLE};
  }
  return {-1, -1};
}

// What the flags of an array with the elements one after the other in C order have, each aligned.
inline constexpr int kContiguous = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;

inline const PyArrayObject_fields& array_fields(PyObject* array) {
  return *reinterpret_cast<const PyArrayObject_fields*>(array);
}

}  // namespace tack
