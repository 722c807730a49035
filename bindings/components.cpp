#include "components.h"

#include <cstddef>
#include <utility>

namespace tack {
namespace {

// A tuple of exactly `count` objects: the argument itself, or what Python makes of it.
nb::object tuple_of_numbers(const KernelState& state, std::size_t index, PyObject* argument,
                            std::size_t count) {
  const auto size = static_cast<Py_ssize_t>(count);
  if (PyTuple_CheckExact(argument) && PyTuple_GET_SIZE(argument) == size) {
    return nb::borrow(argument);
  }
  const nb::object module = nb::module_::import_("tack.runtime.components");
  nb::object numbers = module.attr("numbers_of")(state.definition, index, nb::handle(argument));
  if (!PyTuple_CheckExact(numbers.ptr()) || PyTuple_GET_SIZE(numbers.ptr()) != size) {
    raise(PyExc_RuntimeError, "numbers_of gave another number of components");
  }
  return numbers;
}

}  // namespace

FlatArguments::FlatArguments(KernelObject* kernel, PyObject* const* arguments) {
  const KernelState& state = kernel->state();
  std::size_t filled = 0;
  for (std::size_t i = 0; i < state.components.size(); ++i) {
    const std::size_t count = state.components[i];
    if (count == 0) {
      values_[filled++] = arguments[i];
      continue;
    }
    nb::object numbers = tuple_of_numbers(state, i, arguments[i], count);
    for (std::size_t k = 0; k < count; ++k) {
      values_[filled++] = PyTuple_GET_ITEM(numbers.ptr(), static_cast<Py_ssize_t>(k));
    }
    held_.push_back(std::move(numbers));
  }
}

}  // namespace tack
