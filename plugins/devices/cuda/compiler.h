// NVRTC, the CUDA compiler as a library. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nvrtc.h>

#include <string>

#include "library.h"

namespace tenon::cuda {

constexpr const char* kCompilerName = "libnvrtc.so.13";
constexpr const char* kCompilerHint =
    "install the run-time compiler NVRTC of the CUDA Toolkit, version 12 or 13 (libnvrtc.so.12 serves too)";

// clang-format off
#define TENON_NVRTC_FUNCTIONS(X) \
  X(nvrtcVersion) X(nvrtcGetErrorString) X(nvrtcGetNumSupportedArchs) X(nvrtcGetSupportedArchs) \
  X(nvrtcCreateProgram) X(nvrtcDestroyProgram) X(nvrtcCompileProgram) X(nvrtcGetProgramLogSize) \
  X(nvrtcGetProgramLog) X(nvrtcGetPTXSize) X(nvrtcGetPTX) X(nvrtcGetCUBINSize) X(nvrtcGetCUBIN)
// clang-format on
#define TENON_NVRTC_MEMBER(name) decltype(&::name) name = nullptr;  // NOLINT(bugprone-macro-parentheses)

class Compiler {
 public:
  // Opens the library of the driver's own major version where it can. driver_version as cuDriverGetVersion gives it,
  // 0 where there is no driver. Check is_open: where it is not, why() says so.
  explicit Compiler(int driver_version);

  [[nodiscard]] bool is_open() const { return library_.is_open(); }
  [[nodiscard]] const std::string& why() const { return library_.why(); }
  // What a GPU of this compute capability (90 for 9.0) loads: its machine code, or portable PTX where the compiler
  // is older than the GPU. Throws tn::Failure with the compiler's log.
  [[nodiscard]] std::string compile(const std::string& text, int capability) const;

 private:
  void check(nvrtcResult result, const char* function) const;
  [[nodiscard]] std::string architecture(int capability) const;

  Library library_;
  TENON_NVRTC_FUNCTIONS(TENON_NVRTC_MEMBER)
};

#undef TENON_NVRTC_MEMBER

}  // namespace tenon::cuda
