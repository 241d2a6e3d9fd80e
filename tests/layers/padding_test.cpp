// The layers sequence_pad and sequence_unpad. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Values = std::vector<double>;

constexpr size_t kWidth = 2;

// Copies row `r` of sequence `s`, its number `position`, for each row of the sequences of input `of`.
template <typename Copy>
void for_rows(const FormulaArguments& a, size_t of, Copy copy) {
  const std::vector<int64_t>& ends = a.offsets[of][0];
  for (size_t s = 0; s + 1 < ends.size(); ++s)
    for (auto r = static_cast<size_t>(ends[s]); r < static_cast<size_t>(ends[s + 1]); ++r)
      copy(s, r - static_cast<size_t>(ends[s]), r);
}

LayerCase pad(size_t length) {
  LayerCase layer;
  layer.type = "sequence_pad";
  layer.attributes = {{"length", static_cast<int64_t>(length)}};
  layer.inputs = {{{static_cast<int64_t>(kWidth)}}};
  layer.inputs[0].sequence = "rows";
  layer.output_shape = {static_cast<int64_t>(length), static_cast<int64_t>(kWidth)};
  layer.formula = [=](const FormulaArguments& a) {
    Values y(static_cast<size_t>(a.samples) * length * kWidth, 0);
    for_rows(a, 0, [&](size_t s, size_t position, size_t r) {
      for (size_t w = 0; w < kWidth && position < length; ++w)
        y[(s * length + position) * kWidth + w] = a.inputs[0][r * kWidth + w];
    });
    return y;
  };
  const auto mask = [=](const FormulaArguments& a) {
    Values y(static_cast<size_t>(a.samples) * length, 0);
    for_rows(a, 0, [&](size_t s, size_t position, size_t) {
      if (position < length) y[s * length + position] = 1;
    });
    return y;
  };
  layer.more_outputs = {{{static_cast<int64_t>(length)}, mask}};
  return layer;
}

// A length below and above that of the sequences.
TEST(Padding, Pad) {
  for (const size_t length : {1, 3, 40}) EXPECT_GT(check_layer(pad(length)), 0);
}

TEST(Padding, Unpad) {
  for (const size_t length : {1, 3, 40}) {
    LayerCase layer;
    layer.type = "sequence_unpad";
    layer.inputs = {{{static_cast<int64_t>(length), static_cast<int64_t>(kWidth)}}, {{1}, 5}};
    layer.inputs[1].sequence = "rows";
    layer.output_rows = true;
    layer.output_shape = {static_cast<int64_t>(kWidth)};
    layer.formula = [=](const FormulaArguments& a) {
      Values y(static_cast<size_t>(a.offsets[1][0].back()) * kWidth, 0);
      for_rows(a, 1, [&](size_t s, size_t position, size_t r) {
        for (size_t w = 0; w < kWidth && position < length; ++w)
          y[r * kWidth + w] = a.inputs[0][(s * length + position) * kWidth + w];
      });
      return y;
    };
    EXPECT_GT(check_layer(layer), 0);
  }
}

TEST(Padding, Errors) {
  const Host host(HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions rows;
  rows.name = "rows";
  rows.shape = {2};
  rows.storage = TN_RAGGED;
  rows.levels = 1;
  DataOptions deep = rows, dense;
  deep.name = "deep";
  deep.levels = 2;
  dense.name = "dense";
  dense.shape = {2};
  const auto error = [&](const char* type, const std::vector<Layer>& inputs, const Attributes& attributes) {
    try {
      (void)host.layer(type, inputs, attributes, "wrong");
    } catch (const Error& caught) {
      return std::string(caught.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(error("sequence_pad", {host.data(dense)}, {{"length", 2}}),
              AllOf(HasSubstr("input"), HasSubstr("must be sequences"), HasSubstr("[samples, 2]")));
  EXPECT_THAT(error("sequence_pad", {host.data(deep)}, {{"length", 2}}), HasSubstr("has sequences of sequences"));
  EXPECT_THAT(error("sequence_pad", {host.data(rows)}, {}), HasSubstr("length"));
  EXPECT_THAT(error("sequence_unpad", {host.data(dense), host.data(dense)}, {}), HasSubstr("like"));
  EXPECT_THAT(error("sequence_unpad", {host.data(rows), host.data(rows)}, {}),
              HasSubstr("must be [samples, length, ...]"));
}

}  // namespace
}  // namespace tenon_tests
