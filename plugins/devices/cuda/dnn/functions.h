// cuDNN as a table of functions. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn_graph.h>

#include "runtime/library.h"

namespace tenon::cuda {

// clang-format off
#define TENON_DNN_FUNCTIONS(X) \
  X(cudnnGetVersion) X(cudnnGetErrorString) X(cudnnGetLastErrorString) X(cudnnCreate) X(cudnnDestroy) \
  X(cudnnSetStream) X(cudnnBackendCreateDescriptor) X(cudnnBackendDestroyDescriptor) X(cudnnBackendSetAttribute) \
  X(cudnnBackendGetAttribute) X(cudnnBackendFinalize) X(cudnnBackendExecute)
// clang-format on
#define TENON_DNN_MEMBER(name) decltype(&::name) name = nullptr;  // NOLINT(bugprone-macro-parentheses)

class DnnFunctions {
 public:
  // Throws tn::Failure if the library cannot be loaded, or is too old.
  DnnFunctions();
  // Throws tn::Failure with the library's words: TN_UNSUPPORTED for what it does not know.
  void check(cudnnStatus_t status, const char* function) const;

  TENON_DNN_FUNCTIONS(TENON_DNN_MEMBER)

 private:
  Library library_;
};

#undef TENON_DNN_MEMBER

}  // namespace tenon::cuda
