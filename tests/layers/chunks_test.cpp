// Chunks of tags, against lists of chunks made row by row. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "tests/layers/layers_on_a_host.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Ids = std::vector<int64_t>;
using Chunk = std::tuple<size_t, size_t, int64_t>;  // first row, last row, type
using Quality = std::map<std::string, double>;

// The letters of the tags of a type.
const std::map<std::string, std::string> kSchemes = {{"IOB", "BI"}, {"IOE", "IE"}, {"IOBES", "BIES"}, {"plain", "I"}};

// Goes from row to row with the chunk that is open.
std::set<Chunk> chunks_of(const Ids& tags, const std::string& letters, int64_t types) {
  std::set<Chunk> chunks;
  const auto count = static_cast<int64_t>(letters.size());
  bool open = false;
  size_t begin = 0;
  for (size_t row = 0; row < tags.size(); ++row) {
    const bool outside = tags[row] < 0 || tags[row] >= types * count;
    const char letter = outside ? 'O' : letters[static_cast<size_t>(tags[row] % count)];
    const int64_t before = row == 0 ? -1 : tags[row - 1] / count;
    if (open && (outside || letter == 'B' || letter == 'S' || tags[row] / count != before)) {
      chunks.insert({begin, row - 1, before});
      open = false;
    }
    if (outside) continue;
    if (!open) begin = row;
    open = letter != 'E' && letter != 'S';
    if (!open) chunks.insert({begin, row, tags[row] / count});
  }
  if (open) chunks.insert({begin, tags.size() - 1, tags.back() / count});
  return chunks;
}

class ChunkF1 : public LayersOnAHost {
 protected:
  [[nodiscard]] Layer tags(const std::string& name) const {
    DataOptions options;
    options.name = name, options.dtype = TN_I64, options.storage = TN_RAGGED, options.sequence = "words";
    return host_.data(options);
  }
  [[nodiscard]] Quality measure(const std::vector<Ids>& found, const std::vector<Ids>& right,
                                const Attributes& attributes) const {
    const Layer metric = host_.layer("chunk_f1", {tags("found"), tags("right")}, attributes, "metric");
    MachineOptions options;
    options.max_samples = 100;
    const Machine machine = host_.machine(host_.parameters({metric}, 1), {metric}, options);
    Ids of_found, of_right, offsets = {0};
    for (size_t s = 0; s < found.size(); ++s) {
      of_found.insert(of_found.end(), found[s].begin(), found[s].end());
      of_right.insert(of_right.end(), right[s].begin(), right[s].end());
      offsets.push_back(static_cast<int64_t>(of_found.size()));
    }
    const auto count = static_cast<int64_t>(found.size());
    machine.forward({{"found", Array::sequences(TN_I64, {offsets.back()}, of_found.data(), count, offsets.data())},
                     {"right", Array::sequences(TN_I64, {offsets.back()}, of_right.data(), count, offsets.data())}});
    Quality values;
    for (const Metric& each : machine.metrics()) values[each.name] = each.value;
    return values;
  }
};

TEST_F(ChunkF1, OfKnownTags) {
  // B-0 I-0 O B-1 against B-0 I-0 O B-0, and B-1 I-1 against B-1 B-1
  const Quality some = measure({{0, 1, 4, 2}, {2, 3}}, {{0, 1, 4, 0}, {2, 2}}, {{"types", 2}});
  EXPECT_NEAR(some.at("precision"), 1.0 / 3, 1e-12);
  EXPECT_NEAR(some.at("recall"), 1.0 / 4, 1e-12);
  EXPECT_NEAR(some.at("f1"), 2.0 / 7, 1e-12);
  for (const auto& [name, value] : measure({{4, 4}, {}}, {{4, -1}, {}}, {{"types", 2}})) EXPECT_EQ(value, 0) << name;
  for (const auto& [name, value] : measure({}, {}, {{"types", 2}})) EXPECT_EQ(value, 0) << name;
  for (const auto& [name, value] : measure({{1, 1}, {0}}, {{1, 1}, {0}}, {{"types", 1}})) EXPECT_EQ(value, 1) << name;
}

TEST_F(ChunkF1, OfAllSchemes) {
  constexpr int64_t kTypes = 3;
  std::mt19937_64 random(23);
  for (const auto& [scheme, letters] : kSchemes) {
    const auto count = static_cast<int64_t>(letters.size());
    std::vector<Ids> found, right;
    std::map<bool, std::array<double, 3>> sums;  // by whether type 1 is ignored: right, named, real
    for (int s = 0; s < 80; ++s) {
      Ids a(random() % 12), b;
      for (int64_t& tag : a) tag = static_cast<int64_t>(random() % static_cast<uint64_t>(kTypes * count + 2)) - 1;
      b = a;
      for (int64_t& tag : b)
        if (random() % 5 == 0) tag = static_cast<int64_t>(random() % static_cast<uint64_t>(kTypes * count + 1));
      const std::set<Chunk> named = chunks_of(a, letters, kTypes), real = chunks_of(b, letters, kTypes);
      for (const bool ignored : {false, true}) {
        for (const Chunk& chunk : named)
          if (!ignored || std::get<2>(chunk) != 1) sums[ignored][1] += 1, sums[ignored][0] += real.count(chunk) ? 1 : 0;
        for (const Chunk& chunk : real)
          if (!ignored || std::get<2>(chunk) != 1) sums[ignored][2] += 1;
      }
      found.push_back(a), right.push_back(b);
    }
    for (const auto& [ignored, sum] : sums) {
      Attributes attributes = {{"types", kTypes}, {"scheme", scheme}};
      if (ignored) attributes.push_back({"ignored_types", std::vector<int64_t>{1}});
      const Quality got = measure(found, right, attributes);
      EXPECT_NEAR(got.at("precision"), sum[0] / sum[1], 1e-12) << scheme;
      EXPECT_NEAR(got.at("recall"), sum[0] / sum[2], 1e-12) << scheme;
      EXPECT_NEAR(got.at("f1"), 2 * sum[0] / (sum[1] + sum[2]), 1e-12) << scheme;
      EXPECT_GT(sum[0], 20) << scheme;
      EXPECT_LT(sum[0], sum[1]) << scheme;
    }
  }
}

TEST_F(ChunkF1, Mistakes) {
  EXPECT_THAT(mistake("chunk_f1", {data("dense", {}, TN_I64), tags("right")}, {{"types", 1}}),
              testing::HasSubstr("must be sequences (ragged)"));
  EXPECT_THAT(mistake("chunk_f1", {tags("found"), data("label", {}, TN_I64)}, {{"types", 1}}),
              testing::HasSubstr("one value for each row"));
  EXPECT_THAT(mistake("chunk_f1", {tags("found"), tags("right")},
                      {{"types", 2}, {"ignored_types", std::vector<int64_t>{0, 2}}}),
              testing::HasSubstr("expected types below 2, got 2"));
}

}  // namespace

}  // namespace tenon_tests
