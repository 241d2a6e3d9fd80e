// A libcublasLt for tests, above the emulated driver: computes in memory of the emulated device, in the order of k, and
// is strict where the real library may let something pass or reads wrong memory: descriptors that do not fit together,
// addresses that are less aligned than the algorithm was chosen for, an algorithm of another problem, too little
// workspace, memory that is not the device's, reductions whose order is not fixed, and anything but a product during a
// capture. Each product is in the driver's list of calls.
// SPDX-License-Identifier: Apache-2.0
#include <cublasLt.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "../cuda_emulator/driver.h"

struct cublasLtContext {
  CUcontext context;
};

namespace {

// What is behind the pointers to the header's opaque structures.
struct Layout {
  cudaDataType_t type;
  int32_t batch;
  uint64_t rows, columns;
  int64_t leading, stride;
};
struct Operation {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  int32_t a, b;  // cublasOperation_t
  uint32_t epilogue;
  const void* bias;
};
struct Preference {
  uint64_t workspace;
  uint32_t reductions;
  uint32_t alignments[4];  // of A, B, C, D
};
struct Algorithm {
  uint64_t problem;  // the hash of what it was chosen for
  uint64_t workspace;
  uint32_t alignment;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

template <typename Inner, typename Opaque>
Inner& in(Opaque* opaque) {
  return *reinterpret_cast<Inner*>(opaque);
}
template <typename Inner, typename Opaque>
cublasStatus_t create(Opaque** opaque, const Inner& inner) {
  *opaque = reinterpret_cast<Opaque*>(new Inner(inner));
  return CUBLAS_STATUS_SUCCESS;
}
template <typename Inner, typename Opaque>
cublasStatus_t destroy(Opaque* opaque) {
  delete reinterpret_cast<Inner*>(opaque);
  return CUBLAS_STATUS_SUCCESS;
}
template <typename T>
cublasStatus_t set(T& member, const void* from, size_t bytes) {
  if (bytes != sizeof member) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&member, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

size_t bytes_of(cudaDataType_t type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

// A product whose descriptors fit together.
struct Problem {
  Operation operation;
  Layout a, b, c;
  uint64_t m, n, k;

  [[nodiscard]] bool has_bias() const { return (operation.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }
  [[nodiscard]] bool has_relu() const { return (operation.epilogue & CUBLASLT_EPILOGUE_RELU) != 0; }
  [[nodiscard]] uint64_t hash() const {
    uint64_t result = 14695981039346656037U;
    const auto add = [&](uint64_t number) { result = (result ^ number) * 1099511628211U; };
    for (const Layout* each : {&a, &b, &c})
      for (const uint64_t number : {uint64_t(each->type), uint64_t(each->batch), each->rows, each->columns,
                                    uint64_t(each->leading), uint64_t(each->stride)})
        add(number);
    for (const uint64_t number : {uint64_t(operation.compute), uint64_t(operation.scale), uint64_t(operation.a),
                                  uint64_t(operation.b), uint64_t(operation.epilogue)})
      add(number);
    return result;
  }
};

bool has_known_types(const Problem& p) {
  const bool doubles = p.operation.compute == CUBLAS_COMPUTE_64F;
  const cudaDataType_t whole = doubles ? CUDA_R_64F : CUDA_R_32F;
  const bool brain = p.operation.compute == CUBLAS_COMPUTE_32F && p.a.type == CUDA_R_16BF;
  const bool known =
      doubles || p.operation.compute == CUBLAS_COMPUTE_32F || p.operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const bool epilogue = p.operation.epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
                        (!doubles && (p.operation.epilogue == CUBLASLT_EPILOGUE_BIAS ||
                                      p.operation.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS));
  return known && epilogue && p.operation.scale == whole && p.a.type == p.b.type && (p.a.type == whole || brain) &&
         p.c.type == whole;
}

bool is_valid(const Layout& layout) {
  return layout.rows > 0 && layout.columns > 0 && layout.leading >= static_cast<int64_t>(layout.rows) &&
         layout.batch > 0 &&
         (layout.batch == 1 || layout.stride >= layout.leading * static_cast<int64_t>(layout.columns));
}

// Fills *problem; returns whether the descriptors fit together.
bool read(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
          cublasLtMatrixLayout_t d, Problem* problem) {
  if (operation == nullptr || a == nullptr || b == nullptr || c == nullptr || c != d) return false;
  Problem p = {in<Operation>(operation), in<Layout>(a), in<Layout>(b), in<Layout>(c), 0, 0, 0};
  if (!is_valid(p.a) || !is_valid(p.b) || !is_valid(p.c) || !has_known_types(p)) return false;
  const bool a_turned = p.operation.a == CUBLAS_OP_T, b_turned = p.operation.b == CUBLAS_OP_T;
  p.m = a_turned ? p.a.columns : p.a.rows;
  p.k = a_turned ? p.a.rows : p.a.columns;
  p.n = b_turned ? p.b.rows : p.b.columns;
  *problem = p;
  return (b_turned ? p.b.columns : p.b.rows) == p.k && p.c.rows == p.m && p.c.columns == p.n &&
         p.a.batch == p.b.batch && p.b.batch == p.c.batch;
}

uint64_t extent_of(const Layout& layout) {
  const int64_t last = (layout.batch - 1) * layout.stride + static_cast<int64_t>(layout.columns - 1) * layout.leading +
                       static_cast<int64_t>(layout.rows);
  return static_cast<uint64_t>(last) * bytes_of(layout.type);
}
bool is_device(const void* address, uint64_t bytes) {
  return emulated::is_device(reinterpret_cast<CUdeviceptr>(address), bytes);
}
bool is_aligned(const void* address, uint64_t alignment) {
  return reinterpret_cast<uintptr_t>(address) % alignment == 0;
}

// An element as a factor of a product.
template <typename F>
F factor(const void* from, cudaDataType_t type, bool tf32, int64_t at) {
  if (type == CUDA_R_64F) return static_cast<F>(static_cast<const double*>(from)[at]);
  uint32_t bits = 0;
  if (type == CUDA_R_16BF)
    bits = static_cast<uint32_t>(static_cast<const uint16_t*>(from)[at]) << 16;
  else
    std::memcpy(&bits, static_cast<const float*>(from) + at, sizeof bits);
  if (tf32) bits = (bits + 0x0fffU + (bits >> 13 & 1U)) & ~0x1fffU;  // 10 bits of fraction
  float number = 0;
  std::memcpy(&number, &bits, sizeof number);
  return static_cast<F>(number);
}

struct Operands {
  const void* a;
  const void* b;
  void* c;
  double alpha, beta;
};

template <typename F>
void multiply(const Problem& p, const Operands& given) {
  const bool tf32 = p.operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const auto at = [](const Layout& layout, int32_t op, int32_t s, uint64_t row, uint64_t column) {
    if (op == CUBLAS_OP_T) std::swap(row, column);
    return s * layout.stride + static_cast<int64_t>(column) * layout.leading + static_cast<int64_t>(row);
  };
  for (int32_t s = 0; s < p.c.batch; ++s)
    for (uint64_t j = 0; j < p.n; ++j)
      for (uint64_t i = 0; i < p.m; ++i) {
        F sum = 0;
        for (uint64_t l = 0; l < p.k; ++l)
          sum += factor<F>(given.a, p.a.type, tf32, at(p.a, p.operation.a, s, i, l)) *
                 factor<F>(given.b, p.b.type, tf32, at(p.b, p.operation.b, s, l, j));
        F& c = static_cast<F*>(given.c)[at(p.c, CUBLAS_OP_N, s, i, j)];
        F result = static_cast<F>(given.alpha) * sum;
        if (given.beta != 0) result += static_cast<F>(given.beta) * c;
        if (p.has_bias()) result += static_cast<const F*>(p.operation.bias)[i];
        c = p.has_relu() && !(result > 0) ? F(0) : result;
      }
}

// "The workspace pointer must be aligned to at least a multiple of 256 bytes" (cuBLAS 13.0, cublasLtMatmul).
constexpr uint64_t kWorkspaceAlignment = 256;

bool overlap(const void* a, uint64_t a_bytes, const void* b, uint64_t b_bytes) {
  const auto first = reinterpret_cast<uintptr_t>(a), second = reinterpret_cast<uintptr_t>(b);
  return first < second + b_bytes && second < first + a_bytes;
}

// The workspace is scratch memory of the call alone, so no operand lies in it.
bool has_workspace(const Problem& p, const Operands& given, const void* workspace, uint64_t bytes) {
  return is_aligned(workspace, kWorkspaceAlignment) && is_device(workspace, bytes) &&
         !overlap(workspace, bytes, given.a, extent_of(p.a)) && !overlap(workspace, bytes, given.b, extent_of(p.b)) &&
         !overlap(workspace, bytes, given.c, extent_of(p.c));
}

// Whether the memory is the device's, and as aligned as the algorithm asks.
bool has_memory(const Problem& p, const Algorithm& algorithm, const Operands& given) {
  if (p.has_bias() && !is_device(p.operation.bias, p.m * bytes_of(p.c.type))) return false;
  for (const void* address : {given.a, given.b, static_cast<const void*>(given.c)})
    if (!is_aligned(address, algorithm.alignment)) return false;
  return is_device(given.a, extent_of(p.a)) && is_device(given.b, extent_of(p.b)) && is_device(given.c, extent_of(p.c));
}

double number_of(const void* scale, cudaDataType_t type) {
  return type == CUDA_R_64F ? *static_cast<const double*>(scale)
                            : static_cast<double>(*static_cast<const float*>(scale));
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (emulated::enter("cublasLtCreate") != CUDA_SUCCESS) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasLtContext{emulated::current_context()};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE   ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                                 : "CUBLAS_STATUS";
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  return create(layout, Layout{type, 1, rows, columns, leading, 0});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy<Layout>(layout); }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t which,
                                                const void* from, size_t bytes) {
  Layout& inner = in<Layout>(layout);
  if (which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return set(inner.batch, from, bytes);
  if (which == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) return set(inner.stride, from, bytes);
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return create(operation, Operation{compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) { return destroy<Operation>(operation); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t which,
                                              const void* from, size_t bytes) {
  Operation& inner = in<Operation>(operation);
  if (which == CUBLASLT_MATMUL_DESC_TRANSA) return set(inner.a, from, bytes);
  if (which == CUBLASLT_MATMUL_DESC_TRANSB) return set(inner.b, from, bytes);
  if (which == CUBLASLT_MATMUL_DESC_EPILOGUE) return set(inner.epilogue, from, bytes);
  if (which == CUBLASLT_MATMUL_DESC_BIAS_POINTER) return set(inner.bias, from, bytes);
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create(preference, Preference{0, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy<Preference>(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t which, const void* from,
                                                    size_t bytes) {
  Preference& inner = in<Preference>(preference);
  switch (which) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(inner.workspace, from, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return set(inner.reductions, from, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return set(inner.alignments[0], from, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return set(inner.alignments[1], from, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return set(inner.alignments[2], from, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set(inner.alignments[3], from, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

// One algorithm: with reads of 16 bytes if the addresses allow it, and a part of the workspace if there are many terms.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  if (emulated::enter("cublasLtMatmulAlgoGetHeuristic") != CUDA_SUCCESS) return CUBLAS_STATUS_INTERNAL_ERROR;
  const Preference& wants = in<Preference>(preference);
  Problem problem;
  if (handle->context != emulated::current_context() || !read(operation, a, b, c, d, &problem) ||
      (wants.reductions & CUBLASLT_REDUCTION_SCHEME_INPLACE) != 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  uint32_t alignment = 16;
  for (const uint32_t each : wants.alignments) alignment = std::min(alignment, each);
  const uint64_t workspace = problem.k < 100 ? 0 : std::min<uint64_t>(wants.workspace, extent_of(problem.c));
  results[0] = {};
  const Algorithm algorithm = {problem.hash(), workspace, alignment};
  std::memcpy(results[0].algo.data, &algorithm, sizeof algorithm);
  results[0].workspaceSize = workspace;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  Problem problem;
  if (handle->context != emulated::current_context() || algo == nullptr || c != d ||
      !read(operation, a_layout, b_layout, c_layout, d_layout, &problem))
    return CUBLAS_STATUS_INVALID_VALUE;
  Algorithm algorithm;
  std::memcpy(&algorithm, algo->data, sizeof algorithm);
  const Operands given = {a, b, d, number_of(alpha, problem.operation.scale), number_of(beta, problem.operation.scale)};
  if (algorithm.problem != problem.hash() || !has_memory(problem, algorithm, given) ||
      workspace_bytes < algorithm.workspace || !has_workspace(problem, given, workspace, workspace_bytes))
    return CUBLAS_STATUS_INVALID_VALUE;
  const std::string name = "cublasLtMatmul " + std::to_string(problem.m) + " x " + std::to_string(problem.n) + " x " +
                           std::to_string(problem.k);
  const CUresult result = emulated::enqueue(name, stream, [=] {
    std::memset(workspace, 0x5b, algorithm.workspace);
    if (problem.operation.scale == CUDA_R_64F)
      multiply<double>(problem, given);
    else
      multiply<float>(problem, given);
    return CUDA_SUCCESS;
  });
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
