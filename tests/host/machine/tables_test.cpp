// Machines that read tables through caches of rows: the numbers of machines that have all rows.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "host/api/host/host.h"
#include "host/training/program_updater.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using testing::HasSubstr;

constexpr int64_t kRows = 600, kMost = 8;

// Arrays of a step: an item, a sequence of words, and weighted tags for each sample.
struct Minibatch {
  explicit Minibatch(int64_t step) {
    for (int64_t i = 0; i < kMost; ++i) {
      item.push_back(static_cast<int32_t>((i * 151 + step * 37) % kRows));
      for (int64_t k = 0; k < (i + step) % 4 + 5 * step; ++k)
        words.push_back(static_cast<int32_t>((k * k * 7 + i * 83 + step) % kRows));
      ends.push_back(static_cast<int64_t>(words.size()));
      for (int64_t k = 0; k < i % 3; ++k) {
        tags.push_back((k * 257 + i * 19 + step) % kRows);
        weights.push_back(0.25F * static_cast<float>(k + 1));
      }
      tag_ends.push_back(static_cast<int64_t>(tags.size()));
      label.push_back(static_cast<int32_t>(i % 4));
    }
  }
  // In the order of the data layers of the model.
  [[nodiscard]] std::vector<NamedArray> arrays() const {
    ArrayView sequences = {TN_I32, {ends.back()}, words.data(), TN_RAGGED, 1, {ends.data(), nullptr}, nullptr, kMost};
    ArrayView sparse = {TN_F32, {kMost, kRows}, weights.data(), TN_CSR, 0, {tag_ends.data(), nullptr}, tags.data()};
    return {{"words", sequences},
            {"item", {TN_I32, {kMost}, item.data()}},
            {"tags", sparse},
            {"label", {TN_I32, {kMost}, label.data()}}};
  }

  std::vector<int32_t> item, words, label;
  std::vector<int64_t> ends = {0}, tags, tag_ends = {0};
  std::vector<float> weights;
};

class Tables : public testing::Test {
 protected:
  Tables() : host_(options()) {}

  static HostOptions options() {
    HostOptions made;
    made.threads = 2;
    made.plugin_paths = {tenon_tests::plugin_folder()};
    return made;
  }
  LayerOutput data(const std::string& name, tn_dtype dtype, int32_t storage, std::vector<int64_t> shape = {},
                   int64_t limit = kRows) {
    DataSource source;
    source.dtype = dtype, source.storage = storage, source.shape = std::move(shape);
    source.levels = storage == TN_RAGGED ? 1 : 0;
    if (dtype == TN_I32) source.index_limit = limit;
    return {host_.factory.data(name, source), 0};
  }
  LayerOutput layer(const char* type, const char* name, const std::vector<LayerOutput>& inputs, const Values& values) {
    return host_.factory.layer(type, name, inputs, values);
  }
  // "items.weight" is read by a bag and by a lookup, "tagged.weight" by sparse rows of numbers.
  Topology model() {
    const Values items = {{"vocabulary", kRows}, {"size", int64_t{6}}, {"parameter_name", std::string("items")}};
    Values history = items;
    history["reduce"] = std::string("sum");
    const LayerOutput seen = layer("embedding", "seen", {data("words", TN_I32, TN_RAGGED)}, history);
    const LayerOutput item = layer("embedding", "looked_up", {data("item", TN_I32, TN_DENSE)}, items);
    const LayerOutput tagged = layer("fc", "tagged", {data("tags", TN_F32, TN_CSR, {kRows})}, {{"size", int64_t{5}}});
    const LayerOutput scores = layer("fc", "scores", {seen, item, tagged}, {{"size", int64_t{4}}});
    const LayerOutput label = data("label", TN_I32, TN_DENSE, {}, 4);
    return Topology::trace({layer("cross_entropy", "cost", {scores, label}, {{"from_logits", true}})});
  }
  std::shared_ptr<ParameterSet> parameters(const Topology& topology, const TablePlacement& tables = {}) {
    return ParameterSet::create(topology.declarations(), 3, host_.allocator, tables);
  }
  std::unique_ptr<Machine> machine(const Topology& topology, const std::shared_ptr<ParameterSet>& set,
                                   MachineOptions options = {}, size_t devices = 1) {
    options.max_samples = kMost;
    return std::make_unique<Machine>(topology, set, host_.registry,
                                     std::vector<std::shared_ptr<Device>>(devices, host_.device("cpu")), host_.parallel,
                                     options);
  }
  // Returns the values of all parameters after steps with minibatches that grow, and the costs.
  std::vector<float> trained(const Topology& topology, const std::shared_ptr<ParameterSet>& set,
                             const std::string& updater, const MachineOptions& options, size_t devices) {
    const auto trains = machine(topology, set, options, devices);
    ProgramUpdater updates(host_.registry.updater(updater), {{"learning_rate", 0.1}});
    std::vector<float> values;
    for (int64_t step = 0; step < 4; ++step) {
      const Minibatch minibatch(step);
      trains->forward_backward(by_number(trains->feeds(), minibatch.arrays()));
      updates.update(trains->step(), {});
      trains->step().commit({});
      values.push_back(static_cast<float>(trains->cost()));
    }
    for (const ParameterEntry& entry : set->entries()) {
      const ParameterSet& from = entry.table ? *set->owned() : *set;
      const ParameterEntry& of = from.find(entry.name);
      values.insert(values.end(), from.values(of), from.values(of) + of.count);
    }
    return values;
  }

  Host host_;
  const TablePlacement all_ = {{"items.weight", "tagged.weight"}, TableBlocks{}};
};

// The norm of the gradients is added up by runs: they must be those of a set that has the table between the others.
TEST_F(Tables, PartTheRunsOfGradientsLikeAWholeTable) {
  const LayerOutput before = layer("fc", "before", {data("x", TN_F32, TN_DENSE, {3})}, {{"size", int64_t{4}}});
  const LayerOutput item =
      layer("embedding", "item_vector", {data("item", TN_I32, TN_DENSE)},
            {{"vocabulary", kRows}, {"size", int64_t{6}}, {"parameter_name", std::string("items")}});
  const LayerOutput scores = layer("fc", "scores", {before, item}, {{"size", int64_t{4}}});
  const LayerOutput label = data("label", TN_I32, TN_DENSE, {}, 4);
  const Topology topology = Topology::trace({layer("cross_entropy", "cost", {scores, label}, {{"from_logits", true}})});
  const Minibatch minibatch(1);
  const std::vector<float> x(3 * kMost, 0.5F);
  const auto entries_of_runs = [&](const std::shared_ptr<ParameterSet>& set) {
    MachineOptions options;
    options.training = true;
    const auto trains = machine(topology, set, options);
    trains->forward_backward(by_number(trains->feeds(), {{"x", {TN_F32, {kMost, 3}, x.data()}},
                                                         {"item", {TN_I32, {kMost}, minibatch.item.data()}},
                                                         {"label", {TN_I32, {kMost}, minibatch.label.data()}}}));
    std::vector<std::vector<size_t>> entries;
    for (const GradientRun& run : trains->step().runs({})) entries.push_back(run.entries);
    return entries;
  };
  const auto whole = entries_of_runs(parameters(topology));
  EXPECT_GT(whole.size(), 1U);
  EXPECT_EQ(entries_of_runs(parameters(topology, {{"items.weight"}, TableBlocks{}})), whole);
}

TEST_F(Tables, CachesGiveTheBitsOfWholeTables) {
  const Topology topology = model();
  MachineOptions options;
  options.training = true;
  for (const std::string updater : {"sgd", "adam", "rowwise_adagrad"})
    for (const uint32_t shards : {0U, 5U})
      for (const size_t devices : {size_t{1}, size_t{2}}) {
        options.shards = shards;
        for (const bool results_only : {false, true}) {
          options.results_only = results_only;
          const std::vector<float> whole = trained(topology, parameters(topology), updater, options, devices);
          const std::vector<float> cached = trained(topology, parameters(topology, all_), updater, options, devices);
          ASSERT_EQ(cached.size(), whole.size());
          EXPECT_EQ(std::memcmp(cached.data(), whole.data(), whole.size() * sizeof(float)), 0)
              << updater << ", shards: " << shards << ", devices: " << devices << ", " << results_only;
        }
      }
}

TEST_F(Tables, ImmutableTablesAreReadAndNotUpdated) {
  const Topology topology = model();
  MachineOptions options;
  options.training = true;
  options.immutable = {"items"};
  const auto set = parameters(topology, all_);
  const ParameterEntry& items = set->owned()->find("items.weight");
  const std::vector<float> before(set->owned()->values(items), set->owned()->values(items) + items.count);
  const std::vector<float> whole = trained(topology, parameters(topology), "sgd", options, 1);
  EXPECT_EQ(trained(topology, set, "sgd", options, 1), whole);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), set->owned()->values(items)));
}

// Returns the message with which a call is refused.
template <typename Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.message();
  }
  return "nothing was refused";
}

TEST_F(Tables, WhatCachesCannotReadIsRefusedByName) {
  const Topology topology = model();
  MachineOptions rounded;
  rounded.precision = TN_PRECISION_BF16;
  EXPECT_THAT(refusal([&] { machine(topology, parameters(topology, all_), rounded); }),
              HasSubstr("table \"items.weight\": the machine computes in another type than float32"));
  for (const TablePlacement& placement : {TablePlacement{{"scores.weight"}, TableBlocks{}}, {{"scores.weight"}, {}}}) {
    const auto set = parameters(topology, placement);
    EXPECT_THAT(
        refusal([&] { machine(topology, set); }),
        HasSubstr("table \"scores.weight\": layer \"scores\" reads it by gemm; tables are read by gather alone"))
        << "whether other processes own rows or not";
  }
  const auto dense =
      Topology::trace({layer("embedding", "dense", {data("item", TN_I32, TN_DENSE)},
                             {{"vocabulary", kRows}, {"size", int64_t{2}}, {"param.weight.sparse", false}})});
  EXPECT_THAT(refusal([&] {
                machine(dense, parameters(dense, {{"dense.weight"}, TableBlocks{}}));
              }),
              HasSubstr("table \"dense.weight\": its gradient is dense, since layer \"dense\""));
}

TEST_F(Tables, RowsOfOtherProcessesAreMissed) {
  const Topology topology = model();
  const auto set = parameters(topology, {{"items.weight"}, blocks_of(2, 1)});
  EXPECT_THAT(
      refusal([&] { machine(topology, set); }),
      HasSubstr("table \"items.weight\": its rows lie with the processes of a team, and this machine is of one"));
  EXPECT_THAT(refusal([&] { static_cast<void>(set->values("items.weight")); }),
              HasSubstr("parameter \"items.weight\" is a table, whose rows lie with the processes of a team"));
}

TEST_F(Tables, GradientsOfTablesAreWithTheirOwners) {
  const Topology topology = model();
  MachineOptions options;
  options.training = true;
  const auto trains = machine(topology, parameters(topology, all_), options);
  trains->forward_backward(by_number(trains->feeds(), Minibatch(0).arrays()));
  EXPECT_THAT(refusal([&] { static_cast<void>(trains->step().gradient("items.weight")); }),
              HasSubstr("parameter \"items.weight\" is a table"));
  EXPECT_NO_THROW(static_cast<void>(trains->step().gradient("tagged.bias")));
}

TEST_F(Tables, UpdatersThatNeedWholeTablesAreRefused) {
  const ProgramUpdater lamb(host_.registry.updater("lamb"), {});
  EXPECT_THAT(refusal([&] { lamb.check_tables({"items.weight"}); }), HasSubstr("updates whole tensors"));
  const ProgramUpdater clipping(host_.registry.updater("sgd"), {{"clip_norm", 1.0}});
  EXPECT_THAT(refusal([&] { clipping.check_tables({"items.weight"}); }),
              HasSubstr("table \"items.weight\" has its rows with the processes of a team, over which clip_norm"));
  EXPECT_NO_THROW(clipping.check_tables({}));
}

}  // namespace

}  // namespace tenon_tests
