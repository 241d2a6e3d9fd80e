// Runs CUDA kernels on the CPU, for tests: included before the source of a kernel, which a C++ compiler compiles. The
// threads of a block are fibers that run one at a time, each until it waits for others. The launch fails if all fibers
// wait.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <ucontext.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(threads, blocks)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))

namespace emulator {

struct Barrier {
  unsigned arrived = 0;
  unsigned generation = 0;
};

// Where a thread goes on. Switches are most of the work of an emulation, and swapcontext makes system calls.
#ifdef __x86_64__
struct Context {
  void* stack = nullptr;
};
__attribute__((naked, noinline)) inline void switch_to(Context&, const Context&) {
  asm("pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15;"
      "movq %rsp, (%rdi); movq (%rsi), %rsp;"
      "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; ret");
}
inline void begin(Context& context, char* stack, size_t bytes, void (*function)()) {
  auto* const top = reinterpret_cast<void**>(stack + bytes);
  std::memset(top - 8, 0, 8 * sizeof(void*));  // a return address that is never used, and six registers
  top[-2] = reinterpret_cast<void*>(function);
  context.stack = top - 8;
}
#else
using Context = ucontext_t;
inline void switch_to(Context& from, const Context& to) { swapcontext(&from, &to); }
inline void begin(Context& context, char* stack, size_t bytes, void (*function)()) {
  getcontext(&context);
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = bytes;
  makecontext(&context, function, 0);
}
#endif

struct Fiber {
  Context context;
  bool done;
};

constexpr size_t kStackBytes = 128 << 10;

inline Context scheduler;
inline std::vector<Fiber> fibers;
// The stacks of the fibers, freed when the kernels are unloaded.
inline struct Stacks {
  ~Stacks() {
    if (memory != nullptr) munmap(memory, 1024 * kStackBytes);
  }
  char* memory = nullptr;
} stacks;
inline unsigned current = 0;
inline unsigned long progress = 0;
inline unsigned long draw = 1;
inline Barrier block_barrier;
inline Barrier warp_barriers[32];
inline unsigned char exchanged[1024][16];
// Set by what a GPU refuses, or what is not emulated: the launch fails.
inline bool refused = false;
inline void (*start)(void*) = nullptr;
inline void* start_argument = nullptr;

struct Index {
  unsigned x;
};

}  // namespace emulator

inline emulator::Index threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

inline void yield() {
  const unsigned self = current;
  switch_to(fibers[self].context, scheduler);
}

inline void wait(Barrier& barrier, unsigned threads) {
  const unsigned generation = barrier.generation;
  ++progress;
  if (++barrier.arrived == threads) {
    barrier.arrived = 0;
    ++barrier.generation;
  } else {
    while (barrier.generation == generation) yield();
  }
}

inline void wait_for_warp() { wait(warp_barriers[threadIdx.x / 32], 32); }

template <class T>
T exchange(T value, unsigned thread) {
  std::memcpy(exchanged[threadIdx.x], &value, sizeof value);
  wait_for_warp();
  std::memcpy(&value, exchanged[thread], sizeof value);
  wait_for_warp();
  return value;
}

inline void enter() {
  start(start_argument);
  fibers[current].done = true;
  ++progress;
  for (;;) yield();
}

// Runs a thread until it waits or ends. Returns whether it ended now.
inline bool resume(unsigned thread) {
  if (fibers[thread].done) return false;
  current = thread;
  threadIdx.x = thread;
  switch_to(scheduler, fibers[thread].context);
  return fibers[thread].done;
}

// Runs a block. Returns whether all of its threads ended.
inline bool run_block(unsigned threads) {
  if (stacks.memory == nullptr) {
    void* const memory =
        mmap(nullptr, 1024 * kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    stacks.memory = static_cast<char*>(memory);
  }
  fibers.resize(threads);
  block_barrier = {};
  for (Barrier& barrier : warp_barriers) barrier = {};
  for (unsigned i = 0; i < threads; ++i) {
    fibers[i].done = false;
    begin(fibers[i].context, stacks.memory + i * kStackBytes, kStackBytes, &enter);
  }
  // Randomly chosen warps run one at a time, each as far as it can alone, so that a warp that does not wait for the
  // others where it must runs ahead of them.
  const unsigned warps = (threads + 31) / 32;
  for (unsigned left = threads, idle = 0; left > 0;) {
    draw = draw * 6364136223846793005UL + 1442695040888963407UL;
    const unsigned first = idle > 0 ? idle - 1 : static_cast<unsigned>(draw >> 33) % warps;
    const unsigned long before = progress;
    unsigned long seen;
    do {
      seen = progress;
      for (unsigned k = 0; k < 32; ++k) {
        const unsigned lane = draw >> 60 < 8 ? k : 31 - k;
        if (first * 32 + lane < threads && resume(first * 32 + lane)) --left;
      }
    } while (progress != seen);
    // If the warp made no progress, all warps are tried in turn.
    idle = progress != before ? 0 : idle + 1;
    if (idle > warps) return false;
  }
  return true;
}

// Runs the blocks from the last to the first, because kernels must not rely on their order. Returns 0 if all ended, and
// nothing was refused.
template <class Arguments>
int run(void (*kernel)(Arguments), unsigned blocks, unsigned threads, const void* arguments) {
  struct Bound {
    void (*kernel)(Arguments);
    Arguments arguments;
  };
  Bound bound = {kernel, {}};
  std::memcpy(static_cast<void*>(&bound.arguments), arguments, sizeof(Arguments));
  start = [](void* self) { static_cast<Bound*>(self)->kernel(static_cast<Bound*>(self)->arguments); };
  start_argument = &bound;
  blockDim.x = threads;
  gridDim.x = blocks;
  for (unsigned block = blocks; block-- > 0;) {
    blockIdx.x = block;
    if (!run_block(threads)) return 1;
  }
  return refused ? 1 : 0;
}

}  // namespace emulator

// What the driver finds in a module beside its kernels; behind their text.
#define EMULATED_MODULE(Arguments)                                                                   \
  extern "C" const unsigned long emulated_bytes = sizeof(Arguments);                                 \
  extern "C" int emulate(void* kernel, unsigned blocks, unsigned threads, const void* arguments) {   \
    return emulator::run(reinterpret_cast<void (*)(Arguments)>(kernel), blocks, threads, arguments); \
  }

inline void __syncthreads() { emulator::wait(emulator::block_barrier, blockDim.x); }
inline void __syncwarp() { emulator::wait_for_warp(); }
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return emulator::exchange(value, threadIdx.x ^ static_cast<unsigned>(mask));
}
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return emulator::exchange(value, threadIdx.x / 32 * 32 + static_cast<unsigned>(lane));
}
template <class T>
T __shfl_up_sync(unsigned, T value, unsigned lanes) {
  return emulator::exchange(value, threadIdx.x % 32 < lanes ? threadIdx.x : threadIdx.x - lanes);
}

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits of one size");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline float __uint_as_float(unsigned bits) { return bits_as<float>(bits); }
inline unsigned __float_as_uint(float number) { return bits_as<unsigned>(number); }
inline double __longlong_as_double(long long bits) { return bits_as<double>(bits); }
// Operations that are never contracted: the emulator's compiler has no fused multiply-add to contract to.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
