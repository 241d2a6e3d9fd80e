// What the device "cuda" makes of products where cublasLt is present, on an emulated GPU with an emulated library.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/devices/captured_call.h"
#include "tests/devices/emulated_driver.h"
#include "tests/devices/gemm_reference.h"
#include "tests/devices/pointwise_case.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

using Numbers = std::vector<double>;

// 10 bits of fraction, of two that are as near the even one.
double to_tf32(double number) {
  int exponent = 0;
  const double fraction = std::frexp(number, &exponent);
  return std::ldexp(std::nearbyint(fraction * 2048), exponent - 11);
}

class CudaBlas : public testing::Test {
 protected:
  void SetUp() override {
    if (!driver_) GTEST_SKIP() << "no emulated GPU";
    device_ = std::make_unique<DeviceUnderTest>(device_plugin("cuda"));
    PreparedCall call(*device_);
    ASSERT_EQ(prepare(gemm(4, 5, 6), call), TN_OK) << device_->message;
    if ((call.prepared.traits & TN_TRAIT_HOST_SIZES) == 0) GTEST_SKIP() << "no cublasLt";
  }

  // A product of rows whose number is a symbol.
  static tn_gemm gemm(int64_t m, int64_t n, int64_t k, uint32_t precision = TN_PRECISION_FULL) {
    tn_gemm gemm = {};
    gemm.size = sizeof gemm;
    gemm.dtype = TN_F32;
    gemm.batch = tn_dim_constant(1);
    gemm.m = bounded_symbol(TN_SYMBOL_SAMPLES, m);
    gemm.n = tn_dim_constant(n);
    gemm.k = tn_dim_constant(k);
    gemm.precision = precision;
    gemm.alpha = 1;
    return gemm;
  }
  tn_status prepare(const tn_gemm& gemm, PreparedCall& call) {
    return device_->table<tn_gemm_table>(TN_GEMM)->prepare(device_->device(), device_->services(), device_->errors(),
                                                           &gemm, &call.prepared);
  }
  [[nodiscard]] int64_t count_calls(const std::string& start) const {
    const std::vector<std::string> lines = driver_->calls();
    return std::count_if(lines.begin(), lines.end(), [&](const auto& line) { return line.rfind(start, 0) == 0; });
  }

  const std::optional<EmulatedDriver> driver_ = EmulatedDriver::find();
  std::unique_ptr<DeviceUnderTest> device_;
};

// An algorithm is chosen for the bound when the call is prepared, and for other sizes when they come for the first
// time.
TEST_F(CudaBlas, ChoosesOnceForEachSize) {
  PreparedCall call(*device_);
  driver_->clear_calls();
  ASSERT_EQ(prepare(gemm(8, 5, 6), call), TN_OK);
  EXPECT_EQ(count_calls("cublasLtMatmulAlgoGetHeuristic"), 1);
  Guarded a = write_all(TN_F32, random_numbers(48, 1)), b = write_all(TN_F32, random_numbers(30, 2)), c(160);
  for (const int64_t m : {8, 3, 8, 3, 1}) ASSERT_EQ(call.run({&a, &b}, {&c}, {TN_REQUEST_WRITE}, {0, m}, 1), TN_OK);
  EXPECT_EQ(count_calls("cublasLtMatmulAlgoGetHeuristic"), 3);
  EXPECT_EQ(count_calls("cublasLtMatmul 5 x 8 x 6"), 2);
  EXPECT_EQ(count_calls("cublasLtMatmul 5 x 3 x 6"), 2);
  EXPECT_EQ(call.run({&a, &b}, {&c}, {TN_REQUEST_WRITE}, {0, -1}, 1), TN_MISUSE);
  EXPECT_EQ(device_->message, "a product of negative size");
}

TEST_F(CudaBlas, ProductsOfConstantSizeNeedNoSizes) {
  tn_gemm product = gemm(8, 5, 6);
  product.m = tn_dim_constant(8);
  PreparedCall call(*device_);
  ASSERT_EQ(prepare(product, call), TN_OK);
  EXPECT_EQ(call.prepared.traits, uint32_t{TN_TRAIT_CAPTURABLE | TN_TRAIT_BATCH_VARIANT | TN_TRAIT_ANY_ALIGNMENT});
}

// Rows of A that are samples may get other bits from the library beside other samples.
TEST_F(CudaBlas, StatesThatRowsDependOnTheOthers) {
  for (const uint32_t flags : {0, TN_TRANSPOSE_A + 0, TN_TRANSPOSE_B + 0, TN_TRANSPOSE_A | TN_TRANSPOSE_B}) {
    tn_gemm product = gemm(8, 5, 6);
    product.flags = flags;
    PreparedCall call(*device_);
    ASSERT_EQ(prepare(product, call), TN_OK);
    const uint32_t variant = (flags & TN_TRANSPOSE_A) == 0 ? TN_TRAIT_BATCH_VARIANT : 0;
    EXPECT_EQ(call.prepared.traits, TN_TRAIT_HOST_SIZES | TN_TRAIT_ANY_ALIGNMENT | variant) << flags;
  }
}

// A choice would end a capture, so a size that did not run before is refused, and the capture dropped.
TEST_F(CudaBlas, NewSizesAreNotCaptured) {
  PreparedCall call(*device_);
  ASSERT_EQ(prepare(gemm(8, 5, 6), call), TN_OK);
  const CapturedCall captured(*device_, call.prepared);
  EXPECT_EQ(captured.run(4), TN_OK) << device_->message;
  EXPECT_EQ(captured.capture(4), TN_OK) << device_->message;
  EXPECT_EQ(captured.capture(3), TN_UNSUPPORTED);
  EXPECT_EQ(device_->message, "a product of 3 x 6 and 6 x 5 is captured before it ran");
  EXPECT_EQ(captured.run(3), TN_OK) << device_->message;
}

TEST_F(CudaBlas, FactorsAreRounded) {
  for (const uint32_t precision : {TN_PRECISION_FULL, TN_PRECISION_BF16, TN_PRECISION_TF32})
    for (uint32_t flags = 0; flags < 4; ++flags)
      for (const auto& [batch, m, n, k] :
           {std::array<int64_t, 4>{1, 3, 5, 7}, {1, 33, 1, 40}, {4, 7, 9, 301}, {1, 1, 90, 64}, {1, 70, 129, 33}}) {
        SCOPED_TRACE(testing::Message() << precision << " " << flags << " " << m << " " << n << " " << k);
        tn_gemm product = gemm(m + 5, n, k, precision);
        product.batch = tn_dim_constant(batch);
        product.flags = flags;
        product.alpha = -0.5;
        PreparedCall call(*device_);
        ASSERT_EQ(prepare(product, call), TN_OK) << device_->message;
        Numbers a = random_numbers(batch * m * k, 1), b = random_numbers(batch * k * n, 2);
        const Numbers before = random_numbers(batch * m * n, 3);
        Guarded in_a = write_all(TN_F32, a), in_b = write_all(TN_F32, b), out = write_all(TN_F32, before);
        ASSERT_EQ(call.run({&in_a, &in_b}, {&out}, {TN_REQUEST_ADD}, {0, m}, 1), TN_OK) << device_->message;
        for (Numbers* numbers : {&a, &b})
          for (double& number : *numbers)
            number = precision == TN_PRECISION_BF16   ? to_bfloat16(static_cast<float>(number))
                     : precision == TN_PRECISION_TF32 ? to_tf32(number)
                                                      : number;
        const Numbers sums = plain_product(batch, m, n, k, flags, a, b), got = read_all(TN_F32, out);
        for (size_t i = 0; i < sums.size(); ++i)
          ASSERT_NEAR(got[i], before[i] - 0.5 * sums[i], 6e-8 * (8 + 2 * static_cast<double>(k))) << i;
      }
}

// Parts of a machine's memory begin at multiples of 64 bytes, and cublasLt wants its workspace at one of 256.
TEST_F(CudaBlas, WorkspacesBeginAnywhere) {
  for (const uint32_t precision : {TN_PRECISION_FULL, TN_PRECISION_BF16})
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{3, 5, 7}, {4, 9, 301}, {17, 1, 130}}) {
      PreparedCall call(*device_);
      ASSERT_EQ(prepare(gemm(m, n, k, precision), call), TN_OK) << device_->message;
      Guarded a = write_all(TN_F32, random_numbers(m * k, 1)), b = write_all(TN_F32, random_numbers(k * n, 2));
      Guarded c = write_all(TN_F32, Numbers(static_cast<size_t>(m * n), NAN));
      Numbers first;
      for (size_t shift = 0; shift < 256; shift += 64) {
        SCOPED_TRACE(testing::Message() << precision << " " << m << " " << n << " " << k << " at " << shift);
        call.workspace_shift = shift;
        ASSERT_EQ(call.run({&a, &b}, {&c}, {TN_REQUEST_WRITE}, {0, m}, 1), TN_OK) << device_->message;
        if (shift == 0) first = read_all(TN_F32, c);
        EXPECT_EQ(read_all(TN_F32, c), first);
      }
    }
}

// Products with a bias, or with a bias and a cut at 0.
class CudaBlasEpilogue : public CudaBlas {
 protected:
  struct Site {
    tn_gemm gemm = {};
    tn_program view = {};
    std::vector<tn_dtype> inputs, outputs;
    tn_pointwise_site site = {};
    tn_gemm_epilogue epilogue = {};
  };

  static Program sum(bool cuts, bool bias_first, uint8_t extent = TN_PER_COLUMN) {
    ProgramWriter w;
    const int32_t first = w.input(bias_first ? extent : uint8_t{TN_FULL});
    const int32_t second = w.input(bias_first ? uint8_t{TN_FULL} : extent);
    const int32_t all = w.apply(TN_OP_ADD, first, second);
    w.output(!cuts        ? all
             : bias_first ? w.apply(TN_OP_MAX, w.constant(0), all)
                          : w.apply(TN_OP_MAX, all, w.constant(0)));
    return Program::from(w.finish().view());
  }

  static void fill(const tn_gemm& gemm, const Program& program, int32_t product, Site& s) {
    s.gemm = gemm;
    s.view = program.view();
    s.inputs.assign(program.inputs.size(), gemm.dtype);
    s.outputs.assign(program.outputs.size(), gemm.dtype);
    s.site = {sizeof s.site,   gemm.dtype,       &s.view,  program.extents.data(),
              s.inputs.data(), s.outputs.data(), s.gemm.m, s.gemm.n};
    s.epilogue = {sizeof s.epilogue, product, &s.gemm, &s.site};
  }

  [[nodiscard]] const tn_gemm_epilogue_table& table() const {
    return *device_->table<tn_gemm_epilogue_table>(TN_GEMM_EPILOGUE);
  }
  tn_status supports(const Site& site) {
    return table().supports(device_->device(), device_->errors(), &site.epilogue);
  }
};

TEST_F(CudaBlasEpilogue, AddsBiases) {
  constexpr int64_t kM = 9, kN = 5, kK = 130;
  const Numbers a = random_numbers(kM * kK, 1), b = random_numbers(kK * kN, 2), bias = random_numbers(kN, 3);
  const Numbers product = plain_product(1, kM, kN, kK, 0, a, b);
  for (const bool cuts : {false, true})
    for (const bool bias_first : {false, true})
      for (const bool keeps_product : {false, true}) {
        SCOPED_TRACE(testing::Message() << cuts << bias_first << keeps_product);
        const Program program = sum(cuts, bias_first);
        Site site;
        fill(gemm(kM, kN, kK), program, bias_first ? 1 : 0, site);
        ASSERT_EQ(supports(site), TN_OK);
        PreparedCall call(*device_);
        ASSERT_EQ(
            table().prepare(device_->device(), device_->services(), device_->errors(), &site.epilogue, &call.prepared),
            TN_OK)
            << device_->message;
        Guarded in_a = write_all(TN_F32, a), in_b = write_all(TN_F32, b), in_bias = write_all(TN_F32, bias);
        Guarded c = write_all(TN_F32, Numbers(kM * kN, NAN)), out = write_all(TN_F32, Numbers(kM * kN, NAN));
        // Where the product is not kept its memory may be the result's.
        Guarded& result = keeps_product ? out : c;
        const uint8_t keep = keeps_product ? TN_REQUEST_WRITE : TN_REQUEST_NONE;
        ASSERT_EQ(call.run({&in_a, &in_b, &in_bias}, {&c, &result}, {keep, TN_REQUEST_WRITE}, {0, kM}, 1), TN_OK)
            << device_->message;
        const Numbers got = read_all(TN_F32, result), kept = read_all(TN_F32, c);
        for (size_t i = 0; i < product.size(); ++i) {
          const double all = product[i] + bias[i % kN];
          ASSERT_NEAR(got[i], cuts ? std::max(all, 0.0) : all, 2e-5) << i;
          if (keeps_product) {
            ASSERT_NEAR(kept[i], product[i], 2e-5) << i;
          }
        }
        const tn_status adds =
            call.run({&in_a, &in_b, &in_bias}, {&c, &result}, {TN_REQUEST_NONE, TN_REQUEST_ADD}, {0, kM}, 1);
        EXPECT_EQ(adds, cuts ? TN_UNSUPPORTED : TN_OK);
        EXPECT_NEAR(read_all(TN_F32, result)[7], cuts ? got[7] : 2 * got[7], 4e-5);
        EXPECT_EQ(call.run({&in_a, &in_b}, {&c, &result}, {keep, TN_REQUEST_WRITE}, {0, kM}, 1), TN_MISUSE);
      }
}

TEST_F(CudaBlasEpilogue, LeavesOtherProgramsToTheHost) {
  const auto refused = [&](const Program& program, const tn_gemm& product, auto change) {
    Site site;
    fill(product, program, 0, site);
    change(site);
    EXPECT_EQ(supports(site), TN_UNSUPPORTED);
    tn_prepared prepared = {};
    EXPECT_EQ(table().prepare(device_->device(), device_->services(), device_->errors(), &site.epilogue, &prepared),
              TN_UNSUPPORTED);
    EXPECT_EQ(device_->port, "program");
    EXPECT_EQ(prepared.binding, nullptr);
  };
  const auto nothing = [](Site&) {};
  const tn_gemm product = gemm(4, 5, 6);
  refused(sum(false, false, TN_FULL), product, nothing);  // not one value for each column
  refused(sum(false, false, TN_PER_ROW), product, nothing);
  refused(sum(false, true), product, nothing);  // input 0 is the bias
  refused(sum(false, false), product, [](Site& s) { s.inputs[1] = TN_F64; });
  refused(sum(false, false), product, [](Site& s) { s.outputs[0] = TN_BF16; });
  refused(sum(false, false), product, [](Site& s) { s.gemm.dtype = TN_F64; });
  refused(sum(false, false), product, [](Site& s) { s.gemm.k = tn_dim_constant(0); });
  refused(sum(false, false), product, [](Site& s) { s.gemm.batch = tn_dim_constant(2); });
  ProgramWriter twice;  // two outputs
  const int32_t all = twice.apply(TN_OP_ADD, twice.input(TN_FULL), twice.input(TN_PER_COLUMN));
  twice.output(all);
  twice.output(twice.reduce(TN_OP_REDUCE_SUM, all, TN_PER_COLUMN));
  refused(Program::from(twice.finish().view()), product, nothing);
  for (const uint16_t op : {TN_OP_MUL, TN_OP_SUB, TN_OP_MAX}) {
    ProgramWriter other;
    other.output(other.apply(op, other.input(TN_FULL), other.input(TN_PER_COLUMN)));
    refused(Program::from(other.finish().view()), product, nothing);
  }
  ProgramWriter above;  // cut at 1
  const int32_t biased = above.apply(TN_OP_ADD, above.input(TN_FULL), above.input(TN_PER_COLUMN));
  above.output(above.apply(TN_OP_MAX, biased, above.constant(1)));
  refused(Program::from(above.finish().view()), product, nothing);
}

}  // namespace

}  // namespace tenon_tests
