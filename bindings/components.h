// Taking vector arguments apart: a parameter of several components stands for as many numbers.
#pragma once

#include <Python.h>

#include <vector>

#include "kernel_object.h"

namespace tack {

// The arguments of a call with each vector as its numbers, which it keeps alive.
class FlatArguments {
 public:
  // `arguments` has one object for each parameter. Throws what reading one raised: a TypeError for
  // what is no sequence of as many numbers.
  FlatArguments(KernelObject* kernel, PyObject* const* arguments);

  PyObject* const* data() const { return values_; }

 private:
  PyObject* values_[kMaxParameters];
  std::vector<nb::object> held_;
};

}  // namespace tack
