// Binding the arguments of a call to the parameters of a Python function: positions, keywords,
// defaults, and the TypeErrors of CPython word for word.
#pragma once

#include <Python.h>

#include <cstddef>
#include <vector>

#include "parse.h"

namespace tack {

class CallBinding {
 public:
  // Reads the kinds of the parameters and their defaults from `function`, a plain Python function
  // whose parameters are `names`. Raises TypeError or ValueError if the two do not agree.
  CallBinding(nb::handle function, nb::handle names);

  std::size_t size() const { return static_cast<std::size_t>(PyTuple_GET_SIZE(names_.ptr())); }

  // How many positional arguments fill every parameter, or -1 if no number does.
  Py_ssize_t direct_count() const { return keyword_only_ == 0 ? positional_ : -1; }

  // Fills bound[0 .. size()-1] with borrowed references; false with a TypeError set.
  bool bind(PyObject* const* arguments, Py_ssize_t given, PyObject* keywords,
            PyObject** bound) const;

  int traverse(visitproc visit, void* arg) const;
  void clear();  // drops the defaults, for the garbage collector

 private:
  Py_ssize_t index_of(PyObject* keyword, Py_ssize_t guess) const;
  bool bind_keywords(PyObject* const* values, PyObject* keywords, PyObject** bound) const;
  bool refuse_keyword(PyObject* keyword, PyObject* keywords) const;
  bool refuse_count(Py_ssize_t given, PyObject* const* bound) const;
  bool refuse_missing(PyObject* const* bound, Py_ssize_t begin, Py_ssize_t end,
                      const char* kind) const;
  PyObject* name(Py_ssize_t index) const { return PyTuple_GET_ITEM(names_.ptr(), index); }

  nb::object qualname_;
  nb::object names_;  // interned
  Py_ssize_t positional_only_ = 0;
  Py_ssize_t positional_ = 0;  // positional-only ones included
  Py_ssize_t keyword_only_ = 0;
  Py_ssize_t defaulted_ = 0;  // how many positional parameters have a default
  std::vector<nb::object> defaults_;
};

}  // namespace tack
