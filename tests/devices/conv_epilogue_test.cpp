// Convolutions with an epilogue on the device "cpu", against the convolution alone and the reference interpreter.
// SPDX-License-Identifier: Apache-2.0
#include "check/definitions/program_reference.h"
#include "tests/devices/conv_rows.h"
#include "tests/devices/epilogue_programs.h"

namespace tenon_tests {
namespace {

using Numbers = std::vector<double>;

// The normalisation of columns by a mean and a variance of theirs: three passes over the rows.
Program norm() {
  ProgramWriter w;
  const int32_t x = w.input(TN_FULL), share = w.constant(0.01);
  const auto mean = [&](int32_t of) {
    return w.apply(TN_OP_MUL, w.reduce(TN_OP_REDUCE_SUM, of, TN_PER_COLUMN), share);
  };
  const int32_t centred = w.apply(TN_OP_SUB, x, mean(x));
  const int32_t variance = mean(w.apply(TN_OP_MUL, centred, centred));
  w.output(w.apply(TN_OP_DIV, centred, w.apply(TN_OP_SQRT, w.apply(TN_OP_ADD, variance, w.constant(1)))));
  w.output(variance);
  return Program::from(w.finish().view());
}

class ConvEpilogue : public ConvTable {
 protected:
  struct Site {
    tn_conv conv = {};
    tn_program program = {};
    std::vector<tn_dtype> inputs, outputs;
    tn_pointwise_site site = {};
    tn_conv_epilogue epilogue = {};
  };

  // The elements of space, and the channels, of what the convolution computes.
  static int64_t places(const ConvCase& c) {
    return c.op == TN_CONV_IMAGES ? reference::image_elements(c.window) : reference::place_elements(c.window);
  }
  static int64_t columns(const ConvCase& c) { return c.op == TN_CONV_IMAGES ? c.sizes.channels : c.sizes.filters; }

  static void fill(const ConvCase& c, const Program& program, Site& s) {
    const auto samples = [&](int64_t each) {
      tn_dim dim = tn_dim_symbol(TN_SYMBOL_SAMPLES);
      dim.coefficient = each;
      dim.bound = each * c.sizes.samples;
      return dim;
    };
    s.conv = {sizeof s.conv,    c.dtype,         c.op,           0,        samples(1),
              c.sizes.channels, c.sizes.filters, c.sizes.groups, &c.window};
    s.program = program.view();
    s.inputs.assign(program.inputs.size(), c.dtype);
    s.outputs.assign(program.outputs.size(), c.dtype);
    s.site = {sizeof s.site,   c.dtype,          &s.program,         program.extents.data(),
              s.inputs.data(), s.outputs.data(), samples(places(c)), tn_dim_constant(columns(c))};
    s.epilogue = {sizeof s.epilogue, 0, &s.conv, &s.site};
  }

  const tn_conv_epilogue_table* epilogues() { return device_.table<tn_conv_epilogue_table>(TN_CONV_EPILOGUE); }
  tn_status prepare_both(const Site& site, tn_prepared* prepared) {
    return epilogues()->prepare(device_.device(), device_.services(), device_.errors(), &site.epilogue, prepared);
  }

  // What a call leaves: the bytes of the convolution and of the outputs of the program. In place, output 0 has the
  // memory of the convolution.
  std::vector<std::vector<uint8_t>> outputs_of(const ConvCase& c, const Program& program, const Operands& of,
                                               const std::vector<Numbers>& others, bool in_place, int32_t workers) {
    Site site;
    fill(c, program, site);
    EXPECT_EQ(epilogues()->supports(device_.device(), device_.errors(), &site.epilogue), TN_OK);
    PreparedCall call(device_);
    EXPECT_EQ(prepare_both(site, &call.prepared), TN_OK) << device_.message;
    std::vector<Guarded> inputs, outputs;
    for (const Numbers* numbers : {&of.a, &of.b}) inputs.push_back(write_all(c.dtype, *numbers));
    for (const Numbers& numbers : others) inputs.push_back(write_all(c.dtype, numbers));
    const int64_t rows = c.sizes.samples * places(c);
    outputs.push_back(write_all(c.dtype, Numbers(static_cast<size_t>(rows * columns(c)), NAN)));
    for (size_t i = 0; i < program.outputs.size(); ++i)
      outputs.push_back(write_all(
          c.dtype, Numbers(static_cast<size_t>(reference::elements(program.output_extent(i), rows, columns(c))), NAN)));
    std::vector<Guarded*> in, out;
    for (Guarded& input : inputs) in.push_back(&input);
    for (Guarded& output : outputs) out.push_back(&output);
    if (in_place) out[1] = out[0];
    EXPECT_EQ(call.run(in, out, std::vector<uint8_t>(out.size(), TN_REQUEST_WRITE), {0, c.sizes.samples}, workers),
              TN_OK)
        << device_.message;
    std::vector<std::vector<uint8_t>> bytes;
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_TRUE(outputs[i].intact()) << i;
      bytes.push_back(outputs[in_place && i == 1 ? 0 : i].bytes());
    }
    return bytes;
  }

  static std::vector<Numbers> others_of(const ConvCase& c, const Program& program) {
    std::vector<Numbers> others;
    for (size_t i = 1; i < program.inputs.size(); ++i)
      others.push_back(
          drawn(reference::elements(program.inputs[i].extent, c.sizes.samples * places(c), columns(c)), 10 + i));
    return others;
  }

  // Compares with the convolution alone, whose bits the rows must have, and with the program over these rows.
  void check_program(const ConvCase& c, const Program& program) {
    const Operands of = operands(c);
    const std::vector<Numbers> others = others_of(c, program);
    const int64_t rows = c.sizes.samples * places(c);
    const auto count = static_cast<size_t>(rows * columns(c));
    const std::vector<std::vector<uint8_t>> got = outputs_of(c, program, of, others, false, 1);
    ASSERT_TRUE(got[0] == bytes(c, of.a, of.b, count, TN_REQUEST_WRITE, 1, 99));
    std::vector<Numbers> arguments{Numbers(count)};
    const auto element = static_cast<size_t>(tn_dtype_bytes(c.dtype));
    for (size_t i = 0; i < count; ++i) arguments[0][i] = read_element(c.dtype, got[0].data() + i * element);
    arguments.insert(arguments.end(), others.begin(), others.end());
    const std::vector<Numbers> want = reference::evaluate(program.view(), rows, columns(c), arguments);
    for (size_t k = 0; k < want.size(); ++k)
      for (size_t i = 0; i < want[k].size(); ++i)
        ASSERT_NEAR(read_element(c.dtype, got[k + 1].data() + i * element), want[k][i],
                    (c.dtype == TN_F32 ? 3e-5 : 1e-12) * std::max(1.0, std::fabs(want[k][i])))
            << "output " << k << " element " << i;
    for (const int32_t workers : {3, 40}) {
      std::vector<std::vector<uint8_t>> more = outputs_of(c, program, of, others, true, workers);
      more[0] = got[0];  // the output is there
      ASSERT_TRUE(more == got) << workers << " workers give other bits";
    }
  }

  void check_programs(const std::vector<ConvCase>& rows) {
    for (ConvCase c : rows)
      for (const int32_t op : {TN_CONV_RESULTS, TN_CONV_IMAGES})
        for (const tn_dtype dtype : {TN_F32, TN_F64}) {
          c.op = op;
          c.dtype = dtype;
          SCOPED_TRACE(text(c.window) + "op " + std::to_string(op) + (dtype == TN_F64 ? " wide" : ""));
          check_program(c, bias_relu());
          if (HasFatalFailure()) return;
          check_program(c, dtype == TN_F64 ? softmax() : norm());
          if (HasFatalFailure()) return;
        }
  }
};

TEST_F(ConvEpilogue, OneDimension) { check_programs(one_dimension()); }
TEST_F(ConvEpilogue, TwoDimensions) { check_programs(two_dimensions()); }
TEST_F(ConvEpilogue, ThreeDimensions) { check_programs(three_dimensions()); }
TEST_F(ConvEpilogue, Depthwise) { check_programs(depthwise()); }
TEST_F(ConvEpilogue, RandomWindows) { check_programs(random_rows()); }

// Chunks of some lines of a sample, which divide its lines or do not; many samples, some of them in a chunk.
TEST_F(ConvEpilogue, Chunks) {
  check_programs(many_bands());
  check_programs({{window_of({{71, 3, 1, 1, 1}, {70, 3, 1, 1, 1}}), {2, 3, 34, 1}},
                  {window_of({{70, 3, 2, 1, 1}, {70, 3, 2, 1, 1}}), {1, 34, 5, 1}},
                  {window_of({{3, 1}, {5, 3, 2, 1, 1}, {4, 2, 2}}), {300, 4, 5, 1}},
                  {window_of({{6, 3, 1, 1, 1}, {6, 3, 1, 1, 1}}), {700, 3, 4, 1}}});
}

// With so many columns a chunk has several lines, for fewer partial sums, though the memory of a band holds one.
TEST_F(ConvEpilogue, ManyColumns) {
  check_program({window_of({{39001, 1, 1000}, {1, 2, 1, 1}}), {1, 66, 8192, 1}}, bias_relu());
}

TEST_F(ConvEpilogue, SamplesAreIndependent) {
  ConvCase many = {window_of({{9, 3, 2, 1, 1}, {9, 3, 1, 1, 1}}), {7, 12, 20, 1}};
  for (const int32_t op : {TN_CONV_RESULTS, TN_CONV_IMAGES}) {
    many.op = op;
    const Operands of = operands(many);
    const std::vector<Numbers> bias = others_of(many, bias_relu());
    const std::vector<uint8_t> all = outputs_of(many, bias_relu(), of, bias, true, 2)[1];
    ConvCase one = many;
    one.sizes.samples = 1;
    const auto given = static_cast<std::ptrdiff_t>(of.a.size() / 7), made = static_cast<std::ptrdiff_t>(all.size() / 7);
    for (std::ptrdiff_t n = 0; n < 7; ++n) {
      const Operands alone = {{of.a.begin() + n * given, of.a.begin() + (n + 1) * given}, of.b};
      const std::vector<uint8_t> got = outputs_of(one, bias_relu(), alone, bias, true, 1)[1];
      ASSERT_TRUE(std::equal(got.begin(), got.end(), all.begin() + n * made)) << n;
    }
  }
}

TEST_F(ConvEpilogue, WithoutSamples) {
  const ConvCase c = {window_of({{4, 3}}), {0, 2, 3, 1}};
  const auto got = outputs_of(c, bias_relu(), operands(c), others_of(c, bias_relu()), false, 2);
  EXPECT_TRUE(got[2] == std::vector<uint8_t>(size_t{3} * 4, 0)) << "an empty sum is 0";
}

TEST_F(ConvEpilogue, RefusesWhatItDoesNotKnow) {
  const ConvCase c = {window_of({{4, 3}}), {2, 2, 3, 1}};
  const auto refused = [&](const Program& program, auto change, const char* port, const char* why) {
    Site site;
    fill(c, program, site);
    change(site);
    tn_prepared prepared = {};
    EXPECT_EQ(prepare_both(site, &prepared), TN_UNSUPPORTED) << why;
    EXPECT_EQ(device_.message, why);
    EXPECT_EQ(device_.port, port);
    EXPECT_EQ(prepared.binding, nullptr);
  };
  const char* const unfit = "the cpu cannot run this program as an epilogue";
  for (const int32_t number : {-1, 2})
    refused(
        bias_relu(), [&](Site& s) { s.epilogue.product = number; }, "program", unfit);
  refused(
      flat(), [](Site& s) { s.site.compute = TN_F64; }, "program", unfit);
  refused(
      flat(), [](Site& s) { s.conv.op = TN_CONV_WEIGHTS; }, "program", unfit);
  refused(
      flat(), [](Site& s) { s.conv.samples.bound = s.site.rows.bound = -1; }, "program", unfit);
  refused(
      flat(), [](Site& s) { s.conv.dtype = TN_I32; }, "dtype", "the cpu convolves float32 and float64 only");
  refused(
      flat(), [](Site& s) { s.inputs[0] = TN_DTYPE(5, 64); }, "program",
      "the program has a type or an operation that the cpu does not know");
}

// Sizes and operands are checked in every call.
TEST_F(ConvEpilogue, RefusesOtherCalls) {
  const ConvCase c = {window_of({{2, 1}}), {2, 1, 1, 1}};
  const Program program = flat();
  Site site;
  fill(c, program, site);
  PreparedCall call(device_);
  ASSERT_EQ(prepare_both(site, &call.prepared), TN_OK);
  Guarded a = write_all(TN_F32, Numbers(4, 3)), b = write_all(TN_F32, Numbers(1, 2)), made(16), y(16);
  const auto run = [&](const std::vector<Guarded*>& in, const std::vector<Guarded*>& out, int64_t samples) {
    return call.run(in, out, std::vector<uint8_t>(out.size(), TN_REQUEST_WRITE), {0, samples}, 1);
  };
  EXPECT_EQ(run({&a, &b}, {&made, &y}, -1), TN_MISUSE);
  EXPECT_EQ(device_.message, "a convolution of a negative number of samples");
  EXPECT_EQ(run({&a}, {&made, &y}, 2), TN_MISUSE);
  EXPECT_EQ(run({&a, &b}, {&made}, 2), TN_MISUSE);
  EXPECT_EQ(run({&a, nullptr}, {&made, &y}, 2), TN_MISUSE);
  EXPECT_EQ(call.run({&a, &b}, {&made, &y}, {TN_REQUEST_NONE, TN_REQUEST_WRITE}, {0, 2}, 1), TN_MISUSE)
      << "without the memory of the convolution";
  EXPECT_EQ(run({&a, &b}, {&made, &y}, 2), TN_OK);
  EXPECT_EQ(read_all(TN_F32, y), Numbers(4, 36)) << "3 times 2, squared";
}

}  // namespace
}  // namespace tenon_tests
