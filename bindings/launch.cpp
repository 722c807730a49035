#include "launch.h"

#include <string>

namespace tack {

PyObject* refuse_launch(const Launchable& variant, HostStatus status, const std::int64_t* extents) {
  if (status == HostStatus::step_not_positive) {
    const std::string message =
        variant.label() + ": the step of the parallel range must be positive";
    PyErr_SetString(PyExc_ValueError, message.c_str());
    return nullptr;
  }
  std::string message = variant.label() + ": the parallel loop ";
  if (variant.host().loops() > 1) {
    message += "of " + std::to_string(extents[0]);
    for (std::size_t i = 1; i < variant.host().loops(); ++i) {
      message += " x " + std::to_string(extents[i]);
    }
    message += " iterations ";
  }
  message += "has more than 2**63 - 1 iterations";
  PyErr_SetString(PyExc_OverflowError, message.c_str());
  return nullptr;
}

}  // namespace tack
