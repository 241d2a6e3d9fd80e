// Branches by rows, of ordinary layers: the values and gradients of models that compute all branches for all samples
// and choose afterwards, differences in fp64, bits that depend neither on threads nor on the batch, and models that are
// saved. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <tenon/tenon.hpp>
#include <tenon/tenon_cond.hpp>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_scan.hpp>
#include <tenon/tenon_topology.hpp>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Numbers = std::vector<double>;
using Integers = std::vector<int64_t>;

constexpr int64_t kDepth = 3, kSize = 4;

// Samples [3] with a predicate, an integer from 0 to 2 and a truth [4], and sequences of rows [3].
struct Minibatch {
  Numbers predicate;
  Integers number;
  Numbers x, truth, rows;
  Integers ends{0};

  static Minibatch draw(const Numbers& predicate) {
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> value(-1, 1);
    Minibatch made;
    made.predicate = predicate;
    const auto fill = [&](Numbers& to, int64_t count) {
      for (int64_t i = 0; i < count; ++i) to.push_back(value(random));
    };
    for (size_t i = 0; i < predicate.size(); ++i) {
      made.number.push_back(static_cast<int64_t>(i * i % 3));
      made.ends.push_back(made.ends.back() + static_cast<int64_t>(i * 5 % 4));
    }
    fill(made.x, made.samples() * kDepth);
    fill(made.truth, made.samples() * kSize);
    fill(made.rows, made.ends.back() * kDepth);
    return made;
  }
  [[nodiscard]] int64_t samples() const { return static_cast<int64_t>(predicate.size()); }
  // The samples with these numbers, in this order.
  [[nodiscard]] Minibatch of(const std::vector<size_t>& chosen) const {
    const auto take = [](Numbers& to, const Numbers& from, int64_t begin, int64_t end, int64_t width) {
      to.insert(to.end(), from.begin() + begin * width, from.begin() + end * width);
    };
    Minibatch made;
    for (const size_t i : chosen) {
      const auto at = static_cast<int64_t>(i);
      made.predicate.push_back(predicate[i]);
      made.number.push_back(number[i]);
      take(made.x, x, at, at + 1, kDepth);
      take(made.truth, truth, at, at + 1, kSize);
      take(made.rows, rows, ends[i], ends[i + 1], kDepth);
      made.ends.push_back(made.ends.back() + ends[i + 1] - ends[i]);
    }
    return made;
  }
  // Those of the names, in their order.
  [[nodiscard]] std::vector<Feed> feeds(const std::vector<std::string>& names) const {
    std::vector<Feed> result;
    for (const std::string& name : names) {
      if (name == "predicate") result.push_back({name, {TN_F64, {samples(), 1}, predicate.data()}});
      if (name == "number") result.push_back({name, {TN_I64, {samples()}, number.data()}});
      if (name == "x") result.push_back({name, {TN_F64, {samples(), kDepth}, x.data()}});
      if (name == "truth") result.push_back({name, {TN_F64, {samples(), kSize}, truth.data()}});
      if (name == "rows")
        result.push_back({name, Array::sequences(TN_F64, {ends.back(), kDepth}, rows.data(), samples(), ends.data())});
    }
    return result;
  }
};

const Numbers kMixed = {1, 0, -2, 0.5, NAN, 3, -0.0, 1};

Numbers numbers(const Array& array) {
  Numbers result;
  for (int64_t i = 0; i < array.count(); ++i)
    result.push_back(array.dtype == TN_F64 ? static_cast<const double*>(array.data)[i]
                                           : static_cast<double>(static_cast<const float*>(array.data)[i]));
  return result;
}

void expect_near(const Numbers& a, const Numbers& b, const std::string& what, double most = 1e-12) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], most) << what << " " << i;
}

// A host with its data layers, and what tests make of them.
struct World {
  explicit World(int threads = 2) : host(options(threads)) {
    DataOptions sequences;
    sequences.name = "rows", sequences.dtype = TN_COMPUTE, sequences.shape = {kDepth}, sequences.storage = TN_RAGGED;
    rows = host.data(sequences);
    DataOptions integers;
    integers.name = "number", integers.dtype = TN_I64, integers.index_limit = 3;
    number = host.data(integers);
  }
  static HostOptions options(int threads) {
    HostOptions made;
    made.threads = threads;
    made.plugin_paths = {plugin_folder()};
    return made;
  }

  [[nodiscard]] Layer fc(const Layers& inputs, const std::string& name, const Attributes& more = {},
                         int64_t size = kSize) const {
    Attributes attributes = {{"size", size}};
    attributes.insert(attributes.end(), more.begin(), more.end());
    return host.layer("fc", inputs, attributes, name);
  }
  [[nodiscard]] Layer cost(const Layer& of) const { return host.layer("square_error", {of, truth}, {}, "cost"); }
  [[nodiscard]] Machine machine(const Parameters& parameters, const Layers& outputs, bool training = true) const {
    MachineOptions made;
    made.max_samples = 16, made.training = training, made.compute = TN_F64;
    if (training) made.flags = TN_MACHINE_DATA_GRADIENTS;
    return host.machine(parameters, outputs, made);
  }
  // 1 where the predicate holds, else 0: [samples, 1].
  [[nodiscard]] Layer mask() const {
    return host.layer("greater", {predicate, host.layer("scale_shift", {predicate}, {{"scale", 0.0}})});
  }
  // `a` where the mask is 1, else `b`, of which both are computed for all samples.
  [[nodiscard]] Layer chosen(const Layer& mask, const Layer& a, const Layer& b) const {
    return host.layer("where", {mask, a, b});
  }

  const Host host;
  const Layer x = host.data({"x", TN_COMPUTE, {kDepth}}), truth = host.data({"truth", TN_COMPUTE, {kSize}});
  const Layer predicate = host.data({"predicate", TN_COMPUTE, {1}});
  Layer rows, number;
};

const std::vector<std::string> kFeeds = {"predicate", "x", "truth"};

// Two layers in one branch, one in the other, a value from outside, and a parameter of both branches and of outside.
struct Model {
  Layer outside, then, otherwise;
};
Model model_of(const World& world, const Layer& outside, const Layer& then, const Layer& otherwise) {
  const Attributes shared = {{"parameter_name", "shared"}};
  const Layer hidden = world.fc({then}, "hidden", {{"act", "tanh"}});
  return {outside, world.fc({hidden, outside}, "deep", {}),
          world.host.layer("add", {world.fc({otherwise}, "flat", shared), outside}, {}, "sum")};
}
Layer outside_of(const World& world) { return world.fc({world.x}, "outside", {{"parameter_name", "shared"}}); }

CondResult branches_of(const World& world) {
  const Layer outside = outside_of(world);
  return cond(
      world.predicate,
      [&](Branch& branch) {
        return Layers{model_of(world, outside, branch.input(world.x), branch.input(world.x)).then};
      },
      [&](Branch& branch) {
        return Layers{model_of(world, outside, branch.input(world.x, "rest"), branch.input(world.x)).otherwise};
      },
      "gate");
}

// Compares results of branches with others of the same parameters: their values, lengths, and the gradients of a cost.
void expect_equal(const World& world, const Layers& results, const Layers& reference,
                  const std::function<Layer(const Layers&)>& cost_of, const std::vector<std::string>& feeds,
                  const std::vector<std::string>& names, const std::string& data,
                  const Minibatch& minibatch = Minibatch::draw(kMixed)) {
  std::vector<std::vector<Numbers>> found;
  Parameters parameters;
  for (const Layers& each : {results, reference}) {
    Layers outputs = each;
    outputs.push_back(cost_of(each));
    if (!parameters) parameters = world.host.parameters({outputs.back()}, 3);
    const Machine machine = world.machine(parameters, outputs);
    machine.forward(minibatch.feeds(feeds));
    found.emplace_back();
    for (const Layer& result : each) {
      const Array array = machine.output(result);
      found.back().push_back(numbers(array));
      if (array.offsets[0] == nullptr) continue;
      EXPECT_EQ(Integers(array.offsets[0], array.offsets[0] + array.samples + 1), minibatch.ends);
    }
    if (minibatch.samples() == 0) continue;  // the mean of no costs has no gradient
    machine.backward();
    found.back().push_back(numbers(data_gradient(machine, data)));
    for (const std::string& name : names) found.back().push_back(numbers(machine.gradient(name)));
  }
  for (size_t i = 0; i < found[0].size(); ++i) expect_near(found[0][i], found[1][i], std::to_string(i));
}

class ConstantsAndMixed : public testing::TestWithParam<Numbers> {};

TEST_P(ConstantsAndMixed, EqualsAModelThatComputesAllBranches) {
  const World world;
  const Model all = model_of(world, outside_of(world), world.x, world.x);
  expect_equal(
      world, branches_of(world).results, {world.chosen(world.mask(), all.then, all.otherwise)},
      [&](const Layers& results) { return world.cost(results[0]); }, kFeeds,
      {"shared.weight", "shared.bias", "hidden.weight", "deep.weight", "deep.weight_1", "deep.bias"}, "x",
      Minibatch::draw(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Predicates, ConstantsAndMixed,
                         testing::Values(kMixed, Numbers{1, 2, 3}, Numbers{-1, 0, NAN}, Numbers{1}, Numbers{0},
                                         Numbers{}));

// Compares gradients with differences.
void check_gradients(const World& world, const Layer& cost, const Minibatch& minibatch,
                     const std::vector<std::string>& names, const std::vector<std::string>& feeds = kFeeds) {
  const Parameters parameters = world.host.parameters({cost}, 5);
  const Machine machine = world.machine(parameters, {cost});
  machine.forward(minibatch.feeds(feeds));
  machine.backward();
  for (const std::string& name : names) {
    const Numbers gradient = numbers(machine.gradient(name));
    const Array values = parameters.get(name);
    std::vector<float> changed(static_cast<const float*>(values.data),
                               static_cast<const float*>(values.data) + values.count());
    const Integers shape = values.shape;
    for (size_t i = 0; i < changed.size(); ++i) {
      const float before = changed[i];
      Numbers costs, at;
      for (const float by : {-0.000244140625F, 0.000244140625F}) {
        changed[i] = before + by;
        parameters.set(name, {TN_F32, shape, changed.data()});
        at.push_back(static_cast<double>(changed[i]));
        machine.forward(minibatch.feeds(feeds));
        costs.push_back(machine.cost());
      }
      changed[i] = before;
      parameters.set(name, {TN_F32, shape, changed.data()});
      ASSERT_NEAR(gradient[i], (costs[1] - costs[0]) / (at[1] - at[0]), 1e-6) << name << " " << i;
    }
  }
}

TEST_P(ConstantsAndMixed, GradientsAreThoseOfDifferences) {
  if (GetParam().empty()) return;  // the mean of no costs
  const World world;
  check_gradients(world, world.cost(branches_of(world).results[0]), Minibatch::draw(GetParam()),
                  {"shared.weight", "hidden.weight", "deep.weight", "deep.weight_1", "deep.bias"});
}

// Branches in branches that read values of each of them, and dropout, which draws the same mask again for each forward.
TEST(Conds, NestedBranchesAndDropoutHaveTheGradientsOfDifferences) {
  const World world;
  const CondResult made = cond(
      world.predicate,
      [&](Branch& outer) {
        const Layer inside = world.fc({outer.input(world.x)}, "inside", {{"act", "tanh"}});
        const Layer narrow = world.fc({inside}, "narrow", {}, 1);
        const CondResult inner = cond(
            narrow,
            [&](Branch& branch) {
              const Layer of = branch.input(inside);
              return Layers{world.fc({of, world.x}, "first", {{"drop_rate", 0.5}}),
                            world.fc({branch.input(world.x)}, "second")};
            },
            [&](Branch& branch) {
              const Layer of = branch.input(inside);
              return Layers{world.host.layer("dropout", {of}, {{"rate", 0.25}}), of};
            },
            "inner");
        return Layers{world.host.layer("add", {inner.results[0], inner.results[1]})};
      },
      [&](Branch& outer) {
        return Layers{world.fc({outer.input(world.x)}, "rest", {{"drop_rate", 0.25}})};
      },
      "outer");
  check_gradients(world, world.cost(made.results[0]), Minibatch::draw({1, 0, 2, 3, 1, 0.5, -1, 0, 7, 1, 1, 1}),
                  {"inside.weight", "first.weight", "first.weight_1", "second.weight", "rest.weight"});
}

TEST(Conds, CasesChooseAmongSeveralBranches) {
  const World world;
  std::vector<BranchFunction> functions;
  for (int i = 0; i < 3; ++i)
    functions.emplace_back([&](Branch& branch) {
      return Layers{world.fc({branch.input(world.x)}, "expert_" + std::to_string(branch.number()))};
    });
  const CondResult made = cases(world.number, functions, "experts");
  const Layer cost = world.cost(made.results[0]);
  const std::vector<std::string> feeds = {"number", "x", "truth"};
  const Minibatch minibatch = Minibatch::draw(kMixed);
  check_gradients(world, cost, minibatch, {"expert_0.weight", "expert_1.bias", "expert_2.weight"}, feeds);

  const Layers all = {world.fc({world.x}, "a", {{"parameter_name", "expert_0"}}),
                      world.fc({world.x}, "b", {{"parameter_name", "expert_1"}}),
                      world.fc({world.x}, "c", {{"parameter_name", "expert_2"}})};
  const Layers outputs = {made.results[0], all[0], all[1], all[2]};
  const Machine machine = world.machine(world.host.parameters(outputs, 1), outputs, false);
  machine.forward(minibatch.feeds({"number", "x"}));
  const Numbers chosen = numbers(machine.output(outputs[0]));
  for (size_t i = 0; i < minibatch.number.size(); ++i) {
    const Numbers expected = numbers(machine.output(all[static_cast<size_t>(minibatch.number[i])]));
    for (size_t j = 0; j < 4; ++j) EXPECT_EQ(chosen[i * 4 + j], expected[i * 4 + j]) << i;
  }
}

// Integers that a layer computes are checked when they are read.
TEST(Conds, AnIntegerWithoutABranchIsRefused) {
  const World world;
  const auto same = [&](Branch& branch) { return Layers{branch.input(world.x)}; };
  const CondResult made = cases(world.host.layer("argmin", {world.x}), {same, same}, "two");
  const Machine machine = world.machine(world.host.parameters({made.layer}, 1), {made.layer}, false);
  const Numbers x = {-1, 0, 0, 0, -1, 0, 0, 0, -1};
  try {
    machine.forward({{"x", {TN_F64, {3, kDepth}, x.data()}}});
    FAIL() << "2 of two branches";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_BAD_DATA);
    EXPECT_THAT(error.what(), testing::HasSubstr("two.rows"));
    EXPECT_THAT(error.what(), testing::HasSubstr("row 2 has 2; expected 0 to 1"));
  }
}

// ---- sequences

// The last state and all states of an lstm, with parameters of its branch, and the same for all sequences.
TEST(Conds, BranchesHaveTheSequencesOfTheirSamples) {
  const World world;
  const auto run = [&](const Layer& rows, const std::string& name, const std::string& layer) {
    const Layer made = world.host.layer("lstm", {rows}, {{"size", kSize}, {"parameter_name", name}}, layer);
    return Layers{world.host.layer("sequence_pool", {made}, {{"kind", "last"}}), made};
  };
  const CondResult made = cond(
      world.predicate, [&](Branch& branch) { return run(branch.input(world.rows), "one", "then"); },
      [&](Branch& branch) { return run(branch.input(world.rows), "other", "else"); }, "gate");
  const Layers one = run(world.rows, "one", "all_one"), other = run(world.rows, "other", "all_other");
  const Layer mask = world.mask();
  const Layers reference = {world.chosen(mask, one[0], other[0]),
                            world.chosen(world.host.layer("sequence_expand", {mask, world.rows}), one[1], other[1])};
  const auto cost = [&](const Layers& results) {
    const Layer total = world.host.layer("sequence_pool", {results[1]}, {{"kind", "sum"}});
    return world.cost(world.host.layer("add", {results[0], total}));
  };
  expect_equal(world, made.results, reference, cost, {"predicate", "rows", "truth"},
               {"one.weight", "other.recurrent_weight"}, "rows");
}

// A step of one's own along the sequences of a branch, which reads a value of all samples.
TEST(Conds, AScanRunsInsideOfABranch) {
  const World world;
  const Layer start = world.fc({world.x}, "start");
  const auto sums = [&](const Layer& rows, const Layer& initial, const Layer& each, const std::string& name) {
    return scan({rows},
                [&](Step& step) {
                  const Layer state = step.memory(initial);
                  const Layer next =
                      world.fc({step.input(0), state, each}, name, {{"parameter_name", "step"}, {"act", "tanh"}});
                  step.next(state, next);
                  return Layers{next};
                })
        .last[0];
  };
  const CondResult made = cond(
      world.predicate,
      [&](Branch& branch) { return Layers{sums(branch.input(world.rows), branch.input(start), world.x, "inside")}; },
      [&](Branch&) { return Layers{start}; }, "gate");
  const Layer reference = world.chosen(world.mask(), sums(world.rows, start, world.x, "all"), start);
  const auto cost = [&](const Layers& results) { return world.cost(results[0]); };
  expect_equal(world, made.results, {reference}, cost, {"predicate", "x", "rows", "truth"},
               {"step.weight_1", "start.weight"}, "x");
}

// The rows of sequences may go through branches of their own, and keep their sequences.
TEST(Conds, RowsOfSequencesAreChosen) {
  const World world;
  const Layer score = world.fc({world.rows}, "score", {}, 1);
  const CondResult made = cond(
      score, [&](Branch& branch) { return Layers{world.fc({branch.input(world.rows)}, "wide")}; },
      [&](Branch& branch) {
        return Layers{world.fc({branch.input(world.rows)}, "other", {{"act", "tanh"}})};
      });
  const Layer pooled = world.host.layer("sequence_pool", {made.results[0]}, {{"kind", "sum"}});
  check_gradients(world, world.cost(pooled), Minibatch::draw(kMixed), {"wide.weight", "other.weight"},
                  {"rows", "truth"});
}

// ---- bits

Layer deep_model(const World& world, bool dropout) {
  const CondResult made = branches_of(world);
  return dropout ? world.host.layer("dropout", {made.results[0]}, {{"rate", 0.25}}, "dropped") : made.results[0];
}

TEST(Conds, EveryNumberOfThreadsGivesTheSameBits) {
  std::vector<Numbers> known;
  for (const int threads : {1, 2, 3}) {
    const World world(threads);
    const Layer result = deep_model(world, true), cost = world.cost(result);
    const Machine machine = world.machine(world.host.parameters({cost}, 5), {cost, result});
    machine.forward(Minibatch::draw(kMixed).feeds(kFeeds));
    machine.backward();
    std::vector<Numbers> results = {numbers(machine.output(result))};
    for (const char* name : {"shared.weight", "deep.weight_1", "hidden.bias"})
      results.push_back(numbers(machine.gradient(name)));
    if (known.empty()) known = results;
    EXPECT_EQ(results, known) << threads;
  }
}

TEST(Conds, ASampleHasTheSameBitsInAnyBatchAndOrder) {
  const World world;
  const Layer result = deep_model(world, false);
  const Machine machine = world.machine(world.host.parameters({result}, 5), {result}, false);
  const Minibatch minibatch = Minibatch::draw(kMixed);
  const auto forward = [&](const std::vector<size_t>& of) {
    machine.forward(minibatch.of(of).feeds({"predicate", "x"}));
    return numbers(machine.output(result));
  };
  std::vector<size_t> order(minibatch.predicate.size());
  std::iota(order.begin(), order.end(), 0);
  const Numbers all = forward(order);
  std::reverse(order.begin(), order.end());
  const Numbers reversed = forward(order);
  for (size_t i = 0; i < order.size(); ++i) {
    const auto row = [](const Numbers& of, size_t at) {
      const auto begin = of.begin() + static_cast<std::ptrdiff_t>(at) * kSize;
      return Numbers(begin, begin + kSize);
    };
    EXPECT_EQ(row(reversed, order.size() - 1 - i), row(all, i)) << i;
    EXPECT_EQ(forward({i}), row(all, i)) << i;
  }
}

// Statistics are of the rows of the branch: without rows they stay as they are.
TEST(Conds, BatchNormOfABranchWithoutRowsStaysFinite) {
  const World world;
  const CondResult made = cond(
      world.predicate,
      [&](Branch& branch) {
        return Layers{world.fc({world.host.layer("batch_norm", {branch.input(world.x)}, {}, "norm")}, "fc")};
      },
      [&](Branch& branch) { return Layers{world.fc({branch.input(world.x)}, "other")}; });
  const Layer cost = world.cost(made.results[0]);
  const Parameters parameters = world.host.parameters({cost}, 5);
  const Machine machine = world.machine(parameters, {cost});
  const Updater updater = world.host.updater("sgd", {{"learning_rate", 0.1}});
  for (const Numbers& predicate : {Numbers{0, 0, 0}, Numbers{1, 1, 0}, Numbers{0, 0, 0, 0}}) {
    machine.forward(Minibatch::draw(predicate).feeds(kFeeds));
    machine.backward();
    for (const char* name : {"norm.scale", "fc.weight", "other.weight"})
      for (const double each : numbers(machine.gradient(name))) EXPECT_TRUE(std::isfinite(each)) << name;
    updater.update(machine);
    for (const char* name : {"norm.moving_mean", "norm.moving_variance"})
      for (const double each : numbers(parameters.get(name))) EXPECT_TRUE(std::isfinite(each)) << name;
  }
}

// ---- models

TEST(Conds, AModelIsSavedAndRestored) {
  const TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  const World world, other(1);
  const Layer lengths = world.host.layer("sequence_pool", {world.rows}, {{"kind", "sum"}}, "sums");
  const CondResult made = cond(
      world.predicate,
      [&](Branch& branch) {
        const Layer rows = world.fc({branch.input(world.rows), branch.input(world.rows)}, "rows_of_then");
        return Layers{world.fc({branch.input(world.x), lengths}, "deep"), rows};
      },
      [&](Branch& branch) {
        return Layers{world.fc({branch.input(world.x)}, "flat"), world.fc({branch.input(world.rows)}, "rows_of_else")};
      },
      "gate");
  const Layers outputs = {made.results[0], made.results[1]};
  const Parameters parameters = world.host.parameters(outputs, 3);
  parameters.save(outputs, path);
  const tenon::Model model = other.host.load(path);
  ASSERT_EQ(model.outputs.size(), 2U);
  const Machine before = world.machine(parameters, outputs, false);
  const Machine after = other.machine(model.parameters, model.outputs, false);
  const Minibatch minibatch = Minibatch::draw(kMixed);
  before.forward(minibatch.feeds({"predicate", "x", "rows"}));
  after.forward(minibatch.feeds({"predicate", "x", "rows"}));
  for (size_t i = 0; i < outputs.size(); ++i)
    EXPECT_EQ(numbers(after.output(model.outputs[i])), numbers(before.output(outputs[i]))) << i;
  const std::string again = folder.file("again.safetensors");
  model.parameters.save(model.outputs, again);
  EXPECT_EQ(other.host.describe_model(again), other.host.describe_model(path));
}

}  // namespace

}  // namespace tenon_tests
