// Sums of dense gradients over processes, here threads. SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards/dense_sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "tests/support/loop_team.h"

namespace tenon_tests {

namespace {

using namespace tenon::host;
using testing::Each;
using testing::HasSubstr;

using Numbers = std::vector<float>;

std::vector<std::byte> bytes_of(const Numbers& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(float));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

// Values of several sizes, in multiples of a cache line.
struct Layout {
  std::vector<uint64_t> ends;
  ChunkSizes sizes;
  [[nodiscard]] size_t count() const { return ends.empty() ? 0 : ends.back() / sizeof(float); }
};

Layout layout_of(std::mt19937& random) {
  Layout layout;
  for (size_t i = random() % 6; i > 0; --i)
    layout.ends.push_back((layout.ends.empty() ? 0 : layout.ends.back()) + 64 * (1 + random() % 60));
  layout.sizes = {64 * (1 + random() % 20), 64 * (10 + random() % 50), random() % 3 == 0 ? 0 : random() % 20'000};
  return layout;
}

// The gradients of shard `shard`, whose sums depend on their order.
Numbers gradients(const Layout& layout, size_t shard, uint32_t seed) {
  std::mt19937 random(seed * 1000 + static_cast<uint32_t>(shard));
  std::uniform_real_distribution<float> draw(-1, 1);
  Numbers numbers(layout.count());
  for (float& number : numbers) number = draw(random) * static_cast<float>(1U << random() % 20);
  return numbers;
}

// The sum as its definition says.
Numbers expected_sum(const Layout& layout, const ShardTree& tree, uint32_t seed) {
  std::vector<Numbers> shards;
  for (size_t shard = 0; shard < tree.count(); ++shard) shards.push_back(gradients(layout, shard, seed));
  for (const auto& level : tree.levels())
    for (const ShardJoin& join : level)
      for (size_t i = 0; i < layout.count(); ++i) shards[join.to][i] += shards[join.from][i];
  return shards.front();
}

struct Case {
  Layout layout;
  size_t shards;
  int64_t samples;
  uint32_t seed;
};

// A minibatch of one process: its terms are final bit by bit, in an order of its own.
void sum_up(Team& team, DenseSum& dense, const Case& of) {
  const ShardTree tree(of.samples, of.shards);
  const ShardRange own = shards_of_process(of.shards, team.processes(), team.rank());
  std::mt19937 random(of.seed + static_cast<uint32_t>(team.rank()));
  std::vector<std::vector<std::byte>> values, final_values;
  std::vector<DenseSum::Term> terms;
  for (size_t shard = 0; shard < tree.count(); ++shard) {
    if (static_cast<int64_t>(shard) < own.first || static_cast<int64_t>(shard) >= own.first + own.count) continue;
    final_values.push_back(bytes_of(gradients(of.layout, shard, of.seed)));
    values.emplace_back(final_values.back().size(), std::byte{0x55});  // not there yet
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t shard = static_cast<size_t>(own.first) + i;
    terms.push_back({{shard, shard + 1}, values[i].data()});
  }
  const size_t bytes = of.layout.count() * sizeof(float);
  std::vector<std::byte> elsewhere(bytes);
  std::byte* const sum =
      values.empty() || random() % 3 == 0 ? elsewhere.data() : values[random() % values.size()].data();
  dense.begin(tree, nodes_of_team(tree, of.shards, team.processes()), terms, sum);
  std::vector<uint64_t> cuts = {0, bytes};
  for (int i = 0; i < 5 && bytes > 0; ++i) cuts.push_back(random() % bytes);
  std::sort(cuts.begin(), cuts.end());
  std::vector<size_t> parts(cuts.size() - 1);
  for (size_t i = 0; i < parts.size(); ++i) parts[i] = i;
  std::shuffle(parts.begin(), parts.end(), random);
  for (const size_t part : parts) {
    const uint64_t offset = cuts[part], size = cuts[part + 1] - offset;
    for (size_t i = 0; i < values.size(); ++i)
      if (size > 0) std::memcpy(values[i].data() + offset, final_values[i].data() + offset, size);
    if (part != parts.back() && !values.empty()) dense.add_final(offset, size);
  }
  dense.finish();
  const std::vector<std::byte> expected = bytes_of(expected_sum(of.layout, tree, of.seed));
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), sum))
      << of.shards << " shards, " << of.samples << " samples, " << team.processes() << " processes, seed " << of.seed;
}

TEST(DenseSum, HasTheBitsOfTheTree) {
  std::mt19937 random(2);
  for (int32_t processes = 2; processes <= 5; ++processes)
    for (int round = 0; round < 12; ++round) {
      const Layout layout = layout_of(random);
      const size_t shards = static_cast<size_t>(processes) + random() % 9;
      std::vector<Case> cases;
      for (int step = 0; step < 4; ++step)
        cases.push_back({layout, shards, 1 + static_cast<int64_t>(random() % (shards + 2)),
                         static_cast<uint32_t>(random() % 1000)});
      LoopTeam ranks(processes, disordered(random()));
      EXPECT_THAT(ranks.run([&](Team& team) {
        DenseSum dense(team, TN_F32, nullptr, layout.ends, layout.sizes);
        for (const Case& each : cases) sum_up(team, dense, each);
      }),
                  Each(""));
    }
}

TEST(DenseSum, OfFloat64) {
  LoopTeam ranks(3);
  EXPECT_THAT(ranks.run([](Team& team) {
    DenseSum dense(team, TN_F64, nullptr, {64});
    std::vector<double> numbers(8, 1.0 / static_cast<double>(team.rank() + 3));
    const auto shard = static_cast<size_t>(team.rank());
    const ShardTree tree(3, 3);
    auto* const values = reinterpret_cast<std::byte*>(numbers.data());
    dense.begin(tree, nodes_of_team(tree, 3, 3), {{{shard, shard + 1}, values}}, values);
    dense.finish();
    EXPECT_THAT(numbers, Each((1.0 / 3 + 1.0 / 4) + 1.0 / 5));
  }),
              Each(""));
}

// Chunks that are final are summed up while others are computed.
TEST(DenseSum, SendsWhatIsFinal) {
  LoopTeam ranks(2);
  std::atomic<int> has_sent{0};
  EXPECT_THAT(ranks.run([&](Team& team) {
    constexpr uint64_t kBytes = 1 << 20;
    DenseSum dense(team, TN_F32, nullptr, {kBytes, 2 * kBytes});
    Numbers numbers(2 * kBytes / sizeof(float), 1);
    const auto shard = static_cast<size_t>(team.rank());
    const ShardTree tree(2, 2);
    auto* const values = reinterpret_cast<std::byte*>(numbers.data());
    dense.begin(tree, nodes_of_team(tree, 2, 2), {{{shard, shard + 1}, values}}, values);
    dense.add_final(kBytes, kBytes);
    // The sum of the second half is there although the first one is not final.
    while (numbers.back() != 2 || numbers[kBytes / sizeof(float)] != 2) {
      dense.add_final(0, 0);
      std::this_thread::yield();
    }
    ++has_sent;
    while (has_sent < 2) {
      dense.add_final(0, 0);
      std::this_thread::yield();
    }
    EXPECT_EQ(numbers.front(), 1);
    dense.finish();
    EXPECT_THAT(numbers, Each(2));
  }),
              Each(""));
}

TEST(DenseSum, EndsAfterAFailure) {
  LoopTeam ranks(2);
  const std::vector<std::string> errors = ranks.run([](Team& team) {
    DenseSum dense(team, TN_F32, nullptr, {1 << 20});
    Numbers numbers((1 << 20) / sizeof(float), 1);
    const auto shard = static_cast<size_t>(team.rank());
    const ShardTree tree(2, 2);
    auto* const values = reinterpret_cast<std::byte*>(numbers.data());
    if (team.rank() == 1) return;
    dense.begin(tree, nodes_of_team(tree, 2, 2), {{{shard, shard + 1}, values}}, values);
    EXPECT_THROW(dense.finish(), tenon::core::Error);
    dense.end();
    dense.begin(tree, nodes_of_team(tree, 2, 2), {{{shard, shard + 1}, values}}, values);
  });
  EXPECT_THAT(errors, testing::ElementsAre(HasSubstr("process 1 is lost"), ""));
}

}  // namespace

}  // namespace tenon_tests
