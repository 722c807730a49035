/* What kernels use of ROCm's header of this name, for a CPU. */
#pragma once

#include "../fibers.h"

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(threads)

#define __builtin_amdgcn_fence(order, scope)
#define __builtin_amdgcn_s_barrier() tack_emulation::block.wait()

#define __HIP_MEMORY_SCOPE_AGENT 4
#define __hip_atomic_exchange(place, value, order, scope) __atomic_exchange_n(place, value, order)
#define __hip_atomic_compare_exchange_strong(place, old, value, then, otherwise, scope) \
  __atomic_compare_exchange_n(place, old, value, false, then, otherwise)
#define __hip_atomic_fetch_add(place, value, order, scope) __atomic_fetch_add(place, value, order)
#define __hip_atomic_fetch_and(place, value, order, scope) __atomic_fetch_and(place, value, order)
#define __hip_atomic_fetch_or(place, value, order, scope) __atomic_fetch_or(place, value, order)
#define __hip_atomic_fetch_xor(place, value, order, scope) __atomic_fetch_xor(place, value, order)
#define __hip_atomic_fetch_min(place, value, order, scope) \
  tack_replaced(place, value, *(place) < (value))
#define __hip_atomic_fetch_max(place, value, order, scope) \
  tack_replaced(place, value, *(place) > (value))

/* The threads of a block take turns at barriers only, so that nothing comes between. */
template <typename T>
T tack_replaced(T* place, T value, bool keep) {
  T old = *place;
  *place = keep ? old : value;
  return old;
}
