// Layers of sequences against formulas that walk through the offsets. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Values = std::vector<double>;
using Offsets = std::vector<int64_t>;
using Shape = std::vector<int64_t>;

size_t width_of(const Shape& shape) {
  size_t width = 1;
  for (const int64_t extent : shape) width *= static_cast<size_t>(extent);
  return width;
}

CheckedInput rows_of(const Shape& shape, uint32_t levels, const std::string& sequence = "s") {
  CheckedInput input;
  input.shape = shape;
  input.sequence = sequence;
  input.levels = levels;
  return input;
}

LayerCase of_rows(const std::string& type, const Shape& shape, uint32_t levels) {
  LayerCase layer;
  layer.type = type;
  layer.inputs = {rows_of(shape, levels)};
  layer.output_shape = shape;
  layer.output_rows = true;
  return layer;
}

// ---- pooling

// The offsets of the rows of each sample, with one level or two.
Offsets of_samples(const std::vector<Offsets>& offsets) {
  if (offsets.size() == 1) return offsets[0];
  Offsets ends;
  for (const int64_t inner : offsets[0]) ends.push_back(offsets[1][static_cast<size_t>(inner)]);
  return ends;
}

double pooled(const std::string& kind, const Values& x) {
  if (x.empty()) return 0;
  double sum = 0, most = x[0];
  for (const double value : x) sum += value, most = std::max(most, value);
  const auto count = static_cast<double>(x.size());
  return kind == "sum"      ? sum
         : kind == "mean"   ? sum / count
         : kind == "sqrt_n" ? sum / std::sqrt(count)
         : kind == "max"    ? most
         : kind == "first"  ? x.front()
                            : x.back();
}

LayerCase pool(const std::string& kind, const Shape& shape, uint32_t levels, const std::string& level) {
  LayerCase layer = of_rows("sequence_pool", shape, levels);
  layer.attributes = {{"kind", kind}, {"level", level}};
  layer.output_rows = levels == 2 && level == "sequence";
  const size_t width = width_of(shape);
  layer.formula = [=](const FormulaArguments& a) {
    const Offsets ends = level == "sample" ? of_samples(a.offsets[0]) : a.offsets[0].back();
    Values y;
    for (size_t s = 0; s + 1 < ends.size(); ++s)
      for (size_t k = 0; k < width; ++k) {
        Values column;
        for (auto row = static_cast<size_t>(ends[s]); row < static_cast<size_t>(ends[s + 1]); ++row)
          column.push_back(a.inputs[0][row * width + k]);
        y.push_back(pooled(kind, column));
      }
    return y;
  };
  return layer;
}

class SequencePool : public testing::TestWithParam<const char*> {};

TEST_P(SequencePool, OfSequences) {
  EXPECT_GT(check_layer(pool(GetParam(), {3}, 1, "sequence")), 0);
  EXPECT_GT(check_layer(pool(GetParam(), {}, 1, "sample")), 0);
  EXPECT_GT(check_layer(pool(GetParam(), {2, 2}, 1, "sequence")), 0);
  EXPECT_GT(check_long_sequences(pool(GetParam(), {2}, 1, "sequence")), 0);
}
TEST_P(SequencePool, OfNestedOnes) {
  for (const char* level : {"sequence", "sample"}) {
    EXPECT_GT(check_layer(pool(GetParam(), {3}, 2, level)), 0);
    EXPECT_GT(check_long_sequences(pool(GetParam(), {2}, 2, level)), 0);
  }
}
// All values below 0, so that the 0 of an empty sequence would be the largest.
TEST_P(SequencePool, OfNegativeValues) {
  for (const char* level : {"sequence", "sample"}) {
    LayerCase layer = pool(GetParam(), {2}, 2, level);
    layer.inputs[0].low = -3, layer.inputs[0].high = -1;
    EXPECT_GT(check_layer(layer), 0);
  }
}
INSTANTIATE_TEST_SUITE_P(Kinds, SequencePool, testing::Values("sum", "mean", "sqrt_n", "max", "first", "last"),
                         [](const auto& kind) { return std::string(kind.param); });

// ---- expand

// Repeats row s of `x` for each row of sequence s; `ends` are the offsets of the sequences.
Values spread(const Values& x, const Offsets& ends, size_t width) {
  Values y;
  for (size_t s = 0; s + 1 < ends.size(); ++s)
    for (int64_t row = ends[s]; row < ends[s + 1]; ++row)
      for (size_t k = 0; k < width; ++k) y.push_back(x[s * width + k]);
  return y;
}

TEST(SequenceExpand, OfSamples) {
  for (const uint32_t levels : {1U, 2U})
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 2}}) {
      LayerCase layer = of_rows("sequence_expand", shape, levels);
      layer.inputs = {{shape}, rows_of({2}, levels)};
      layer.inputs[1].integers_below = 7;
      layer.formula = [width = width_of(shape)](const FormulaArguments& a) {
        return spread(a.inputs[0], of_samples(a.offsets[1]), width);
      };
      EXPECT_GT(check_layer(layer), 0);
      EXPECT_GT(check_long_sequences(layer), 0);
    }
}

// Repeats a value for the rows of an inner sequence; the second input holds ids.
TEST(SequenceExpand, OfInnerSequences) {
  LayerCase layer = of_rows("sequence_expand", {3}, 1);
  layer.inputs = {rows_of({3}, 1, "s"), rows_of({}, 2, "s")};
  layer.inputs[1].integers_below = 7;
  layer.formula = [](const FormulaArguments& a) { return spread(a.inputs[0], a.offsets[1][1], 3); };
  EXPECT_GT(check_layer(layer), 0);
}

// ---- concat, reverse, softmax

// Calls `rows(begin, end)` for each innermost sequence.
template <typename Rows>
void each_sequence(const std::vector<Offsets>& offsets, Rows&& rows) {
  const Offsets& ends = offsets.back();
  for (size_t s = 0; s + 1 < ends.size(); ++s) rows(static_cast<size_t>(ends[s]), static_cast<size_t>(ends[s + 1]));
}

TEST(SequenceConcat, OneBehindTheOther) {
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 2}}) {
    LayerCase layer = of_rows("sequence_concat", shape, 1);
    layer.inputs = {rows_of(shape, 1, "a"), rows_of(shape, 1, "b")};
    layer.formula = [width = width_of(shape)](const FormulaArguments& a) {
      Values y;
      for (size_t s = 0; s < static_cast<size_t>(a.samples); ++s)
        for (const size_t input : {0U, 1U}) {
          const Offsets& ends = a.offsets[input][0];
          for (auto i = static_cast<size_t>(ends[s]) * width; i < static_cast<size_t>(ends[s + 1]) * width; ++i)
            y.push_back(a.inputs[input][i]);
        }
      return y;
    };
    EXPECT_GT(check_layer(layer), 0);
    EXPECT_GT(check_long_sequences(layer), 0);
  }
}

TEST(SequenceReverse, FromTheLastToTheFirst) {
  for (const uint32_t levels : {1U, 2U}) {
    LayerCase layer = of_rows("sequence_reverse", {3}, levels);
    layer.formula = [](const FormulaArguments& a) {
      Values y;
      each_sequence(a.offsets[0], [&](size_t begin, size_t end) {
        for (size_t row = end; row-- > begin;)
          y.insert(y.end(), {a.inputs[0][row * 3], a.inputs[0][row * 3 + 1], a.inputs[0][row * 3 + 2]});
      });
      return y;
    };
    EXPECT_GT(check_layer(layer), 0);
    EXPECT_GT(check_long_sequences(layer), 0);
  }
}

TEST(SequenceSoftmax, OverRows) {
  for (const uint32_t levels : {1U, 2U})
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{3}}) {
      LayerCase layer = of_rows("sequence_softmax", shape, levels);
      layer.gradient_rounded = 1;  // y (dy - the sum of y dy)
      layer.formula = [width = width_of(shape)](const FormulaArguments& a) {
        Values y = a.inputs[0];
        each_sequence(a.offsets[0], [&](size_t begin, size_t end) {
          for (size_t k = 0; k < width; ++k) {
            double sum = 0, most = -INFINITY;
            for (size_t row = begin; row < end; ++row) most = std::max(most, y[row * width + k]);
            for (size_t row = begin; row < end; ++row) sum += std::exp(y[row * width + k] - most);
            for (size_t row = begin; row < end; ++row) y[row * width + k] = std::exp(y[row * width + k] - most) / sum;
          }
        });
        return y;
      };
      EXPECT_GT(check_layer(layer), 0);
      EXPECT_GT(check_long_sequences(layer), 0);
    }
}

// ---- windows

LayerCase window(int64_t first, int64_t length, const Shape& shape, uint32_t levels, bool trainable) {
  LayerCase layer = of_rows("context_projection", shape, levels);
  layer.attributes = {{"start", first}, {"length", length}, {"trainable_padding", trainable}};
  const size_t width = width_of(shape);
  layer.output_shape = {length * static_cast<int64_t>(width)};
  layer.formula = [=](const FormulaArguments& a) {
    const auto padding = a.parameters.find("weight");
    Values y;
    each_sequence(a.offsets[0], [&](size_t begin, size_t end) {
      const auto rows = static_cast<int64_t>(end - begin);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t at = row + first; at < row + first + length; ++at)
          for (size_t k = 0; k < width; ++k) {
            const int64_t place = std::max<int64_t>(0, -first) + (at < 0 ? at : at - rows);
            if (at >= 0 && at < rows)
              y.push_back(a.inputs[0][(begin + static_cast<size_t>(at)) * width + k]);
            else
              y.push_back(padding == a.parameters.end() ? 0 : padding->second[static_cast<size_t>(place) * width + k]);
          }
    });
    return y;
  };
  return layer;
}

TEST(ContextProjection, Windows) {
  for (const bool trainable : {false, true})
    for (const auto& [first, length] : {std::pair{-1, 3}, {0, 1}, {-2, 5}, {1, 2}, {-3, 2}, {0, 4}})
      EXPECT_GT(check_layer(window(first, length, {2}, 1, trainable)), 0);
}
TEST(ContextProjection, OfNestedOnesAndOfAnyRow) {
  EXPECT_GT(check_layer(window(-1, 3, {2}, 2, true)), 0);
  EXPECT_GT(check_layer(window(-1, 3, {}, 1, false)), 0);
  EXPECT_GT(check_layer(window(-1, 2, {2, 2}, 1, true)), 0);
  EXPECT_GT(check_long_sequences(window(-1, 3, {2}, 1, true)), 0);
}
TEST(ContextProjection, IsInTheMiddleUnlessTold) {
  for (const auto& [length, first] : {std::pair{1, 0}, {2, 0}, {3, -1}, {5, -2}}) {
    LayerCase layer = window(first, length, {2}, 1, false);
    layer.attributes.erase(layer.attributes.begin());
    layer.samples = {7};
    EXPECT_GT(check_layer(layer), 0);
  }
}

// ---- refusals

LayerCase row_conv(int64_t length, const Shape& shape, uint32_t levels = 1) {
  LayerCase layer = of_rows("row_conv", shape, levels);
  layer.attributes = {{"length", length}};
  const size_t width = width_of(shape);
  layer.output_shape = {static_cast<int64_t>(width)};
  layer.samples = {1, 2, 7};
  layer.formula = [=](const FormulaArguments& a) {
    const Values& weight = a.parameters.at("weight");
    Values y(a.inputs[0].size());
    each_sequence(a.offsets[0], [&](size_t begin, size_t end) {
      for (size_t row = begin; row < end; ++row)
        for (size_t j = 0; j < static_cast<size_t>(length) && row + j < end; ++j)
          for (size_t k = 0; k < width; ++k)
            y[row * width + k] += a.inputs[0][(row + j) * width + k] * weight[j * width + k];
    });
    return y;
  };
  return layer;
}

TEST(RowConv, WeighsTheRowsThatFollow) {
  EXPECT_GT(check_layer(row_conv(3, {2})), 0);
  EXPECT_GT(check_layer(row_conv(1, {3})), 0);
  EXPECT_GT(check_layer(row_conv(9, {})), 0);
  EXPECT_GT(check_layer(row_conv(2, {2, 2}, 2)), 0);
}

class SequenceRefusals : public testing::Test {
 protected:
  Layer data(const std::string& name, const Shape& shape, int32_t storage, uint32_t levels = 1) {
    DataOptions options;
    options.name = name, options.shape = shape, options.storage = storage, options.levels = levels;
    return host_.data(options);
  }
  std::string refusal(const std::string& type, const Layers& inputs, const Attributes& attributes) {
    try {
      (void)host_.layer(type, inputs, attributes);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  Host host_{HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}}};
};

TEST_F(SequenceRefusals, OfWhatIsNoSequence) {
  const Layer dense = data("dense", {3}, TN_DENSE), sparse = data("sparse", {3}, TN_CSR);
  for (const char* type : {"sequence_softmax", "sequence_reverse"}) {
    EXPECT_NE(refusal(type, {dense}, {}).find("must be sequences"), std::string::npos) << refusal(type, {dense}, {});
    EXPECT_NE(refusal(type, {sparse}, {}).find("sparse (csr)"), std::string::npos) << refusal(type, {sparse}, {});
  }
  EXPECT_NE(refusal("sequence_pool", {dense}, {{"kind", "sum"}}).find("input"), std::string::npos);
  EXPECT_NE(refusal("context_projection", {dense}, {{"length", 3}}).find("must be sequences"), std::string::npos);
  EXPECT_NE(refusal("row_conv", {dense}, {{"length", 3}}).find("must be sequences"), std::string::npos);
}

TEST_F(SequenceRefusals, OfSequencesThatDoNotFit) {
  const Layer a = data("a", {3}, TN_RAGGED), b = data("b", {2}, TN_RAGGED), nested = data("n", {3}, TN_RAGGED, 2);
  EXPECT_NE(refusal("sequence_concat", {a, b}, {}).find("rows like those"), std::string::npos);
  EXPECT_NE(refusal("sequence_concat", {a, nested}, {}).find("same samples"), std::string::npos)
      << refusal("sequence_concat", {a, nested}, {});
  EXPECT_NE(refusal("sequence_expand", {b, a}, {}).find("one value for each sequence"), std::string::npos);
  EXPECT_NE(refusal("fc", {a, data("c", {3}, TN_RAGGED)}, {{"size", 2}}).find("another number of rows"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon_tests
