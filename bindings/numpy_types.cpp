#include "numpy_types.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "exceptions.h"

namespace tack {

namespace {

std::atomic<const NumPy*> known{nullptr};

struct Registered {
  DType type;
  const char* name;  // in ml_dtypes
};

constexpr std::array<Registered, 3> kRegistered = {{
    {DType::f8e4m3, "float8_e4m3fn"},
    {DType::f8e5m2, "float8_e5m2"},
    {DType::bf16, "bfloat16"},
}};

// Those found so far, as kRegistered lists them.
std::array<std::atomic<const PyArray_Descr*>, kRegistered.size()> registered{};

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
    if (kDTypes[i].numpy_name.empty()) continue;
    const nb::object descr = dtype(nb::str(kDTypes[i].numpy_name.data()));
    // NumPy keeps these alive as long as the process, and so does this reference.
    found.descr[i] = reinterpret_cast<const PyArray_Descr*>(descr.inc_ref().ptr());
  }
  return found;
}

nb::object module_attribute(const char* module_name, const char* name) {
  PyObject* modules = PyImport_GetModuleDict();  // borrowed
  PyObject* module = PyDict_GetItemString(modules, module_name);
  if (module == nullptr) return {};
  nb::object found = nb::steal(PyObject_GetAttrString(module, name));
  if (!found.is_valid()) PyErr_Clear();  // it is being imported
  return found;
}

// numpy.ma is imported when it is first used: where it is not, nothing is masked.
bool is_masked(PyObject* object) {
  const nb::object type = module_attribute("numpy.ma", "MaskedArray");
  return type.is_valid() && PyType_Check(type.ptr()) &&
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

const PyArray_Descr* ml_dtypes_descr(DType type) {
  const auto entry = std::find_if(kRegistered.begin(), kRegistered.end(),
                                  [=](const Registered& each) { return each.type == type; });
  if (entry == kRegistered.end()) return nullptr;
  auto& place = registered[static_cast<std::size_t>(entry - kRegistered.begin())];
  const PyArray_Descr* found = place.load(std::memory_order_acquire);
  if (found != nullptr) return found;
  const nb::object scalar = module_attribute("ml_dtypes", entry->name);
  const nb::object dtype = module_attribute("numpy", "dtype");
  if (!scalar.is_valid() || !dtype.is_valid()) return nullptr;
  nb::object descr = nb::steal(PyObject_CallOneArg(dtype.ptr(), scalar.ptr()));
  if (!descr.is_valid()) {
    PyErr_Clear();
    return nullptr;
  }
  // Kept alive as long as the process; ml_dtypes registers one of each only.
  found = reinterpret_cast<const PyArray_Descr*>(descr.release().ptr());
  place.store(found, std::memory_order_release);
  return found;
}

bool is_scalar_of_ml_dtypes(PyObject* object) {
  return std::any_of(kRegistered.begin(), kRegistered.end(), [=](const Registered& each) {
    const PyArray_Descr* descr = ml_dtypes_descr(each.type);
    return descr != nullptr && Py_TYPE(object) == descr->typeobj;
  });
}

const PyArray_Descr* descr_of(DType type) {
  const PyArray_Descr* own = numpy().descr[static_cast<std::size_t>(type)];
  return own != nullptr ? own : ml_dtypes_descr(type);
}

bool has_number(DType type, int number) {
  if (facts(type).numpy_name.empty()) {
    const PyArray_Descr* descr = number < NPY_USERDEF ? nullptr : ml_dtypes_descr(type);
    return descr != nullptr && descr->type_num == number;
  }
  const TypeNumbers numbers = type_numbers(type);
  return number == numbers.first || number == numbers.second;
}

bool is_ndarray(PyObject* object) {
  if (!is_numpy_known()) return false;
  PyTypeObject* ndarray = numpy().ndarray;
  if (Py_TYPE(object) == ndarray) return true;
  return PyType_IsSubtype(Py_TYPE(object), ndarray) != 0 && !is_masked(object);
}

}  // namespace tack
