// Loads cublasLt. SPDX-License-Identifier: Apache-2.0
#include "functions.h"

#include "blas.h"
#include "runtime/device.h"

namespace tenon::cuda {

namespace {

tn_status status_of(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED:
      return TN_OUT_OF_MEMORY;
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return TN_UNSUPPORTED;
    default:
      return TN_INTERNAL;
  }
}

}  // namespace

Blas::Blas(const Context& context, int driver_version, int capability)
    : context_(context), workspace_bytes_((capability >= 90 ? uint64_t{32} : uint64_t{4}) << 20) {
  // Code of a newer major version does not run on an older driver.
  library_ = driver_version < 13000 ? Library({"libcublasLt.so.12"}) : Library({kBlasName, "libcublasLt.so.12"});
  if (!library_.is_open()) throw tn::Failure(TN_NOT_FOUND, "", "it cannot be loaded (" + library_.why() + ")");
#define TENON_BLAS_FIND(name) library_.find(#name, name);
  TENON_BLAS_FUNCTIONS(TENON_BLAS_FIND)
#undef TENON_BLAS_FIND
  const Current current(context_);
  cuda::check(context_.driver, current.call([] { return CUDA_SUCCESS; }), "cuCtxPushCurrent");
  check(cublasLtCreate(&handle_), "cublasLtCreate");
}

Blas::~Blas() {
  const Current current(context_);
  cublasLtDestroy(handle_);
}

void Blas::check(cublasStatus_t status, const char* function) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw tn::Failure(status_of(status), "", std::string(function) + ": " + cublasLtGetStatusName(status));
}

std::shared_ptr<const Blas> open_blas(const Context& context, int driver_version, int capability, std::string* why) {
  try {
    return std::make_shared<const Blas>(context, driver_version, capability);
  } catch (const tn::Failure& failure) {
    *why = failure.what();
    return nullptr;
  }
}

}  // namespace tenon::cuda
