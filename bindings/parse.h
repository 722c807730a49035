// Reading the lists and tuples of a bundle record. Everything here raises ValueError, so that a
// damaged bundle is refused when its records are made and never looked at again.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "dtype.h"
#include "exceptions.h"

namespace tack {

// What a record is made of, for the sentence of an error: `where` is "slot 3", "host program", ...
[[noreturn]] void refuse(std::string_view where, std::string_view what);

// A list or tuple, held for as long as its items are read.
class Items {
 public:
  Items(nb::handle object, std::string_view where);

  std::size_t size() const { return size_; }
  nb::handle operator[](std::size_t index) const;

  std::string_view text(std::size_t index) const;
  std::int64_t integer(std::size_t index, std::int64_t min, std::int64_t max) const;
  std::size_t index(std::size_t index, std::size_t count) const;  // 0 .. count-1
  std::int64_t bits(std::size_t index) const;                     // -2^63 .. 2^64-1, as 64 bits
  bool boolean(std::size_t index) const;
  DType dtype(std::size_t index) const;
  void expect_size(std::size_t size) const;

 private:
  nb::object sequence_;
  std::size_t size_ = 0;
  std::string where_;
};

std::int64_t bits_of(nb::handle object, std::string_view where);

}  // namespace tack
