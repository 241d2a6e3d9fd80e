// The index of records: places of any distance and size come back, in few bytes. SPDX-License-Identifier: Apache-2.0
#include "record_index.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace tenon_tests {

namespace {

using namespace tenon::files;

// Memory that adds its bytes up in `bytes`.
tn_memory counting_memory(uint64_t* bytes) {
  return {sizeof(tn_memory), 0, bytes,
          [](void* self, uint64_t size) {
            *static_cast<uint64_t*>(self) += size;
            return std::malloc(size);
          },
          [](void* self, void* data, uint64_t size) {
            *static_cast<uint64_t*>(self) -= size;
            std::free(data);
          }};
}

TEST(RecordIndex, TakesTwoBytesForAShortLine) {
  constexpr uint64_t kLine = 9;  // bytes, with its end
  constexpr int64_t kLines = 1'000'000;
  uint64_t bytes = 0;
  const tn_memory memory = counting_memory(&bytes);
  {
    RecordIndex index(&memory);
    for (uint64_t i = 0; i < kLines; ++i) index.add({i * kLine, kLine - 1});
    EXPECT_LT(bytes, 2 * kLines);
    EXPECT_EQ(index.at(kLines - 1).offset, (kLines - 1) * kLine);
  }
  EXPECT_EQ(bytes, 0u);
}

TEST(RecordIndex, GivesEveryPlaceBack) {
  std::mt19937_64 random(1);
  for (const int kind : {0, 1, 2, 3}) {
    RecordIndex index(nullptr);
    std::vector<Extent> records;
    uint64_t offset = kind;  // a byte order mark, or a heading
    for (int i = 0; i < 20'000; ++i) {
      const auto drawn = [&](int bits) { return random() >> (64 - 1 - random() % static_cast<uint64_t>(bits)); };
      const Extent record = {offset + (kind == 0 ? 1 : drawn(kind == 3 ? 50 : 4)), drawn(kind < 2 ? 6 : 30)};
      records.push_back(record);
      index.add(record);
      offset = record.offset + record.bytes;
    }
    ASSERT_EQ(index.size(), 20'000);
    for (size_t i = 0; i < records.size(); ++i) {
      const Extent extent = index.at(static_cast<int64_t>(i));
      ASSERT_EQ(extent.offset, records[i].offset) << "kind " << kind << ", record " << i;
      ASSERT_EQ(extent.bytes, records[i].bytes) << "kind " << kind << ", record " << i;
    }
  }
}

}  // namespace

}  // namespace tenon_tests
