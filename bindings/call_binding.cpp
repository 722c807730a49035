#include "call_binding.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>

namespace tack {
namespace {

Py_ssize_t integer_attribute(nb::handle object, const char* name) {
  return nb::cast<Py_ssize_t>(object.attr(name));
}

std::string text_of(PyObject* text) { return nb::cast<std::string>(nb::handle(text)); }

// 'a'; 'a' and 'b'; 'a', 'b', and 'c'.
std::string enumerated(const std::vector<std::string>& names) {
  std::string result;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) {
      result += names.size() == 2 ? " and " : i + 1 == names.size() ? ", and " : ", ";
    }
    result += "'" + names[i] + "'";
  }
  return result;
}

bool type_error(const std::string& message) {
  PyErr_SetString(PyExc_TypeError, message.c_str());
  return false;
}

}  // namespace

CallBinding::CallBinding(nb::handle function, nb::handle names) {
  if (!PyFunction_Check(function.ptr())) {
    raise(PyExc_TypeError, "a kernel is made of a Python function");
  }
  const nb::object code = function.attr("__code__");
  positional_only_ = integer_attribute(code, "co_posonlyargcount");
  positional_ = integer_attribute(code, "co_argcount");
  keyword_only_ = integer_attribute(code, "co_kwonlyargcount");
  qualname_ = function.attr("__qualname__");
  const nb::object variables = code.attr("co_varnames");
  names_ = variables[nb::slice(nb::int_(0), nb::int_(positional_ + keyword_only_), nb::none())];
  if (!names_.equal(names)) {
    raise(PyExc_ValueError, "the parameters given are not those of the function");
  }
  defaults_.resize(size());
  const nb::object defaults = function.attr("__defaults__");
  if (!defaults.is_none()) {
    defaulted_ = static_cast<Py_ssize_t>(nb::len(defaults));
    for (Py_ssize_t i = 0; i < defaulted_; ++i) {
      defaults_[static_cast<std::size_t>(positional_ - defaulted_ + i)] = defaults[i];
    }
  }
  const nb::object keyword_defaults = function.attr("__kwdefaults__");
  if (!keyword_defaults.is_none()) {
    for (Py_ssize_t i = positional_; i < positional_ + keyword_only_; ++i) {
      PyObject* value = PyDict_GetItemWithError(keyword_defaults.ptr(), name(i));
      if (value != nullptr) defaults_[static_cast<std::size_t>(i)] = nb::borrow(value);
    }
  }
}

bool CallBinding::bind(PyObject* const* arguments, Py_ssize_t given, PyObject* keywords,
                       PyObject** bound) const {
  const Py_ssize_t total = positional_ + keyword_only_;
  const Py_ssize_t taken = std::min(given, positional_);
  std::copy(arguments, arguments + taken, bound);
  std::fill(bound + taken, bound + total, nullptr);
  if (keywords != nullptr && !bind_keywords(arguments + given, keywords, bound)) return false;
  if (given > positional_) return refuse_count(given, bound);
  bool complete = true;
  for (Py_ssize_t i = taken; i < total; ++i) {
    if (bound[i] == nullptr) bound[i] = defaults_[static_cast<std::size_t>(i)].ptr();
    complete &= bound[i] != nullptr;
  }
  return complete || (refuse_missing(bound, 0, positional_, "positional") &&
                      refuse_missing(bound, positional_, total, "keyword-only"));
}

// Names are interned, so that almost every keyword is found by identity, and in the order of the
// parameters, so that it is found at the first try.
Py_ssize_t CallBinding::index_of(PyObject* keyword, Py_ssize_t guess) const {
  const Py_ssize_t total = positional_ + keyword_only_;
  if (guess < total && name(guess) == keyword) return guess;
  for (Py_ssize_t i = positional_only_; i < total; ++i) {
    if (name(i) == keyword) return i;
  }
  for (Py_ssize_t i = positional_only_; i < total; ++i) {
    if (PyUnicode_Compare(name(i), keyword) == 0) return i;
  }
  return -1;
}

bool CallBinding::bind_keywords(PyObject* const* values, PyObject* keywords,
                                PyObject** bound) const {
  Py_ssize_t guess = positional_only_;
  while (guess < positional_ && bound[guess] != nullptr) ++guess;
  const Py_ssize_t count = PyTuple_GET_SIZE(keywords);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* keyword = PyTuple_GET_ITEM(keywords, i);
    const Py_ssize_t index = index_of(keyword, guess);
    if (index < 0) return refuse_keyword(keyword, keywords);
    if (bound[index] != nullptr) {
      return type_error(text_of(qualname_.ptr()) + "() got multiple values for argument '" +
                        text_of(keyword) + "'");
    }
    bound[index] = values[i];
    guess = index + 1;
  }
  return true;
}

bool CallBinding::refuse_keyword(PyObject* keyword, PyObject* keywords) const {
  std::string misused;
  for (Py_ssize_t i = 0; i < positional_only_; ++i) {
    if (PySequence_Contains(keywords, name(i)) == 1) {
      misused += (misused.empty() ? "" : ", ") + text_of(name(i));
    }
  }
  if (!misused.empty()) {
    return type_error(text_of(qualname_.ptr()) +
                      "() got some positional-only arguments passed as keyword arguments: '" +
                      misused + "'");
  }
  return type_error(text_of(qualname_.ptr()) + "() got an unexpected keyword argument '" +
                    text_of(keyword) + "'");
}

bool CallBinding::refuse_count(Py_ssize_t given, PyObject* const* bound) const {
  const auto keywords = static_cast<Py_ssize_t>(
      std::count_if(bound + positional_, bound + positional_ + keyword_only_,
                    [](PyObject* value) { return value != nullptr; }));
  std::string message = text_of(qualname_.ptr()) + "() takes ";
  if (defaulted_ > 0) message += "from " + std::to_string(positional_ - defaulted_) + " to ";
  message += std::to_string(positional_) + " positional argument";
  if (defaulted_ > 0 || positional_ != 1) message += "s";
  message += " but " + std::to_string(given);
  if (keywords > 0) {
    message += std::string(" positional argument") + (given != 1 ? "s" : "") + " (and " +
               std::to_string(keywords) + " keyword-only argument" + (keywords != 1 ? "s" : "") +
               ")";
  }
  return type_error(message + (given == 1 && keywords == 0 ? " was given" : " were given"));
}

bool CallBinding::refuse_missing(PyObject* const* bound, Py_ssize_t begin, Py_ssize_t end,
                                 const char* kind) const {
  std::vector<std::string> missing;
  for (Py_ssize_t i = begin; i < end; ++i) {
    if (bound[i] == nullptr) missing.push_back(text_of(name(i)));
  }
  if (missing.empty()) return true;
  return type_error(text_of(qualname_.ptr()) + "() missing " + std::to_string(missing.size()) +
                    " required " + kind + " argument" + (missing.size() == 1 ? "" : "s") + ": " +
                    enumerated(missing));
}

int CallBinding::traverse(visitproc visit, void* arg) const {
  for (const nb::object& value : defaults_) Py_VISIT(value.ptr());
  return 0;
}

void CallBinding::clear() {
  // The parameters become required, which is of no consequence: only unreachable kernels are
  // cleared.
  for (nb::object& value : defaults_) value.reset();
}

}  // namespace tack
