// A product of matrices by cublasLt, of any sizes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <cstdint>
#include <map>
#include <tuple>

#include "functions.h"
#include "runtime/stream.h"

namespace tenon::cuda {

// C[b] = alpha op(A[b]) op(B[b]), row-major, and what follows it.
struct ProductForm {
  tn_dtype dtype = TN_F32;  // of C
  bool brain = false;       // A and B are bfloat16
  bool tf32 = false;        // factors may be rounded to TF32
  uint32_t flags = 0;       // TN_TRANSPOSE_*
  double alpha = 1;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;  // or with a bias [n]
};

struct ProductSize {
  int64_t batch, m, n, k;
};

// Addresses in device memory. c is read and written if `adds`, else written.
struct ProductOperands {
  const void* a;
  const void* b;
  const void* bias;  // null without
  void* c;
  bool adds;
};

// Chooses an algorithm for each size, once, so that equal calls give equal bits. Not thread-safe.
class Product {
 public:
  Product(const Blas& blas, const ProductForm& form) : blas_(blas), form_(form) {}
  ~Product() { forget(); }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  [[nodiscard]] const ProductForm& form() const { return form_; }
  // Chooses the algorithm for operands that begin at multiples of 64 bytes. Returns false if the library knows none.
  // The context is current.
  [[nodiscard]] bool choose(const ProductSize& size) { return choice(size, 64) != nullptr; }
  // Enqueues the product; sizes are at least 1. Throws tn::Failure. While the stream captures, of sizes that were
  // enqueued before alone: the choice of an algorithm would end the capture.
  void enqueue(const ProductSize& size, const ProductOperands& operands, const Stream& stream, void* workspace);

 private:
  // The library's descriptors of a product, and the algorithm.
  struct Choice {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulAlgo_t algorithm = {};
  };
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, uint32_t>;
  static constexpr size_t kMost = 1024;  // choices that are kept

  [[nodiscard]] const Choice* choice(const ProductSize& size, uint32_t alignment);
  void describe(const ProductSize& size, Choice& choice) const;
  [[nodiscard]] cublasLtMatrixLayout_t layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t batch) const;
  [[nodiscard]] bool find_algorithm(uint32_t alignment, Choice& choice) const;
  void release(Choice& choice) const;
  void forget();

  const Blas& blas_;
  const ProductForm form_;
  std::map<Key, Choice> choices_;
};

}  // namespace tenon::cuda
