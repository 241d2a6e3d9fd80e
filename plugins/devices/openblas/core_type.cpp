// Chooses OpenBLAS's kernels by the features of the processor.
//
// When it is loaded, OpenBLAS 0.3.21 chooses kernels by the processor's model number, from those that it knows. For a
// newer processor it takes slow ones: on AMD family 26 (Zen 5) its Haswell kernels, which reach half the speed of the
// AVX-512 ones that run there as well (128 x 128 x 784: 107 against 180 GFLOP/s on one core). Only the environment
// variable OPENBLAS_CORETYPE overrides that. The environment belongs to the application, so the plugin is linked with
// `--wrap=getenv` instead: OpenBLAS, which is linked into the plugin, calls the function below. Its answer depends on
// the processor's features alone, so that OPENBLAS_* variables of the application cannot change results or make
// OpenBLAS print.
// SPDX-License-Identifier: Apache-2.0
#include "core_type.h"

#include <cstring>

extern "C" {
// Names that the linker's --wrap prescribes.
char* __real_getenv(const char* name);  // NOLINT
char* __wrap_getenv(const char* name);  // NOLINT
}

namespace tenon::openblas {

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

char* core_for(bool avx512, bool avx2) {
  static char skylake[] = "SkylakeX";
  static char haswell[] = "Haswell";
  if (avx512) return skylake;
  return avx2 ? haswell : nullptr;
}

}  // namespace tenon::openblas

namespace {

char* core_type() {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  const bool avx2 = false;
#endif
  return tenon::openblas::core_for(tenon::openblas::has_small_kernels(), avx2);
}

}  // namespace

bool tenon::openblas::knows_core() { return core_type() != nullptr; }

extern "C" char* __wrap_getenv(const char* name) {  // NOLINT(bugprone-reserved-identifier)
  if (std::strcmp(name, "OPENBLAS_CORETYPE") == 0) return core_type();
  if (std::strncmp(name, "OPENBLAS_", 9) == 0 || std::strncmp(name, "GOTO_", 5) == 0) return nullptr;
  return __real_getenv(name);
}
