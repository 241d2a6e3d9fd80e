// "tenon.packed_gemm/1": products on the kernels of gemm_tile.cpp whose B lies in panels already, so that not every
// call copies it. The bits of C are those of "tenon.gemm/1". SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "bf16_product.h"
#include "gemm_tile.h"
#include "primitives.h"
#include "primitives/gemm.h"

namespace tenon::cpu {

namespace {

struct Matrix {
  int64_t n, k, columns;  // columns: n filled up to whole panels
};

Matrix matrix_of(const tn_gemm& gemm, int64_t n, int64_t k) {
  const int64_t panel = panel_columns(detect_isa(), gemm.dtype == TN_F64);
  return {n, k, (n + panel - 1) / panel * panel};
}
Matrix matrix_of(const tn_gemm& gemm, const int64_t* symbols) {
  return matrix_of(gemm, tn_dim_value(&gemm.n, symbols), tn_dim_value(&gemm.k, symbols));
}

uint64_t panels_bytes(const tn_gemm& gemm, int64_t n, int64_t k) {
  return static_cast<uint64_t>(matrix_of(gemm, n, k).columns * k * tn_dtype_bytes(gemm.dtype));
}

tn_status packed_bytes(void*, const tn_errors*, const tn_gemm* gemm, uint64_t* bytes) {
  constexpr int64_t kSmall = 4096, kLarge = int64_t{1} << 40;  // elements
  const bool is_constant = gemm->n.symbol == TN_SYMBOL_NONE && gemm->k.symbol == TN_SYMBOL_NONE;
  if ((gemm->dtype != TN_F32 && gemm->dtype != TN_F64) || (gemm->flags & TN_TRANSPOSE_A) != 0 || !is_constant)
    return TN_UNSUPPORTED;
  const bool rounds = is_rounded(*gemm);
  if (rounds && rounded_bytes(*gemm) == 0) return TN_UNSUPPORTED;  // the product stays as it is
  const Matrix matrix = matrix_of(*gemm, nullptr);
  // A matrix that stays in the first-level cache, or has one column, is read as it is.
  if (matrix.n < 2 || matrix.k < 1 || matrix.n < kSmall / matrix.k || matrix.n > kLarge / matrix.k)
    return TN_UNSUPPORTED;
  *bytes = rounds ? rounded_panels_bytes(matrix.n, matrix.k) : panels_bytes(*gemm, matrix.n, matrix.k);
  return TN_OK;
}

tn_status check_call(const tn_execution& execution, const tn_call& call, uint32_t inputs) {
  if (call.inputs_count == inputs && call.outputs_count == 1 && call.inputs[inputs - 1] != nullptr &&
      call.outputs[0] != nullptr)
    return TN_OK;
  return tn_fail(execution.errors, TN_MISUSE, nullptr, "a packed product without one of its operands");
}

struct Packing {
  GemmPack pack;
  PackKernel kernel;
  int64_t share;  // panels of a task
};

void run_pack_task(void* argument, int64_t index, int32_t) {
  const Packing& packing = *static_cast<const Packing*>(argument);
  GemmPack pack = packing.pack;
  pack.first = index * packing.share;
  pack.last = std::min(pack.last, pack.first + packing.share);
  packing.kernel(pack);
}

tn_status run_pack(void* binding, const tn_execution* execution, const tn_call* call) {
  if (const tn_status status = check_call(*execution, *call, 1); status != TN_OK) return status;
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  const tn_gemm& gemm = *static_cast<const tn_gemm*>(binding);
  const Matrix matrix = matrix_of(gemm, execution->symbols);
  const void* const from = tn_data(call->inputs[0]);
  void* const to = tn_data(call->outputs[0]);
  if (is_rounded(gemm))
    round_panels(*execution, gemm, matrix.n, matrix.k, from, static_cast<uint8_t*>(call->workspace), to);
  else
    pack_matrix(*execution, gemm, matrix.n, matrix.k, number_block(gemm, matrix.k), from, to);
  return TN_OK;
}

tn_status run_multiply(void* binding, const tn_execution* execution, const tn_call* call) {
  if (const tn_status status = check_call(*execution, *call, 2); status != TN_OK) return status;
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  const tn_gemm& gemm = *static_cast<const tn_gemm*>(binding);
  Product product = {};
  if (const tn_status status = make_product(gemm, *execution, *call, &product); status != TN_OK) return status;
  read_packed_factors(*execution, static_cast<uint8_t*>(call->workspace), &product);
  return multiply_all(*execution, product);
}

tn_status check_packs(const tn_errors* errors, const tn_gemm& gemm) {
  uint64_t bytes = 0;
  const tn_status status = packed_bytes(nullptr, errors, &gemm, &bytes);
  return status == TN_OK ? TN_OK : tn_fail(errors, status, nullptr, "the cpu does not pack the matrix of this product");
}

tn_status prepare_pack(void*, const tn_services* services, const tn_errors* errors, const tn_gemm* gemm,
                       tn_prepared* prepared) {
  if (const tn_status status = check_packs(errors, *gemm); status != TN_OK) return status;
  const tn_status status = bind_gemm(services, errors, *gemm, &run_pack, prepared);
  if (status == TN_OK && is_rounded(*gemm))
    prepared->workspace_bytes = rounding_bytes(*gemm, tn_dim_value(&gemm->n, nullptr), tn_dim_value(&gemm->k, nullptr));
  return status;
}

tn_status prepare_multiply(void*, const tn_services* services, const tn_errors* errors, const tn_gemm* gemm,
                           tn_prepared* prepared) {
  if (const tn_status status = check_packs(errors, *gemm); status != TN_OK) return status;
  const tn_status status = bind_gemm(services, errors, *gemm, &run_multiply, prepared);
  if (status == TN_OK) prepared->workspace_bytes = rounded_rows_bytes(*gemm);
  return status;
}

tn_status prepare_fused(void* device, const tn_services* services, const tn_errors* errors,
                        const tn_gemm_epilogue* epilogue, tn_prepared* prepared) {
  const tn_status status = check_packs(errors, *epilogue->gemm);
  return status == TN_OK ? prepare_epilogue(device, services, errors, *epilogue, true, prepared) : status;
}

}  // namespace

namespace {

// Packs `columns` columns of a matrix, `width` of them in a panel or strip, on several threads if it pays.
void pack_all(const tn_execution& execution, const GemmPack& pack, PackKernel kernel, int64_t width) {
  constexpr int64_t kTaskElements = 65536;
  const int64_t panels = (pack.columns + width - 1) / width;
  Packing packing = {pack, kernel, std::max<int64_t>(1, kTaskElements / (pack.depth * width))};
  packing.pack.last = panels;
  const int64_t tasks = (panels + packing.share - 1) / packing.share;
  execution.parallel->for_each(execution.parallel->self, tasks, &run_pack_task, &packing);
}

// A transposed A is copied strip by strip for each group of panels, unless it is packed; with few columns that is less.
bool packs_rows(const tn_gemm& gemm, int64_t n) { return (gemm.flags & TN_TRANSPOSE_A) != 0 && n >= 96; }
int64_t whole_strips(int64_t rows) {
  const int64_t strip = strip_rows(detect_isa());
  return (rows + strip - 1) / strip * strip;
}

}  // namespace

void pack_matrix(const tn_execution& execution, const tn_gemm& gemm, int64_t n, int64_t k, int64_t block,
                 const void* from, void* to) {
  const bool is_wide = gemm.dtype == TN_F64, tb = (gemm.flags & TN_TRANSPOSE_B) != 0;
  pack_all(execution, {from, to, n, k, tb ? 1 : n, tb ? k : 1, block, 0, 0}, pack_kernel(detect_isa(), is_wide),
           panel_columns(detect_isa(), is_wide));
}

// Below kRows every element is copied by one or two tiles. Larger factors than kMostBytes would need more memory than
// it is worth. A transposed A is read where it lies beside a B that stays in the second-level cache.
uint64_t worthwhile_bytes(const tn_gemm& gemm, int64_t batch, int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kRows = 192, kElements = 16384, kMostBytes = int64_t{1} << 27;
  if (batch != 1 || m < kRows || n < 2 || k < 1 || n < kElements / k) return 0;
  constexpr int64_t kCached = int64_t{1} << 18;  // elements of B
  const int64_t element = tn_dtype_bytes(gemm.dtype);
  if ((gemm.flags & TN_TRANSPOSE_A) != 0 && n <= kCached / k && !shares_sets(m * element, number_block(gemm, k)))
    return 0;
  const int64_t most = kMostBytes / tn_dtype_bytes(gemm.dtype) / k, rows = packs_rows(gemm, n) ? whole_strips(m) : 0;
  if (matrix_of(gemm, n, k).columns > most || rows > most) return 0;
  return panels_bytes(gemm, n, k) + static_cast<uint64_t>(rows * k * tn_dtype_bytes(gemm.dtype));
}

uint64_t packing_bytes(const tn_gemm& gemm) {
  const int64_t m = gemm.m.bound, n = gemm.n.bound, k = gemm.k.bound;
  return worthwhile_bytes(gemm, gemm.batch.bound, m, n, k);
}

void pack_factors(const tn_execution& execution, uint8_t* workspace, Product* product) {
  Product& p = *product;
  const tn_gemm& gemm = *p.gemm;
  const int64_t block = number_block(gemm, p.k);
  pack_matrix(execution, gemm, p.n, p.k, block, p.b, workspace);
  p.b = workspace;
  if (packs_rows(gemm, p.n)) {
    uint8_t* const to = workspace + panels_bytes(gemm, p.n, p.k);
    pack_all(execution, {p.a, to, p.m, p.k, p.m, 1, block, 0, 0}, strips_kernel(detect_isa(), gemm.dtype == TN_F64),
             strip_rows(detect_isa()));
    p.a = to;
    p.packed_rows = whole_strips(p.m);
  }
  read_packed(product);
}

void pack_if_worthwhile(const tn_execution& execution, uint8_t* workspace, Product* product) {
  Product& p = *product;
  const uint64_t bytes = worthwhile_bytes(*p.gemm, p.batch, p.m, p.n, p.k);
  if (bytes > 0 && bytes <= packing_bytes(*p.gemm)) pack_factors(execution, workspace, product);
}

const char packed_gemm_id[] = TN_PACKED_GEMM;
const tn_packed_gemm_table packed_gemm_table = {
    sizeof(tn_packed_gemm_table), 0, &packed_bytes, &prepare_pack, &prepare_multiply, &prepare_fused};

}  // namespace tenon::cpu
