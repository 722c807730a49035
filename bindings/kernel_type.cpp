#include "kernel_type.h"

#include <Python.h>
#include <nanobind/stl/string.h>
#include <structmember.h>

#include <cstddef>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "kernel_object.h"
#include "launchable.h"

namespace tack {
namespace {

PyTypeObject* kernel_type = nullptr;

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

// None once the garbage collector has cleared the kernel.
PyObject* held(const nb::object& object) {
  return Py_NewRef(object.is_valid() ? object.ptr() : Py_None);
}

PyObject* kernel_py_func(PyObject* self, void* /*unused*/) {
  return held(as_kernel(self)->state().py_func);
}

PyObject* kernel_definition(PyObject* self, void* /*unused*/) {
  return held(as_kernel(self)->state().definition);
}

// What a kernel becomes is for Python to say: function(definition, *arguments).
PyObject* inspect_kernel(const char* function, PyObject* self, PyObject* arguments) {
  return guarded([&] {
    const nb::object module = nb::module_::import_("tack.runtime.inspection");
    const nb::object definition = nb::steal(kernel_definition(self, nullptr));
    return module.attr(function)(definition, *nb::borrow<nb::tuple>(arguments)).release().ptr();
  });
}

PyObject* kernel_source(PyObject* self, PyObject* arguments) {
  return inspect_kernel("source_of", self, arguments);
}

PyObject* kernel_ir(PyObject* self, PyObject* arguments) {
  return inspect_kernel("ir_of", self, arguments);
}

int kernel_traverse(PyObject* self, visitproc visit, void* arg) {
  KernelObject* kernel = as_kernel(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(kernel->dict);
  if (kernel->is_constructed) {
    KernelState& state = kernel->state();
    Py_VISIT(state.py_func.ptr());
    Py_VISIT(state.definition.ptr());
    Py_VISIT(state.on_miss.ptr());
    if (const int result = state.binding.traverse(visit, arg)) return result;
    if (const int result = state.templated.traverse(visit, arg)) return result;
    return state.variants.traverse(visit, arg);
  }
  return 0;
}

int kernel_clear(PyObject* self) {
  KernelObject* kernel = as_kernel(self);
  Py_CLEAR(kernel->dict);
  if (kernel->is_constructed) {
    KernelState& state = kernel->state();
    state.py_func.reset();
    state.definition.reset();
    state.on_miss.reset();
    state.binding.clear();
    state.templated.clear();
    state.variants.drop_references();
  }
  return 0;
}

void kernel_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  KernelObject* kernel = as_kernel(self);
  PyObject_GC_UnTrack(self);
  if (kernel->weak_references != nullptr) PyObject_ClearWeakRefs(self);
  kernel_clear(self);
  if (kernel->is_constructed) kernel->state().~KernelState();
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
    {"source", kernel_source, METH_VARARGS,
     "source(dialect, signature): the text of one variant in a dialect, such as \"c\"."},
    {"ir", kernel_ir, METH_VARARGS, "ir(signature): the IR of one variant after the passes."},
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

// How many numbers each parameter is; 0 for what is no vector.
std::vector<std::size_t> counts_of(nb::handle components) {
  std::vector<std::size_t> result;
  for (nb::handle count : components) result.push_back(nb::cast<std::size_t>(count));
  return result;
}

nb::object make_kernel(nb::handle function, nb::handle definition, nb::tuple parameters,
                       nb::tuple annotated, nb::handle on_miss, nb::tuple components) {
  std::vector<std::size_t> counts = counts_of(components);
  std::size_t flat = nb::len(parameters);
  for (const std::size_t count : counts) flat += count == 0 ? 0 : count - 1;
  if (flat > kMaxParameters) {
    raise(PyExc_ValueError, "a kernel has at most 127 parameters, each component counted");
  }
  if (flat != nb::len(annotated) || (!counts.empty() && counts.size() != nb::len(parameters))) {
    raise(PyExc_ValueError, "parameters and annotated differ in length");
  }
  const nb::object result = nb::steal(kernel_type->tp_alloc(kernel_type, 0));
  if (!result.is_valid()) throw nb::python_error();
  KernelObject* kernel = as_kernel(result.ptr());
  new (kernel->storage) KernelState(function, definition, parameters, flags_of(annotated),
                                    std::move(counts), on_miss);
  kernel->is_constructed = true;
  kernel->vectorcall = call_kernel;
  const KernelState& state = kernel->state();
  kernel->direct_count = state.components.empty() ? state.binding.direct_count() : -1;
  nb::dict attributes;
  for (const char* name : {"__name__", "__qualname__", "__module__", "__doc__"}) {
    attributes[name] = function.attr(name);
  }
  attributes["__wrapped__"] = function;
  kernel->dict = attributes.release().ptr();
  return result;
}

}  // namespace

std::string display_name(PyObject* kernel) {
  const nb::handle self(kernel);
  return nb::cast<std::string>(nb::str(self.attr("__module__"))) + ":" +
         nb::cast<std::string>(nb::str(self.attr("__qualname__")));
}

void add_kernel_type(nb::module_& module) {
  const nb::object type = nb::steal(PyType_FromModuleAndSpec(module.ptr(), &kernel_spec, nullptr));
  if (!type.is_valid()) throw nb::python_error();
  module.attr("Kernel") = type;
  kernel_type = reinterpret_cast<PyTypeObject*>(type.inc_ref().ptr());

  module.def("make_kernel", &make_kernel, nb::arg("function"), nb::arg("definition").none(),
             nb::arg("parameters"), nb::arg("annotated"), nb::arg("on_miss"),
             nb::arg("components") = nb::tuple(),
             "A kernel that calls as `function` does; on_miss(kernel, arguments) is asked for a "
             "Launchable whenever no variant takes the arguments. `components` has for each "
             "parameter of how many numbers it is a vector, or 0; it is empty without any.");
  module.def(
      "install",
      [](nb::handle kernel, nb::handle launchable, nb::handle expansion) {
        if (expansion.is_none()) {
          insert_variant(checked_kernel(kernel), launchable);
        } else {
          insert_templated(checked_kernel(kernel), launchable, expansion);
        }
      },
      nb::arg("kernel"), nb::arg("launchable"), nb::arg("expansion") = nb::none(),
      "Adds a variant ahead of any call; with templates, how a call takes these apart.");
  module.def(
      "uninstall",
      [](nb::handle kernel) {
        checked_kernel(kernel)->state().variants.clear();
        checked_kernel(kernel)->state().templated.clear();
      },
      nb::arg("kernel"), "Forgets every variant of the kernel.");
  module.def(
      "retire", [](nb::handle kernel) { checked_kernel(kernel)->state().templated.retire(); },
      nb::arg("kernel"), "Forgets the variants of classes that were collected.");
  module.def(
      "templated_count",
      [](nb::handle kernel) { return checked_kernel(kernel)->state().templated.size(); },
      nb::arg("kernel"), "How many plans the kernel has for calls with templates. For tests.");
}

}  // namespace tack
