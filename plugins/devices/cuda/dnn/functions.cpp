// SPDX-License-Identifier: Apache-2.0
#include "functions.h"

#include <tenon/base.hpp>

#include "dnn.h"

namespace tenon::cuda {

namespace {

tn_status status_of(cudnnStatus_t status) {
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return TN_UNSUPPORTED;
  return status == CUDNN_STATUS_ALLOC_FAILED ? TN_OUT_OF_MEMORY : TN_INTERNAL;
}

}  // namespace

DnnFunctions::DnnFunctions() : library_({kDnnName}) {
  if (!library_.is_open()) throw tn::Failure(TN_NOT_FOUND, "", "it cannot be loaded (" + library_.why() + ")");
#define TENON_DNN_FIND(name) library_.find(#name, name);
  TENON_DNN_FUNCTIONS(TENON_DNN_FIND)
#undef TENON_DNN_FIND
}

void DnnFunctions::check(cudnnStatus_t status, const char* function) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char words[512] = {};
  cudnnGetLastErrorString(words, sizeof words);
  throw tn::Failure(status_of(status), "", std::string(function) + ": " + cudnnGetErrorString(status) + ": " + words);
}

}  // namespace tenon::cuda
