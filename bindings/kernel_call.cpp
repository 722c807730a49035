// Calling a kernel: the warm path, and what happens to the calls that leave it.
#include <Python.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "arguments.h"
#include "components.h"
#include "kernel_object.h"
#include "launch.h"
#include "launchable.h"
#include "plain_numbers.h"
#include "warm_path.h"

namespace tack {
namespace {

// The arguments with every number as a plain Python one. Holds what it had to make.
class PlainArguments {
 public:
  // Throws what a conversion raised.
  PlainArguments(PyObject* const* arguments, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      nb::object plain = plain_number(arguments[i]);
      if (!plain.is_valid() && PyErr_Occurred() != nullptr) throw nb::python_error();
      values_[i] = plain.is_valid() ? plain.ptr() : arguments[i];
      if (plain.is_valid()) made_.push_back(std::move(plain));
    }
  }

  PyObject* const* data() const { return values_; }
  bool are_new() const { return !made_.empty(); }

 private:
  PyObject* values_[kMaxParameters];
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

// Asks for a variant that takes the arguments: a Launchable, or a pair of it and an expansion.
nb::object resolve_miss(KernelObject* kernel, PyObject* const* arguments) {
  const KernelState& state = kernel->state();
  const nb::object callback = state.on_miss;
  if (!callback.is_valid()) raise(PyExc_RuntimeError, "this kernel is being destroyed");
  return callback(nb::handle(reinterpret_cast<PyObject*>(kernel)),
                  tuple_of(arguments, state.annotated.size()));
}

[[noreturn]] void refuse_answer(KernelObject* kernel, const Launchable& resolved) {
  raise(PyExc_RuntimeError, display_name(reinterpret_cast<PyObject*>(kernel)) + ": the variant " +
                                resolved.label() +
                                ", found for these arguments, does not take them");
}

// Whether the values of a call, numbers of any type among them, fit the variant; packs them.
bool pack_held(const TemplatedVariant& entry, PyObject* const* flat, PackedCall& call) {
  if (pack(entry.variant, flat, call)) return true;
  const PlainArguments plain(flat, entry.variant.size());
  return plain.are_new() && pack(entry.variant, plain.data(), call);
}

// Calls one variant that takes templates, if the arguments fit it.
bool try_templated(KernelObject* kernel, TemplatedVariant& entry, PyObject* const* arguments,
                   PyObject*& result) {
  PyObject* flat[kMaxParameters];
  if (!entry.expansion.expand(arguments, flat)) return false;
  const HeldCall held(entry, flat);
  PackedCall call;
  if (!pack_held(entry, flat, call)) return false;
  kernel->state().templated.remember(entry);
  kernel->state().variants.forget_last();
  result = launch(entry.variant, call);
  return true;
}

constexpr int kLooks = 16;

// Every call that has left the warm path, in order of likelihood.
PyObject* call_otherwise(KernelObject* kernel, PyObject* const* arguments) {
  KernelState& state = kernel->state();
  const std::size_t count = state.annotated.size();
  PackedCall call;
  const Launchable* last = state.variants.last();
  if (last != nullptr && pack(*last, arguments, call)) return launch(*last, call);
  const PlainArguments plain(arguments, count);
  if (last != nullptr && plain.are_new() && pack(*last, plain.data(), call)) {
    return launch(*last, call);
  }
  PyObject* result = nullptr;
  for (std::size_t i = 0; i < state.templated.size(); ++i) {
    if (try_templated(kernel, state.templated[i], arguments, result)) return result;
  }
  if (const Launchable* found = state.variants.find(plain.data(), count, call)) {
    return launch(*found, call);
  }
  nb::object answer = resolve_miss(kernel, arguments);
  // Another thread may change an object while its plan is learned: a few more looks, then it is
  // given up.
  for (int tries = kLooks; PyTuple_CheckExact(answer.ptr()); --tries) {
    TemplatedVariant& entry = insert_templated(kernel, answer[0], answer[1]);
    if (try_templated(kernel, entry, arguments, result)) return result;
    if (tries == 1) refuse_answer(kernel, entry.variant);
    answer = resolve_miss(kernel, arguments);
  }
  const Launchable& resolved = insert_variant(kernel, answer);
  // NumPy's scalars are told from other numbers once there is a variant.
  const PlainArguments known(arguments, count);
  if (pack(resolved, known.data(), call)) return launch(resolved, call);
  refuse_answer(kernel, resolved);
}

[[gnu::noinline]] PyObject* leave_warm_path(KernelObject* kernel,
                                            PyObject* const* arguments) noexcept {
  return guarded([&] { return call_otherwise(kernel, arguments); });
}

// The rest of a warm call to a variant that has more to it.
[[gnu::noinline]] PyObject* finish_warm_call(KernelObject* kernel, const Launchable& variant,
                                             PyObject* const* arguments,
                                             PackedCall& call) noexcept {
  if (!pack_remainder(variant, arguments, call)) return leave_warm_path(kernel, arguments);
  return launch(variant, call);
}

// Runs a variant whose work is not worth releasing the GIL; false if it is none of those.
[[gnu::always_inline]] inline bool run_small(const Launchable& variant, PackedCall& call,
                                             std::uint64_t elements) {
  if (TACK_UNLIKELY(!variant.is_simple())) return false;
  const std::int64_t total = call.slots[variant.slot_of_extent()].i64;
  // The bound is a power of two, so that one number stands for both; a negative extent is large.
  if (TACK_UNLIKELY((static_cast<std::uint64_t>(total) | elements) >= kReleaseGilFrom)) {
    return false;
  }
  if (TACK_UNLIKELY(!lie_apart(variant.first_hazards(), variant.first_hazard_count(), call))) {
    return false;
  }
  if (TACK_LIKELY(total != 0)) variant.noalias()(&kContext, call.slots, 0, total);
  return true;
}

// The call whose arguments are like those of the one before, some of them templates.
[[gnu::noinline]] PyObject* call_templated(KernelObject* kernel,
                                           PyObject* const* arguments) noexcept {
  TemplatedVariant* last = kernel->state().templated.last();
  if (last == nullptr) return leave_warm_path(kernel, arguments);
  PyObject* flat[kMaxParameters];
  PackedCall call;
  std::uint64_t elements = 0;
  if (TACK_UNLIKELY(!last->expansion.expand(arguments, flat)) ||
      TACK_UNLIKELY(!warm::pack_first(last->variant, flat, elements, call))) {
    return leave_warm_path(kernel, arguments);
  }
  if (TACK_LIKELY(run_small(last->variant, call, elements))) Py_RETURN_NONE;
  call.elements = elements;
  if (!pack_remainder(last->variant, flat, call)) return leave_warm_path(kernel, arguments);
  const HeldCall held(*last, flat);
  return launch(last->variant, call);
}

// `arguments` has one object for each parameter.
[[gnu::always_inline]] inline PyObject* call_warm(KernelObject* kernel,
                                                  PyObject* const* arguments) {
  const Launchable* last = kernel->state().variants.last();
  if (TACK_UNLIKELY(last == nullptr)) return call_templated(kernel, arguments);
  PackedCall call;
  std::uint64_t elements = 0;
  if (TACK_UNLIKELY(!warm::pack_first(*last, arguments, elements, call))) {
    return leave_warm_path(kernel, arguments);
  }
  if (TACK_LIKELY(run_small(*last, call, elements))) Py_RETURN_NONE;
  call.elements = elements;
  return finish_warm_call(kernel, *last, arguments, call);
}

// A call whose vectors are taken apart first.
PyObject* call_with_vectors(KernelObject* kernel, PyObject* const* arguments) {
  const FlatArguments flat(kernel, arguments);
  return call_warm(kernel, flat.data());
}

[[gnu::noinline]] PyObject* bind_and_call(KernelObject* kernel, PyObject* const* arguments,
                                          Py_ssize_t given, PyObject* keywords) noexcept {
  return guarded([&]() -> PyObject* {
    PyObject* bound[kMaxParameters];
    if (!kernel->state().binding.bind(arguments, given, keywords, bound)) return nullptr;
    return kernel->state().components.empty() ? call_warm(kernel, bound)
                                              : call_with_vectors(kernel, bound);
  });
}

}  // namespace

PyObject* call_kernel(PyObject* self, PyObject* const* arguments, std::size_t flags,
                      PyObject* keywords) {
  KernelObject* kernel = as_kernel(self);
  const Py_ssize_t given = PyVectorcall_NARGS(flags);
  if (TACK_UNLIKELY(keywords != nullptr || given != kernel->direct_count)) {
    return bind_and_call(kernel, arguments, given, keywords);
  }
  return call_warm(kernel, arguments);
}

const Launchable& insert_variant(KernelObject* kernel, nb::handle launchable) {
  if (!nb::isinstance<Launchable>(launchable)) {
    raise(PyExc_TypeError, "a Launchable was expected");
  }
  const auto& variant = *nb::inst_ptr<Launchable>(launchable);
  variant.expect_parameters(kernel->state().annotated);
  kernel->state().variants.insert(variant, nb::borrow(launchable));
  return variant;
}

TemplatedVariant& insert_templated(KernelObject* kernel, nb::handle launchable,
                                   nb::handle expansion) {
  if (!nb::isinstance<Launchable>(launchable)) {
    raise(PyExc_TypeError, "a Launchable was expected");
  }
  const auto& variant = *nb::inst_ptr<Launchable>(launchable);
  auto entry = std::make_unique<TemplatedVariant>(variant, nb::borrow(launchable), expansion);
  const std::vector<bool>& annotated = kernel->state().annotated;
  if (entry->expansion.arguments() != annotated.size()) {
    raise(PyExc_ValueError, "the expansion has another number of arguments than the kernel");
  }
  std::vector<bool> flat(variant.size());
  for (std::size_t i = 0; i < flat.size(); ++i) {
    const int argument = entry->expansion.argument_of(i);
    // A class may annotate the numbers of its objects.
    flat[i] = argument < 0 || annotated[static_cast<std::size_t>(argument)];
  }
  variant.expect_parameters(flat);
  return kernel->state().templated.insert(std::move(entry));
}

}  // namespace tack
