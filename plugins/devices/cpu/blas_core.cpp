// Chooses OpenBLAS's kernels by what the processor can do.
//
// OpenBLAS 0.3.21 chooses by model numbers that it knows when it is loaded. For a newer processor it takes a slow set:
// on AMD family 26 (Zen 5) its Haswell kernels, which reach half the speed of the AVX-512 ones that run there as well
// (128 x 128 x 784: 107 against 180 GFLOP/s on one core). The one way in that it offers is the environment variable
// OPENBLAS_CORETYPE. The environment belongs to the application, so instead the plugin is linked with
// `--wrap=getenv`: OpenBLAS, a hidden part of this file, asks the function below. It answers from the processor's
// features alone, which also keeps foreign OPENBLAS_* settings from changing results or making OpenBLAS print.
// SPDX-License-Identifier: Apache-2.0
#include "blas_core.h"

#include <cstring>

extern "C" {
// Names that the linker's --wrap prescribes.
char* __real_getenv(const char* name);  // NOLINT
char* __wrap_getenv(const char* name);  // NOLINT
}

namespace tenon::cpu {

bool has_small_kernels() {
#if defined(__x86_64__)
  // Called while the plugin is loaded, before constructors may have run.
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

}  // namespace tenon::cpu

namespace {

// The core to use, or null: OpenBLAS then finds out itself.
char* core_type() {
  static char skylake[] = "SkylakeX";
  if (tenon::cpu::has_small_kernels()) return skylake;
#if defined(__x86_64__)
  static char haswell[] = "Haswell";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return haswell;
#endif
  return nullptr;
}

}  // namespace

bool tenon::cpu::knows_core() { return core_type() != nullptr; }

extern "C" char* __wrap_getenv(const char* name) {  // NOLINT(bugprone-reserved-identifier)
  if (std::strcmp(name, "OPENBLAS_CORETYPE") == 0) return core_type();
  if (std::strncmp(name, "OPENBLAS_", 9) == 0 || std::strncmp(name, "GOTO_", 5) == 0) return nullptr;
  return __real_getenv(name);
}
