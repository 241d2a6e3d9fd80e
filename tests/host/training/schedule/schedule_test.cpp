// SPDX-License-Identifier: Apache-2.0
#include "host/training/schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "core/error.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using testing::HasSubstr;

using Keys = std::map<std::string, Value>;

Values attributes_of(const std::string& kind, const Keys& keys) {
  Values given;
  for (const auto& [key, value] : keys) given["schedule." + key] = value;
  if (!kind.empty()) given["schedule.type"] = kind;
  return given;
}

Schedule make(const std::string& kind, const Keys& keys) {
  Values given = attributes_of(kind, keys);
  Schedule schedule = Schedule::take(given);
  EXPECT_TRUE(given.empty());
  return schedule;
}

// Compares the steps 1 to 40 with a formula of PyTorch's or a paper's kind, and one step that is far away.
void expect_formula(const std::string& kind, const Keys& keys, const std::function<double(double t)>& formula) {
  const Schedule schedule = make(kind, keys);
  for (uint64_t t = 1; t <= 41; ++t) {
    const uint64_t step = t <= 40 ? t : 1000003;
    EXPECT_NEAR(schedule.factor(step), formula(static_cast<double>(step)), 1e-9) << kind << ", step " << step;
  }
}

struct Known {
  uint64_t step;
  double factor;
};

// `values` are the learning rates of a scheduler of PyTorch 1.13 whose optimizer has the rate 1.
void expect_values(const std::string& kind, const Keys& keys, const std::vector<Known>& values) {
  const Schedule schedule = make(kind, keys);
  for (const Known& each : values)
    EXPECT_NEAR(schedule.factor(each.step), each.factor, 1e-12) << kind << ", step " << each.step;
}

std::string refusal(const std::string& kind, const Keys& keys) {
  try {
    Values given = attributes_of(kind, keys);
    (void)Schedule::take(given);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_INVALID);
    return error.message();
  }
  return "accepted";
}

const double kPi = std::numbers::pi;

double share(double t, double steps) { return t < steps ? t / steps : 1; }

TEST(Schedules, WithoutAttributesAreConstant) {
  EXPECT_EQ(make("", {}).factor(1), 1);
  EXPECT_EQ(make("", {}).factor(1000000), 1);
  EXPECT_EQ(Schedule().factor(7), 1);
}

TEST(Schedules, DecaysFollowTheirFormulas) {
  expect_formula("step", {{"steps", 10}, {"rate", 0.5}}, [](double t) { return std::pow(0.5, std::floor(t / 10)); });
  expect_formula("exponential", {{"steps", 10}, {"rate", 0.5}}, [](double t) { return std::pow(0.5, t / 10); });
  expect_formula("exponential", {{"steps", 20}}, [](double t) { return std::pow(0.1, t / 20); });
  expect_formula("inverse", {{"steps", 8}}, [](double t) { return 8 / (8 + t); });
  expect_formula("inverse", {{"steps", 8}, {"power", 0.5}}, [](double t) { return 1 / std::sqrt(1 + t / 8); });
  expect_formula("linear", {{"steps", 16}, {"start", 0.25}, {"end", 2}},
                 [](double t) { return 0.25 + 1.75 * share(t, 16); });
  expect_formula("polynomial", {{"steps", 20}, {"power", 2.0}, {"end", 0.1}},
                 [](double t) { return 0.1 + 0.9 * std::pow(1 - share(t, 20), 2); });
  expect_formula("polynomial", {{"steps", 20}}, [](double t) { return 1 - share(t, 20); });
  expect_formula("cosine", {{"steps", 20}}, [](double t) { return 0.5 * (1 + std::cos(kPi * share(t, 20))); });
  expect_formula("cosine", {{"steps", 20}, {"end", 0.5}},
                 [](double t) { return 0.5 + 0.25 * (1 + std::cos(kPi * share(t, 20))); });
}

TEST(Schedules, MilestonesCount) {
  const std::vector<int64_t> milestones = {3, 7, 12};
  expect_values("multi_step", {{"milestones", milestones}, {"rate", 0.5}},
                {{2, 1}, {3, 0.5}, {6, 0.5}, {7, 0.25}, {11, 0.25}, {12, 0.125}, {1000, 0.125}});
  expect_values("multi_step", {{"milestones", milestones}, {"factors", std::vector<double>{2, 0, 0.3}}},
                {{1, 1}, {2, 1}, {3, 2}, {6, 2}, {7, 0}, {11, 0}, {12, 0.3}, {1000, 0.3}});
  expect_values("multi_step", {{"milestones", 4}}, {{3, 1}, {4, 0.1}, {9, 0.1}});
  expect_values("multi_step", {{"milestones", 4}, {"factors", 3}}, {{3, 1}, {4, 3}});
}

// OneCycleLR(total_steps=10) and so on; its step n is that before update n + 1.
TEST(Schedules, OneCycleIsThatOfPyTorch) {
  const Keys line = {{"steps", 10}, {"rise", 0.4}, {"start", 0.1}, {"end", 0.001}, {"anneal", "linear"}};
  expect_values("one_cycle", {{"steps", 10}},
                {{1, 0.04},
                 {2, 0.52},
                 {3, 1},
                 {4, 0.9504846320134737},
                 {6, 0.6112620219362893},
                 {9, 0.049519367986526286},
                 {10, 4e-06},
                 {11, 4e-06},
                 {5000, 4e-06}});
  expect_values("one_cycle", line, {{1, 0.1}, {2, 0.4}, {3, 0.7}, {4, 1}, {6, 0.667}, {9, 0.1675}, {10, 0.001}});
  expect_values("one_cycle", {{"steps", 10}, {"three_phase", true}},
                {{1, 0.04},
                 {2, 0.52},
                 {3, 1},
                 {4, 0.52},
                 {5, 0.04},
                 {6, 0.0361807218535102},
                 {9, 0.0038232781464898036},
                 {10, 4e-06},
                 {11, 4e-06}});
  expect_values("one_cycle", {{"steps", 10}, {"rise", 0}, {"anneal", "linear"}}, {{10, 4e-6}, {11, 4e-6}});
  expect_values("one_cycle", {{"steps", 10}, {"rise", 1}}, {{1, 0.04}, {10, 1}, {11, 4e-6}});
  expect_values("one_cycle", {{"steps", 1}}, {{1, 4e-6}, {2, 4e-6}});
}

// CyclicLR(base_lr=0.2, max_lr=1, step_size_up=4, step_size_down=6)
TEST(Schedules, CyclesAreThoseOfPyTorch) {
  const Keys cycle = {{"steps", 10}, {"rise", 0.4}, {"start", 0.2}};
  const auto with = [&](const Keys& more) {
    Keys keys = cycle;
    keys.insert(more.begin(), more.end());
    return keys;
  };
  expect_values("cyclic", cycle,
                {{1, 0.4}, {2, 0.6}, {4, 1}, {5, 0.8666666666666667}, {7, 0.6}, {10, 0.2}, {12, 0.6}, {17, 0.6}});
  expect_values("cyclic", with({{"mode", "triangular2"}}),
                {{1, 0.4}, {4, 1}, {7, 0.6}, {10, 0.2}, {12, 0.4}, {17, 0.4}, {23, 0.35}});
  expect_values("cyclic", with({{"mode", "exponential"}, {"rate", std::pow(0.9, 10)}}),  // gamma=0.9
                {{1, 0.38}, {2, 0.524}, {5, 0.59366}, {10, 0.2}, {12, 0.31297181459240014}, {17, 0.2667087267986663}});
  expect_formula("cyclic", {{"steps", 8}, {"start", 0}}, [](double t) {  // Smith, section 3.1
    const double c = std::floor(1 + t / 8);
    return std::max(0.0, 1 - std::abs(t / 4 - 2 * c + 1));
  });
  expect_values("cyclic", {{"steps", 4}, {"start", 0}, {"rise", 0}}, {{1, 0.75}, {3, 0.25}, {4, 1}});
  expect_values("cyclic", {{"steps", 4}, {"start", 0}, {"rise", 1}}, {{1, 0.25}, {3, 0.75}, {4, 0}});
}

// CosineAnnealingWarmRestarts
TEST(Schedules, RestartsAreThoseOfPyTorch) {
  expect_values("cosine_restarts", {{"steps", 3}, {"multiplier", 2}, {"end", 0.1}},
                {{1, 0.775},
                 {2, 0.325},
                 {3, 1},
                 {4, 0.9397114317029974},
                 {7, 0.325},
                 {9, 1},
                 {10, 0.9846666218300807},
                 {12, 0.8681980515339464},
                 {17, 0.325}});
  expect_formula("cosine_restarts", {{"steps", 5}},
                 [](double t) { return 0.5 * (1 + std::cos(kPi * std::fmod(t, 5) / 5)); });
}

TEST(Schedules, WarmUpComesFirst) {
  expect_values("cosine", {{"steps", 100}, {"warm_up", 4}}, {{1, 0.25}, {4, 1}, {54, 0.5}});
  expect_values("", {{"warm_up", 8}}, {{1, 0.125}, {8, 1}, {9, 1}});
}

// SequentialLR([LinearLR(0.25, 1, 4), ExponentialLR(0.9)], [4])
TEST(Schedules, PhasesFollowOneAnother) {
  const Keys two = {{"phases", std::vector<std::string>{"up", "down"}},
                    {"up.type", "linear"},
                    {"up.length", 4},
                    {"up.start", 0.25},
                    {"up.end", 1},
                    {"up.steps", 4},
                    {"down.type", "exponential"},
                    {"down.steps", 1},
                    {"down.rate", 0.9}};
  expect_values(
      "chained", two,
      {{1, 0.4375}, {2, 0.625}, {3, 0.8125}, {4, 1}, {5, 0.9}, {7, 0.729}, {10, 0.531441}, {17, 0.25418658283290013}});
  Keys warm = two;
  warm["warm_up"] = 10;
  warm["down.warm_up"] = 2;
  expect_values("chained", warm, {{5, 0.5}, {11, 0.4375}, {14, 1}, {15, 0.5}, {16, 1}, {17, 0.9}});
  // Each phase counts its own steps from 1.
  const Keys three = {{"phases", std::vector<std::string>{"a", "b", "c"}},
                      {"a.type", "constant"},
                      {"a.length", 2},
                      {"b.type", "step"},
                      {"b.length", 3},
                      {"b.steps", 2},
                      {"b.rate", 0.5},
                      {"c.type", "cosine"},
                      {"c.steps", 2}};
  expect_values("chained", three, {{1, 1}, {2, 1}, {3, 1}, {4, 0.5}, {5, 0.5}, {6, 0.5}, {7, 0}, {8, 0}});
  expect_values("chained", {{"phases", "a"}, {"a.type", "step"}, {"a.steps", 1}}, {{1, 0.1}, {2, 0.01}});
}

TEST(Schedules, PartsAreMultiplied) {
  expect_values("product",
                {{"parts", std::vector<std::string>{"a", "b"}},
                 {"a.type", "step"},
                 {"a.steps", 2},
                 {"a.rate", 0.5},
                 {"b.type", "linear"},
                 {"b.steps", 4},
                 {"b.start", 0},
                 {"b.end", 1}},
                {{1, 0.25}, {2, 0.25}, {3, 0.375}, {4, 0.25}, {6, 0.125}});
}

TEST(Schedules, BadValuesAreNamed) {
  EXPECT_EQ(refusal("cosin", {}), "attribute \"schedule.type\": unknown type \"cosin\"; did you mean \"cosine\"?");
  EXPECT_EQ(refusal("step", {}), "attribute \"schedule.steps\" is missing");
  EXPECT_EQ(refusal("step", {{"steps", 0.5}}),
            "attribute \"schedule.steps\": expected a number of at least 1, got 0.5");
  EXPECT_EQ(refusal("step", {{"steps", "many"}}),
            "attribute \"schedule.steps\": expected a number of at least 1, got \"many\"");
  for (const auto& [value, shown] : {std::pair{std::nan(""), "nan"}, std::pair{HUGE_VAL, "inf"}, std::pair{-1.0, "-1"}})
    EXPECT_THAT(refusal("step", {{"steps", 1}, {"rate", value}}),
                HasSubstr(text("attribute \"schedule.rate\": expected a number of at least 0, got ", shown)));
  EXPECT_EQ(refusal("one_cycle", {{"steps", 9}, {"rise", 1.5}}),
            "attribute \"schedule.rise\": expected a number from 0 to 1, got 1.5");
  EXPECT_THAT(refusal("one_cycle", {{"steps", 9}, {"rise", 0.75}, {"three_phase", true}}), HasSubstr("from 0 to 0.5"));
  EXPECT_THAT(refusal("one_cycle", {{"steps", 9}, {"three_phase", 1}}), HasSubstr("expected true or false, got 1"));
  EXPECT_THAT(refusal("one_cycle", {{"steps", 9}, {"anneal", "line"}}),
              HasSubstr("\"schedule.anneal\": unknown anneal \"line\""));
  EXPECT_EQ(refusal("cyclic", {{"steps", 9}, {"start", 0}, {"rate", 1}}),
            "attribute \"schedule.rate\": the mode \"triangular\" has no rate, only \"exponential\" has");
  EXPECT_EQ(refusal("cyclic", {{"steps", 9}, {"start", 0}, {"mode", "exponential"}}),
            "attribute \"schedule.rate\" is missing");
  EXPECT_EQ(refusal("cosine_restarts", {{"steps", 9}, {"multiplier", 1.5}}),
            "attribute \"schedule.multiplier\": expected an integer of at least 1, got 1.5");
  EXPECT_THAT(refusal("cosine_restarts", {{"steps", 9}, {"multiplier", 0}}), HasSubstr("got 0"));
  EXPECT_EQ(refusal("linear", {{"steps", 9}, {"end", 1}}), "attribute \"schedule.start\" is missing");
}

TEST(Schedules, BadListsAreNamed) {
  using Numbers = std::vector<int64_t>;
  EXPECT_EQ(refusal("multi_step", {}), "attribute \"schedule.milestones\" is missing");
  EXPECT_THAT(refusal("multi_step", {{"milestones", Numbers{}}}), HasSubstr("expected a list of integers, got []"));
  EXPECT_THAT(refusal("multi_step", {{"milestones", 2.5}}), HasSubstr("expected a list of integers, got 2.5"));
  for (const Numbers& wrong : {Numbers{3, 3}, Numbers{5, 2}, Numbers{0, 2}, Numbers{-4}})
    EXPECT_THAT(
        refusal("multi_step", {{"milestones", wrong}}),
        HasSubstr("\"schedule.milestones\": expected increasing numbers of steps of at least 1, got " + shown(wrong)));
  EXPECT_EQ(refusal("multi_step", {{"milestones", Numbers{2, 3}}, {"factors", 1}}),
            "attribute \"schedule.factors\": expected a number for each of the 2 milestones, got 1");
  EXPECT_EQ(refusal("multi_step", {{"milestones", 2}, {"factors", -1}}),
            "attribute \"schedule.factors\": expected a list of numbers of at least 0, got -1");
  EXPECT_EQ(refusal("multi_step", {{"milestones", 2}, {"factors", 1}, {"rate", 1}}),
            "attribute \"schedule.rate\": \"schedule.factors\" replaces it");
}

TEST(Schedules, KeysOfOtherKindsAreRefused) {
  EXPECT_EQ(refusal("cosine", {{"steps", 10}, {"rate", 0.5}}),
            "attribute \"schedule.rate\": the schedule \"cosine\" has no key \"rate\"; its keys: steps, end, warm_up");
  EXPECT_EQ(refusal("constant", {{"steps", 10}}),
            "attribute \"schedule.steps\": the schedule \"constant\" has no key \"steps\"; its keys: warm_up");
  EXPECT_EQ(refusal("", {{"steps", 10}}),
            "attribute \"schedule.steps\": the schedule \"constant\", that without \"schedule.type\", has no key "
            "\"steps\"; its keys: warm_up");
  EXPECT_THAT(refusal("step", {{"stepz", 10}}), HasSubstr("no key \"stepz\"; its keys: steps, rate, warm_up"));
  EXPECT_THAT(refusal("step", {{"steps", 10}, {"a.type", "step"}}), HasSubstr("no key \"a.type\""));
}

TEST(Schedules, BadPartsAreNamed) {
  const Keys one = {{"phases", std::vector<std::string>{"a", "b"}}, {"a.type", "constant"}, {"b.type", "constant"}};
  const auto with = [&](Keys more) {
    more.insert(one.begin(), one.end());
    return refusal("chained", more);
  };
  EXPECT_EQ(with({}), "attribute \"schedule.a.length\" is missing");
  EXPECT_EQ(with({{"a.length", 0}}), "attribute \"schedule.a.length\": expected an integer of at least 1, got 0");
  EXPECT_EQ(with({{"a.length", 1}}), "accepted");
  EXPECT_EQ(with({{"a.length", 1}, {"b.length", 1}}),
            "attribute \"schedule.b.length\": the last phase goes on without an end");
  EXPECT_EQ(with({{"a.length", 1}, {"b.steps", 1}}),
            "attribute \"schedule.b.steps\": the schedule \"constant\" has no key \"steps\"; its keys: warm_up");
  EXPECT_EQ(with({{"a.length", 1}, {"c.type", "step"}}),
            "attribute \"schedule.c.type\": the schedule \"chained\" has no key \"c.type\"; its keys: phases, warm_up");
  EXPECT_THAT(with({{"a.length", 1}, {"a.type", "chained"}}), HasSubstr("\"schedule.a.type\": unknown type"));
  EXPECT_EQ(refusal("chained", {{"phases", "a"}}), "attribute \"schedule.a.type\" is missing");
  EXPECT_EQ(refusal("chained", {}), "attribute \"schedule.phases\" is missing");
  EXPECT_EQ(refusal("chained", {{"phases", 3}}), "attribute \"schedule.phases\": expected a list of names, got 3");
  EXPECT_EQ(refusal("product", {{"parts", std::vector<std::string>{"a", "a"}}, {"a.type", "constant"}}),
            "attribute \"schedule.parts\": duplicate name \"a\"");
}

}  // namespace
}  // namespace tenon_tests
