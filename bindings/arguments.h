// Checking the arguments of a call against a variant and packing them into slots, in one pass.
//
// Only plain objects are looked at here: ndarrays, exact floats, ints and bools. Nothing in this
// file runs Python code or raises, so arguments cannot change while they are read; number types of
// other kinds are turned into plain ones first (numbers.h).
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>

#include "launchable.h"
#include "numpy_layout.h"
#include "numpy_types.h"

namespace tack {

#define TACK_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define TACK_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

struct ByteRange {
  std::uintptr_t begin;
  std::size_t size;
};

// The arguments of one call in a kernel's terms. Lives on the stack; only what is used is written.
struct PackedCall {
  std::uint64_t elements;            // of all arrays
  ByteRange arrays[kMaxParameters];  // in the order of the array parameters
  tack_slot slots[kMaxSlots + 1];    // the last one used is the sink
};

// True and *value if `object` is an exact int that an int64 holds.
inline bool exact_int64(PyObject* object, std::int64_t* value) {
  if (!PyLong_CheckExact(object)) return false;
#if PY_VERSION_HEX >= 0x030C0000
  auto* number = reinterpret_cast<PyLongObject*>(object);
  if (TACK_LIKELY(PyUnstable_Long_IsCompact(number))) {
    *value = PyUnstable_Long_CompactValue(number);
    return true;
  }
#else
  auto* number = reinterpret_cast<PyLongObject*>(object);
  const Py_ssize_t size = Py_SIZE(number);  // carries the sign
  if (TACK_LIKELY(size >= -1 && size <= 1)) {
    *value = static_cast<std::int64_t>(number->ob_digit[0]) * size;
    return true;
  }
#endif
  int overflow = 0;
  *value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}

// The scalars that the inlined pass leaves over: conversions that an annotation asks for.
bool pack_converted_scalar(const Parameter& parameter, PyObject* object, tack_slot& slot);

inline bool pack_scalar(const Parameter& parameter, PyObject* object, tack_slot& slot) {
  switch (parameter.kind) {
    case Parameter::Kind::f32:
      if (TACK_LIKELY(PyFloat_CheckExact(object))) {
        slot.u64 = 0;
        slot.f32 = static_cast<float>(PyFloat_AS_DOUBLE(object));
        return true;
      }
      break;
    case Parameter::Kind::f64:
      if (TACK_LIKELY(PyFloat_CheckExact(object))) {
        slot.f64 = PyFloat_AS_DOUBLE(object);
        return true;
      }
      break;
    case Parameter::Kind::integer: {
      const DTypeFacts& type = facts(parameter.type);
      std::int64_t value;
      if (TACK_LIKELY(exact_int64(object, &value))) {
        slot.i64 = value;
        return value >= type.min && value <= static_cast<std::int64_t>(type.max);
      }
      break;
    }
    case Parameter::Kind::boolean:
      slot.u64 = object == Py_True;
      return PyBool_Check(object);
    default:
      break;
  }
  return parameter.annotated && pack_converted_scalar(parameter, object, slot);
}

inline bool pack_array(const Parameter& parameter, PyObject* object, ByteRange& range,
                       PackedCall& call) {
  if (TACK_UNLIKELY(!is_ndarray(object))) return false;
  const PyArrayObject_fields& array = array_fields(object);
  const auto& descr = *array.descr;
  const int type_number = descr.type_num;
  const bool fits =
      ((type_number == parameter.type_number) | (type_number == parameter.other_type_number)) &
      (array.nd == parameter.rank) &
      ((array.flags & parameter.required_flags) == parameter.required_flags) &
      (descr.byteorder != NPY_OPPBYTE);
  if (TACK_UNLIKELY(!fits)) return false;
  const npy_intp* extent = array.dimensions;
  auto elements = static_cast<std::uint64_t>(extent[0]);
  call.slots[parameter.extents[0]].i64 = extent[0];
  if (parameter.rank > 1) {
    elements *= static_cast<std::uint64_t>(extent[1]);
    call.slots[parameter.extents[1]].i64 = extent[1];
    if (parameter.rank > 2) {
      elements *= static_cast<std::uint64_t>(extent[2]);
      call.slots[parameter.extents[2]].i64 = extent[2];
    }
  }
  if (TACK_UNLIKELY(parameter.pinned)) {
    for (std::size_t axis = 0; axis < parameter.rank; ++axis) {
      if (parameter.pins[axis] >= 0 && parameter.pins[axis] != extent[axis]) return false;
    }
  }
  call.slots[parameter.slot].ptr = array.data;
  range.begin = reinterpret_cast<std::uintptr_t>(array.data);
  range.size = elements * facts(parameter.type).bytes;
  call.elements += elements;
  return true;
}

// Whether the arguments fit the variant, which packs them. `arguments` has one object for each
// parameter.
inline bool pack(const Launchable& variant, PyObject* const* arguments, PackedCall& call) {
  call.elements = 0;
  ByteRange* range = call.arrays;
  for (const Parameter& parameter : variant.parameters()) {
    PyObject* object = *arguments++;
    if (parameter.kind == Parameter::Kind::array) {
      if (!pack_array(parameter, object, *range++, call)) return false;
    } else if (!pack_scalar(parameter, object, call.slots[parameter.slot])) {
      return false;
    }
  }
  for (const SlotCopy& copy : variant.copies()) call.slots[copy.to] = call.slots[copy.from];
  return true;
}

// Whether no written array shares a byte with another array of the call. An empty array shares
// none; the same array passed twice is fine as long as it is only read.
inline bool is_disjoint(const Launchable& variant, const PackedCall& call) {
  for (const ArrayPair& pair : variant.hazards()) {
    const ByteRange& a = call.arrays[pair.first];
    const ByteRange& b = call.arrays[pair.second];
    const bool meet = (a.begin - b.begin < b.size) | (b.begin - a.begin < a.size);
    if (meet && a.size != 0 && b.size != 0) return false;
  }
  return true;
}

std::uint64_t hash_of(PyObject* const* arguments, std::size_t count);

}  // namespace tack
