#include "arguments.h"

#include <algorithm>
#include <cmath>

#include "numpy_layout.h"
#include "numpy_types.h"
#include "signature_hash.h"
#include "warm_path.h"

namespace tack {
namespace {

// The dtype that an array has for a kernel; nothing for those that no kernel takes.
bool array_dtype(PyObject* array, DType* type) {
  const int number = array_fields(array).descr->type_num;
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    if (has_number(static_cast<DType>(i), number)) {
      *type = static_cast<DType>(i);
      return true;
    }
  }
  return false;
}

bool is_integer(PyObject* object, bool or_bool) {
  return PyLong_CheckExact(object) || (or_bool && PyBool_Check(object));
}

// Converting an exact int raises only if it does not fit, which is a mismatch like any other.
bool has_not_fitted() {
  if (PyErr_Occurred() == nullptr) return false;
  PyErr_Clear();
  return true;
}

// A float is taken as it is; an annotation also takes the value of an int or bool.
bool real_number(PyObject* object, bool annotated, double* value) {
  if (PyFloat_CheckExact(object)) {
    *value = PyFloat_AS_DOUBLE(object);
    return true;
  }
  if (!annotated || !is_integer(object, true)) return false;
  *value = PyLong_AsDouble(object);
  return *value != -1.0 || !has_not_fitted();
}

// How a float of 8 or 16 bits is laid out: `precision` counts the bits of its significand, `least`
// is the exponent of its least subnormal, `beyond` are the bits of infinity, or of NaN where there
// is none.
struct Narrow {
  int precision;
  int least;
  std::uint32_t beyond;
  std::uint32_t sign;
};

Narrow narrow_layout(DType type) {
  switch (type) {
    case DType::f8e4m3:
      return {4, -9, 0x7F, 0x80};
    case DType::f8e5m2:
      return {3, -16, 0x7C, 0x80};
    case DType::f16:
      return {11, -24, 0x7C00, 0x8000};
    default:
      return {8, -133, 0x7F80, 0x8000};
  }
}

// A double rounded to nearest with ties to even, as the bits of a narrow float.
std::uint16_t rounded(double value, DType type) {
  const auto [precision, least, beyond, sign_bit] = narrow_layout(type);
  const std::uint32_t sign = std::signbit(value) ? sign_bit : 0;
  std::uint32_t magnitude = beyond;
  if (std::isnan(value)) {
    magnitude |= 1U << (precision - 2);
  } else if (std::isfinite(value)) {
    int exponent = 0;
    std::frexp(value, &exponent);
    const int quantum = value == 0 ? least : std::max(exponent - precision, least);
    // Exact, but for what is far beyond the range; nearbyint rounds ties to even.
    const double steps = std::nearbyint(std::ldexp(std::fabs(value), -quantum));
    const double all = steps + std::ldexp(quantum - least, precision - 1);
    magnitude = static_cast<std::uint32_t>(std::min<double>(all, beyond));
  }
  return static_cast<std::uint16_t>(sign | magnitude);
}

bool signed_number(PyObject* object, const Parameter& parameter, std::int64_t* value) {
  if (!is_integer(object, parameter.annotated)) return false;
  int overflow = 0;
  *value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0 && is_in_range(parameter.type, *value);
}

bool unsigned_number(PyObject* object, std::uint64_t* value) {
  if (!is_integer(object, true)) return false;
  *value = PyLong_AsUnsignedLongLong(object);
  return *value != UINT64_MAX || !has_not_fitted();
}

bool pack_scalar(const Parameter& parameter, PyObject* object, tack_slot& slot) {
  double real;
  switch (parameter.kind) {
    case Parameter::Kind::f32:
      if (!real_number(object, parameter.annotated, &real)) return false;
      slot.u64 = 0;
      slot.f32 = static_cast<float>(real);
      return true;
    case Parameter::Kind::f64:
      return real_number(object, parameter.annotated, &slot.f64);
    case Parameter::Kind::narrow_float:
      if (!real_number(object, parameter.annotated, &real)) return false;
      slot.u64 = rounded(real, parameter.type);
      return true;
    case Parameter::Kind::integer:
      return signed_number(object, parameter, &slot.i64);
    case Parameter::Kind::u64:
      return unsigned_number(object, &slot.u64);
    case Parameter::Kind::boolean:
      slot.u64 = object == Py_True;
      return PyBool_Check(object);
    default:
      return false;
  }
}

bool has_dtype(const Parameter& parameter, const PyArrayObject_fields& array) {
  if (array.descr == parameter.descr) return true;
  return has_number(parameter.type, array.descr->type_num) && array.descr->byteorder != NPY_OPPBYTE;
}

bool is_contiguous(const PyArrayObject_fields& array) { return (~array.flags & kContiguous) == 0; }

bool has_layout(const Parameter& parameter, const PyArrayObject_fields& array) {
  return array.nd == parameter.rank && (~array.flags & parameter.required_flags) == 0 &&
         is_contiguous(array) == parameter.takes_contiguous;
}

// Packs an array of any layout. Addresses are numbers here: strides may lead anywhere from `data`,
// and those of an array without elements out of the address space. The number of elements.
std::uint64_t pack_general(const Parameter& parameter, const PyArrayObject_fields& array,
                           const AxisSlots* axes, PackedCall& call) {
  auto low = reinterpret_cast<std::uintptr_t>(array.data);
  std::uintptr_t high = low + parameter.item_size;
  std::uint64_t elements = 1;
  bool is_empty = false;
  for (std::size_t i = 0; i < parameter.rank; ++i) {
    const npy_intp extent = array.dimensions[i];
    const npy_intp stride = array.strides[i];
    call.slots[axes[i].extent].i64 = extent;
    call.slots[axes[i].stride].i64 = stride;
    elements *= static_cast<std::uint64_t>(extent);
    is_empty |= extent == 0;
    (stride < 0 ? low : high) +=
        static_cast<std::uintptr_t>(extent - 1) * static_cast<std::uintptr_t>(stride);
  }
  call.slots[parameter.slot].ptr = array.data;
  call.slots[parameter.range].u64 = low;
  call.ends[parameter.range] = reinterpret_cast<const char*>(is_empty ? low : high);
  return elements;
}

bool pack_array(const Launchable& variant, const Parameter& parameter, PyObject* object,
                PackedCall& call) {
  if (!is_ndarray(object)) return false;
  const PyArrayObject_fields& array = array_fields(object);
  if (!has_dtype(parameter, array) || !has_layout(parameter, array)) return false;
  call.elements +=
      parameter.kind == Parameter::Kind::general
          ? pack_general(parameter, array, variant.axes().data() + parameter.axes, call)
          : pack_fields(parameter, array, call);
  return true;
}

bool pack_parameters(const Launchable& variant, std::size_t begin, std::size_t end,
                     PyObject* const* arguments, PackedCall& call) {
  for (std::size_t i = begin; i < end; ++i) {
    const Parameter& parameter = variant[i];
    const bool fits = parameter.is_array()
                          ? pack_array(variant, parameter, arguments[i], call)
                          : pack_scalar(parameter, arguments[i], call.slots[parameter.slot]);
    if (!fits) return false;
  }
  return true;
}

}  // namespace

bool pack(const Launchable& variant, PyObject* const* arguments, PackedCall& call) {
  call.elements = 0;
  const std::size_t first = std::min(variant.size(), Launchable::kInline);
  return pack_parameters(variant, 0, first, arguments, call) &&
         pack_remainder(variant, arguments, call);
}

bool pack_remainder(const Launchable& variant, PyObject* const* arguments, PackedCall& call) {
  if (!pack_parameters(variant, Launchable::kInline, variant.size(), arguments, call)) {
    return false;
  }
  for (const Pin& pin : variant.pins()) {
    if (array_fields(arguments[pin.parameter]).dimensions[pin.axis] != pin.extent) return false;
  }
  for (const SlotCopy& copy : variant.copies()) call.slots[copy.to] = call.slots[copy.from];
  return true;
}

std::uint64_t hash_of(PyObject* const* arguments, std::size_t count) {
  SignatureHash hash;
  for (std::size_t i = 0; i < count; ++i) {
    DType type;
    if (is_ndarray(arguments[i]) && array_dtype(arguments[i], &type)) {
      const PyArrayObject_fields& array = array_fields(arguments[i]);
      hash.add_array(type, static_cast<std::size_t>(array.nd), is_contiguous(array));
    } else {
      hash.add_scalar();
    }
  }
  return hash.value();
}

}  // namespace tack
