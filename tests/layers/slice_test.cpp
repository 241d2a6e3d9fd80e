// Parts of sequences, and the rows of dense tensors as sequences, against loops over rows.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tenon/tenon_machine.hpp>
#include <tuple>

#include "tests/layers/layers_on_a_host.h"
#include "tests/support/layer_check.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Numbers = std::vector<double>;
using Ids = std::vector<int64_t>;

constexpr size_t kWidth = 2;

// The rows of each innermost sequence that its `count` first or last ones are.
LayerCase ends_of(int64_t count, bool from_end, uint32_t levels) {
  LayerCase layer;
  layer.type = "sequence_slice";
  layer.attributes = {{"count", count}, {"from_end", from_end}};
  layer.inputs = {{{static_cast<int64_t>(kWidth)}}};
  layer.inputs[0].sequence = "rows", layer.inputs[0].levels = levels;
  layer.output_shape = {static_cast<int64_t>(kWidth)};
  layer.output_rows = true;
  layer.samples = {1, 7};
  layer.formula = [=](const FormulaArguments& of) {
    Numbers kept;
    const Ids& ends = of.offsets[0].back();
    for (size_t s = 0; s + 1 < ends.size(); ++s) {
      const int64_t begin = from_end ? std::max(ends[s], ends[s + 1] - count) : ends[s];
      const int64_t end = from_end ? ends[s + 1] : std::min(ends[s + 1], ends[s] + count);
      for (auto i = static_cast<size_t>(begin) * kWidth; i < static_cast<size_t>(end) * kWidth; ++i)
        kept.push_back(of.inputs[0][i]);
    }
    return kept;
  };
  return layer;
}

class SequenceSlice : public LayersOnAHost {
 protected:
  [[nodiscard]] static Ids ints(const Array& array) {
    const auto* data = static_cast<const int64_t*>(array.data);
    return {data, data + array.count()};
  }
};

TEST_F(SequenceSlice, FirstAndLastRows) {
  for (const bool from_end : {false, true}) {
    EXPECT_GT(check_layer(ends_of(2, from_end, 1)), 0);
    EXPECT_GT(check_layer(ends_of(100, from_end, 2)), 0);
  }
  EXPECT_GT(check_layer(ends_of(0, false, 1)), 0);
}

// Starts and lengths of all kinds, for rows of floats, with their gradients, and for ids.
TEST_F(SequenceSlice, StartsAndLengths) {
  constexpr int64_t kLowest = INT64_MIN, kHighest = INT64_MAX;
  const std::vector<std::tuple<Ids, Ids, std::vector<Ids>>> cases = {
      // starts, lengths, rows of sequences {0 1 2}, {}, {3}, {4 5 6 7}
      {{0, 0, 0, 0}, {2, 2, 2, 2}, {{0, 1}, {}, {3}, {4, 5}}},
      {{1, 1, 1, 3}, {1, 1, 1, 9}, {{1}, {}, {}, {7}}},
      {{-1, -1, -1, -3}, {5, 5, 5, 2}, {{2}, {}, {3}, {5, 6}}},
      {{-5, -5, -5, -5}, {3, 9, 4, 1}, {{0}, {}, {}, {}}},
      {{3, 4, 5, kHighest}, {1, 0, -3, kHighest}, {{}, {}, {}, {}}},
      {{kLowest, 0, 0, kLowest}, {kHighest, kLowest, kHighest, kLowest}, {{0, 1}, {}, {3}, {}}},
      {{}, {1, 1, 0, 3}, {{0}, {}, {}, {4, 5, 6}}},
      {{2, 0, -1, -2}, {}, {{2}, {}, {3}, {6, 7}}},
  };
  const Ids offsets = {0, 3, 3, 4, 8};
  const std::vector<float> values = {0, 10, 1, 11, 2, 12, 3, 13, 4, 14, 5, 15, 6, 16, 7, 17};
  const Ids numbers = {0, 1, 2, 3, 4, 5, 6, 7};
  const Layer rows = sequences("rows", {2});
  DataOptions of_ids;
  of_ids.name = "ids", of_ids.dtype = TN_I64, of_ids.storage = TN_RAGGED;
  const Layer ids = host_.data(of_ids), start = data("start", {}, TN_I64), length = data("length", {}, TN_I64);
  const Layer none{};
  for (const auto& [starts, lengths, expected] : cases) {
    const Layers chosen = {starts.empty() ? none : start, lengths.empty() ? none : length};
    const Layer slice = host_.layer("sequence_slice", {rows, chosen[0], chosen[1]}, {}, "slice");
    const Layer of_numbers = host_.layer("sequence_slice", {ids, chosen[0], chosen[1]}, {}, "numbers");
    const Layer cost = host_.layer("sum_cost", {host_.layer("sequence_pool", {slice}, {{"kind", "sum"}})}, {}, "cost");
    MachineOptions options;
    options.max_samples = 4, options.training = true, options.keep_all = true,
    options.flags = TN_MACHINE_DATA_GRADIENTS;
    const Machine machine = host_.machine(host_.parameters({cost, of_numbers}, 1), {cost, slice, of_numbers}, options);
    std::vector<Feed> feeds = {{"rows", Array::sequences(TN_F32, {8, 2}, values.data(), 4, offsets.data())},
                               {"ids", Array::sequences(TN_I64, {8}, numbers.data(), 4, offsets.data())}};
    if (!starts.empty()) feeds.push_back({"start", {TN_I64, {4}, starts.data()}});
    if (!lengths.empty()) feeds.push_back({"length", {TN_I64, {4}, lengths.data()}});
    machine.forward(feeds);
    machine.backward();
    Ids all, ends = {0};
    std::vector<float> wide, gradient(16, 0.0F);
    for (const Ids& kept : expected) {
      for (const int64_t row : kept) {
        all.push_back(row);
        for (const int64_t column : {0, 1}) {
          wide.push_back(values[static_cast<size_t>(2 * row + column)]);
          gradient[static_cast<size_t>(2 * row + column)] = 0.25F;
        }
      }
      ends.push_back(static_cast<int64_t>(all.size()));
    }
    const Array found = machine.output(of_numbers), floats = machine.output(slice);
    EXPECT_EQ(ints(found), all);
    EXPECT_EQ((Ids{found.offsets[0], found.offsets[0] + 5}), ends);
    const auto* data = static_cast<const float*>(floats.data);
    EXPECT_EQ((std::vector<float>{data, data + floats.count()}), wide);
    const auto* derived = static_cast<const float*>(data_gradient(machine, "rows").data);
    EXPECT_EQ((std::vector<float>{derived, derived + 16}), gradient);
  }
}

TEST_F(SequenceSlice, Mistakes) {
  const Layer rows = sequences("rows", {2}), start = data("start", {}, TN_I64);
  EXPECT_THAT(mistake("sequence_slice", {rows}), testing::HasSubstr("is needed without the inputs"));
  EXPECT_THAT(mistake("sequence_slice", {rows, start}, {{"count", 1}}), testing::HasSubstr("cannot be given with"));
  EXPECT_THAT(mistake("sequence_slice", {rows, start}, {{"from_end", true}}), testing::HasSubstr("needs count"));
  EXPECT_THAT(mistake("sequence_slice", {data("dense", {2}), start}), testing::HasSubstr("must be sequences (ragged)"));
  EXPECT_THAT(mistake("sequence_slice", {rows, data("wide", {2}, TN_I64)}), testing::HasSubstr("start"));
}

TEST_F(SequenceSlice, AllRowsOfADenseTensor) {
  LayerCase layer;
  layer.type = "sequence_unpad";
  layer.inputs = {{{3, 2}}};
  layer.output_shape = {2};
  layer.output_rows = true;
  layer.formula = [](const FormulaArguments& of) { return of.inputs[0]; };
  EXPECT_GT(check_layer(layer), 0);
  EXPECT_THAT(mistake("sequence_unpad", {data("flat", {})}), testing::HasSubstr("must be [samples, length, ...]"));
}

}  // namespace

}  // namespace tenon_tests
