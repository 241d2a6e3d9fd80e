// cublasLt as a table of functions, opened for a GPU. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <tenon/base.hpp>

#include "runtime/library.h"

namespace tenon::cuda {

class Context;

// clang-format off
#define TENON_BLAS_FUNCTIONS(X) \
  X(cublasLtCreate) X(cublasLtDestroy) X(cublasLtGetStatusName) X(cublasLtMatmul) X(cublasLtMatmulAlgoGetHeuristic) \
  X(cublasLtMatmulDescCreate) X(cublasLtMatmulDescDestroy) X(cublasLtMatmulDescSetAttribute) \
  X(cublasLtMatmulPreferenceCreate) X(cublasLtMatmulPreferenceDestroy) X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatrixLayoutCreate) X(cublasLtMatrixLayoutDestroy) X(cublasLtMatrixLayoutSetAttribute)
// clang-format on
#define TENON_BLAS_MEMBER(name) decltype(&::name) name = nullptr;  // NOLINT(bugprone-macro-parentheses)

class Blas {
 public:
  // Throws tn::Failure with the reason why the library cannot be used.
  Blas(const Context& context, int driver_version, int capability);
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  TENON_BLAS_FUNCTIONS(TENON_BLAS_MEMBER)
  [[nodiscard]] cublasLtHandle_t handle() const { return handle_; }
  // Of each call, in bytes: what NVIDIA recommends for the GPU.
  [[nodiscard]] uint64_t workspace_bytes() const { return workspace_bytes_; }
  // Throws tn::Failure unless the function succeeded.
  void check(cublasStatus_t status, const char* function) const;

 private:
  const Context& context_;
  Library library_;
  cublasLtHandle_t handle_ = nullptr;
  uint64_t workspace_bytes_ = 0;
};

#undef TENON_BLAS_MEMBER

}  // namespace tenon::cuda
