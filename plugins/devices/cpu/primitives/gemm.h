// A matrix product on the cpu: sizes, memory, tiles. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <cstdint>

namespace tenon::cpu {

// The size of a tile of C, in elements.
struct Tiles {
  int64_t rows, columns;
};

// One run: C[i] = alpha op(A[i]) op(B[i]) for i in [0, batch). Row-major elements of gemm->dtype, float32 or float64.
struct Product {
  const tn_gemm* gemm;
  int64_t batch, m, n, k;
  Tiles tiles;
  bool add;                      // the request is ADD: adds to C
  const uint8_t* a;              // [batch, m, k]; with TN_TRANSPOSE_A [batch, k, m]
  const uint8_t* b;              // [batch, k, n]; with TN_TRANSPOSE_B [batch, n, k]; or packed
  uint8_t* c;                    // [batch, m, n]
  int64_t packed_columns = 0;    // above 0: B is packed (gemm_tile.h) with so many columns, and batch is 1
  mutable bool starved = false;  // a tile was left out for lack of memory; set atomically by tasks
};

// Returns the tiles into which C [m, n] is cut. They depend on the sizes, the flags and the processor, never on the
// number of threads. They do not change a bit of the result unless A is transposed. k is at least 1.
[[nodiscard]] Tiles choose_tiles(int64_t m, int64_t n, int64_t k, uint32_t flags);

// Fills *product for the current sizes. Reports a missing operand and sizes that are negative or too large for BLAS.
tn_status make_product(const tn_gemm& gemm, const tn_execution& execution, const tn_call& call, Product* product);

// Computes all of C, on several threads if it pays.
tn_status multiply_all(const tn_execution& execution, const Product& product);

// Lets a product whose B is packed read it so.
void read_packed(Product* product);

// Prepares a call of `run`, whose binding is a copy of `gemm`.
tn_status bind_gemm(const tn_errors* errors, const tn_gemm& gemm,
                    tn_status (*run)(void* binding, const tn_execution* execution, const tn_call* call),
                    tn_prepared* prepared);

// Prepares a product with an epilogue, whose B is packed or not.
tn_status prepare_epilogue(const tn_errors* errors, const tn_gemm_epilogue& epilogue, bool packed,
                           tn_prepared* prepared);

// Computes rows [first, last) of C [batch * m, n] on the calling thread.
void multiply_rows(const Product& product, int64_t first, int64_t last);

// Called after the last tile: TN_OK, or TN_OUT_OF_MEMORY with a report if a tile was left out.
tn_status check_done(const tn_errors* errors, const Product& product);

// Reports element types and flags that the cpu does not offer.
tn_status check_gemm(const tn_errors* errors, const tn_gemm& gemm);

}  // namespace tenon::cpu
