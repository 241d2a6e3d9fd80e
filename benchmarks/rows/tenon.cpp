// Rows of a table that two processes own, without a model: how many they fetch and push in a second.
// SPDX-License-Identifier: Apache-2.0
//   bench_rows COMM [RANK RANKS ADDRESS [SECRET]]
// One line of JSON from process 0: rows that all processes together fetch in a second, each from the other one, and as
// many gradients that they send back and whose owner adds them to its rows. With SECRET they are encrypted.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/system.h"
#include "host/comm/team.h"
#include "host/machine/shards/shard_tree.h"
#include "host/machine/tables/table_fetch.h"
#include "host/machine/tables/table_sum.h"
#include "host/plugins/registry.h"
#include "host/plugins/services.h"

namespace {

using namespace tenon::host;
using Clock = std::chrono::steady_clock;

constexpr int64_t kHeight = 1'000'000, kWidth = 64, kRows = 32768;  // kRows: of a minibatch of a process
constexpr int kSteps = 120, kMinibatches = 8;

// Gradients of all rows of a minibatch, which no machine has computed.
class Gradients final : public ShardValues {
 public:
  Gradients(const ParameterEntry& table, HostAccess& access) : rows_(kNoValue, 0, table, TN_F32, access) {
    std::vector<int64_t> places(kRows);
    for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
    const std::vector<float> values(kRows * kWidth, 1e-3F);
    rows_.resize(kRows);
    rows_.write(places, reinterpret_cast<const std::byte*>(values.data()));
  }
  [[nodiscard]] DeviceMachine& machine() override { std::abort(); }
  [[nodiscard]] std::span<std::byte> dense_gradients() const override { return {}; }
  [[nodiscard]] SparseGradient& sparse_gradient(size_t /*number*/) const override { return rows_; }
  void reserve_rows(size_t /*number*/, int64_t /*added*/) override {}
  [[nodiscard]] void* next_value(size_t /*number*/) const override { return nullptr; }
  [[nodiscard]] const std::shared_ptr<const MemoryId>& memory_id() const override { return memory_id_; }

 private:
  mutable SparseGradient rows_;
  std::shared_ptr<const MemoryId> memory_id_ = std::make_shared<const MemoryId>();
};

// A process that trains, and owns rows.
class Process {
 public:
  Process(Team& team, const std::shared_ptr<Device>& device)
      : team_(team),
        set_(parameters_of(team)),
        values_(set_->owned()->change(set_->owned()->entries()[0])),
        owners_(&team, *set_),
        tables_({{0, set_->owned()->index("items.weight"), kNoValue, kHeight, kWidth, {}}}),
        fetch_(owners_, tables_),
        sum_(owners_, static_cast<size_t>(team.processes())),
        access_(device, tenon::core::system_allocator()),
        gradients_(set_->entries()[0], access_) {
    std::fill_n(values_, set_->owned()->entries()[0].count, 1.0F);
    std::mt19937_64 draw(static_cast<uint64_t>(team.rank()));
    std::vector<int64_t> others;
    for (int64_t row = 0; row < kHeight; ++row)
      if (owners_.owner(row) != team.rank()) others.push_back(row);
    for (std::vector<int64_t>& ids : minibatches_)
      std::sample(others.begin(), others.end(), std::back_inserter(ids), kRows, draw);
  }

  // Trains so many steps; returns the rows that all processes have fetched in a second.
  double run(int steps) {
    ask();
    const Clock::time_point began = Clock::now();
    for (int step = 0; step < steps; ++step) {
      if (step + 1 < steps) ask();
      fetch_.fetch();
      push();
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    return static_cast<double>(team_.processes() * kRows * steps) / seconds;
  }

 private:
  static std::shared_ptr<ParameterSet> parameters_of(const Team& team) {
    std::vector<ParameterDeclaration> declarations(1);
    declarations[0].name = "items.weight", declarations[0].shape = {kHeight, kWidth};
    return ParameterSet::create(declarations, 1, tenon::core::system_allocator(),
                                {{"items.weight"}, owned_blocks(&team, team.rank())});
  }

  void ask() {
    TableIds ids = {minibatches_[asked_++ % kMinibatches]};
    fetch_.ask(ids);
  }
  // The owner changes the rows as `sgd` does.
  void push() {
    const auto shards = static_cast<size_t>(team_.processes()), rank = static_cast<size_t>(team_.rank());
    const ShardTree tree(team_.processes(), shards);
    const RowTerms& sums = sum_.run(tree, {{rank, &gradients_}}, {{&tables_[0], &fetch_.rows()[0], 0}})[0];
    const auto* gradient = reinterpret_cast<const float*>(sums.values.data());
    for (size_t i = 0; i < sums.ids.size(); ++i, gradient += kWidth) {
      constexpr size_t kAhead = 8;  // rows lie in no cache, and kernels ask for them before, too
      if (i + kAhead < sums.ids.size()) prefetch(row(sums.ids[i + kAhead]));
      float* const to = row(sums.ids[i]);
      for (int64_t j = 0; j < kWidth; ++j) to[j] -= 0.01F * gradient[j];
    }
  }
  [[nodiscard]] float* row(int64_t id) const { return values_ + owners_.blocks().place(id) * kWidth; }
  static void prefetch(const float* row) {
    for (int64_t i = 0; i < kWidth; i += 16) __builtin_prefetch(row + i, 1);
  }

  Team& team_;
  const std::shared_ptr<ParameterSet> set_;
  float* const values_;  // of the rows of this process
  const TableOwners owners_;
  const std::vector<MachineTable> tables_;
  TableFetch fetch_;
  TableSum sum_;
  HostAccess access_;
  Gradients gradients_;
  std::array<std::vector<int64_t>, kMinibatches> minibatches_;
  size_t asked_ = 0;
};

void run(int count, char** arguments) {
  Registry registry({TENON_PLUGINS}, tenon::core::system_files());
  const Services services(tenon::core::system_allocator(), nullptr);
  const auto device = std::make_shared<Device>(registry.device("cpu"), services, 0);
  JoinOptions join;
  if (count > 4) join.rank = std::atoi(arguments[2]), join.ranks = std::atoi(arguments[3]), join.address = arguments[4];
  if (count > 5) join.secret.assign(arguments[5], arguments[5] + std::string_view(arguments[5]).size());
  Team team(registry.comm(arguments[1]), {}, nullptr, join);
  Process process(team, device);
  process.run(kSteps / 4);
  const double rate = process.run(kSteps);
  if (team.rank() == 0) std::printf("{\"rows\": %.0f}\n", rate);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: bench_rows COMM [RANK RANKS ADDRESS [SECRET]]\n");
    return 64;
  }
  try {
    run(count, arguments);
  } catch (const tenon::core::Error& error) {
    std::fprintf(stderr, "bench_rows: %s\n", error.what());
    return 1;
  }
}
