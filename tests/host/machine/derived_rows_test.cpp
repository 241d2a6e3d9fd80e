// Ragged dimensions that layers make: strided, the first rows, and those whose number depends on the data.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tenon/tenon.hpp>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::HasSubstr;
using Values = std::vector<double>;
using Offsets = std::vector<int64_t>;

constexpr int64_t kWidth = 2;

LayerCase of_rows(const std::string& type, uint32_t levels) {
  LayerCase layer;
  layer.type = type;
  CheckedInput input;
  input.shape = {kWidth};
  input.sequence = "s";
  input.levels = levels;
  layer.inputs = {input};
  layer.output_shape = {kWidth};
  layer.output_rows = true;
  return layer;
}

// Calls each(begin, end) with the rows of every innermost sequence.
template <typename Each>
void each_sequence(const FormulaArguments& a, Each&& each) {
  const Offsets& ends = a.offsets[0].back();
  for (size_t s = 0; s + 1 < ends.size(); ++s) each(ends[s], ends[s + 1]);
}

// Returns element `column` of row `row`, zero outside of [begin, end).
double element(const FormulaArguments& a, int64_t row, int64_t column, int64_t begin, int64_t end) {
  return row < begin || row >= end ? 0 : a.inputs[0][static_cast<size_t>(row * kWidth + column)];
}

TEST(DerivedRows, WindowsWithStridesAndPadding) {
  struct Case {
    int64_t window, stride, before, after;
  };
  for (const Case c : {Case{1, 1, 0, 0}, {3, 1, 1, 1}, {2, 3, 0, 0}, {4, 2, 3, 0}, {3, 5, 0, 2}})
    for (const uint32_t levels : {1U, 2U}) {
      LayerCase layer = of_rows("test_windows", levels);
      layer.attributes = {{"window", c.window}, {"stride", c.stride}, {"before", c.before}, {"after", c.after}};
      layer.formula = [c](const FormulaArguments& a) {
        Values sums;
        each_sequence(a, [&](int64_t begin, int64_t end) {
          for (int64_t first = begin - c.before; first + c.window <= end + c.after; first += c.stride)
            for (int64_t column = 0; column < kWidth; ++column) {
              double sum = 0;
              for (int64_t k = 0; k < c.window; ++k) sum += element(a, first + k, column, begin, end);
              sums.push_back(sum);
            }
        });
        return sums;
      };
      EXPECT_GT(check_layer(layer), 0);
    }
}

TEST(DerivedRows, FirstRows) {
  for (const int64_t count : {0, 1, 3, 100}) {
    LayerCase layer = of_rows("test_first", 1);
    layer.attributes = {{"count", count}};
    layer.formula = [count](const FormulaArguments& a) {
      Values rows;
      each_sequence(a, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < std::min(end, begin + count); ++row)
          for (int64_t column = 0; column < kWidth; ++column) rows.push_back(element(a, row, column, begin, end));
      });
      return rows;
    };
    EXPECT_GT(check_layer(layer), 0);
  }
}

TEST(DerivedRows, RowsThatAKernelKeeps) {
  for (const uint32_t levels : {1U, 2U}) {
    LayerCase layer = of_rows("test_positive", levels);
    layer.inputs[0].gap = 0.05;  // away from 0, where a row appears
    layer.formula = [](const FormulaArguments& a) {
      Values rows;
      each_sequence(a, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          if (element(a, row, 0, begin, end) > 0)
            for (int64_t column = 0; column < kWidth; ++column) rows.push_back(element(a, row, column, begin, end));
      });
      return rows;
    };
    EXPECT_GT(check_layer(layer), 0);
  }
}

// words (sequences of rows [kWidth]) -> layers of the test -> fc -> a cost for each row.
class RowsModel : public testing::Test {
 protected:
  RowsModel() : host_({2, {plugin_folder()}, nullptr, {}}) {
    host_.add_plugin(&test_layers());
    DataOptions words;
    words.name = "words", words.shape = {kWidth}, words.storage = TN_RAGGED, words.levels = 1;
    words_ = host_.data(words);
  }

  // Makes a machine that trains fc(rows), whose square is the cost of a row.
  void build(const Layer& rows, const std::vector<std::string>& devices = {}) {
    fc_ = host_.layer("fc", {rows}, {{"size", 1}}, "fc");
    const Layer target = host_.layer("scale_shift", {fc_}, {{"scale", 0.0}}, "zero");
    cost_ = host_.layer("square_error", {fc_, target}, {}, "cost");
    parameters_ = host_.parameters({cost_}, 3);
    MachineOptions options;
    options.max_samples = 4;
    options.training = true;
    options.keep_all = true;
    options.devices = devices;
    machine_ = host_.machine(parameters_, {cost_}, options);
  }
  void forward(const std::vector<float>& firsts, const Offsets& offsets) {
    values_.clear();
    for (const float first : firsts) values_.insert(values_.end(), {first, 1.0F});
    offsets_ = offsets;
    Array array{TN_F32, {static_cast<int64_t>(firsts.size()), kWidth}, values_.data()};
    array.storage = TN_RAGGED;
    array.levels = 1;
    array.samples = static_cast<int64_t>(offsets.size()) - 1;
    array.offsets[0] = offsets_.data();
    machine_.forward({{"words", array}});
  }
  template <typename Work>
  std::string message_of(Work&& work) {
    try {
      work();
    } catch (const Error& error) {
      return tn_status_text(error.code()) + std::string(": ") + error.what();
    }
    return "";
  }

  Host host_;
  Layer words_, fc_, cost_;
  Parameters parameters_;
  Machine machine_;
  std::vector<float> values_;
  Offsets offsets_;
};

// The cost is the mean over the rows that are left, and none of them costs nothing.
TEST_F(RowsModel, CostsAreMeansOverTheRowsThatAreLeft) {
  build(host_.layer("test_positive", {words_}, {}, "kept"));
  const float weight[] = {2.0F, 0.5F};
  parameters_.set("fc.weight", {TN_F32, {kWidth, 1}, weight});
  forward({1, -1, 3, -2, -3}, {0, 2, 2, 5});
  const Array rows = machine_.output(fc_);
  ASSERT_EQ(rows.shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(std::vector<int64_t>(rows.offsets[0], rows.offsets[0] + 4), (Offsets{0, 1, 1, 2}));
  EXPECT_NEAR(machine_.cost(), (2.5 * 2.5 + 6.5 * 6.5) / 2, 1e-4);
  machine_.backward();
  const auto* gradient = static_cast<const float*>(machine_.gradient("fc.weight").data);
  EXPECT_NEAR(gradient[0], (2 * 2.5 * 1 + 2 * 6.5 * 3) / 2, 1e-4);
  EXPECT_NEAR(gradient[1], (2 * 2.5 + 2 * 6.5) / 2, 1e-4);
  forward({-1, -1}, {0, 1, 2});
  EXPECT_EQ(machine_.output(fc_).shape, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(machine_.cost(), 0);
  machine_.backward();
}

TEST_F(RowsModel, TrainsThroughRowsOfBothKinds) {
  build(host_.layer("test_positive",
                    {host_.layer("test_windows", {words_}, {{"window", 2}, {"stride", 2}, {"after", 1}}, "windows")},
                    {}, "kept"));
  const Updater updater = host_.updater("sgd", {{"learning_rate", 0.05}});
  double before = 0;
  for (int step = 0; step < 30; ++step) {
    forward({1, 2, 0.5F, -3, -2, 1}, {0, 3, 4, 6});
    if (step == 0) before = machine_.cost();
    machine_.backward();
    updater.update(machine_);
  }
  EXPECT_LT(machine_.cost(), 0.2 * before);
  std::vector<float> many(500, 1.0F);  // more rows than the machine was planned for
  forward(many, {0, 499, 500});
  EXPECT_EQ(machine_.output(fc_).shape[0], 251);
}

TEST_F(RowsModel, KernelsThatWriteWrongNumbersAreStopped) {
  const auto fault = [&](const std::string& kind) {
    build(host_.layer("test_positive", {words_}, {{"fault", kind}}, "kept_" + kind));
    return message_of([&] { forward({1, 1, 1}, {0, 1, 2, 3}); });
  };
  EXPECT_THAT(fault("count"), HasSubstr("its kernel \"positive\" wrote 4 as the number of rows; expected 0 to 3"));
  EXPECT_THAT(fault("begin"), HasSubstr("layer \"kept_begin\" (test_positive, native kernel \"positive\"): its kernel "
                                        "\"positive\" wrote offsets that "
                                        "begin with 1; expected 0"));
  EXPECT_THAT(fault("order"), HasSubstr("offsets that fall from 4 to 2 at sequence 1"));
  EXPECT_THAT(fault("end"), HasSubstr("offsets that end at 4, and 3 rows"));
  EXPECT_THAT(fault("end"), HasSubstr(tn_status_text(TN_PLUGIN_FAULT)));
}

// The number of rows of the whole minibatch is known to no shard.
TEST_F(RowsModel, SeveralDevicesCannotDivideTheirCost) {
  const Layer kept = host_.layer("test_positive", {words_}, {}, "kept");
  EXPECT_EQ(
      message_of([&] {
        build(kept, {"cpu", "cpu"});
      }),
      tn_status_text(TN_UNSUPPORTED) +
          std::string(": cost layer \"cost\" is a mean over rows whose number a layer finds; it cannot be divided "
                      "on several devices, \"cpu:0\", \"cpu:0\""));
}

TEST_F(RowsModel, RowsCannotBeDerivedFromWrittenOnes) {
  const Layer kept = host_.layer("test_positive", {words_}, {}, "kept");
  EXPECT_THAT(message_of([&] { static_cast<void>(host_.layer("test_first", {kept}, {}, "few")); }),
              HasSubstr("rows of \"kept\" are known only while a step runs"));
}

}  // namespace

}  // namespace tenon_tests
