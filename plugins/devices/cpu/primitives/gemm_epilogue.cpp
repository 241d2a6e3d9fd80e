// "tenon.gemm_epilogue/1": a matrix product and a pointwise program over its rows. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <new>

#include "bf16_product.h"
#include "device.h"
#include "epilogue.h"
#include "primitives.h"
#include "primitives/gemm.h"

namespace tenon::cpu {

namespace {

// A prepared call.
struct GemmEpilogue {
  tn_gemm gemm;
  bool packed;  // the operand B is packed
  Epilogue epilogue;
  uint64_t packing;  // where in the workspace B is packed if that pays: behind what the program needs
};

// Returns the multiplications of a row of C. A side that varies counts as 128, whatever its bound: machines of all
// sizes have the same calls, and chunks of as many rows.
double row_work(const tn_gemm& gemm) {
  constexpr int64_t kVarying = 128;
  const auto side = [](const tn_dim& dim) {
    return static_cast<double>(dim.symbol == TN_SYMBOL_NONE ? dim.offset : kVarying);
  };
  return side(gemm.n) * side(gemm.k);
}

// Returns the chunks of rows of C: of rows that give work for a few microseconds, and enough for a copy of B to pay if
// C has many rows; of a packed B enough to read it for. They follow from the constant sides, and not from bounds: sums
// along the columns of C have an order.
Chunks chunks_of(const tn_gemm& gemm, bool packed) {
  constexpr double kWorthwhile = 1e6;  // multiplications
  constexpr int64_t kPackedRows = 12;
  const double row = row_work(gemm);
  const auto least = static_cast<int64_t>(kWorthwhile / std::max(row, 1.0));
  return {std::max({packed ? kPackedRows : int64_t{1}, least, int64_t{1}}), false, !packed};
}

tn_status supports(void*, const tn_errors*, const tn_gemm_epilogue* epilogue) {
  const tn_gemm& gemm = *epilogue->gemm;
  if (gemm.m.bound < 0 || gemm.n.bound <= 0 || gemm.k.bound < 0 || gemm.batch.bound < 0) return TN_UNSUPPORTED;
  // Scalar products have sums of another order.
  if (is_swapped(gemm) && is_one(gemm.m)) return TN_UNSUPPORTED;
  // Chunks of rows would read a large B again and again, which takes longer than a pass over C.
  constexpr double kLarge = 1 << 20;
  if (row_work(gemm) >= kLarge) return TN_UNSUPPORTED;
  // A second pass over the whole grid would read C from memory again.
  return check_epilogue(*epilogue->site, epilogue->product, gemm.dtype, Passes::kOne);
}

// RowMaker::make: computes rows [first, last) of C [batch * m, n] of a Product.
void make_rows(const void* self, int64_t first, int64_t last, int32_t) {
  multiply_rows(*static_cast<const Product*>(self), first, last);
}

// call inputs: A, B, then the program's inputs without C; outputs: C [batch * m, n], then the program's outputs. The
// grid of the program is that of C.
tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  auto& both = *static_cast<GemmEpilogue*>(self);
  if (const tn_status status = check_operands(both.epilogue, *execution, *call); status != TN_OK) return status;
  Product product = {};
  const tn_status status = make_product(both.gemm, *execution, *call, &product);
  if (status != TN_OK) return status;
  uint8_t* const workspace = static_cast<uint8_t*>(call->workspace) + both.packing;
  if (both.packed)
    read_packed_factors(*execution, workspace, &product);
  else
    read_factors(*execution, workspace, &product);
  const tn_status ran = run_epilogue(both.epilogue, *execution, *call, {&make_rows, &product});
  return ran != TN_OK ? ran : check_done(execution->errors, product);
}

void destroy(void* self) { delete static_cast<GemmEpilogue*>(self); }

tn_status prepare(void* device, const tn_services* services, const tn_errors* errors, const tn_gemm_epilogue* given,
                  tn_prepared* prepared) {
  return prepare_epilogue(device, services, errors, *given, false, prepared);
}

}  // namespace

tn_status prepare_epilogue(void* device, const tn_services* services, const tn_errors* errors,
                           const tn_gemm_epilogue& given, bool packed, tn_prepared* prepared) {
  if (const tn_status status = check_gemm(errors, *given.gemm); status != TN_OK) return status;
  if (const tn_status status = supports(nullptr, errors, &given); status != TN_OK)
    return refuse_epilogue(errors, status);
  std::unique_ptr<GemmEpilogue> both(new (std::nothrow) GemmEpilogue{*given.gemm, packed, {}, 0});
  if (both == nullptr) return refuse_epilogue(errors, TN_OUT_OF_MEMORY);
  const tn_status status = make_epilogue(caches_of(device), errors, *given.site, given.product,
                                         chunks_of(*given.gemm, packed), &both->epilogue);
  if (status != TN_OK) return status;
  constexpr uint64_t kAlignment = 64;
  both->packing = (workspace_bytes(*both->epilogue.program) + kAlignment - 1) / kAlignment * kAlignment;
  prepared->workspace_bytes = both->packing + (packed ? rounded_rows_bytes(*given.gemm) : factor_bytes(*given.gemm));
  prepared->binding = both.release();
  prepared->traits = product_traits(services, *given.gemm);
  prepared->run = &run;
  prepared->destroy = &destroy;
  return TN_OK;
}

const char gemm_epilogue_id[] = TN_GEMM_EPILOGUE;
const tn_gemm_epilogue_table gemm_epilogue_table = {sizeof(tn_gemm_epilogue_table), TN_OPSET, &supports, &prepare};

}  // namespace tenon::cpu
