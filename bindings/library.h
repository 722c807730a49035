// Kernel libraries: shared objects without Python in them, opened once and never closed.
#pragma once

#include <cstdint>
#include <string>

#include "parse.h"

namespace tack {

class Library {
 public:
  explicit Library(nb::handle path);  // raises OSError in the loader's words

  std::uint64_t symbol(const char* name) const;  // its address; raises AttributeError
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  void* handle_;
};

}  // namespace tack
