// One product on the cpu: sizes, memory, tiles. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <cstdint>

namespace tenon::cpu {

struct Tiles {
  int64_t rows, columns;  // of C
};

struct Product {
  const tn_gemm* gemm;
  int64_t batch, m, n, k;
  Tiles tiles;
  bool add;
  const uint8_t* a;
  const uint8_t* b;
  uint8_t* c;
  mutable bool starved = false;  // there was no memory to compute with; tasks set it atomically
};

// How the rows and columns of C are cut; follows from the sizes alone.
[[nodiscard]] Tiles choose_tiles(int64_t m, int64_t n, int64_t k, uint32_t flags);

// Fills *product for the current symbols. Reports sizes that cannot be.
tn_status make_product(const tn_gemm& gemm, const tn_execution& execution, const tn_call& call, Product* product);

// Rows [first, last) of C, counted over all batches, whole, one after the other.
void multiply_rows(const Product& product, int64_t first, int64_t last);

// After the last row: whether all were computed, else a report.
tn_status check_done(const tn_errors* errors, const Product& product);

// What prepare refuses, with a report.
tn_status check_gemm(const tn_errors* errors, const tn_gemm& gemm);

}  // namespace tenon::cpu
