/* How far results are from those of the C library's functions in wider arithmetic. */

#include <math.h>
#include <stdint.h>

/* In units in the last place of the exact value; infinite where a result is wrong in kind. Infinity
   counts as the power of two after the greatest number. */
#define ERROR(number, type, wide, ilogb, ldexp, fabs, bits, least, most)                    \
  static double error_##number(type result, wide exact) {                                   \
    if (isnan(exact) || isnan(result)) return isnan(exact) && isnan(result) ? 0 : INFINITY; \
    if (!signbit(exact) != !signbit(result)) return INFINITY;                               \
    if (isinf(exact)) return isinf(result) ? 0 : INFINITY;                                  \
    const wide size = fabs(exact), beyond = ldexp((wide)1, (most) + 1);                     \
    if (isinf(result) && size >= beyond) return 0;                                          \
    int exponent = size > 0 ? ilogb(size) : (least);                                        \
    exponent = exponent<(least) ? (least) : exponent>(most) ? (most) : exponent;            \
    const wide found = isinf(result) ? beyond : fabs((wide)result);                         \
    return (double)ldexp(fabs(found - size), (bits) - 1 - exponent);                        \
  }

ERROR(f32, float, double, ilogb, ldexp, fabs, 24, -126, 127)
ERROR(f64, double, long double, ilogbl, ldexpl, fabsl, 53, -1022, 1023)

#define MEASURE(name, number, type, wide, value)                                                 \
  void name##_##number(const type* first, const type* second, const type* result, int64_t count, \
                       double* worst, int64_t* at) {                                             \
    for (int64_t i = 0; i < count; ++i) {                                                        \
      const wide x = first[i], y = second[i];                                                    \
      (void)y;                                                                                   \
      const double error = error_##number(result[i], value);                                     \
      if (error > *worst) *worst = error, *at = i;                                               \
    }                                                                                            \
  }

#define FUNCTION(name, value, extended)    \
  MEASURE(name, f32, float, double, value) \
  MEASURE(name, f64, double, long double, extended)
#define ONE(name) FUNCTION(name, name(x), name##l(x))
#define TWO(name) FUNCTION(name, name(x, y), name##l(x, y))

ONE(acos)
ONE(acosh)
ONE(asin)
ONE(asinh)
ONE(atan)
TWO(atan2)
ONE(atanh)
ONE(cbrt)
ONE(cos)
ONE(cosh)
ONE(erf)
ONE(exp)
ONE(exp2)
ONE(expm1)
TWO(hypot)
ONE(log)
ONE(log10)
ONE(log1p)
ONE(log2)
TWO(pow)
FUNCTION(rsqrt, 1 / sqrt(x), 1 / sqrtl(x))
ONE(sin)
ONE(sinh)
ONE(tan)
ONE(tanh)
