// The path of a call whose arguments are like those of the call before: plain ndarrays, floats and
// small ints, and a kernel whose loop is as long as one of its slots says.
//
// It makes no call but that of the kernel. Whatever is not plain leaves it for good and is done
// again from the start elsewhere, so that nothing has to be kept over a call and the compiler
// saves no register. Its loop over the parameters is unrolled over those that lie in the record.
#pragma once

#include <Python.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "arguments.h"
#include "launchable.h"
#include "numpy_layout.h"

namespace tack {

// Hints: the likely side falls through.
#define TACK_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define TACK_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

// Work below this is not worth the 22-47 ns of releasing the GIL, nor the wait to get it back
// while another Python thread is busy.
inline constexpr std::uint64_t kReleaseGilFrom = 65536;

inline bool is_in_range(DType type, std::int64_t value) {
  return value < 0 ? value >= facts(type).min
                   : static_cast<std::uint64_t>(value) <= facts(type).max;
}

// Writes what the kernel and the overlap check want to know of an array. The number of elements.
[[gnu::always_inline]] inline std::uint64_t pack_fields(const Parameter& parameter,
                                                        const PyArrayObject_fields& array,
                                                        PackedCall& call) {
  const npy_intp* extents = array.dimensions;
  auto elements = static_cast<std::uint64_t>(extents[0]);
  call.slots[parameter.extents[0]].i64 = extents[0];
  if (parameter.kind == Parameter::Kind::array) {
    elements *= static_cast<std::uint64_t>(extents[1]);
    call.slots[parameter.extents[1]].i64 = extents[1];
    if (parameter.rank > 2) {
      elements *= static_cast<std::uint64_t>(extents[2]);
      call.slots[parameter.extents[2]].i64 = extents[2];
    }
  }
  const std::size_t slot = parameter.slot;
  call.slots[slot].ptr = array.data;
  call.ends[slot] = array.data + elements * parameter.item_size;
  return elements;
}

// Addresses are compared as numbers: those of different arrays have no order in C++.
inline std::uintptr_t begin_of(const PackedCall& call, std::size_t slot) {
  return reinterpret_cast<std::uintptr_t>(call.slots[slot].ptr);
}

inline std::uintptr_t end_of(const PackedCall& call, std::size_t slot) {
  return reinterpret_cast<std::uintptr_t>(call.ends[slot]);
}

// Whether the arrays of each pair lie one after the other.
[[gnu::always_inline]] inline bool lie_apart(const ArrayPair* pairs, std::size_t count,
                                             const PackedCall& call) {
  for (const ArrayPair* pair = pairs; pair != pairs + count; ++pair) {
    if (TACK_LIKELY(end_of(call, pair->first) <= begin_of(call, pair->second))) continue;
    if (TACK_UNLIKELY(end_of(call, pair->second) > begin_of(call, pair->first))) return false;
  }
  return true;
}

namespace warm {

// The value of an exact int of one digit, which is all that can be read without a call.
inline bool small_int(PyObject* object, std::int64_t* value) {
  auto* number = reinterpret_cast<PyLongObject*>(object);
#if PY_VERSION_HEX >= 0x030C0000
  *value = PyUnstable_Long_CompactValue(number);
  return PyUnstable_Long_IsCompact(number);
#else
  const Py_ssize_t size = Py_SIZE(number);  // carries the sign
  *value = static_cast<std::int64_t>(number->ob_digit[0]) * size;
  return size >= -1 && size <= 1;
#endif
}

// An argument that has the plain type of its parameter.
[[gnu::always_inline]] inline bool pack_scalar(const Parameter& parameter, PyObject* object,
                                               tack_slot& slot) {
  using Kind = Parameter::Kind;
  if (TACK_LIKELY(parameter.kind == Kind::f32)) {
    slot.f32 = static_cast<float>(PyFloat_AS_DOUBLE(object));
    return true;
  }
  if (parameter.kind == Kind::f64) {
    slot.f64 = PyFloat_AS_DOUBLE(object);
    return true;
  }
  if (parameter.kind == Kind::boolean) {
    slot.u64 = object == Py_True;
    return true;
  }
  if (parameter.kind == Kind::unreachable || parameter.kind == Kind::narrow_float) return false;
  return small_int(object, &slot.i64) && is_in_range(parameter.type, slot.i64);
}

// `rank` is the parameter's.
[[gnu::always_inline]] inline bool pack_array(const Parameter& parameter, PyObject* object,
                                              int rank, std::uint64_t& elements, PackedCall& call) {
  const PyArrayObject_fields& array = array_fields(object);
  if (TACK_UNLIKELY(array.descr != parameter.descr)) return false;
  if (TACK_UNLIKELY(array.nd != rank)) return false;
  if (TACK_UNLIKELY((~array.flags & parameter.required_flags) != 0)) return false;
  elements += pack_fields(parameter, array, call);
  return true;
}

// Packs the parameters that lie in the record.
template <std::size_t kIndex = 0>
[[gnu::always_inline]] inline bool pack_first(const Launchable& variant, PyObject* const* arguments,
                                              std::uint64_t& elements, PackedCall& call) {
  using Kind = Parameter::Kind;
  if constexpr (kIndex < Launchable::kInline) {
    const Parameter& parameter = variant.first()[kIndex];
    if (TACK_UNLIKELY(parameter.kind != Kind::vector) && parameter.kind == Kind::end) return true;
    PyObject* object = arguments[kIndex];
    if (TACK_UNLIKELY(Py_TYPE(object) != parameter.plain_type)) return false;
    const bool fits = TACK_LIKELY(parameter.kind == Kind::vector)
                          ? pack_array(parameter, object, 1, elements, call)
                      : parameter.kind == Kind::array
                          ? pack_array(parameter, object, parameter.rank, elements, call)
                          : pack_scalar(parameter, object, call.slots[parameter.slot]);
    if (TACK_UNLIKELY(!fits)) return false;
    return pack_first<kIndex + 1>(variant, arguments, elements, call);
  } else {
    return true;
  }
}

}  // namespace warm
}  // namespace tack
