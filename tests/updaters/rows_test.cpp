// Row-sparse updates against the lazy formulas in plain fp64; rows that were not read must keep their bits.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <tenon/tenon.hpp>

#include "tests/support/paths.h"
#include "tests/updaters/update_formulas.h"

namespace tenon_tests {

using namespace tenon;

namespace {

constexpr int64_t kBag = 3;

// An embedding bag whose cost is the mean over samples of the sum of (sum of the bag's rows - label)^2.
class Table {
 public:
  Table(int64_t vocabulary, int64_t size, int64_t samples, int threads, const Attributes& more = {})
      : vocabulary_(vocabulary),
        size_(size),
        samples_(samples),
        host_({threads, {tenon_tests::plugin_folder()}, nullptr, {}}) {
    DataOptions ids;
    ids.name = "ids", ids.dtype = TN_I64, ids.shape = {kBag};
    DataOptions label;
    label.name = "label", label.dtype = TN_F32, label.shape = {size};
    Attributes attributes = {{"vocabulary", vocabulary}, {"size", size}, {"reduce", "sum"}};
    attributes.insert(attributes.end(), more.begin(), more.end());
    const Layer bag = host_.layer("embedding", {host_.data(ids)}, attributes, "table");
    cost_ = host_.layer("square_error", {bag, host_.data(label)}, {}, "cost");
    parameters_ = host_.parameters({cost_}, 5);
    MachineOptions options;
    options.max_samples = samples;
    options.training = true;
    machine_ = host_.machine(parameters_, {cost_}, options);
  }

  [[nodiscard]] Updater updater(const std::string& type, const Attributes& attributes = {}) const {
    return host_.updater(type, attributes);
  }
  void backward(const std::vector<int64_t>& ids) const {
    const std::vector<float> labels(static_cast<size_t>(samples_ * size_), 0.25F);
    machine_.forward(
        {{"ids", {TN_I64, {samples_, kBag}, ids.data()}}, {"label", {TN_F32, {samples_, size_}, labels.data()}}});
    machine_.backward();
  }
  [[nodiscard]] std::vector<float> values() const {
    const Array array = parameters_.get("table.weight");
    const auto* data = static_cast<const float*>(array.data);
    return {data, data + array.count()};
  }
  // Returns the gradient of each row in `ids`, by the formula.
  [[nodiscard]] std::map<int64_t, std::vector<double>> gradients(const std::vector<double>& table,
                                                                 const std::vector<int64_t>& ids) const {
    std::map<int64_t, std::vector<double>> result;
    const auto width = static_cast<size_t>(size_);
    for (int64_t s = 0; s < samples_; ++s) {
      const int64_t* bag = ids.data() + s * kBag;
      for (size_t c = 0; c < width; ++c) {
        double sum = -0.25;
        for (int64_t i = 0; i < kBag; ++i) sum += table[static_cast<size_t>(bag[i]) * width + c];
        for (int64_t i = 0; i < kBag; ++i) {
          std::vector<double>& row = result[bag[i]];
          row.resize(width);
          row[c] += 2 * sum / static_cast<double>(samples_);
        }
      }
    }
    return result;
  }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }

 private:
  int64_t vocabulary_, size_, samples_;
  Host host_;
  Layer cost_;
  Parameters parameters_;
  Machine machine_;
};

// Runs 30 steps with changing rows. Returns the largest difference from the rule, relative to the largest change.
double distance_to(const Rule& rule, const std::string& type, const Attributes& attributes, int threads = 2) {
  constexpr int64_t kVocabulary = 40, kSize = 5, kSamples = 4;
  const Table table(kVocabulary, kSize, kSamples, threads);
  const Updater updater = table.updater(type, attributes);
  const std::vector<float> began = table.values();
  std::vector<double> values(began.begin(), began.end());
  std::map<int64_t, Tensor> rows;
  std::mt19937_64 random(3);
  for (int t = 1; t <= 30; ++t) {
    std::vector<int64_t> ids(kSamples * kBag);
    for (int64_t& id : ids) id = static_cast<int64_t>(random() % 7 + (t % 5) * 8);
    table.backward(ids);
    updater.update(table.machine());
    for (const auto& [id, gradient] : table.gradients(values, ids)) {
      Tensor& row = rows.try_emplace(id, std::vector<double>(kSize)).first->second;
      const auto at = values.begin() + id * kSize;
      row.value.assign(at, at + kSize);
      rule(row, gradient, t);
      std::copy(row.value.begin(), row.value.end(), at);
    }
  }
  const std::vector<float> got = table.values();
  double worst = 0, moved = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - values[i]));
    moved = std::max(moved, std::abs(values[i] - static_cast<double>(began[i])));
    if (!rows.contains(static_cast<int64_t>(i) / kSize)) {
      EXPECT_EQ(got[i], began[i]) << type << " element " << i;
    }
  }
  return worst / moved;
}

constexpr double kTolerance = 1e-4;

TEST(RowsUpdate, FollowsTheLazyFormula) {
  EXPECT_LT(distance_to(sgd(0.05, 0, false, 0), "sgd", {{"learning_rate", 0.05}}), kTolerance);
  EXPECT_LT(distance_to(sgd(0.02, 0.9, false, 0.01), "sgd",
                        {{"learning_rate", 0.02}, {"momentum", 0.9}, {"weight_decay", 0.01}}),
            kTolerance);
  EXPECT_LT(distance_to(adam(0.05, 0, false), "adam", {{"learning_rate", 0.05}}), kTolerance);
  EXPECT_LT(distance_to(adagrad(0.1, 0, 0), "adagrad", {{"learning_rate", 0.1}}), kTolerance);
  EXPECT_LT(distance_to(rowwise_adagrad(0.1, 0, 0), "rowwise_adagrad", {{"learning_rate", 0.1}}), kTolerance);
}

TEST(RowsUpdate, OtherFormulasAreToldApart) {
  EXPECT_GT(distance_to(sgd(0.05, 0, false, 0), "sgd", {{"learning_rate", 0.0501}}), kTolerance);
  EXPECT_GT(distance_to(rowwise_adagrad(0.1, 0, 0), "adagrad", {{"learning_rate", 0.1}}), kTolerance);
  // Not lazy: the moment also decays in steps that do not read the row.
  const Rule eager = [](Tensor& row, const std::vector<double>& g, double t) {
    for (double& x : row.first) x *= std::pow(0.9, std::fmod(t, 5));
    adam(0.05, 0, false)(row, g, t);
  };
  EXPECT_GT(distance_to(eager, "adam", {{"learning_rate", 0.05}}), kTolerance);
}

// The bits do not depend on the number of threads. They are those of a dense gradient for updaters that do not change a
// row whose gradient is 0.
TEST(RowsUpdate, BitsOfThreadsAndOfDenseSgd) {
  const auto after = [](int threads, bool sparse, const std::string& type) {
    const Table table(500, 33, 64, threads, {{"param.weight.sparse", sparse}});
    const Updater updater = table.updater(type, {{"learning_rate", 0.1}});
    std::mt19937_64 random(9);
    for (int t = 0; t < 5; ++t) {
      std::vector<int64_t> ids(64 * kBag);
      for (int64_t& id : ids) id = static_cast<int64_t>(random() % 90 * (random() % 6));
      table.backward(ids);
      updater.update(table.machine());
    }
    return table.values();
  };
  for (const char* type : {"sgd", "adagrad", "rowwise_adagrad"}) {
    const std::vector<float> one = after(1, true, type);
    for (const int threads : {2, 3, 8}) EXPECT_EQ(after(threads, true, type), one) << type << ", " << threads;
    EXPECT_EQ(after(2, false, type), one) << type << " with a dense gradient";
  }
}

TEST(RowsUpdate, GradientsAddUpAndAreSeenBothWays) {
  const Table table(20, 4, 2, 2);
  const std::vector<int64_t> first = {1, 2, 2, 3, 1, 7}, second = {9, 2, 11, 13, 14, 15};
  const std::vector<float> began = table.values();
  const std::vector<double> values(began.begin(), began.end());
  std::map<int64_t, std::vector<double>> wanted = table.gradients(values, first);
  table.backward(first);
  EXPECT_EQ(table.machine().sparse_gradient("table.weight").ids.shape, (std::vector<int64_t>{4}));
  for (int more = 0; more < 3; ++more) {
    table.backward(second);
    for (const auto& [id, gradient] : table.gradients(values, second)) {
      wanted[id].resize(4);
      for (size_t i = 0; i < 4; ++i) wanted[id][i] += gradient[i];
    }
  }
  const Machine::Rows rows = table.machine().sparse_gradient("table.weight");
  ASSERT_EQ(rows.ids.shape[0], static_cast<int64_t>(wanted.size()));
  ASSERT_EQ(rows.values.shape, (std::vector<int64_t>{static_cast<int64_t>(wanted.size()), 4}));
  const Array dense = table.machine().gradient("table.weight");
  ASSERT_EQ(dense.shape, (std::vector<int64_t>{20, 4}));
  std::set<int64_t> seen;
  for (int64_t r = 0; r < rows.ids.shape[0]; ++r) {
    const int64_t id = static_cast<const int64_t*>(rows.ids.data)[r];
    EXPECT_TRUE(seen.insert(id).second) << "duplicate row " << id;
    for (int64_t c = 0; c < 4; ++c) {
      const float got = static_cast<const float*>(rows.values.data)[r * 4 + c];
      EXPECT_NEAR(got, wanted.at(id)[static_cast<size_t>(c)], 1e-5);
      EXPECT_EQ(static_cast<const float*>(dense.data)[id * 4 + c], got);
    }
  }
  const Updater updater = table.updater("sgd", {{"learning_rate", 1.0}});
  updater.update(table.machine());
  EXPECT_EQ(table.machine().sparse_gradient("table.weight").ids.shape, rows.ids.shape);  // until the next forward
  EXPECT_NE(updater.describe(table.parameters())
                .find("\"last_update\":{\"bytes_written\":" + std::to_string(wanted.size() * 4 * sizeof(float)) +
                      ",\"rows\":" + std::to_string(wanted.size())),
            std::string::npos)
      << updater.describe(table.parameters());
}

TEST(RowsUpdate, ClippingByTheNormSeesTheRows) {
  const Table table(20, 4, 2, 2);
  const std::vector<int64_t> ids = {1, 2, 2, 3, 1, 7};
  const std::vector<float> began = table.values();
  double norm = 0;
  for (const auto& [id, gradient] : table.gradients({began.begin(), began.end()}, ids))
    for (const double g : gradient) norm += g * g;
  norm = std::sqrt(norm);
  table.backward(ids);
  table.updater("sgd", {{"learning_rate", 1.0}, {"clip_norm", norm / 4}}).update(table.machine());
  const std::vector<float> after = table.values();
  double moved = 0;
  for (size_t i = 0; i < after.size(); ++i) moved += std::pow(static_cast<double>(after[i]) - began[i], 2);
  EXPECT_NEAR(std::sqrt(moved), norm / 4, 1e-5 * norm);
}

TEST(RowsUpdate, WhatCannotBeIsSaid) {
  const auto message = [](const auto& work) -> std::string {
    try {
      work();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const Table table(20, 4, 2, 1);
  table.backward({1, 2, 2, 3, 1, 7});
  for (const char* type : {"lamb", "adafactor"}) {
    const std::string said = message([&] { table.updater(type, {}).update(table.machine()); });
    EXPECT_NE(said.find("table.weight"), std::string::npos) << said;
    EXPECT_NE(said.find("sparse"), std::string::npos) << said;
  }
  const Table dense(20, 4, 2, 1, {{"param.weight.sparse", false}});
  dense.backward({1, 2, 2, 3, 1, 7});
  const std::string rows = message([&] { (void)dense.machine().sparse_gradient("table.weight"); });
  EXPECT_NE(rows.find("dense"), std::string::npos) << rows;
  dense.updater("lamb", {}).update(dense.machine());
  const std::string wrong = message([&] { Table(20, 4, 2, 1, {{"param.weight.sparse", 3}}); });
  EXPECT_NE(wrong.find("param.weight.sparse"), std::string::npos) << wrong;
}

// A dense gradient updates all parameters and one state for each row.
TEST(RowsUpdate, StatesOfRowsCountAmongTheBytesWritten) {
  constexpr uint64_t kRows = 20, kSize = 4;
  const Table dense(kRows, kSize, 2, 1, {{"param.weight.sparse", false}});
  dense.backward({1, 2, 2, 3, 1, 7});
  const Updater updater = dense.updater("rowwise_adagrad", {});
  updater.update(dense.machine());
  EXPECT_NE(updater.describe(dense.parameters())
                .find("\"bytes_written\":" + std::to_string((kRows * kSize + kRows) * sizeof(float)) + ","),
            std::string::npos)
      << updater.describe(dense.parameters());
}

// An allocator that reuses released memory at once, and returns null while `empty` is true.
class Recycler {
 public:
  Recycler() {
    table_.size = sizeof table_;
    table_.self = this;
    table_.allocate = [](void* self, uint64_t bytes, uint64_t alignment) {
      return static_cast<Recycler*>(self)->allocate(bytes, alignment);
    };
    table_.release = [](void* self, void* memory, uint64_t bytes) {
      Recycler& it = *static_cast<Recycler*>(self);
      const std::lock_guard lock(it.mutex_);
      it.free_[bytes].push_back(memory);
    };
  }
  ~Recycler() {
    for (auto& [bytes, list] : free_)
      for (void* memory : list) std::free(memory);
  }
  Recycler(const Recycler&) = delete;
  Recycler& operator=(const Recycler&) = delete;
  [[nodiscard]] const tn_allocator* table() const { return &table_; }
  bool empty = false;

 private:
  void* allocate(uint64_t bytes, uint64_t alignment) {
    const std::lock_guard lock(mutex_);
    if (empty) return nullptr;
    std::vector<void*>& list = free_[bytes];
    if (list.empty()) {
      constexpr uint64_t kLine = 64;
      const uint64_t whole = std::max(alignment, kLine);
      return std::aligned_alloc(whole, (bytes + whole - 1) / whole * whole);
    }
    void* const memory = list.back();
    list.pop_back();
    return memory;
  }

  tn_allocator table_ = {};
  std::mutex mutex_;
  std::map<uint64_t, std::vector<void*>> free_;
};

// Trains one of several tables of equal size with a new machine in each round; the machine before it is destroyed.
TEST(RowsUpdate, AMachineInTheMemoryOfAnother) {
  Recycler memory;
  const Host host({1, {tenon_tests::plugin_folder()}, memory.table(), {}});
  constexpr int64_t kVocabulary = 50, kSize = 4, kTables = 4;
  DataOptions ids;
  ids.name = "ids", ids.dtype = TN_I64;
  DataOptions label;
  label.name = "label", label.shape = {kSize};
  const Layer words = host.data(ids), wanted = host.data(label);
  Layers costs;
  for (int64_t i = 0; i < kTables; ++i) {
    const std::string name = "table" + std::to_string(i);
    const Layer vectors = host.layer("embedding", {words}, {{"vocabulary", kVocabulary}, {"size", kSize}}, name);
    costs.push_back(host.layer("square_error", {vectors, wanted}, {}, "cost" + std::to_string(i)));
  }
  const Parameters parameters = host.parameters(costs, 1);
  const Updater updater = host.updater("sgd", {{"learning_rate", 0.1}});
  const auto table = [&](size_t i) {
    const Array array = parameters.get("table" + std::to_string(i) + ".weight");
    const auto* data = static_cast<const float*>(array.data);
    return std::vector<float>(data, data + array.count());
  };
  const std::vector<int64_t> id = {1, 2, 3};
  const std::vector<float> zeros(3 * kSize, 0.0F);
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    const size_t trained = random() % kTables;
    std::vector<std::vector<float>> before;
    for (size_t i = 0; i < kTables; ++i) before.push_back(table(i));
    {
      MachineOptions options;
      options.max_samples = 3, options.training = true;
      const Machine machine = host.machine(parameters, {costs[trained]}, options);
      machine.forward({{"ids", {TN_I64, {3}, id.data()}}, {"label", {TN_F32, {3, kSize}, zeros.data()}}});
      machine.backward();
      updater.update(machine);
    }
    for (size_t i = 0; i < kTables; ++i) EXPECT_EQ(table(i) != before[i], i == trained) << round << ", table " << i;
  }
}

TEST(RowsUpdate, BackwardWithoutMemoryCanBeRepeated) {
  Recycler memory;
  const Host host({1, {tenon_tests::plugin_folder()}, memory.table(), {}});
  DataOptions ids;
  ids.name = "ids", ids.dtype = TN_I64;
  DataOptions label;
  label.name = "label", label.shape = {2};
  const Layer vectors = host.layer("embedding", {host.data(ids)}, {{"vocabulary", 1000}, {"size", 2}}, "table");
  const Layer cost = host.layer("square_error", {vectors, host.data(label)});
  MachineOptions options;
  options.max_samples = 4, options.training = true;
  const Machine machine = host.machine(host.parameters({cost}, 1), {cost}, options);
  const std::vector<float> zeros(8, 0.0F);
  int refused = 0;
  for (int64_t step = 0; step < 6; ++step) {  // gradients accumulate, so they need more memory
    const std::vector<int64_t> id = {4 * step, 4 * step + 1, 4 * step + 2, 4 * step + 3};
    machine.forward({{"ids", {TN_I64, {4}, id.data()}}, {"label", {TN_F32, {4, 2}, zeros.data()}}});
    memory.empty = true;
    try {
      machine.backward();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_OUT_OF_MEMORY);
      memory.empty = false;
      ++refused;
      machine.backward();
    }
    memory.empty = false;
  }
  EXPECT_GT(refused, 0);
  const Machine::Rows rows = machine.sparse_gradient("table.weight");
  EXPECT_EQ(rows.ids.shape[0], 24);
}

// A million rows of 64: bytes_written counts the touched rows only. All other rows keep their bits, and untouched rows
// their states, as the last step checks, which touches the rows of the first step again.
TEST(RowsUpdate, AMillionRows) {
  constexpr int64_t kRows = 1000000, kSize = 64, kSamples = 8;
  const std::vector<std::pair<std::string, Rule>> updaters = {
      {"sgd", sgd(0.05, 0, false, 0)}, {"momentum", sgd(0.05, 0.9, false, 0)}, {"adam", adam(0.05, 0, false)}};
  const Table table(kRows, kSize, kSamples, 2);
  std::vector<int64_t> here(kSamples * kBag), there(kSamples * kBag);
  for (size_t i = 0; i < here.size(); ++i) {
    here[i] = static_cast<int64_t>(i * 40013 % kRows);
    there[i] = static_cast<int64_t>((i * 40013 + 77) % kRows);
  }
  for (const auto& [name, rule] : updaters) {
    const Updater updater = name == "momentum" ? table.updater("sgd", {{"learning_rate", 0.05}, {"momentum", 0.9}})
                                               : table.updater(name, {{"learning_rate", 0.05}});
    const std::vector<float> began = table.values();
    std::vector<double> values(began.begin(), began.end());
    std::map<int64_t, Tensor> rows;
    double t = 0;
    for (const auto* ids : {&here, &there, &there, &here}) {
      table.backward(*ids);
      updater.update(table.machine());
      ++t;
      for (const auto& [id, gradient] : table.gradients(values, *ids)) {
        Tensor& row = rows.try_emplace(id, std::vector<double>(kSize)).first->second;
        row.value.assign(values.begin() + id * kSize, values.begin() + (id + 1) * kSize);
        rule(row, gradient, t);
        std::copy(row.value.begin(), row.value.end(), values.begin() + id * kSize);
      }
    }
    const std::vector<float> after = table.values();
    int64_t changed = 0;
    for (int64_t row = 0; row < kRows; ++row) {
      const auto at = static_cast<size_t>(row * kSize);
      if (std::memcmp(&after[at], &began[at], kSize * sizeof(float)) == 0) continue;
      ++changed;
      ASSERT_TRUE(rows.contains(row)) << name << ": row " << row << " was not touched and has changed";
      for (size_t c = 0; c < kSize; ++c) ASSERT_NEAR(after[at + c], values[at + c], 2e-5) << name << ", row " << row;
    }
    EXPECT_EQ(changed, static_cast<int64_t>(rows.size())) << name;
    const size_t tensors = name == "sgd" ? 1 : name == "momentum" ? 2 : 3;
    EXPECT_NE(updater.describe(table.parameters())
                  .find("\"bytes_written\":" + std::to_string(here.size() * kSize * sizeof(float) * tensors) + ","),
              std::string::npos)
        << name << ": " << updater.describe(table.parameters());
  }
}

}  // namespace
}  // namespace tenon_tests
