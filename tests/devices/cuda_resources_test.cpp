// What the kernels of the device "cuda" take of a GPU, as NVRTC and its assembler say: registers, spills, atomics.
// Skipped without NVRTC. SPDX-License-Identifier: Apache-2.0
#include <nvrtc.h>

#include <iostream>
#include <iterator>
#include <regex>
#include <sstream>

#include "plugins/devices/cuda/primitives/source.h"
#include "plugins/devices/cuda/runtime/library.h"
#include "tests/devices/cuda_programs.h"
#include "tests/devices/cuda_sites.h"

namespace tenon_tests {

namespace {

// NVRTC with the report of its assembler.
class Assembler {
 public:
  Assembler() : library_({"libnvrtc.so.13", "libnvrtc.so.12"}) {
    if (!library_.is_open()) return;
    library_.find("nvrtcCreateProgram", create_);
    library_.find("nvrtcCompileProgram", compile_);
    library_.find("nvrtcDestroyProgram", destroy_);
    library_.find("nvrtcGetProgramLogSize", log_size_);
    library_.find("nvrtcGetProgramLog", log_);
    library_.find("nvrtcGetPTXSize", ptx_size_);
    library_.find("nvrtcGetPTX", ptx_);
  }
  [[nodiscard]] bool is_open() const { return library_.is_open(); }
  struct Result {
    std::string report, ptx;
  };
  [[nodiscard]] Result assemble(const std::string& text, const std::string& architecture) const {
    nvrtcProgram program = nullptr;
    create_(&program, text.c_str(), "kernels.cu", 0, nullptr, nullptr);
    const std::string target = "--gpu-architecture=" + architecture;
    const char* const options[] = {target.c_str(), "--std=c++17", "--ptxas-options=-v"};
    EXPECT_EQ(compile_(program, 3, options), NVRTC_SUCCESS);
    Result result;
    size_t size = 0;
    log_size_(program, &size);
    result.report.resize(size);
    log_(program, result.report.data());
    ptx_size_(program, &size);
    result.ptx.resize(size);
    ptx_(program, result.ptx.data());
    destroy_(&program);
    return result;
  }

 private:
  tenon::cuda::Library library_;
  decltype(&nvrtcCreateProgram) create_ = nullptr;
  decltype(&nvrtcCompileProgram) compile_ = nullptr;
  decltype(&nvrtcDestroyProgram) destroy_ = nullptr;
  decltype(&nvrtcGetProgramLogSize) log_size_ = nullptr;
  decltype(&nvrtcGetProgramLog) log_ = nullptr;
  decltype(&nvrtcGetPTXSize) ptx_size_ = nullptr;
  decltype(&nvrtcGetPTX) ptx_ = nullptr;
};

// The largest number that `pattern` captures in the text; -1: it does not occur.
int most(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  int result = -1;
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at)
    result = std::max(result, std::stoi((*at)[1]));
  return result;
}

int64_t count_of(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  return std::distance(std::sregex_iterator(text.begin(), text.end(), expression), std::sregex_iterator());
}

// TENON_TEST_ARCHITECTURES of the environment, else "sm_90".
std::vector<std::string> architectures() {
  const char* const chosen = std::getenv("TENON_TEST_ARCHITECTURES");
  std::istringstream words(chosen == nullptr ? "sm_90" : chosen);
  return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
}

TEST(CudaResources, FewRegistersAndNoSpills) {
  const Assembler assembler;
  if (!assembler.is_open()) GTEST_SKIP() << "no NVRTC";
  std::vector<CudaCall> calls = cuda_calls();
  for (const CudaProgram& program : CudaPrograms::all())
    calls.push_back({program.name, tenon::cuda::kernels_of(PointwiseSite(program.run, 0).get())});
  for (const std::string& architecture : architectures()) {
    int registers = 0;
    for (const CudaCall& call : calls) {
      SCOPED_TRACE(call.name + " on " + architecture);
      const std::string text = tenon::cuda::whole_text(call.kernels),
                        log = assembler.assemble(text, architecture).report;
      const int used = most(log, "Used (\\d+) registers");
      EXPECT_GT(used, 0) << log;
      EXPECT_LE(used, 128);
      EXPECT_EQ(most(log, "(\\d+) bytes spill"), 0) << log;
      EXPECT_EQ(text.find("atomic"), std::string::npos);
      registers = std::max(registers, used);
    }
    std::cout << architecture << ": " << calls.size() << " calls, at most " << registers << " registers\n";
  }
}

// Reads and writes of whole elements: 16 bytes for four of 4 bytes, twice 16 for four of 8, 8 for four of 2.
TEST(CudaResources, ElementwiseKernelsMove16Bytes) {
  const Assembler assembler;
  if (!assembler.is_open()) GTEST_SKIP() << "no NVRTC";
  struct Expected {
    std::string program, access;
    int64_t loads, stores;
  };
  const std::vector<Expected> all = {{"adam", "v4\\.(?:f32|b32|u32)", 4, 3},
                                     {"adam with bf16 gradients", "v4\\.(?:b16|u16)", 1, 0},
                                     {"arithmetic", "v4\\.(?:f32|b32|u32)", 1, 10},
                                     {"draws in f64", "v2\\.(?:f64|b64|u64)", 2, 2}};
  const std::vector<CudaProgram> programs = CudaPrograms::all();
  for (const Expected& expected : all) {
    SCOPED_TRACE(expected.program);
    const auto found = std::find_if(programs.begin(), programs.end(),
                                    [&](const CudaProgram& program) { return program.name == expected.program; });
    ASSERT_NE(found, programs.end());
    const std::string text = tenon::cuda::whole_text(tenon::cuda::kernels_of(PointwiseSite(found->run, 0).get()));
    const std::string ptx = assembler.assemble(text, "sm_90").ptx;
    EXPECT_GE(count_of(ptx, "ld\\.global\\." + expected.access), expected.loads);
    EXPECT_GE(count_of(ptx, "st\\.global\\." + expected.access), expected.stores);
  }
}

}  // namespace

}  // namespace tenon_tests
