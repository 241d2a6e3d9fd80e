// The memory into which OpenBLAS packs the matrices of a product. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon::cpu {

// Calls of OpenBLAS that run at the same time in the process, at most.
inline constexpr int kMostBlasCalls = 64;

// What one call packs, at most, by the kernels of a known core (blas_core.h) and by any. choose_tiles (gemm.h) sees to
// the former: B is packed in blocks of at most 1 MiB; the whole rows of A are where there are more columns than 192
// at least, and such a tile has at most 2^27 products or 255 rows, so at most 695,000 elements of A: 5.3 MiB.
// tests/devices/blas_test.cpp measures it.
inline constexpr uint64_t kKnownCoreBytes = uint64_t{8} << 20;
inline constexpr uint64_t kAnyCoreBytes = uint64_t{128} << 20;

// The right to one call of OpenBLAS with a buffer behind it. Waits while kMostBlasCalls run, or while there is no
// memory for one more and others have some. False: there is no memory for the first one.
class BlasCall {
 public:
  BlasCall();
  ~BlasCall();
  BlasCall(const BlasCall&) = delete;
  BlasCall& operator=(const BlasCall&) = delete;
  explicit operator bool() const { return has_buffer_; }

 private:
  bool has_buffer_;
};

}  // namespace tenon::cpu
