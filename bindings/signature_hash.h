// The hash under which variants of a kernel are filed: the dtype and rank of each array argument,
// and whether it is C-contiguous and aligned. Scalars and pinned extents do not enter it; the
// variants of one key are tried in turn.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dtype.h"

namespace tack {

class SignatureHash {
 public:
  void add_array(DType type, std::size_t rank, bool is_contiguous) {
    add((static_cast<std::uint64_t>(type) + 1) * 64 + rank * 2 + (is_contiguous ? 1 : 0));
  }
  void add_scalar() { add(0); }
  std::uint64_t value() const { return state_ ^ (state_ >> 32); }

 private:
  void add(std::uint64_t code) { state_ = (state_ ^ code) * 0x9E3779B97F4A7C15U + 1; }

  std::uint64_t state_ = 0;
};

}  // namespace tack
