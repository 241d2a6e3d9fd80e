// The values of a minibatch from those of its shards, whoever computes them. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "host/machine/shards/shards.h"

namespace tenon_tests {

namespace {

using namespace tenon::core;
using namespace tenon::host;
using testing::ElementsAre;

// A shard that nothing computes: it has the numbers that a test sets, and notes the calls.
class NotedShard final : public Shard {
 public:
  NotedShard(size_t number, std::vector<std::string>& calls) : number_(number), calls_(calls) {}

  // Sets the samples: rows of one float, in sequences of 1, 2, ... rows.
  void forward(int64_t samples, float first_value) {
    samples_ = samples;
    values_.clear();
    offsets_.assign(1, 0);
    for (int64_t i = 0; i < samples; ++i) offsets_.push_back(offsets_.back() + i + 1);
    for (int64_t i = 0; i < offsets_.back(); ++i) values_.push_back(first_value + static_cast<float>(i));
    if (samples > 0) states_.samples = samples;
  }

  [[nodiscard]] int64_t samples() const override { return samples_; }
  [[nodiscard]] double cost() const override { return 3 * (1.0 + static_cast<double>(number_)); }
  [[nodiscard]] std::vector<double> costs() const override { return {cost() / 3, 2 * cost() / 3}; }
  [[nodiscard]] std::vector<double> metric_state(const LayerRef& /*metric*/) const override { return {cost(), 1}; }
  [[nodiscard]] ArrayView output(const LayerOutput& /*output*/) const override { return ragged(); }
  [[nodiscard]] ArrayView data_gradient(size_t /*feed*/) const override { return ragged(); }
  [[nodiscard]] CarriedStates carried() const override { return states_; }
  void set_carried(const CarriedStates& carried) override {
    calls_.push_back("set " + std::to_string(number_));
    states_ = carried;
  }
  void reset_carried() override {
    calls_.push_back("reset " + std::to_string(number_));
    states_ = {0, {{}}};
  }

 private:
  [[nodiscard]] ArrayView ragged() const {
    ArrayView view{TN_F32, {static_cast<int64_t>(values_.size())}, values_.data(), TN_RAGGED, 1};
    view.offsets[0] = offsets_.data();
    view.samples = samples_;
    return view;
  }

  size_t number_;
  std::vector<std::string>& calls_;
  int64_t samples_ = -1;
  std::vector<float> values_;
  std::vector<int64_t> offsets_;
  CarriedStates states_{0, {{}}};
};

class ShardValues : public testing::Test {
 protected:
  [[nodiscard]] Shards shards(size_t count, int64_t max_samples = 8) {
    std::vector<Shard*> list;
    for (size_t i = 0; i < count; ++i) {
      owned_.push_back(std::make_unique<NotedShard>(i, calls_));
      list.push_back(owned_.back().get());
    }
    return {list, max_samples, system_allocator()};
  }
  // Divides a minibatch.
  void forward(Shards& shards, int64_t samples) {
    shards.drop_copies();
    shards.cut_carried(samples);
    for (size_t i = 0; i < owned_.size(); ++i)
      owned_[i]->forward(shard_range(samples, owned_.size(), i).count, static_cast<float>(10 * i));
  }
  // Returns states of samples with these numbers.
  static CarriedStates states(const std::vector<char>& numbers) {
    CarriedStates result{static_cast<int64_t>(numbers.size()), {{}}};
    for (const char number : numbers) result.values[0].push_back(static_cast<std::byte>(number));
    return result;
  }
  static std::string text_of(const CarriedStates& states) {
    std::string result = std::to_string(states.samples) + ":";
    for (const std::byte value : states.values.at(0)) result += " " + std::to_string(std::to_integer<int>(value));
    return result;
  }

  std::vector<std::string> calls_;
  std::vector<std::unique_ptr<NotedShard>> owned_;
};

TEST_F(ShardValues, SumsAreThoseOfAllShards) {
  Shards all = shards(3);
  EXPECT_EQ(all.samples(), -1);
  forward(all, 5);
  EXPECT_EQ(all.samples(), 5);
  EXPECT_EQ(all.cost(), 18);
  EXPECT_THAT(all.costs(), ElementsAre(6, 12));
  EXPECT_THAT(all.metric_state({}), ElementsAre(18, 3));
}

TEST_F(ShardValues, SequencesAreJoinedInTheOrderOfTheSamples) {
  Shards all = shards(2);
  forward(all, 3);  // sequences of 1 and 2 rows, then of 1 row
  const ArrayView joined = all.data_gradient(0, "x");
  EXPECT_THAT(joined.shape, ElementsAre(4));
  EXPECT_EQ(joined.samples, 3);
  EXPECT_THAT(std::vector<int64_t>(joined.offsets[0], joined.offsets[0] + 4), ElementsAre(0, 1, 3, 4));
  const auto* const values = static_cast<const float*>(joined.data);
  EXPECT_THAT(std::vector<float>(values, values + 4), ElementsAre(0, 1, 2, 10));
}

TEST_F(ShardValues, WhatOneShardHasIsNotCopied) {
  Shards one = shards(1);
  forward(one, 3);
  EXPECT_EQ(one.data_gradient(0, "x").data, owned_[0]->data_gradient(0).data);
  EXPECT_EQ(one.cost(), owned_[0]->cost());
  const CarriedStates odd{3, {std::vector<std::byte>(5)}};  // no number of bytes for each sample
  one.set_carried(odd);
  forward(one, 2);  // keeps the places of its samples
  EXPECT_THAT(calls_, ElementsAre("set 0"));
}

TEST_F(ShardValues, CarriedStatesAreCutWhereTheSamplesMove) {
  Shards all = shards(2);
  all.set_carried(states({1, 2, 3, 4}));
  EXPECT_EQ(text_of(owned_[0]->carried()), "2: 1 2");
  EXPECT_EQ(text_of(owned_[1]->carried()), "2: 3 4");
  EXPECT_EQ(text_of(all.carried()), "4: 1 2 3 4");
  calls_.clear();
  all.cut_carried(3);  // samples 0 and 1; 2
  EXPECT_THAT(calls_, ElementsAre());
  all.cut_carried(5);  // 0 to 2; 3 and 4
  EXPECT_EQ(text_of(owned_[0]->carried()), "3: 1 2 3");
  EXPECT_EQ(text_of(owned_[1]->carried()), "2: 4 0");
  all.cut_carried(1);  // the second shard has none any more
  EXPECT_EQ(text_of(owned_[0]->carried()), "1: 1");
  EXPECT_EQ(text_of(owned_[1]->carried()), "0:");
}

TEST_F(ShardValues, OtherStatesAreRefusedBeforeAShardGetsAny) {
  Shards all = shards(2, 4);
  EXPECT_THROW(all.set_carried(states({1, 2, 3, 4, 5})), Error);
  EXPECT_THROW(all.set_carried({3, {std::vector<std::byte>(4)}}), Error);
  EXPECT_THAT(calls_, ElementsAre());
}

}  // namespace

}  // namespace tenon_tests
