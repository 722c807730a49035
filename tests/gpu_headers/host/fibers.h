/* Runs the threads of a GPU's blocks on one thread of a CPU: each is a fiber, and a barrier lets
 * the others run up to theirs. A block in which some threads wait and others have ended is an
 * error.
 */
#pragma once

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

struct tack_index {
  unsigned int x, y, z;
};

inline tack_index threadIdx, blockIdx, blockDim, gridDim;

namespace tack_emulation {

class Block {
 public:
  void run(const std::function<void()>& thread) {
    thread_ = &thread;
    unsigned int count = blockDim.x * blockDim.y * blockDim.z;
    std::vector<Fiber> fibers(count);
    for (Fiber& fiber : fibers) start(fiber);
    for (unsigned int ended = 0; ended < count;) {
      ended = 0;
      for (unsigned int number = 0; number < count; ++number) {
        Fiber& fiber = fibers[number];
        if (!fiber.ended) resume(fiber, number);
        ended += fiber.ended;
      }
      if (ended > 0 && ended < count) {
        std::fputs("some threads of a block have ended while others wait at a barrier\n", stderr);
        std::abort();
      }
    }
  }

  void wait() { swapcontext(&current_->context, &scheduler_); }

 private:
  struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool ended = false;
  };

  static constexpr std::size_t kStack = 256 * 1024;

  void start(Fiber& fiber) {
    fiber.stack = std::make_unique_for_overwrite<char[]>(kStack);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = &scheduler_;
    makecontext(&fiber.context, &Block::enter, 0);
  }

  static void enter();

  void resume(Fiber& fiber, unsigned int number) {
    threadIdx = {number % blockDim.x, number / blockDim.x % blockDim.y,
                 number / blockDim.x / blockDim.y};
    current_ = &fiber;
    swapcontext(&scheduler_, &fiber.context);
  }

  ucontext_t scheduler_;
  Fiber* current_ = nullptr;
  const std::function<void()>* thread_ = nullptr;
};

inline Block block;

inline void Block::enter() {
  (*block.thread_)();
  block.current_->ended = true;
}

inline void run_grid(tack_index grid, tack_index threads, const std::function<void()>& thread) {
  gridDim = grid, blockDim = threads;
  for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) block.run(thread);
}

}  // namespace tack_emulation
