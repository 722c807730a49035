/* The C ABI between a kernel library and the tack runtime.
 *
 * Generated kernels and the runtime's launcher both include this file, so that there is one
 * statement of it. A change of anything below is a new TACK_ABI and a line in
 * tack/model/abi.py, which holds the history.
 */
#ifndef TACK_ABI_H
#define TACK_ABI_H

#include <stdint.h>

#define TACK_ABI 1

/* One packed value: a pointer, an extent, a stride in bytes, or a scalar bit-cast by its dtype
 * (bool is u8). */
typedef union tack_slot {
  void* ptr;
  int64_t i64;
  uint64_t u64;
  int32_t i32;
  uint32_t u32;
  int16_t i16;
  uint16_t u16;
  int8_t i8;
  uint8_t u8;
  float f32;
  double f64;
} tack_slot;

/* Where debug builds record the first violation; opaque to generated code that has no checks. */
struct tack_error;

/* What a launch hands to every part of it. `size` lets the struct grow at its end. */
typedef struct tack_context {
  uint32_t abi;                   /* TACK_ABI of the launcher */
  uint32_t size;                  /* sizeof(tack_context) of the launcher */
  void* scratch;                  /* per-thread scratch memory, or null */
  void* partials;                 /* partial results of reductions, or null */
  struct tack_error* error;       /* error slot, or null */
  const volatile int32_t* cancel; /* non-zero asks the kernel to stop early, or null */
} tack_context;

/* Runs the iterations [begin, end) of the parallel loop, numbered with the last index fastest. */
typedef void (*tack_entry)(const tack_context* ctx, const tack_slot* args, int64_t begin,
                           int64_t end);

#endif
