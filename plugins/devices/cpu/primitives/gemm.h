// A matrix product on the cpu: sizes, memory, tiles. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <cstdint>

#include "product_tiles.h"

namespace tenon::cpu {

// The elements of A and B: numbers of gemm->dtype; pairs of bfloat16 numbers (bf16_product.h), which k counts then; or
// such pairs for multiply_matrix_tile, of which A is [m, k] whatever the flags.
enum class Factors : uint8_t { kNumbers, kPairs, kMatrixPairs };

// One run: C[i] = alpha op(A[i]) op(B[i]) for i in [0, batch). Row-major elements of gemm->dtype, float32 or float64.
struct Product {
  const tn_gemm* gemm;
  int64_t batch, m, n, k;
  int32_t workers;
  Tiles tiles;
  bool add;                    // the request is ADD: adds to C
  const uint8_t* a;            // [batch, m, k]; with TN_TRANSPOSE_A [batch, k, m]
  const uint8_t* b;            // [batch, k, n]; with TN_TRANSPOSE_B [batch, n, k]; or packed
  uint8_t* c;                  // [batch, m, n]
  int64_t packed_columns = 0;  // above 0: B is packed (gemm_tile.h) with so many columns, and batch is 1
  int64_t packed_rows = 0;     // above 0: A is packed, too, with so many rows
  Factors factors = Factors::kNumbers;
  // Not null: where the rows of the one B lie, or those of the one A if n is 1; that matrix is not transposed.
  const void* const* list = nullptr;
  mutable bool starved = false;  // a tile was left out for lack of memory; set atomically by tasks
};

// Fills *product for the current sizes. Reports a missing operand and sizes that are negative or above 2^31 - 1.
tn_status make_product(const tn_gemm& gemm, const tn_execution& execution, const tn_call& call, Product* product);

// Computes all of C, on several threads if it pays.
tn_status multiply_all(const tn_execution& execution, const Product& product);

// Cuts a product of at least one element and one term into tiles.
void cut(Product* product);
// Lets a product whose B is packed read it so.
void read_packed(Product* product);
// The same of one that a node packed: A of a product in bfloat16 is rounded into `workspace`, of rounded_rows_bytes.
void read_packed_factors(const tn_execution& execution, uint8_t* workspace, Product* product);
// Returns the terms of a block of a sum (gemm_tile.h) of k numbers or, of a product, its factors.
[[nodiscard]] int64_t number_block(const tn_gemm& gemm, int64_t k);
[[nodiscard]] int64_t product_block(const Product& product);
// Packs a matrix [k, n], or [n, k] with TN_TRANSPOSE_B, of the elements of a product, with blocks of `block` terms.
void pack_matrix(const tn_execution& execution, const tn_gemm& gemm, int64_t n, int64_t k, int64_t block,
                 const void* from, void* to);

// Products of many rows pack B once for all tiles, and a transposed A. Returns the bytes that it takes at these
// sizes, 0 if it does not pay.
[[nodiscard]] uint64_t worthwhile_bytes(const tn_gemm& gemm, int64_t batch, int64_t m, int64_t n, int64_t k);
// Returns the bytes that it takes at the bounds of the sizes; 0: it never pays.
[[nodiscard]] uint64_t packing_bytes(const tn_gemm& gemm);
// Packs these factors into `workspace`, of packing_bytes, and lets the product read them so, if that pays for its
// sizes. The bits of the result stay.
void pack_if_worthwhile(const tn_execution& execution, uint8_t* workspace, Product* product);
// The same, of worthwhile_bytes that are not 0.
void pack_factors(const tn_execution& execution, uint8_t* workspace, Product* product);

// Bytes of workspace of read_factors, at the bounds of the sizes.
[[nodiscard]] uint64_t factor_bytes(const tn_gemm& gemm);
// Lets a product read its factors in the form that suits it: rounded to bfloat16 (bf16_product.h), or B packed.
void read_factors(const tn_execution& execution, uint8_t* workspace, Product* product);

// Whether a side is the constant 1.
[[nodiscard]] bool is_one(const tn_dim& side);
// Whether a product is computed as op(B)^T op(A)^T, which has the same memory since one side of C is the constant 1: a
// row by columns of B that lie together, m = 1 and B [n, k], so that they are scalar products of two vectors each; or
// the turned columns of A by one column, A [k, m] and n = 1, so that vectors lie along the m. In full precision.
[[nodiscard]] bool is_swapped(const tn_gemm& gemm);
// Swaps the factors of such a product.
void swap_factors(tn_gemm* gemm);

// The traits of a call that computes such a product.
[[nodiscard]] uint32_t product_traits(const tn_services* services, const tn_gemm& gemm);
// Prepares a call of `run`, whose binding is a copy of `gemm`.
tn_status bind_gemm(const tn_services* services, const tn_errors* errors, const tn_gemm& gemm,
                    tn_status (*run)(void* binding, const tn_execution* execution, const tn_call* call),
                    tn_prepared* prepared);

// Prepares a product with an epilogue, whose B is packed or not. device: see caches_of.
tn_status prepare_epilogue(void* device, const tn_services* services, const tn_errors* errors,
                           const tn_gemm_epilogue& given, bool packed, tn_prepared* prepared);

// Computes rows [first, last) of C [batch * m, n] on the calling thread.
void multiply_rows(const Product& product, int64_t first, int64_t last);

// Called after the last tile: TN_OK, or TN_OUT_OF_MEMORY with a report if a tile was left out.
tn_status check_done(const tn_errors* errors, const Product& product);

// Reports element types and flags that the cpu does not offer.
tn_status check_gemm(const tn_errors* errors, const tn_gemm& gemm);

}  // namespace tenon::cpu
