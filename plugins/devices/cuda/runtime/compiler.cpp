// Compiles generated kernels. SPDX-License-Identifier: Apache-2.0
#include "compiler.h"

#include <algorithm>
#include <memory>
#include <tenon/base.hpp>
#include <vector>

namespace tenon::cuda {

namespace {

constexpr const char* kStandard = "--std=c++17";

// "9.0" of 90.
std::string by_tens(int number) { return std::to_string(number / 10) + "." + std::to_string(number % 10); }

}  // namespace

Compiler::Compiler(int driver_version) {
  // Code of a newer major version does not load into an older driver.
  const bool is_old = driver_version != 0 && driver_version < 13000;
  library_ = is_old ? Library({"libnvrtc.so.12"}) : Library({"libnvrtc.so.13", "libnvrtc.so.12"});
  if (!library_.is_open()) return;
#define TENON_NVRTC_FIND(name) library_.find(#name, name);
  TENON_NVRTC_FUNCTIONS(TENON_NVRTC_FIND)
#undef TENON_NVRTC_FIND
}

void Compiler::check(nvrtcResult result, const char* function) const {
  if (result == NVRTC_SUCCESS) return;
  throw tn::Failure(result == NVRTC_ERROR_OUT_OF_MEMORY ? TN_OUT_OF_MEMORY : TN_INTERNAL, "",
                    std::string(function) + ": " + nvrtcGetErrorString(result));
}

// "sm_90" if the compiler knows that GPU, else the newest "compute_" that the GPU can run.
std::string Compiler::architecture(int capability) const {
  int count = 0;
  check(nvrtcGetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs");
  std::vector<int> known(static_cast<size_t>(count));
  check(nvrtcGetSupportedArchs(known.data()), "nvrtcGetSupportedArchs");
  if (std::find(known.begin(), known.end(), capability) != known.end()) return "sm_" + std::to_string(capability);
  int best = 0;
  for (const int each : known)
    if (each < capability) best = std::max(best, each);
  if (best == 0)
    throw tn::Failure(TN_UNSUPPORTED, "",
                      "the GPU has compute capability " + by_tens(capability) + ", and " + version() +
                          " compiles for " +
                          (known.empty() ? "none" : by_tens(*std::min_element(known.begin(), known.end()))) +
                          " and newer: install an older NVRTC, or use a newer GPU");
  return "compute_" + std::to_string(best);
}

std::string Compiler::version() const {
  int major = 0, minor = 0;
  check(nvrtcVersion(&major, &minor), "nvrtcVersion");
  return "NVRTC " + std::to_string(major) + "." + std::to_string(minor);
}

std::string Compiler::key(const std::string& text, int capability) const {
  return version() + " " + architecture(capability) + " " + kStandard + "\n" + text;
}

std::string Compiler::compile(const std::string& text, int capability) const {
  nvrtcProgram made = nullptr;
  check(nvrtcCreateProgram(&made, text.c_str(), "tenon_kernels.cu", 0, nullptr, nullptr), "nvrtcCreateProgram");
  const auto destroy = [this](nvrtcProgram program) { nvrtcDestroyProgram(&program); };
  const std::unique_ptr<_nvrtcProgram, decltype(destroy)> program(made, destroy);

  const std::string target = architecture(capability);
  const std::string option = "--gpu-architecture=" + target;
  const char* const options[] = {option.c_str(), kStandard};
  const nvrtcResult result = nvrtcCompileProgram(program.get(), 2, options);
  if (result != NVRTC_SUCCESS) {
    size_t size = 0;
    check(nvrtcGetProgramLogSize(program.get(), &size), "nvrtcGetProgramLogSize");
    std::string log(size, '\0');
    check(nvrtcGetProgramLog(program.get(), log.data()), "nvrtcGetProgramLog");
    while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
    throw tn::Failure(TN_INTERNAL, "",
                      std::string("the generated kernels do not compile: ") + nvrtcGetErrorString(result) + ": " + log);
  }
  const bool is_code = target.compare(0, 3, "sm_") == 0;
  size_t size = 0;
  check(is_code ? nvrtcGetCUBINSize(program.get(), &size) : nvrtcGetPTXSize(program.get(), &size), "nvrtcGetSize");
  std::string image(size, '\0');
  check(is_code ? nvrtcGetCUBIN(program.get(), image.data()) : nvrtcGetPTX(program.get(), image.data()), "nvrtcGet");
  return image;
}

}  // namespace tenon::cuda
