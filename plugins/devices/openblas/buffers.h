// The memory into which OpenBLAS packs the matrices of a product. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon::openblas {

// Most calls of OpenBLAS that run at the same time in the process.
inline constexpr int kMostBlasCalls = 64;

// Bytes of a packing buffer: the most that one call packs with the kernels of a known core (core.h), and with any
// others. choose_tiles (choice.h) keeps calls below the former: B is packed in blocks of at most 1 MiB, and whole
// rows of A, of which a tile of 256 rows or more has at most 695,000 elements: 5.3 MiB.
// tests/devices/openblas_test.cpp measures it.
inline constexpr uint64_t kKnownCoreBytes = uint64_t{8} << 20;
inline constexpr uint64_t kAnyCoreBytes = uint64_t{128} << 20;

// Reserves a buffer for one call of OpenBLAS until it is destroyed. The constructor waits while kMostBlasCalls calls
// run, or while a further buffer cannot be allocated and other calls hold one. Converts to false if not even one buffer
// could be allocated.
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

}  // namespace tenon::openblas
