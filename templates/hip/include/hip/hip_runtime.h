/* What kernels need of ROCm's header of this name, for a clang that has no ROCm beside it. */
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))

#define TACK_AXIS(axis, builtin)                                                      \
  __declspec(property(get = get_##axis)) unsigned int axis;                           \
  static inline __device__ __attribute__((always_inline)) unsigned int get_##axis() { \
    return builtin;                                                                   \
  }

struct tack_thread_index {
  TACK_AXIS(x, __builtin_amdgcn_workitem_id_x())
  TACK_AXIS(y, __builtin_amdgcn_workitem_id_y())
  TACK_AXIS(z, __builtin_amdgcn_workitem_id_z())
};

struct tack_block_index {
  TACK_AXIS(x, __builtin_amdgcn_workgroup_id_x())
  TACK_AXIS(y, __builtin_amdgcn_workgroup_id_y())
  TACK_AXIS(z, __builtin_amdgcn_workgroup_id_z())
};

struct tack_block_size {
  TACK_AXIS(x, __builtin_amdgcn_workgroup_size_x())
  TACK_AXIS(y, __builtin_amdgcn_workgroup_size_y())
  TACK_AXIS(z, __builtin_amdgcn_workgroup_size_z())
};

struct tack_grid_size {
  TACK_AXIS(x, __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x())
  TACK_AXIS(y, __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y())
  TACK_AXIS(z, __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z())
};

#undef TACK_AXIS

extern const __device__ __attribute__((weak)) tack_thread_index threadIdx;
extern const __device__ __attribute__((weak)) tack_block_index blockIdx;
extern const __device__ __attribute__((weak)) tack_block_size blockDim;
extern const __device__ __attribute__((weak)) tack_grid_size gridDim;

extern "C" __device__ int printf(const char* format, ...);
