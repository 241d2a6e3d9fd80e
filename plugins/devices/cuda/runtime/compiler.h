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
  // Loads NVRTC of a major version that the driver supports. driver_version: the result of cuDriverGetVersion, 0
  // without a driver. If is_open() is false, why() has the reason.
  explicit Compiler(int driver_version);

  [[nodiscard]] bool is_open() const { return library_.is_open(); }
  [[nodiscard]] const std::string& why() const { return library_.why(); }
  // "NVRTC 13.0"
  [[nodiscard]] std::string version() const;
  // All that compile's result depends on.
  [[nodiscard]] std::string key(const std::string& text, int capability) const;
  // Compiles CUDA C++ for a GPU of this compute capability (90 for 9.0): to machine code, or to portable PTX if the
  // compiler does not know the GPU. Throws tn::Failure with the compiler's log.
  [[nodiscard]] std::string compile(const std::string& text, int capability) const;

 private:
  void check(nvrtcResult result, const char* function) const;
  [[nodiscard]] std::string architecture(int capability) const;

  Library library_;
  TENON_NVRTC_FUNCTIONS(TENON_NVRTC_MEMBER)
};

#undef TENON_NVRTC_MEMBER

}  // namespace tenon::cuda
