/* What kernels use of CUDA C++, for a CPU; included before the text of a unit. */
#pragma once

#include <cmath>
#include <cstring>

#include "fibers.h"

#define __global__
#define __device__
#define __shared__ thread_local /* which may be extern, and is static where a function has it */
#define __align__(bytes)
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(threads)

/* The memory that a launch gives to a workgroup. */
extern "C" {
alignas(16) thread_local unsigned char tack_memory[256 * 1024];
}

template <typename To, typename From>
To tack_bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, value);
}

inline void __syncthreads() { tack_emulation::block.wait(); }

inline unsigned int __float_as_uint(float x) { return tack_bits<unsigned int>(x); }
inline float __uint_as_float(unsigned int x) { return tack_bits<float>(x); }
inline float __int_as_float(int x) { return tack_bits<float>(x); }
inline long long __double_as_longlong(double x) { return tack_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return tack_bits<double>(x); }
inline float rsqrtf(float x) { return 1 / __builtin_sqrtf(x); }
inline double rsqrt(double x) { return 1 / __builtin_sqrt(x); }
inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
inline double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
inline int __popc(unsigned int x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned int>(x)) : 32; }
inline int __clzll(long long x) {
  return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64;
}

/* The threads of a block take turns at barriers only, so that nothing comes between. */
template <typename T, typename Function>
T tack_swapped(T* place, Function function) {
  T old = *place;
  *place = function(old);
  return old;
}

#define TACK_ATOMIC(name, change)                                   \
  template <typename T>                                             \
  T name(T* place, T value) {                                       \
    return tack_swapped(place, [=](T old) -> T { return change; }); \
  }
TACK_ATOMIC(atomicAdd, old + value)
TACK_ATOMIC(atomicAnd, old& value)
TACK_ATOMIC(atomicOr, old | value)
TACK_ATOMIC(atomicXor, old ^ value)
TACK_ATOMIC(atomicExch, value)
TACK_ATOMIC(atomicMin, value < old ? value : old)
TACK_ATOMIC(atomicMax, old < value ? value : old)
#undef TACK_ATOMIC

template <typename T>
T atomicCAS(T* place, T old, T value) {
  return tack_swapped(place, [=](T found) { return found == old ? value : found; });
}

inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }

/* What is an instruction on a device: templates/cuda/conversions.j2 has those. This is the one
 * place where other text runs here than ships. */
inline unsigned short tack_f16_of_f32(float x) { return tack_bits<unsigned short>((_Float16)x); }
inline float tack_f32_of_f16(unsigned short x) { return tack_bits<_Float16>(x); }

/* A float rounded to a narrower one, as the bits of that; the greatest for what is greater. */
inline unsigned int tack_rounded(float x, int precision, int least, unsigned int greatest) {
  int exponent = 0;
  std::frexp(x, &exponent);
  const int quantum = x == 0 || exponent - precision < least ? least : exponent - precision;
  const double steps = std::nearbyint(std::ldexp(std::fabs(static_cast<double>(x)), -quantum));
  const double all = steps + std::ldexp(quantum - least, precision - 1);
  return all < greatest ? static_cast<unsigned int>(all) : greatest;
}

inline unsigned short tack_bf16_of_f32(float x) {
  if (std::isnan(x)) return 0x7fff;
  const unsigned int sign = std::signbit(x) ? 0x8000 : 0;
  return static_cast<unsigned short>(sign |
                                     (std::isinf(x) ? 0x7f80 : tack_rounded(x, 8, -133, 0x7f80)));
}

inline unsigned short tack_pair_of_f32(float x, int precision, int least, unsigned int greatest) {
  unsigned int bits = 0x7f;
  if (!std::isnan(x)) {
    bits = std::isinf(x) ? greatest : tack_rounded(x, precision, least, greatest);
    bits |= std::signbit(x) ? 0x80 : 0;
  }
  return static_cast<unsigned short>(bits << 8 | bits);
}

inline unsigned short tack_e4m3x2_of_f32(float x) { return tack_pair_of_f32(x, 4, -9, 0x7e); }
inline unsigned short tack_e5m2x2_of_f32(float x) { return tack_pair_of_f32(x, 3, -16, 0x7b); }

inline unsigned int tack_f16x2_of_e4m3x2(unsigned short x) {
  const int exponent = x >> 3 & 15, fraction = x & 7;
  float size = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  if ((x & 0x7f) == 0x7f) size = __builtin_nanf("");
  return tack_f16_of_f32(x & 0x80 ? -size : size);
}

inline unsigned int tack_f16x2_of_e5m2x2(unsigned short x) { return (x & 0xffU) << 8; }
