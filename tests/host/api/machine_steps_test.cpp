// Several steps of a machine in one call. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <tenon/tenon_machine.hpp>

#include "tests/support/paths.h"
#include "tests/support/refused.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Floats = std::vector<float>;
using Ids = std::vector<int64_t>;

// Ten samples of three numbers, a text and a class.
class MachineSteps : public testing::Test {
 protected:
  struct Training {
    Parameters parameters;
    Machine machine;
    Updater updater;
  };

  // A model with draws, buffers and a row-sparse gradient.
  Training training(int64_t max_samples = 4, int64_t max_rows = 0, bool backward = true) {
    const Layer table = host_.layer("embedding", {words_}, {{"vocabulary", 20}, {"size", 4}}, "table");
    const Layer text = host_.layer("sequence_pool", {table}, {{"kind", "sum"}}, "text");
    const Layer both = host_.layer("concat", {text, x_}, {}, "both");
    const Layer hidden = host_.layer("fc", {both}, {{"size", 6}}, "hidden");
    const Layer same = host_.layer("batch_norm", {hidden}, {}, "same");
    const Layer some = host_.layer("dropout", {same}, {{"rate", 0.5}}, "some");
    const Layer score = host_.layer("fc", {some}, {{"size", 3}}, "score");
    const Layer cost = host_.layer("cross_entropy", {score, label_}, {{"from_logits", true}}, "cost");
    MachineOptions options;
    options.max_samples = max_samples, options.max_rows = max_rows, options.training = backward, options.seed = 3;
    const Parameters parameters = host_.parameters({cost}, 1);
    return {parameters, host_.machine(parameters, {cost}, options), host_.updater("adam")};
  }

  // The feeds of samples `first` to `first` + `count` - 1.
  std::vector<Feed> feeds(int64_t first = 0, int64_t count = 10) {
    offsets_.clear();
    for (int64_t i = first; i <= first + count; ++i)
      offsets_.push_back(ends_[static_cast<size_t>(i)] - ends_[static_cast<size_t>(first)]);
    return {{"x", {TN_F32, {count, 3}, numbers_.data() + 3 * first}},
            {"words", Array::sequences(TN_I64, {offsets_.back()}, ids_.data() + ends_[static_cast<size_t>(first)],
                                       count, offsets_.data())},
            {"label", {TN_I64, {count}, labels_.data() + first}}};
  }

  // One step as calls of its own; returns its cost.
  double step(const Training& of, int64_t first, int64_t count) {
    of.machine.forward(feeds(first, count));
    const double cost = of.machine.cost();
    of.machine.backward();
    of.updater.update(of.machine);
    return cost;
  }

  static std::vector<Floats> values(const Training& of) {
    std::vector<Floats> result;
    for (const char* name :
         {"table.weight", "hidden.weight", "hidden.bias", "same.moving_mean", "same.moving_variance", "score.weight"}) {
      const Array array = of.parameters.get(name);
      const auto* const data = static_cast<const float*>(array.data);
      result.emplace_back(data, data + array.count());
    }
    return result;
  }

  Layer data(const char* name, tn_dtype dtype, const Ids& shape, int32_t storage, int64_t limit) {
    DataOptions options;
    options.name = name, options.dtype = dtype, options.shape = shape, options.storage = storage;
    options.index_limit = limit;
    return host_.data(options);
  }

  Host host_{HostOptions{1, {plugin_folder()}, nullptr, {}}};
  Layer x_ = data("x", TN_F32, {3}, TN_DENSE, -1), words_ = data("words", TN_I64, {}, TN_RAGGED, 20),
        label_ = data("label", TN_I64, {}, TN_DENSE, 3);
  Floats numbers_ = [] {
    Floats result;
    for (int i = 0; i < 30; ++i) result.push_back(static_cast<float>(i * i % 17) / 8 - 1);
    return result;
  }();
  Ids ends_ = {0, 2, 3, 3, 7, 8, 10, 15, 16, 18, 20};
  Ids ids_ = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 19, 0};
  Ids labels_ = {0, 2, 1, 1, 0, 2, 2, 1, 0, 0};
  Ids offsets_;
};

TEST_F(MachineSteps, GiveTheBitsOfSingleCalls) {
  const Training alone = training(), together = training();
  std::vector<double> expected, costs = {7};
  for (int pass = 0; pass < 3; ++pass) {
    for (const int64_t first : {0, 4, 8}) expected.push_back(step(alone, first, std::min<int64_t>(4, 10 - first)));
    steps(together.machine, together.updater, feeds(), 4, costs);
  }
  ASSERT_EQ(costs.size(), 10u);
  EXPECT_EQ(costs.front(), 7);  // costs are appended
  costs.erase(costs.begin());
  EXPECT_EQ(costs, expected);
  EXPECT_EQ(values(together), values(alone));
  EXPECT_EQ(together.machine.cost(), expected.back());
  // The states and the number of updates are those of single calls too: so is what follows.
  EXPECT_EQ(step(together, 2, 3), step(alone, 2, 3));
  EXPECT_EQ(values(together), values(alone));
}

TEST_F(MachineSteps, AddToGradientsThatAreThere) {
  const Training alone = training(), together = training();
  for (const Training& each : {alone, together}) {
    each.machine.forward(feeds(0, 2));
    each.machine.backward();
  }
  std::vector<double> costs;
  steps(together.machine, together.updater, feeds(4, 6), 3, costs);
  EXPECT_EQ(costs, (std::vector<double>{step(alone, 4, 3), step(alone, 7, 3)}));
  EXPECT_EQ(values(together), values(alone));
}

TEST_F(MachineSteps, OfNoSamples) {
  const Training none = training();
  const std::vector<Floats> before = values(none);
  std::vector<double> costs;
  steps(none.machine, none.updater, feeds(0, 0), 4, costs);
  EXPECT_TRUE(costs.empty());
  EXPECT_EQ(values(none), before);
}

TEST_F(MachineSteps, AreRefusedBeforeAnythingIsChanged) {
  const Training it = training();
  const std::vector<Floats> before = values(it);
  std::vector<double> costs;
  const auto refusal = [&](const std::vector<Feed>& given, int64_t samples, uint32_t flags = 0) {
    Error error = refused([&] { steps(it.machine, it.updater, given, samples, costs, flags); });
    EXPECT_TRUE(costs.empty());
    EXPECT_EQ(values(it), before);
    return error;
  };
  EXPECT_STREQ(refusal(feeds(), 0).what(), "options.samples is 0; expected at least 1");
  EXPECT_EQ(refusal(feeds(), 4, 2).code(), TN_UNSUPPORTED);
  std::vector<Feed> given = feeds();
  given.push_back({"y", given[0].values});
  EXPECT_EQ(refusal(given, 4).code(), TN_NOT_FOUND);
  given = feeds();
  given[0].values.shape[0] = 9;
  EXPECT_EQ(refusal(given, 4).code(), TN_INVALID);
  EXPECT_THAT(refusal(feeds(), 5).what(), StartsWith("step 1 of 2: "));  // of more than the machine is made for
  labels_.back() = 3;                                                    // of the last step
  EXPECT_THAT(refusal(feeds(), 4).what(), HasSubstr("data layer \"label\": sample 9 of the minibatch is 3"));
  labels_.back() = 0;
  const Training answers = training(4, 0, false);
  EXPECT_EQ(refused([&] { steps(answers.machine, answers.updater, feeds(), 4, costs); }).code(), TN_MISUSE);
}

TEST_F(MachineSteps, NeedRoomForTheirCosts) {
  const Training it = training();
  const std::vector<Feed> given = feeds();
  const std::vector<tn_feed> list = detail::c_feeds(given);
  tn_steps_options options = {};
  options.size = sizeof options;
  options.updater = it.updater.handle();
  options.feeds = list.data(), options.feeds_count = 3, options.samples = 4;
  const std::vector<Floats> before = values(it);
  double costs[4] = {-1, -1, -1, -1};
  int64_t done = -1;
  const auto run = [&](tn_machine machine, int64_t room) {
    return tn_machine_steps(it.machine.host(), machine, &options, costs, room, &done, nullptr);
  };
  EXPECT_EQ(run(it.machine.handle(), 2), TN_NEED_CAPACITY);
  EXPECT_EQ(run(tn_machine{}, 4), TN_MISUSE);
  EXPECT_EQ(done, -1);
  EXPECT_EQ(values(it), before);
  EXPECT_EQ(run(it.machine.handle(), 4), TN_OK);
  EXPECT_EQ(done, 3);
  EXPECT_GT(costs[2], 0);
  EXPECT_EQ(costs[3], -1);
}

// The fourth step has more rows than the machine may have.
TEST_F(MachineSteps, KeepThoseBeforeOneThatFails) {
  const Training it = training(2, 5), alone = training(2, 5);
  std::vector<double> costs;
  const Error error = refused([&] { steps(it.machine, it.updater, feeds(), 2, costs); });
  EXPECT_EQ(error.code(), TN_INVALID);
  EXPECT_EQ(error.subject(), "words");
  EXPECT_STREQ(error.what(),
               "step 4 of 5: data layer \"words\": 6 rows in a minibatch; the machine was made for at most 5");
  EXPECT_EQ(costs, (std::vector<double>{step(alone, 0, 2), step(alone, 2, 2), step(alone, 4, 2)}));
  EXPECT_EQ(values(it), values(alone));
  costs.clear();
  steps(it.machine, it.updater, feeds(8, 2), 2, costs);  // it can go on
  EXPECT_EQ(costs, (std::vector<double>{step(alone, 8, 2)}));
  EXPECT_EQ(values(it), values(alone));
}

}  // namespace

}  // namespace tenon_tests
