// The fastest kernels for products with a transposed A, by class of processors. Made by scripts/tune-gemm, which
// measures float32 on one thread; float64 uses the same entries. A product has the entry of the nearest sizes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iterator>

namespace tenon::openblas {

// Terms of the sums, k, and sides of C, m and n, that are measured.
inline constexpr int64_t kGemmTerms[] = {16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
inline constexpr int64_t kGemmSides[] = {8, 32, 128, 512, 2048};

struct GemmTable {
  const char* processor;  // choice.h
  // [form][k][m][n]; form 0: B is [k, n], 1: B is [n, k]. 'o', 'b' and 'u': Kernels::kOwn, kBlas, kUnpacked.
  char kernels[2][std::size(kGemmTerms)][std::size(kGemmSides)][std::size(kGemmSides) + 1];
};

inline constexpr GemmTable kGemmTables[] = {
    {"amd avx512",  // AMD EPYC (Zen 4), 26 November 2026
     {{
          {"ouuuo", "uuubo", "uubbo", "uubbo", "bbbuo"},  // 16
          {"ouuuo", "uubub", "uubuo", "bubuo", "buuuo"},  // 32
          {"uuuuu", "uuuub", "uuuuo", "uuuuo", "buuuo"},  // 64
          {"uuuuu", "uuuuu", "uuuuu", "uuuuo", "uuuuo"},  // 128
          {"ouuuu", "uuuuu", "uuuuu", "uuuuo", "uuuuo"},  // 256
          {"ouuuu", "uuuuu", "buuuo", "buuuo", "uuuuo"},  // 512
          {"obuuo", "buuuu", "uuuuo", "uuuoo", "buooo"},  // 1024
          {"bbooo", "bbboo", "bbbbo", "bbboo", "bbooo"},  // 2048
          {"boooo", "bbbbo", "bbbbb", "bbboo", "bbooo"},  // 4096
      },
      {
          {"boooo", "bbbbo", "bbbbo", "bbboo", "bbbbo"},  // 16
          {"boooo", "bbbbb", "bbbuo", "bbboo", "bbuoo"},  // 32
          {"boooo", "bbbbb", "bbuuu", "bbuoo", "bbuoo"},  // 64
          {"boooo", "bbbuu", "bbuuu", "bbuuo", "buuuo"},  // 128
          {"boooo", "bbuuu", "buuuu", "buuuu", "buuuo"},  // 256
          {"boooo", "bbuuu", "buuuu", "buuuu", "uuuuu"},  // 512
          {"boooo", "buuuu", "uuuuu", "uuuoo", "ubooo"},  // 1024
          {"boooo", "boooo", "boooo", "boooo", "bbooo"},  // 2048
          {"boooo", "boooo", "boobo", "boooo", "bbooo"},  // 4096
      }}},
    {"amd avx2",  // AMD EPYC (Zen 4) by its AVX2, 26 November 2026
     {{
          {"bbbbb", "bbbbb", "bbbbb", "bbbbo", "bbbbo"},  // 16
          {"bbbbb", "bbbbb", "bbbbb", "bbbob", "bbbbo"},  // 32
          {"bbbbb", "bbbbb", "bbbbb", "bbbob", "bbbbo"},  // 64
          {"bbbbb", "bbbbb", "bbbbb", "bbboo", "bbbbo"},  // 128
          {"bbbbb", "bbbbb", "bbbbb", "bbbob", "bbbbb"},  // 256
          {"bbbbb", "bbbbb", "bbbbb", "bbbob", "bbbbb"},  // 512
          {"bbbbb", "bbbbb", "bbbbb", "bbboo", "bbbbb"},  // 1024
          {"bbbbb", "bbbbb", "bbbbb", "bbbob", "bbbbo"},  // 2048
          {"bbbbb", "bbbbb", "bbbbb", "bbboo", "bbboo"},  // 4096
      },
      {
          {"bbbbb", "bbbbb", "bbbbb", "bbbbo", "bbbbo"},  // 16
          {"bbbbb", "bbbbb", "bbbbb", "bbboo", "bbbbo"},  // 32
          {"bbbbb", "bbbbb", "bbbbb", "bbboo", "bbbbo"},  // 64
          {"bbbbb", "bbbbb", "bbbbb", "bbboo", "bbbbb"},  // 128
          {"bbbbb", "bbbbb", "bbbbb", "bbboo", "bbbbo"},  // 256
          {"bbbbb", "bbbbb", "bbbbb", "bbbob", "bbbbb"},  // 512
          {"bbbbb", "bbbbb", "bbbbb", "bbbob", "bbbbb"},  // 1024
          {"bbbbb", "bbbbb", "bbbbb", "bbbob", "bbbob"},  // 2048
          {"bbbbb", "bbbbb", "bbbbb", "bbboo", "bbboo"},  // 4096
      }}},
    {"intel avx512",  // Intel(R) Xeon(R) Processor, 26 November 2026
     {{
          {"uuuub", "uuubb", "uubbb", "ubbbo", "bbboo"},  // 16
          {"uuboo", "bubbb", "ubbuo", "buboo", "bbuoo"},  // 32
          {"ouuuu", "uubuu", "ubuuo", "buuoo", "buboo"},  // 64
          {"ouuuu", "uuuuu", "uuuuo", "uuuoo", "uubbo"},  // 128
          {"ouuuo", "uuuuo", "uuubo", "uuboo", "ubbbo"},  // 256
          {"ouuuo", "uuuuo", "buubb", "bubob", "bbbbb"},  // 512
          {"bbuuo", "buuoo", "uuubb", "bbbob", "bbbbb"},  // 1024
          {"bbooo", "bobbo", "bobbo", "bbbob", "bbbbb"},  // 2048
          {"boooo", "bobbo", "bbbbb", "bbbob", "bbbbo"},  // 4096
      },
      {
          {"uoooo", "bbboo", "buooo", "buooo", "buooo"},  // 16
          {"boooo", "bubbo", "bbboo", "bbboo", "bbboo"},  // 32
          {"boooo", "bbbbb", "buuuu", "bbuoo", "bbboo"},  // 64
          {"boooo", "bbbuu", "bbuuu", "bbuoo", "bubbo"},  // 128
          {"bbbbu", "bbuuu", "buuuu", "buuob", "bbbbb"},  // 256
          {"bubuu", "bbuuu", "buuuu", "bubob", "ubbbb"},  // 512
          {"buuuu", "buooo", "uobbb", "uboob", "ubbbb"},  // 1024
          {"bbooo", "boooo", "bobbb", "bbbob", "bbbbb"},  // 2048
          {"boooo", "boooo", "bobbb", "bbbbb", "bbbbb"},  // 4096
      }}},
};

}  // namespace tenon::openblas
