/* What kernels use of ROCm's header of this name, for a CPU. */
#pragma once

#include "../fibers.h"

#define __global__
#define __device__
#define __launch_bounds__(threads)
