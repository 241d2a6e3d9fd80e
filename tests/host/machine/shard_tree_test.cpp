// The order in which shards are added up. SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards/shard_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "host/machine/shards/shards.h"

namespace tenon_tests {

namespace {

using namespace tenon::host;
using testing::ElementsAre;

// "0+1 2+3 | 0+2"
std::string text_of(const ShardTree& tree) {
  std::string text;
  for (const auto& level : tree.levels()) {
    if (!text.empty()) text += " |";
    for (const ShardJoin& join : level)
      text += (text.empty() ? "" : " ") + std::to_string(join.to) + "+" + std::to_string(join.from);
  }
  return text;
}

std::string text_of(const std::vector<ShardSpan>& spans) {
  std::string text;
  for (const ShardSpan& span : spans) text += "[" + std::to_string(span.first) + "," + std::to_string(span.end) + ")";
  return text;
}

TEST(ShardTree, AddsNeighboursFirst) {
  EXPECT_EQ(text_of(ShardTree(1, 1)), "");
  EXPECT_EQ(text_of(ShardTree(4, 4)), "0+1 2+3 | 0+2");
  EXPECT_EQ(text_of(ShardTree(3, 3)), "0+1 | 0+2");
  EXPECT_EQ(text_of(ShardTree(7, 7)), "0+1 2+3 4+5 | 0+2 4+6 | 0+4");
}

TEST(ShardTree, NodesAreTheLargestSumsOfARange) {
  const ShardTree tree(8, 8);
  EXPECT_EQ(text_of(tree.nodes_within(0, 8)), "[0,8)");
  EXPECT_EQ(text_of(tree.nodes_within(0, 3)), "[0,2)[2,3)");
  EXPECT_EQ(text_of(tree.nodes_within(3, 6)), "[3,4)[4,6)");
  EXPECT_EQ(text_of(tree.nodes_within(4, 8)), "[4,8)");
  EXPECT_EQ(text_of(ShardTree(5, 5).nodes_within(4, 8)), "[4,5)") << "the other shards have no samples";
  EXPECT_EQ(text_of(ShardTree(4, 4).nodes_within(5, 8)), "");
}

// The expression of the sum, as text, if each process adds up its own nodes and somebody the rest.
std::string expression(const ShardTree& tree, size_t processes) {
  std::map<size_t, std::string> nodes;
  for (size_t process = 0; process < processes; ++process) {
    const ShardRange range = shard_range(static_cast<int64_t>(tree.count()), processes, process);
    const auto first = static_cast<size_t>(range.first), end = first + static_cast<size_t>(range.count);
    std::map<size_t, std::string> own;
    for (size_t shard = first; shard < end; ++shard) own[shard] = std::to_string(shard);
    for (const auto& level : tree.levels())
      for (const ShardJoin& join : level)
        if (join.to >= first && join.end <= end) {
          own[join.to] = "(" + own[join.to] + "+" + own[join.from] + ")";
          own.erase(join.from);
        }
    std::vector<ShardSpan> expected = tree.nodes_within(first, end);
    EXPECT_EQ(own.size(), expected.size());
    nodes.insert(own.begin(), own.end());
  }
  for (const auto& level : tree.levels())
    for (const ShardJoin& join : level)
      if (nodes.contains(join.from)) {
        nodes[join.to] = "(" + nodes[join.to] + "+" + nodes[join.from] + ")";
        nodes.erase(join.from);
      }
  return nodes.at(0);
}

TEST(ShardTree, TheSumDoesNotDependOnWhoAdds) {
  for (size_t shards = 1; shards <= 17; ++shards)
    for (size_t processes = 2; processes <= 9; ++processes)
      EXPECT_EQ(expression(ShardTree(static_cast<int64_t>(shards), shards), processes),
                expression(ShardTree(static_cast<int64_t>(shards), shards), 1))
          << shards << " shards, " << processes << " processes";
}

}  // namespace

}  // namespace tenon_tests
