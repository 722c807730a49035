// The dtypes that cross from Python to a kernel, as one table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tack {

enum class DType : std::uint8_t {
  boolean,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f8e4m3,
  f8e5m2,
  f16,
  bf16,
  f32,
  f64
};

struct DTypeFacts {
  std::string_view name;
  std::string_view numpy_name;  // as numpy.dtype takes it; "" for those that NumPy lacks
  std::uint8_t bytes;
  bool is_float;
  bool is_signed;
  std::int64_t min;   // least value of an integer dtype
  std::uint64_t max;  // greatest value of an integer dtype
};

// Indexed by DType.
inline constexpr std::array<DTypeFacts, 15> kDTypes = {{
    {"bool", "?", 1, false, false, 0, 1},
    {"i8", "i1", 1, false, true, INT8_MIN, INT8_MAX},
    {"i16", "i2", 2, false, true, INT16_MIN, INT16_MAX},
    {"i32", "i4", 4, false, true, INT32_MIN, INT32_MAX},
    {"i64", "i8", 8, false, true, INT64_MIN, INT64_MAX},
    {"u8", "u1", 1, false, false, 0, UINT8_MAX},
    {"u16", "u2", 2, false, false, 0, UINT16_MAX},
    {"u32", "u4", 4, false, false, 0, UINT32_MAX},
    {"u64", "u8", 8, false, false, 0, UINT64_MAX},
    {"f8e4m3", "", 1, true, true, 0, 0},
    {"f8e5m2", "", 1, true, true, 0, 0},
    {"f16", "f2", 2, true, true, 0, 0},
    {"bf16", "", 2, true, true, 0, 0},
    {"f32", "f4", 4, true, true, 0, 0},
    {"f64", "f8", 8, true, true, 0, 0},
}};

inline constexpr const DTypeFacts& facts(DType type) {
  return kDTypes[static_cast<std::size_t>(type)];
}

inline std::optional<DType> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

// The value of `bits` modulo 2^width, sign- or zero-extended to 64 bits; bool keeps the low bit.
inline constexpr std::int64_t wrap(DType type, std::uint64_t bits) {
  switch (type) {
    case DType::boolean:
      return static_cast<std::int64_t>(bits & 1);
    case DType::i8:
      return static_cast<std::int8_t>(bits);
    case DType::i16:
      return static_cast<std::int16_t>(bits);
    case DType::i32:
      return static_cast<std::int32_t>(bits);
    case DType::u8:
      return static_cast<std::uint8_t>(bits);
    case DType::u16:
      return static_cast<std::uint16_t>(bits);
    case DType::u32:
      return static_cast<std::uint32_t>(bits);
    default:
      return static_cast<std::int64_t>(bits);
  }
}

}  // namespace tack
