// Products with an epilogue, against plain sums and the reference interpreter.
// SPDX-License-Identifier: Apache-2.0
#include "tests/devices/epilogue_programs.h"
#include "tests/devices/gemm_reference.h"
#include "tests/devices/pointwise_case.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

struct EpilogueCase {
  int64_t batch, m, n, k;
  uint32_t flags = 0;
  tn_dtype dtype = TN_F32;
};

// Input 0 of the program is the product.
class GemmEpilogue : public testing::Test {
 protected:
  using Numbers = std::vector<double>;

  struct Site {
    tn_gemm gemm = {};
    tn_program program = {};
    std::vector<tn_dtype> inputs, outputs;
    tn_pointwise_site site = {};
    tn_gemm_epilogue epilogue = {};
  };

  // The number of products in a batch, or of rows of a single product, is the number of samples.
  static void fill(const EpilogueCase& c, const Program& program, Site& s) {
    const auto samples = [](int64_t bound) {
      tn_dim dim = tn_dim_symbol(TN_SYMBOL_SAMPLES);
      dim.bound = bound;
      return dim;
    };
    s.gemm.size = sizeof s.gemm;
    s.gemm.dtype = c.dtype;
    s.gemm.batch = tn_dim_constant(1);
    s.gemm.m = samples(c.m);
    if (c.batch > 1) {
      s.gemm.batch = samples(c.batch);
      s.gemm.m = tn_dim_constant(c.m);
    }
    s.gemm.n = tn_dim_constant(c.n);
    s.gemm.k = tn_dim_constant(c.k);
    s.gemm.flags = c.flags;
    s.gemm.alpha = 0.5;
    s.program = program.view();
    s.inputs.assign(program.inputs.size(), c.dtype);
    s.outputs.assign(program.outputs.size(), c.dtype);
    s.site.size = sizeof s.site;
    s.site.compute = c.dtype;
    s.site.program = &s.program;
    s.site.extents = program.extents.data();
    s.site.inputs = s.inputs.data();
    s.site.outputs = s.outputs.data();
    s.site.rows = samples(c.batch * c.m);
    if (c.batch > 1) s.site.rows.coefficient = c.m;
    s.site.columns = tn_dim_constant(c.n);
    s.epilogue = {sizeof s.epilogue, 0, &s.gemm, &s.site};
  }

  [[nodiscard]] const tn_gemm_epilogue_table* table() const {
    return device_.table<tn_gemm_epilogue_table>(TN_GEMM_EPILOGUE);
  }

  // in_place: output 0, which is FULL, has the memory of the product.
  void check(const EpilogueCase& c, const Program& program, bool in_place) {
    Site site;
    fill(c, program, site);
    ASSERT_EQ(table()->supports(device_.device(), device_.errors(), &site.epilogue), TN_OK);
    const Numbers a = random_numbers(c.batch * c.m * c.k, 1), b = random_numbers(c.batch * c.k * c.n, 2);
    Numbers product = plain_product(c.batch, c.m, c.n, c.k, c.flags, a, b);
    for (double& number : product) number *= 0.5;
    std::vector<Numbers> arguments{product};
    for (size_t i = 1; i < program.inputs.size(); ++i)
      arguments.push_back(
          random_numbers(tenon::check::reference::elements(program.inputs[i].extent, c.batch * c.m, c.n), 2 + i));
    const std::vector<Numbers> want = tenon::check::reference::evaluate(program.view(), c.batch * c.m, c.n, arguments);
    std::vector<std::vector<uint8_t>> first;
    for (const int32_t workers : {1, 2, 3, 8}) {
      PreparedCall call(device_);
      ASSERT_EQ(
          table()->prepare(device_.device(), device_.services(), device_.errors(), &site.epilogue, &call.prepared),
          TN_OK)
          << device_.message;
      std::vector<Guarded> inputs, outputs;
      inputs.push_back(write_all(c.dtype, a));
      inputs.push_back(write_all(c.dtype, b));
      for (size_t i = 1; i < arguments.size(); ++i) inputs.push_back(write_all(c.dtype, arguments[i]));
      outputs.push_back(write_all(c.dtype, Numbers(arguments[0].size(), NAN)));
      for (const Numbers& output : want) outputs.push_back(write_all(c.dtype, Numbers(output.size(), NAN)));
      std::vector<Guarded*> in, out;
      for (Guarded& input : inputs) in.push_back(&input);
      for (Guarded& output : outputs) out.push_back(&output);
      if (in_place) out[1] = out[0];
      const std::vector<uint8_t> requests(out.size(), TN_REQUEST_WRITE);
      ASSERT_EQ(call.run(in, out, requests, {0, c.batch > 1 ? c.batch : c.m}, workers), TN_OK) << device_.message;
      std::vector<std::vector<uint8_t>> bytes;
      for (size_t k = 0; k < want.size(); ++k) {
        const Guarded& memory = in_place && k == 0 ? outputs[0] : outputs[k + 1];
        EXPECT_TRUE(memory.intact());
        bytes.push_back(memory.bytes());
        const Numbers got = read_all(c.dtype, memory);
        for (size_t i = 0; i < got.size(); ++i)
          ASSERT_NEAR(got[i], want[k][i], (c.dtype == TN_F32 ? 3e-5 : 1e-12) * std::max(1.0, std::fabs(want[k][i])))
              << "output " << k << " element " << i;
      }
      if (first.empty()) first = bytes;
      EXPECT_TRUE(first == bytes) << workers << " workers give other bits";
    }
  }

  DeviceUnderTest device_;
};

TEST_F(GemmEpilogue, Programs) {
  for (const bool in_place : {false, true})
    for (const tn_dtype dtype : {TN_F32, TN_F64})
      for (const auto& [m, n, k] : {std::array<int64_t, 3>{128, 10, 128},
                                    {128, 128, 784},
                                    {33, 300, 40},
                                    {1, 7, 5},
                                    {7, 1, 5},
                                    {300, 3, 2},
                                    {64, 1500, 8},
                                    {5, 4, 0}}) {
        SCOPED_TRACE(testing::Message() << m << " " << n << " " << k << (in_place ? " in place" : ""));
        check({1, m, n, k, 0, dtype}, bias_relu(), in_place);
        check({1, m, n, k, TN_TRANSPOSE_B, dtype}, softmax(), in_place);
        check({1, m, n, k, TN_TRANSPOSE_A, dtype}, flat(), in_place);
      }
}

TEST_F(GemmEpilogue, Batches) {
  check({7, 20, 30, 40, TN_TRANSPOSE_B}, bias_relu(), true);
  check({1000, 3, 5, 4}, softmax(), true);
  check({9, 1, 5, 4}, flat(), false);
}

TEST_F(GemmEpilogue, RefusesWhatItDoesNotKnow) {
  const auto refused = [&](const Program& program, auto change, const char* why) {
    Site site;
    fill({1, 4, 5, 6}, program, site);
    change(site);
    tn_prepared prepared = {};
    EXPECT_EQ(table()->prepare(device_.device(), device_.services(), device_.errors(), &site.epilogue, &prepared),
              TN_UNSUPPORTED)
        << why;
    EXPECT_EQ(device_.message, why);
    EXPECT_EQ(device_.port, "program");
    EXPECT_EQ(prepared.binding, nullptr);
  };
  const char* const unknown = "the program has a type or an operation that the cpu does not know";
  const tn_dtype complex_number = TN_DTYPE(5, 64);
  refused(
      bias_relu(), [&](Site& s) { s.inputs[1] = complex_number; }, unknown);
  refused(
      flat(), [&](Site& s) { s.outputs[0] = complex_number; }, unknown);
  Program later = flat();  // an operation of a later version
  later.instructions.back().op = 999;
  refused(
      later, [](Site&) {}, unknown);
  const char* const unfit = "the cpu cannot run this program as an epilogue";
  for (const int32_t number : {-1, 2})
    refused(
        bias_relu(), [&](Site& s) { s.epilogue.product = number; }, unfit);
  refused(
      flat(), [](Site& s) { s.site.compute = TN_F64; }, unfit);
  refused(
      flat(), [](Site& s) { s.gemm.m.bound = -1; }, unfit);
  refused(
      flat(), [](Site& s) { s.site.columns = tn_dim_symbol(TN_SYMBOL_SAMPLES); }, unfit);
}

// Sizes and operands are checked in every call.
TEST_F(GemmEpilogue, RefusesOtherCalls) {
  const Program program = flat();
  Site site;
  fill({1, 2, 2, 2}, program, site);
  PreparedCall call(device_);
  ASSERT_EQ(table()->prepare(device_.device(), device_.services(), device_.errors(), &site.epilogue, &call.prepared),
            TN_OK);
  Guarded a = write_all(TN_F32, Numbers(4, 1)), b = write_all(TN_F32, Numbers(4, 1)), c(16), y(16);
  const auto run = [&](const std::vector<Guarded*>& in, const std::vector<Guarded*>& out, int64_t samples) {
    return call.run(in, out, std::vector<uint8_t>(out.size(), TN_REQUEST_WRITE), {0, samples}, 1);
  };
  EXPECT_EQ(run({&a, &b}, {&c, &y}, -1), TN_MISUSE);
  EXPECT_EQ(device_.message, "a product of negative size");
  EXPECT_EQ(run({&a}, {&c, &y}, 2), TN_MISUSE);
  EXPECT_EQ(run({&a, &b}, {&c}, 2), TN_MISUSE);
  EXPECT_EQ(run({&a, nullptr}, {&c, &y}, 2), TN_MISUSE);
  EXPECT_EQ(run({&a, &b}, {&c, &y}, 2), TN_OK);
  EXPECT_EQ(read_all(TN_F32, y), Numbers(4, 1)) << "0.5 (1 + 1), squared";
}

TEST_F(GemmEpilogue, IsNotForProgramsThatReadTheProductTwice) {
  ProgramWriter w;  // the sums need the whole product before they can be subtracted from it
  const int32_t c = w.input(TN_FULL);
  w.output(w.apply(TN_OP_SUB, c, w.reduce(TN_OP_REDUCE_SUM, c, TN_PER_COLUMN)));
  const Program program = Program::from(w.finish().view());
  Site site;
  fill({1, 4, 5, 6}, program, site);
  EXPECT_EQ(table()->supports(device_.device(), device_.errors(), &site.epilogue), TN_UNSUPPORTED);
  tn_prepared prepared = {};
  EXPECT_EQ(table()->prepare(device_.device(), device_.services(), device_.errors(), &site.epilogue, &prepared),
            TN_UNSUPPORTED);
  EXPECT_EQ(device_.port, "program");
}

}  // namespace
}  // namespace tenon_tests
