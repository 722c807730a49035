#include "kernel_type.h"

#include <Python.h>
#include <nanobind/stl/string.h>
#include <structmember.h>

#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "arguments.h"
#include "call_binding.h"
#include "launch.h"
#include "launchable.h"
#include "numpy_types.h"
#include "plain_numbers.h"
#include "variant_table.h"

namespace tack {
namespace {

// The part of a kernel that C++ constructs and destroys.
struct KernelState {
  KernelState(nb::handle function, nb::handle definition, nb::handle names,
              std::vector<bool> annotated_, nb::handle on_miss_)
      : binding(function, names),
        annotated(std::move(annotated_)),
        py_func(nb::borrow(function)),
        definition(nb::borrow(definition)),
        on_miss(nb::borrow(on_miss_)) {}

  CallBinding binding;
  VariantTable variants;
  std::vector<bool> annotated;
  nb::object py_func;
  nb::object definition;
  nb::object on_miss;
};

struct KernelObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weak_references;
  Py_ssize_t direct_count;  // positional arguments that need no binding
  KernelState* state;
};

PyTypeObject* kernel_type = nullptr;

KernelObject* as_kernel(PyObject* object) { return reinterpret_cast<KernelObject*>(object); }

// Runs `body`, turning a C++ exception into a Python one.
template <typename Body>
PyObject* guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

std::string display_name(PyObject* kernel) {
  const nb::handle self(kernel);
  return nb::cast<std::string>(nb::str(self.attr("__module__"))) + ":" +
         nb::cast<std::string>(nb::str(self.attr("__qualname__")));
}

// ---------------------------------------------------------------------------------------------
// Calls
// ---------------------------------------------------------------------------------------------

// The arguments with every number as a plain Python one. Holds what it had to make.
class PlainArguments {
 public:
  // Throws what a conversion raised.
  PlainArguments(PyObject* const* arguments, const std::vector<bool>& annotated)
      : values_(arguments, arguments + annotated.size()) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      nb::object plain = plain_number(values_[i], annotated[i]);
      if (!plain.is_valid()) {
        if (PyErr_Occurred() != nullptr) throw nb::python_error();
        continue;
      }
      values_[i] = plain.ptr();
      made_.push_back(std::move(plain));
    }
  }

  PyObject* const* data() const { return values_.data(); }
  bool changed() const { return !made_.empty(); }

 private:
  std::vector<PyObject*> values_;
  std::vector<nb::object> made_;
};

nb::object tuple_of(PyObject* const* arguments, std::size_t count) {
  nb::object result = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
  if (!result.is_valid()) throw nb::python_error();
  for (std::size_t i = 0; i < count; ++i) {
    Py_INCREF(arguments[i]);
    PyTuple_SET_ITEM(result.ptr(), static_cast<Py_ssize_t>(i), arguments[i]);
  }
  return result;
}

void insert(KernelObject* kernel, nb::handle launchable) {
  if (!nb::isinstance<Launchable>(launchable)) {
    raise(PyExc_TypeError, "a Launchable was expected");
  }
  const auto& variant = *nb::inst_ptr<Launchable>(launchable);
  const std::vector<bool>& annotated = kernel->state->annotated;
  if (variant.parameters().size() != annotated.size()) {
    raise(PyExc_ValueError, variant.label() + " has " +
                                std::to_string(variant.parameters().size()) +
                                " parameters, its kernel has " + std::to_string(annotated.size()));
  }
  for (std::size_t i = 0; i < annotated.size(); ++i) {
    const Parameter& parameter = variant.parameters()[i];
    if (parameter.kind != Parameter::Kind::array && parameter.annotated != annotated[i]) {
      raise(PyExc_ValueError, variant.label() + ": whether parameter " + std::to_string(i) +
                                  " is annotated differs from its kernel");
    }
  }
  kernel->state->variants.insert(variant, nb::borrow(launchable));
}

// Asks for a variant that takes the arguments, and keeps it.
void resolve_miss(KernelObject* kernel, PyObject* const* arguments) {
  const KernelState& state = *kernel->state;
  const nb::object callback = state.on_miss;
  if (!callback.is_valid()) raise(PyExc_RuntimeError, "this kernel is being destroyed");
  const nb::object launchable = callback(nb::handle(reinterpret_cast<PyObject*>(kernel)),
                                         tuple_of(arguments, state.annotated.size()));
  insert(kernel, launchable);
}

// Everything but the repetition of the last signature, in order of likelihood.
PyObject* dispatch_slowly(KernelObject* kernel, PyObject* const* arguments, PackedCall& call) {
  KernelState& state = *kernel->state;
  const std::size_t count = state.annotated.size();
  find_numpy_types();
  if (const Launchable* found = state.variants.find(arguments, count, call)) {
    return launch(*found, call);
  }
  const PlainArguments plain(arguments, state.annotated);
  if (plain.changed()) {
    if (const Launchable* found = state.variants.find(plain.data(), count, call)) {
      return launch(*found, call);
    }
  }
  resolve_miss(kernel, arguments);
  if (const Launchable* found = state.variants.find(plain.data(), count, call)) {
    return launch(*found, call);
  }
  raise(PyExc_RuntimeError,
        display_name(reinterpret_cast<PyObject*>(kernel)) +
            ": the variant that was found for these arguments does not take them");
}

[[gnu::noinline]] PyObject* dispatch_otherwise(KernelObject* kernel, PyObject* const* arguments,
                                               PackedCall& call) noexcept {
  return guarded([&] { return dispatch_slowly(kernel, arguments, call); });
}

[[gnu::always_inline]] inline PyObject* dispatch(KernelObject* kernel, PyObject* const* arguments,
                                                 PackedCall& call) {
  const Launchable* last = kernel->state->variants.last();
  if (TACK_LIKELY(last != nullptr && pack(*last, arguments, call))) return launch(*last, call);
  return dispatch_otherwise(kernel, arguments, call);
}

[[gnu::noinline]] PyObject* bind_and_dispatch(KernelObject* kernel, PyObject* const* arguments,
                                              Py_ssize_t given, PyObject* keywords) noexcept {
  return guarded([&]() -> PyObject* {
    PyObject* bound[kMaxParameters];
    if (!kernel->state->binding.bind(arguments, given, keywords, bound)) return nullptr;
    PackedCall call;
    return dispatch(kernel, bound, call);
  });
}

PyObject* kernel_vectorcall(PyObject* self, PyObject* const* arguments, std::size_t flags,
                            PyObject* keywords) {
  KernelObject* kernel = as_kernel(self);
  const Py_ssize_t given = PyVectorcall_NARGS(flags);
  if (TACK_UNLIKELY(keywords != nullptr || given != kernel->direct_count)) {
    return bind_and_dispatch(kernel, arguments, given, keywords);
  }
  PackedCall call;
  return dispatch(kernel, arguments, call);
}

// ---------------------------------------------------------------------------------------------
// The manners of a function
// ---------------------------------------------------------------------------------------------

PyObject* kernel_descr_get(PyObject* self, PyObject* instance, PyObject* /*owner*/) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

PyObject* kernel_repr(PyObject* self) {
  return guarded([&] {
    const std::string text = "<tack.kernel " + display_name(self) + ">";
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}

// Pickled and copied by qualified name, as functions are.
PyObject* kernel_reduce(PyObject* self, PyObject* /*unused*/) {
  return PyObject_GetAttrString(self, "__qualname__");
}

PyObject* kernel_py_func(PyObject* self, void* /*unused*/) {
  return nb::borrow(as_kernel(self)->state->py_func).release().ptr();
}

PyObject* kernel_definition(PyObject* self, void* /*unused*/) {
  return nb::borrow(as_kernel(self)->state->definition).release().ptr();
}

int kernel_traverse(PyObject* self, visitproc visit, void* arg) {
  KernelObject* kernel = as_kernel(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(kernel->dict);
  if (KernelState* state = kernel->state) {
    Py_VISIT(state->py_func.ptr());
    Py_VISIT(state->definition.ptr());
    Py_VISIT(state->on_miss.ptr());
    if (const int result = state->binding.traverse(visit, arg)) return result;
    return state->variants.traverse(visit, arg);
  }
  return 0;
}

int kernel_clear(PyObject* self) {
  KernelObject* kernel = as_kernel(self);
  Py_CLEAR(kernel->dict);
  if (KernelState* state = kernel->state) {
    state->py_func.reset();
    state->definition.reset();
    state->on_miss.reset();
    state->binding.clear();
    state->variants.drop_references();
  }
  return 0;
}

void kernel_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  KernelObject* kernel = as_kernel(self);
  PyObject_GC_UnTrack(self);
  if (kernel->weak_references != nullptr) PyObject_ClearWeakRefs(self);
  kernel_clear(self);
  delete kernel->state;
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef kernel_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(KernelObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(KernelObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(KernelObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef kernel_properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"py_func", kernel_py_func, nullptr, "The plain Python function.", nullptr},
    {"definition", kernel_definition, nullptr, "What the kernel was made with.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef kernel_methods[] = {
    {"__reduce__", kernel_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot kernel_slots[] = {
    {Py_tp_doc, const_cast<char*>("A function that runs compiled variants of itself.")},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(kernel_descr_get)},
    {Py_tp_repr, reinterpret_cast<void*>(kernel_repr)},
    {Py_tp_traverse, reinterpret_cast<void*>(kernel_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(kernel_clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(kernel_dealloc)},
    {Py_tp_members, kernel_members},
    {Py_tp_getset, kernel_properties},
    {Py_tp_methods, kernel_methods},
    {0, nullptr},
};

PyType_Spec kernel_spec = {
    "tack._core.Kernel",
    sizeof(KernelObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
        Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    kernel_slots,
};

// ---------------------------------------------------------------------------------------------
// Module functions
// ---------------------------------------------------------------------------------------------

KernelObject* checked_kernel(nb::handle object) {
  if (!Py_IS_TYPE(object.ptr(), kernel_type)) raise(PyExc_TypeError, "a Kernel was expected");
  return as_kernel(object.ptr());
}

std::vector<bool> flags_of(nb::handle annotated) {
  std::vector<bool> result;
  for (nb::handle flag : annotated) result.push_back(nb::cast<bool>(flag));
  return result;
}

nb::object make_kernel(nb::handle function, nb::handle definition, nb::tuple parameters,
                       nb::tuple annotated, nb::handle on_miss) {
  if (nb::len(parameters) > kMaxParameters) {
    raise(PyExc_ValueError, "a kernel has at most 255 parameters");
  }
  if (nb::len(parameters) != nb::len(annotated)) {
    raise(PyExc_ValueError, "parameters and annotated differ in length");
  }
  auto state =
      std::make_unique<KernelState>(function, definition, parameters, flags_of(annotated), on_miss);
  nb::dict attributes;
  for (const char* name : {"__name__", "__qualname__", "__module__", "__doc__"}) {
    attributes[name] = function.attr(name);
  }
  attributes["__wrapped__"] = function;
  PyObject* object = kernel_type->tp_alloc(kernel_type, 0);
  if (object == nullptr) throw nb::python_error();
  KernelObject* kernel = as_kernel(object);
  kernel->vectorcall = kernel_vectorcall;
  kernel->dict = attributes.release().ptr();
  kernel->direct_count = state->binding.direct_count();
  kernel->state = state.release();
  return nb::steal(object);
}

}  // namespace

void add_kernel_type(nb::module_& module) {
  const nb::object type = nb::steal(PyType_FromModuleAndSpec(module.ptr(), &kernel_spec, nullptr));
  if (!type.is_valid()) throw nb::python_error();
  module.attr("Kernel") = type;
  kernel_type = reinterpret_cast<PyTypeObject*>(type.inc_ref().ptr());

  module.def("make_kernel", &make_kernel, nb::arg("function"), nb::arg("definition").none(),
             nb::arg("parameters"), nb::arg("annotated"), nb::arg("on_miss"),
             "A kernel that calls as `function` does; on_miss(kernel, arguments) is asked for a "
             "Launchable whenever no variant takes the arguments.");
  module.def(
      "install",
      [](nb::handle kernel, nb::handle launchable) { insert(checked_kernel(kernel), launchable); },
      nb::arg("kernel"), nb::arg("launchable"), "Adds a variant ahead of any call.");
  module.def(
      "uninstall", [](nb::handle kernel) { checked_kernel(kernel)->state->variants.clear(); },
      nb::arg("kernel"), "Forgets every variant of the kernel.");
}

}  // namespace tack
