// When parts of memory are final. SPDX-License-Identifier: Apache-2.0
#include "host/compile/final_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace tenon_tests {

namespace {

using namespace tenon::host;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(FinalParts, AreThoseOfTheLastWriteTheEarliestFirst) {
  EXPECT_THAT(final_parts({{7, 0, 64}, {3, 64, 100}, {3, 128, 192}}, 256),
              ElementsAre(FinalPart{3, 64, 192}, FinalPart{7, 0, 64}))
      << "with the padding behind them";
  EXPECT_THAT(final_parts({{2, 0, 64}, {5, 0, 64}, {4, 64, 128}}, 128),
              ElementsAre(FinalPart{4, 64, 64}, FinalPart{5, 0, 64}))
      << "of several contributions the last one counts";
  EXPECT_THAT(final_parts({}, 64), ElementsAre(FinalPart{0, 0, 64})) << "nothing writes";
  EXPECT_THAT(final_parts({{3, 64, 128}}, 128), ElementsAre(FinalPart{0, 0, 64}, FinalPart{3, 64, 64}));
  EXPECT_THAT(final_parts({}, 0), IsEmpty());
}

// Each byte is in one part, which is final at the last write to the byte or, if there is none, to one before it.
TEST(FinalParts, CoverEachByteOnce) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const uint64_t bytes = 1 + random() % 60;
    std::vector<SectionWrite> writes;
    std::vector<size_t> last(bytes, 0);
    for (size_t i = random() % 8; i > 0; --i) {
      const uint64_t first = random() % bytes, end = first + 1 + random() % (bytes - first);
      writes.push_back({1 + random() % 9, first, end});
      for (uint64_t at = first; at < end; ++at) last[at] = std::max(last[at], writes.back().calls);
    }
    for (uint64_t at = 1; at < bytes; ++at)
      if (last[at] == 0) last[at] = last[at - 1];
    std::vector<size_t> covered(bytes, ~size_t{0});
    size_t calls = 0;
    for (const FinalPart& part : final_parts(writes, bytes)) {
      EXPECT_GE(part.calls, calls);
      calls = part.calls;
      for (uint64_t at = part.offset; at < part.offset + part.bytes; ++at) {
        EXPECT_EQ(covered.at(at), ~size_t{0}) << "twice";
        covered[at] = part.calls;
      }
    }
    EXPECT_EQ(covered, last);
  }
}

}  // namespace

}  // namespace tenon_tests
