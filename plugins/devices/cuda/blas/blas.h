// Products of matrices by cublasLt, where that library is present. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <memory>
#include <string>

namespace tenon::cuda {

class Blas;
class Context;
class Device;

constexpr const char* kBlasName = "libcublasLt.so.13";
constexpr const char* kBlasHint = "optional: install cuBLAS of CUDA 13 or 12, or products run on slower kernels";

// Loads the library for the GPU of the context. Null if it cannot be used, and *why gets the reason. driver_version:
// the result of cuDriverGetVersion; capability: 90 for 9.0.
[[nodiscard]] std::shared_ptr<const Blas> open_blas(const Context& context, int driver_version, int capability,
                                                    std::string* why);

// Prepares a product if the device has the library and that knows the product; returns whether it did. What the product
// is has been checked. Throws tn::Failure.
[[nodiscard]] bool bind_by_blas(Device& device, const tn_gemm& gemm, tn_prepared* prepared);

// Whether the library computes the product and the program in one call: it adds a value for each column, and the result
// may be cut off at 0. Throws tn::Failure.
[[nodiscard]] bool knows_epilogue(const Device& device, const tn_gemm_epilogue& epilogue);
// Prepares such a call. Throws tn::Failure: TN_UNSUPPORTED for another one.
void bind_epilogue(Device& device, const tn_gemm_epilogue& epilogue, tn_prepared* prepared);

}  // namespace tenon::cuda
