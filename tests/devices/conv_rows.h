// Rows of convolutions, and their comparison with the definition, for the device "cpu" and for providers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/devices/image_case.h"

namespace tenon_tests {

namespace reference = tenon::check::reference;

struct ConvCase {
  tn_window window;
  reference::ImageSizes sizes;
  int32_t op = TN_CONV_RESULTS;
  tn_dtype dtype = TN_F32;
};

inline std::vector<ConvCase> one_dimension() {
  return {{window_of({{9, 3}}), {2, 3, 5, 1}},
          {window_of({{9, 4, 3, 2, 1}}), {3, 1, 1, 1}},
          {window_of({{7, 3, 1, 2, 2, 2}}), {2, 4, 6, 2}},
          {window_of({{5, 9, 2, 3, 4}}), {2, 3, 2, 1}},  // a kernel larger than the images
          {window_of({{11, 2, 5}}), {2, 2, 3, 1}}};      // a stride larger than the kernel
}

inline std::vector<ConvCase> two_dimensions() {
  return {{window_of({{8, 3, 1, 1, 1}, {8, 3, 1, 1, 1}}), {3, 16, 16, 1}},
          {window_of({{28, 5}, {28, 5}}), {2, 1, 6, 1}},
          {window_of({{14, 5}, {14, 5}}), {2, 6, 16, 1}},
          {window_of({{9, 3, 2, 1, 1}, {10, 3, 2, 0, 1}}), {2, 8, 20, 1}},
          {window_of({{7, 1}, {5, 1}}), {3, 19, 33, 1}},
          {window_of({{7, 1, 2}, {6, 1, 2}}), {2, 5, 7, 1}},
          {window_of({{6, 3, 1, 2, 2, 2}, {7, 2, 3, 0, 1}}), {2, 6, 9, 3}},
          {window_of({{4, 4}, {4, 4}}), {5, 3, 10, 1}},  // one place
          {window_of({{1, 1}, {1, 1}}), {2, 1, 1, 1}},
          // A line of taps fills a part of a vector.
          {window_of({{12, 5, 1, 2, 2}, {13, 5, 1, 1, 3}}), {3, 1, 7, 1}},
          {window_of({{9, 3, 2, 1, 1}, {20, 3, 1, 2, 2, 2}}), {2, 2, 5, 1}},
          {window_of({{6, 9, 1, 4, 4}, {16, 3}}), {2, 1, 13, 1}},
          // Few channels: a line of a patch of images fills a vector.
          {window_of({{11, 4, 2, 1, 1}, {12, 4, 2, 1, 1}}), {3, 3, 16, 1}},
          {window_of({{9, 3, 1, 2, 2, 2}, {5, 7, 1, 3, 3}}), {2, 5, 9, 1}},
          {window_of({{21, 3, 3, 1, 0}, {4, 6, 1, 4, 5}}), {2, 7, 3, 1}}};
}

inline std::vector<ConvCase> three_dimensions() {
  return {{window_of({{3, 2, 1, 1, 0}, {4, 3, 2, 1, 1}, {5, 2}}), {2, 3, 4, 1}},
          {window_of({{3, 1}, {3, 2}, {3, 3, 1, 1, 1}}), {2, 4, 4, 2}},
          {window_of({{3, 2, 1, 1, 0}, {4, 3, 2, 1, 1}, {12, 5, 1, 2, 2}}), {2, 1, 4, 1}},
          {window_of({{4, 2, 2, 1, 1}, {5, 3, 2, 1, 1}, {6, 4, 1, 2, 1}}), {2, 5, 6, 1}}};
}

// A filter for each channel, and several.
inline std::vector<ConvCase> depthwise() {
  return {{window_of({{7, 3, 1, 1, 1}, {6, 3, 2, 1, 1}}), {2, 19, 19, 19}},
          {window_of({{5, 3, 2}, {6, 3, 1, 1, 1, 2}}), {3, 8, 8, 8}},
          {window_of({{5, 3}}), {2, 3, 3, 3}},  // fewer channels than a vector
          {window_of({{5, 3}}), {2, 3, 6, 3}}};
}

// Bands, more than one panel, and enough work for several tasks.
inline std::vector<ConvCase> many_bands() {
  return {{window_of({{70, 3, 1, 1, 1}, {70, 3, 1, 1, 1}}), {1, 20, 34, 1}},
          {window_of({{300, 5, 1, 2, 2}, {240, 5, 1, 2, 2}}), {2, 1, 3, 1}}};
}

inline std::vector<ConvCase> random_rows() {
  std::mt19937_64 random(11);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  std::vector<ConvCase> rows;
  for (int i = 0; i < 60; ++i) {
    std::vector<Line> lines;
    for (int64_t rank = pick(1, 3); rank > 0; --rank) {
      Line line = {pick(1, 7), pick(1, 4), pick(1, 3), pick(0, 2), pick(0, 2), pick(1, 2)};
      line.after +=
          std::max<int64_t>(0, line.dilation * (line.kernel - 1) + 1 - line.images - line.before - line.after);
      lines.push_back(line);
    }
    const int64_t groups = pick(1, 3);
    rows.push_back({window_of(lines), {pick(1, 3), groups * pick(1, 3), groups * pick(1, 3), groups}});
  }
  return rows;
}

class ConvTable : public testing::Test {
 protected:
  // What computes, and the first argument of its functions.
  virtual const tn_conv_table* table() { return device_.table<tn_conv_table>(TN_CONV); }
  virtual void* object() { return device_.device(); }
  // Whether the table offers the operation; cpu offers all.
  virtual bool offers(const ConvCase& /*c*/) { return true; }

  tn_status prepare(const ConvCase& c, tn_prepared* prepared) {
    tn_conv conv = {};
    conv.size = sizeof conv;
    conv.dtype = c.dtype;
    conv.op = c.op;
    conv.samples = bounded_symbol(TN_SYMBOL_SAMPLES, c.sizes.samples);
    conv.channels = c.sizes.channels;
    conv.filters = c.sizes.filters;
    conv.groups = c.sizes.groups;
    conv.window = &c.window;
    return table()->prepare(object(), device_.services(), device_.errors(), &conv, prepared);
  }

  // Runs the call on an output that holds `initial`; returns its bytes.
  std::vector<uint8_t> bytes(const ConvCase& c, const std::vector<double>& a, const std::vector<double>& b,
                             size_t count, uint8_t request, int32_t workers, double initial = 0) {
    PreparedCall call(device_);
    EXPECT_EQ(prepare(c, &call.prepared), TN_OK) << device_.message;
    Guarded first = write_all(c.dtype, a), second = write_all(c.dtype, b);
    Guarded out = write_all(c.dtype, std::vector<double>(count, initial));
    EXPECT_EQ(call.run({&first, &second}, {&out}, {request}, {0, c.sizes.samples}, workers), TN_OK) << device_.message;
    EXPECT_TRUE(first.intact() && second.intact() && out.intact());
    return out.bytes();
  }

  // The operands of an operation: images, weights, results.
  struct Operands {
    std::vector<double> a, b;
  };
  static Operands operands(const ConvCase& c) {
    const int64_t images = c.sizes.samples * reference::image_elements(c.window) * c.sizes.channels;
    const int64_t weights = c.sizes.filters * reference::kernel_elements(c.window) * c.sizes.channels / c.sizes.groups;
    const int64_t results = c.sizes.samples * reference::place_elements(c.window) * c.sizes.filters;
    return {drawn(c.op == TN_CONV_IMAGES ? results : images, 3), drawn(c.op == TN_CONV_WEIGHTS ? results : weights, 5)};
  }

  // Compares with the definition, for one and more threads, writing and adding.
  void check(ConvCase c) {
    for (const int32_t op : {TN_CONV_RESULTS, TN_CONV_IMAGES, TN_CONV_WEIGHTS})
      for (const tn_dtype dtype : {TN_F32, TN_F64}) {
        c.op = op;
        c.dtype = dtype;
        if (!offers(c)) continue;
        SCOPED_TRACE(text(c.window) + "op " + std::to_string(op) + (dtype == TN_F64 ? " wide" : ""));
        const Operands of = operands(c);
        std::vector<double> terms;
        const std::vector<double> want = reference::conv(op, c.window, c.sizes, of.a, of.b, &terms);
        const std::vector<uint8_t> one = bytes(c, of.a, of.b, want.size(), TN_REQUEST_WRITE, 1, 99);
        const std::vector<uint8_t> more = bytes(c, of.a, of.b, want.size(), TN_REQUEST_ADD, 3, 2);
        ASSERT_TRUE(one == bytes(c, of.a, of.b, want.size(), TN_REQUEST_WRITE, 8, 99)) << "bits depend on threads";
        const double ulp = dtype == TN_F64 ? 2.3e-16 : 1.2e-7;
        for (size_t i = 0; i < want.size(); ++i) {
          const size_t at = i * static_cast<size_t>(tn_dtype_bytes(dtype));
          ASSERT_NEAR(read_element(dtype, one.data() + at), want[i], 8 * ulp * terms[i]) << "element " << i;
          ASSERT_NEAR(read_element(dtype, more.data() + at), want[i] + 2, 8 * ulp * (terms[i] + 2)) << "element " << i;
        }
      }
  }

  void check(const std::vector<ConvCase>& rows) {
    for (const ConvCase& row : rows) {
      check(row);
      if (HasFatalFailure()) return;
    }
  }

  // A sample's bits do not depend on the samples beside it.
  void check_samples(ConvCase many) {
    const auto samples = static_cast<size_t>(many.sizes.samples);
    for (const int32_t op : {TN_CONV_RESULTS, TN_CONV_IMAGES}) {
      many.op = op;
      if (!offers(many)) continue;
      const Operands of = operands(many);
      ConvCase one = many;
      one.sizes.samples = 1;
      const size_t count = reference::conv(op, many.window, many.sizes, of.a, of.b).size();
      const std::vector<uint8_t> all = bytes(many, of.a, of.b, count, TN_REQUEST_WRITE, 2);
      const size_t given = of.a.size() / samples, made = count / samples;
      for (size_t n = 0; n < samples; ++n) {
        const std::vector<double> alone(of.a.begin() + static_cast<std::ptrdiff_t>(n * given),
                                        of.a.begin() + static_cast<std::ptrdiff_t>((n + 1) * given));
        const std::vector<uint8_t> got = bytes(one, alone, of.b, made, TN_REQUEST_WRITE, 1);
        ASSERT_TRUE(std::equal(got.begin(), got.end(), all.begin() + static_cast<std::ptrdiff_t>(n * made * 4))) << n;
      }
    }
  }

  void check_without_samples(ConvCase c) {
    for (const int32_t op : {TN_CONV_RESULTS, TN_CONV_IMAGES, TN_CONV_WEIGHTS}) {
      c.op = op;
      c.sizes.samples = 0;
      if (!offers(c)) continue;
      const Operands of = operands(c);
      const size_t count =
          op == TN_CONV_WEIGHTS
              ? static_cast<size_t>(c.sizes.filters * c.sizes.channels * reference::kernel_elements(c.window))
              : 0;
      const std::vector<uint8_t> out = bytes(c, of.a, of.b, count, TN_REQUEST_WRITE, 2, 5);
      EXPECT_TRUE(out == std::vector<uint8_t>(count * 4, 0)) << "an empty sum is 0";
    }
  }

  // Calls that break the contract, of a convolution that the table offers.
  void check_wrong_calls(const ConvCase& c) {
    PreparedCall call(device_);
    ASSERT_EQ(prepare(c, &call.prepared), TN_OK);
    const Operands of = operands(c);
    const size_t count = reference::conv(c.op, c.window, c.sizes, of.a, of.b).size();
    Guarded in = write_all(c.dtype, of.a), weights = write_all(c.dtype, of.b), out(count * tn_dtype_bytes(c.dtype));
    const std::vector<uint8_t> before = out.bytes();
    EXPECT_EQ(call.run({&in, &weights}, {&out}, {TN_REQUEST_WRITE}, {0, -1}, 1), TN_MISUSE);
    EXPECT_EQ(call.run({&in, nullptr}, {&out}, {TN_REQUEST_WRITE}, {0, 1}, 1), TN_MISUSE);
    EXPECT_EQ(call.run({&in, &weights}, {&out}, {TN_REQUEST_NONE}, {0, 1}, 1), TN_OK);
    EXPECT_TRUE(out.bytes() == before);
  }

  DeviceUnderTest device_;
};

}  // namespace tenon_tests
