// In place of cublasLt where its headers are absent. SPDX-License-Identifier: Apache-2.0
#include <tenon/base.hpp>

#include "blas.h"

namespace tenon::cuda {

std::shared_ptr<const Blas> open_blas(const Context& /*context*/, int /*driver_version*/, int /*capability*/,
                                      std::string* why) {
  *why = "the plugin was built without the headers of cuBLAS";
  return nullptr;
}

bool bind_by_blas(Device& /*device*/, const tn_gemm& /*gemm*/, tn_prepared* /*prepared*/) { return false; }

bool knows_epilogue(const Device& /*device*/, const tn_gemm_epilogue& /*epilogue*/) { return false; }

void bind_epilogue(Device& /*device*/, const tn_gemm_epilogue& /*epilogue*/, tn_prepared* /*prepared*/) {
  throw tn::Failure(TN_UNSUPPORTED, "program", "CUDA cannot run this program as an epilogue");
}

}  // namespace tenon::cuda
