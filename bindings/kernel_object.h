// A kernel as an object: what it is made of, and how it is called.
#pragma once

#include <Python.h>

#include <cstddef>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "call_binding.h"
#include "exceptions.h"
#include "template_table.h"
#include "variant_table.h"

namespace tack {

// The part of a kernel that C++ constructs and destroys.
struct KernelState {
  KernelState(nb::handle function, nb::handle definition_, nb::handle names,
              std::vector<bool> annotated_, std::vector<std::size_t> components_,
              nb::handle on_miss_)
      : binding(function, names),
        annotated(std::move(annotated_)),
        components(std::move(components_)),
        py_func(nb::borrow(function)),
        definition(nb::borrow(definition_)),
        on_miss(nb::borrow(on_miss_)) {}

  VariantTable variants;
  TemplateTable templated;
  CallBinding binding;
  std::vector<bool> annotated;  // by parameter, each component of a vector by itself
  // By parameter: of a vector how many numbers it is, else 0. Empty where there is no vector.
  std::vector<std::size_t> components;
  nb::object py_func;
  nb::object definition;
  nb::object on_miss;
};

struct KernelObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weak_references;
  Py_ssize_t direct_count;  // positional arguments that need neither binding nor taking apart
  bool is_constructed;      // the state; false as long as the allocation is all zeros
  // In the object itself, so that a call follows one pointer less.
  alignas(KernelState) std::byte storage[sizeof(KernelState)];

  KernelState& state() { return *std::launder(reinterpret_cast<KernelState*>(storage)); }
};

inline KernelObject* as_kernel(PyObject* object) { return reinterpret_cast<KernelObject*>(object); }

// "package.module:name", for messages.
std::string display_name(PyObject* kernel);

// The vectorcall slot.
PyObject* call_kernel(PyObject* self, PyObject* const* arguments, std::size_t flags,
                      PyObject* keywords);

// Adds a variant. Raises TypeError if `launchable` is no Launchable, ValueError if it cannot be one
// of this kernel.
const Launchable& insert_variant(KernelObject* kernel, nb::handle launchable);

// Adds a variant that takes templates, with the plan that takes arguments apart. Raises likewise.
TemplatedVariant& insert_templated(KernelObject* kernel, nb::handle launchable,
                                   nb::handle expansion);

}  // namespace tack
