// SPDX-License-Identifier: Apache-2.0
#include "product.h"

#include <algorithm>
#include <limits>
#include <memory>

namespace tenon::cuda {

namespace {

// The largest power of two, at most 64, that all addresses are multiples of.
uint32_t alignment_of(const ProductOperands& operands) {
  uintptr_t bits = 64;
  for (const void* address : {operands.a, operands.b, operands.bias, static_cast<const void*>(operands.c)})
    bits |= reinterpret_cast<uintptr_t>(address);
  return static_cast<uint32_t>(bits & (~bits + 1));
}

}  // namespace

cublasLtMatrixLayout_t Product::layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t batch) const {
  if (batch > std::numeric_limits<int32_t>::max())
    throw tn::Failure(TN_UNSUPPORTED, "", std::to_string(batch) + " products at once are too many for cublasLt");
  cublasLtMatrixLayout_t made = nullptr;
  blas_.check(
      blas_.cublasLtMatrixLayoutCreate(&made, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), rows),
      "cublasLtMatrixLayoutCreate");
  const auto count = static_cast<int32_t>(batch);
  const int64_t stride = rows * columns;
  cublasStatus_t status =
      blas_.cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = blas_.cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                                    sizeof stride);
  if (status != CUBLAS_STATUS_SUCCESS) blas_.cublasLtMatrixLayoutDestroy(made);
  blas_.check(status, "cublasLtMatrixLayoutSetAttribute");
  return made;
}

// The library's matrices are column-major. What is row-major for us is its own transpose there, so that it computes
// transpose(C) = op(transpose(B)) op(transpose(A)): the operands change places, and no matrix is moved. A bias of the
// columns of C is one of the rows there, which is what the library offers.
void Product::describe(const ProductSize& size, Choice& choice) const {
  const bool is_double = form_.dtype == TN_F64;
  const cublasComputeType_t compute = is_double    ? CUBLAS_COMPUTE_64F
                                      : form_.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                   : CUBLAS_COMPUTE_32F;
  const cudaDataType_t scale = is_double ? CUDA_R_64F : CUDA_R_32F, factor = form_.brain ? CUDA_R_16BF : scale;
  blas_.check(blas_.cublasLtMatmulDescCreate(&choice.operation, compute, scale), "cublasLtMatmulDescCreate");
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
    blas_.check(blas_.cublasLtMatmulDescSetAttribute(choice.operation, attribute, &value, sizeof value),
                "cublasLtMatmulDescSetAttribute");
  };
  const bool a_turned = (form_.flags & TN_TRANSPOSE_A) != 0, b_turned = (form_.flags & TN_TRANSPOSE_B) != 0;
  set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t{b_turned ? CUBLAS_OP_T : CUBLAS_OP_N});
  set(CUBLASLT_MATMUL_DESC_TRANSB, int32_t{a_turned ? CUBLAS_OP_T : CUBLAS_OP_N});
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{form_.epilogue});
  const auto [batch, m, n, k] = size;
  choice.a = layout(factor, b_turned ? k : n, b_turned ? n : k, batch);
  choice.b = layout(factor, a_turned ? m : k, a_turned ? k : m, batch);
  choice.c = layout(scale, n, m, batch);
}

// Asks for the best algorithm whose bits do not depend on the order in which blocks run. Returns whether there is one.
bool Product::find_algorithm(uint32_t alignment, Choice& choice) const {
  cublasLtMatmulPreference_t made = nullptr;
  blas_.check(blas_.cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, decltype(blas_.cublasLtMatmulPreferenceDestroy)> preference(
      made, blas_.cublasLtMatmulPreferenceDestroy);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    blas_.check(blas_.cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value),
                "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, blas_.workspace_bytes());
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE});
  for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(attribute, alignment);
  cublasLtMatmulHeuristicResult_t best = {};
  int count = 0;
  const cublasStatus_t status = blas_.cublasLtMatmulAlgoGetHeuristic(
      blas_.handle(), choice.operation, choice.a, choice.b, choice.c, choice.c, made, 1, &best, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && count == 0)) return false;
  blas_.check(status, "cublasLtMatmulAlgoGetHeuristic");
  blas_.check(best.state, "cublasLtMatmulAlgoGetHeuristic");
  choice.algorithm = best.algo;
  return true;
}

void Product::release(Choice& choice) const {
  for (cublasLtMatrixLayout_t each : {choice.a, choice.b, choice.c})
    if (each != nullptr) blas_.cublasLtMatrixLayoutDestroy(each);
  if (choice.operation != nullptr) blas_.cublasLtMatmulDescDestroy(choice.operation);
}

void Product::forget() {
  for (auto& [key, choice] : choices_) release(choice);
  choices_.clear();
}

// Returns the choice for a size, which is made if there is none; null if the library knows no algorithm.
const Product::Choice* Product::choice(const ProductSize& size, uint32_t alignment) {
  const Key key = {size.batch, size.m, size.n, size.k, alignment};
  if (const auto known = choices_.find(key); known != choices_.end()) return &known->second;
  if (choices_.size() == kMost) forget();
  Choice made;
  bool found = false;
  try {
    describe(size, made);
    found = find_algorithm(alignment, made);
    if (found) return &choices_.emplace(key, made).first->second;
  } catch (...) {
    release(made);
    throw;
  }
  release(made);
  return nullptr;
}

void Product::enqueue(const ProductSize& size, const ProductOperands& operands, const Stream& stream, void* workspace) {
  const uint32_t alignment = alignment_of(operands);
  const auto name = [&] {
    return "a product of " + std::to_string(size.m) + " x " + std::to_string(size.k) + " and " +
           std::to_string(size.k) + " x " + std::to_string(size.n);
  };
  if (stream.is_capturing() && !choices_.contains({size.batch, size.m, size.n, size.k, alignment}))
    throw tn::Failure(TN_UNSUPPORTED, "", name() + " is captured before it ran");
  const Choice* const chosen = choice(size, alignment);
  if (chosen == nullptr) throw tn::Failure(TN_UNSUPPORTED, "", "cublasLt does not know " + name());
  if (operands.bias != nullptr)
    blas_.check(blas_.cublasLtMatmulDescSetAttribute(chosen->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                     &operands.bias, sizeof operands.bias),
                "cublasLtMatmulDescSetAttribute");
  const double alpha = form_.alpha, beta = operands.adds ? 1 : 0;
  const auto alpha_float = static_cast<float>(alpha), beta_float = static_cast<float>(beta);
  const bool is_double = form_.dtype == TN_F64;
  const void* const scale = is_double ? static_cast<const void*>(&alpha) : &alpha_float;
  const void* const add = is_double ? static_cast<const void*>(&beta) : &beta_float;
  blas_.check(blas_.cublasLtMatmul(blas_.handle(), chosen->operation, scale, operands.b, chosen->a, operands.a,
                                   chosen->b, add, operands.c, chosen->c, operands.c, chosen->c, &chosen->algorithm,
                                   workspace, blas_.workspace_bytes(), stream.handle()),
              "cublasLtMatmul");
}

}  // namespace tenon::cuda
