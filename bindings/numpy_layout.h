// NumPy's structs, read directly: about 1.4 ns an array where the C API costs 10. Only the fields
// that NumPy 1.26 and 2 agree on are touched (so never `elsize`), and nothing is imported.
#pragma once

#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/ndarraytypes.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

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
    case DType::f32:
      return {NPY_FLOAT, NPY_FLOAT};
    case DType::f64:
      return {NPY_DOUBLE, NPY_DOUBLE};
  }
  return {-1, -1};
}

inline const PyArrayObject_fields& array_fields(PyObject* array) {
  return *reinterpret_cast<const PyArrayObject_fields*>(array);
}

// Type number and byte order are in one word of the descriptor, and compared as one. Of the
// characters that stand for a byte order, only that for the foreign one has this bit.
inline constexpr std::uint8_t kForeignOrder = 2;
static_assert((NPY_OPPBYTE & kForeignOrder) != 0 && (NPY_NATBYTE & kForeignOrder) == 0 &&
              (NPY_NATIVE & kForeignOrder) == 0 && (NPY_IGNORE & kForeignOrder) == 0);
static_assert(offsetof(PyArray_Descr, byteorder) == offsetof(PyArray_Descr, kind) + 2 &&
              offsetof(PyArray_Descr, type_num) == offsetof(PyArray_Descr, kind) + 4);

inline constexpr std::uint64_t native_type_word(int type_number) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(type_number)) << 32;
}

// Equal to native_type_word(n) for an array of NumPy's type n in native byte order.
inline std::uint64_t type_word(const PyArrayObject_fields& array) {
  constexpr std::uint64_t kMask = native_type_word(-1) | (std::uint64_t{kForeignOrder} << 16);
  std::uint64_t word;
  std::memcpy(&word, &array.descr->kind, sizeof word);
  return word & kMask;
}

}  // namespace tack
