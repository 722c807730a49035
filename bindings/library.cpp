#include "library.h"

#include <dlfcn.h>

namespace tack {
namespace {

std::string file_system_path(nb::handle path) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &bytes) == 0) throw nb::python_error();
  const nb::object owner = nb::steal(bytes);
  return {PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes))};
}

std::string loader_message() {
  const char* message = dlerror();
  return message == nullptr ? "the loader gives no reason" : message;
}

}  // namespace

Library::Library(nb::handle path)
    : path_(file_system_path(path)), handle_(dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) raise(PyExc_OSError, loader_message());
}

std::uint64_t Library::symbol(const char* name) const {
  void* address = dlsym(handle_, name);
  if (address == nullptr) raise(PyExc_AttributeError, loader_message());
  return reinterpret_cast<std::uintptr_t>(address);
}

}  // namespace tack
