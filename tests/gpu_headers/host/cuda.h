/* What kernels use of CUDA C++, for a CPU; included before the text of a unit. */
#pragma once

#include <cmath>
#include <cstring>

#include "fibers.h"

#define __global__
#define __device__
#define __shared__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(threads)

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
