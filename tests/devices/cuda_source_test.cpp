// The device "cuda" without a GPU: the generated kernels compile, for every opcode and kind of reduction; the plugin
// loads, describes itself, and reports a missing driver or device. SPDX-License-Identifier: Apache-2.0
#include <set>

#include "plugins/devices/cuda/primitives/source.h"
#include "plugins/devices/cuda/runtime/compiler.h"
#include "plugins/devices/cuda/tables.h"
#include "tests/devices/cuda_programs.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

tenon::cuda::Source source_of(const PointwiseCase& c) {
  const PointwiseSite site(c, 0);
  tn_dtype missing = 0;
  tenon::cuda::Source source = tenon::cuda::generate(site.get(), {}, &missing);
  EXPECT_EQ(missing, 0U);
  return source;
}

std::string whole_text_of(const PointwiseCase& c) {
  return tenon::cuda::whole_text(tenon::cuda::kernels_of(PointwiseSite(c, 0).get()));
}

size_t count_of(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

const CudaProgram& named(const std::vector<CudaProgram>& programs, const std::string& name) {
  for (const CudaProgram& program : programs)
    if (program.name == name) return program;
  throw std::invalid_argument(name);
}

TEST(CudaSource, ProgramsHoldEveryOpcode) {
  std::set<int> seen;
  for (const CudaProgram& program : CudaPrograms::all())
    for (const tn_instruction& in : program.run.program.instructions) seen.insert(in.op);
  for (uint16_t op = 0; op < 256; ++op)
    EXPECT_EQ(seen.count(op), tn_op_info(op).op_class == TN_CLASS_NONE ? 0U : 1U) << "opcode " << op;
}

TEST(CudaSource, FusesIntoFewKernels) {
  const std::vector<CudaProgram> programs = CudaPrograms::all();
  for (const char* const name : {"softmax of 10", "softmax's gradient of 1500", "layer norm of 300", "cross entropy",
                                 "cross entropy's gradient", "adam", "rows in place"})
    EXPECT_EQ(source_of(named(programs, name).run).grids.size(), 1U) << name;
  // Kernels: partial results; their sum and the output.
  EXPECT_EQ(source_of(named(programs, "columns of 100 rows").run).grids.size(), 2U);
  // Kernels: partial results; the norm; the clipped values; the norm as output, after the last read of a SCALAR input.
  EXPECT_EQ(source_of(named(programs, "norm clipping").run).grids.size(), 4U);
}

// One compiled module serves every size.
TEST(CudaSource, TextDoesNotDependOnSizes) {
  PointwiseCase c = named(CudaPrograms::all(), "softmax of 300").run;
  const std::string text = source_of(c).text;
  c.columns = 400;
  c.rows = 77;
  EXPECT_EQ(source_of(c).text, text);
}

TEST(CudaSource, NamesTheMissingElementType) {
  PointwiseCase c = named(CudaPrograms::all(), "adam").run;
  c.input_types[1] = TN_DTYPE(5, 64);
  const PointwiseSite site(c, 0);
  tn_dtype missing = 0;
  static_cast<void>(tenon::cuda::generate(site.get(), {}, &missing));
  EXPECT_EQ(missing, TN_DTYPE(5, 64));
}

// That all compile is in cuda_resources_test.cpp.
TEST(CudaSource, Compiles) {
  const tenon::cuda::Compiler compiler(0);
  if (!compiler.is_open()) GTEST_SKIP() << "no NVRTC: " << compiler.why();
  const std::vector<CudaProgram> programs = CudaPrograms::all();
  for (const char* const name : {"adam", "norm clipping", "layer norm of 300"}) {
    SCOPED_TRACE(name);
    const CudaProgram& program = named(programs, name);
    const tenon::cuda::Source source = source_of(program.run);
    const std::string text = whole_text_of(program.run);
    EXPECT_EQ(count_of(text, "__global__"), source.grids.size());
    try {
      // 9.0 gives machine code. 9.9 is unknown to every compiler and gives PTX for the newest architecture before it.
      EXPECT_EQ(compiler.compile(text, 90).substr(1, 3), "ELF");
      const std::string ptx = compiler.compile(text, 99);
      EXPECT_NE(ptx.find(".target sm_90"), std::string::npos);
      EXPECT_EQ(count_of(ptx, ".entry kernel"), source.grids.size());
      EXPECT_EQ(count_of(ptx, "atom."), 0U) << "atomics have no fixed order";
    } catch (const std::exception& error) {
      FAIL() << error.what() << "\n" << text;
    }
  }
}

TEST(CudaSource, ReportsWhatTheCompilerSays) {
  const tenon::cuda::Compiler compiler(0);
  if (!compiler.is_open()) GTEST_SKIP() << "no NVRTC: " << compiler.why();
  try {
    static_cast<void>(compiler.compile("this is no C++", 90));
    FAIL() << "invalid source was compiled";
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("tenon_kernels.cu(1)"), std::string::npos) << error.what();
  }
  EXPECT_THROW(static_cast<void>(compiler.compile("", 10)), std::exception);  // older than every supported architecture
}

// Keeps the last report.
struct Sink {
  std::string message;
  tn_status code = TN_OK;
  tn_errors errors = {sizeof(tn_errors), 0, this, [](void* self, const tn_error_report* report) {
                        static_cast<Sink*>(self)->code = report->code;
                        static_cast<Sink*>(self)->message = report->message;
                      }};
};

TEST(CudaPlugin, DescribesItself) {
  const tn_plugin& plugin = *device_plugin("cuda");
  EXPECT_STREQ(plugin.id, "tenon.cuda");
  ASSERT_EQ(plugin.devices_count, 1U);
  const tn_device_type& type = *plugin.devices[0];
  EXPECT_STREQ(type.description->kind, "cuda");
  EXPECT_EQ(type.description->dlpack_type, kDLCUDA);
  for (const char* const* id = type.description->tables; *id != nullptr; ++id)
    EXPECT_NE(type.extension(nullptr, *id), nullptr) << *id;
  EXPECT_EQ(type.extension(nullptr, "tenon.gemm/2"), nullptr);
  ASSERT_EQ(plugin.libraries_count, 4U);
  EXPECT_STREQ(plugin.libraries[0]->name, "libcuda.so.1");
}

// Passes with and without a driver.
TEST(CudaPlugin, SaysWhatIsMissing) {
  const tn_plugin& plugin = *device_plugin("cuda");
  const tn_device_type& type = *plugin.devices[0];
  Sink sink;
  const int32_t count = type.count(nullptr, &sink.errors);
  ASSERT_GE(count, 0) << sink.message;
  EXPECT_EQ(sink.message, "");
  void* device = nullptr;
  for (const int32_t index : {count, -1}) {
    const tn_device_open open = {sizeof open, index, nullptr, &sink.errors, nullptr};
    EXPECT_EQ(type.open(&open, &device), TN_NOT_FOUND);
    EXPECT_EQ(sink.code, TN_NOT_FOUND);
    const bool driver = sink.message.find("device number " + std::to_string(index)) != std::string::npos;
    const bool no_driver = sink.message.find("libcuda.so.1") != std::string::npos &&
                           sink.message.find(plugin.libraries[0]->hint) != std::string::npos;
    EXPECT_TRUE(driver || (count == 0 && no_driver)) << sink.message;
  }
  EXPECT_EQ(device, nullptr);
}

}  // namespace
}  // namespace tenon_tests
