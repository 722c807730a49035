/* Gives kernels of a GPU dialect the entry points of a CPU library (tack_abi.h): each runs all
 * iterations, with fewer threads than there may be iterations.
 */
#pragma once

#include <cstring>
#include <utility>

#include "fibers.h"
#include "tack_abi.h"

namespace tack_emulation {

/* Few blocks along the axes that a kernel has, one along the others. */
inline tack_index grid_of(int axes) { return {3, axes > 1 ? 2u : 1u, axes > 2 ? 2u : 1u}; }

template <typename... Parameters, std::size_t... Numbers>
void call(void (*entry)(Parameters...), void* const* parameters, std::index_sequence<Numbers...>) {
  entry(*static_cast<std::remove_reference_t<Parameters>*>(parameters[Numbers])...);
}

/* As cuLaunchKernel: one pointer to the value of each parameter. */
template <typename... Parameters>
void launch(int axes, tack_index block, void (*entry)(Parameters...), void* const* parameters) {
  run_grid(grid_of(axes), block,
           [&] { call(entry, parameters, std::index_sequence_for<Parameters...>()); });
}

}  // namespace tack_emulation

/* What kernels of Metal, which are compiled apart, wait by. */
extern "C" inline __attribute__((used)) void tack_emulation_wait() { tack_emulation::block.wait(); }
