// Reads samples of a memory_reader through any wrappers, and checks that all slots of a sample belong to it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "host/readers/reader.h"
#include "tests/support/memory_reader.h"

namespace tenon_tests {

using namespace tenon::host;

using Ids = std::vector<int64_t>;

inline const ReaderType& memory_type(bool indexed) {
  static const ReaderType plain = memory_reader_type(false), random = memory_reader_type(true);
  return indexed ? random : plain;
}
inline std::unique_ptr<Reader> open(MemoryData& data, bool indexed = true, uint32_t shard = 0, uint32_t shards = 1) {
  ReaderSettings settings;
  settings.shard = shard;
  settings.shards = shards;
  return open_reader(memory_type(indexed), memory_attributes(data), nullptr, settings);
}

inline Ids counted(int64_t samples, int64_t from = 0) {
  Ids ids(static_cast<size_t>(samples));
  std::iota(ids.begin(), ids.end(), from);
  return ids;
}
inline Ids sorted(Ids ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

inline void expect_words(const ArrayView& words, int64_t at, int64_t id) {
  const int64_t begin = words.offsets[0][at], end = words.offsets[0][at + 1];
  ASSERT_EQ(end - begin, id % 5) << id;
  for (int64_t k = begin; k < end; ++k) EXPECT_EQ(static_cast<const int64_t*>(words.data)[k], 10 * id + k - begin);
}
inline void expect_text(const ArrayView& text, int64_t at, int64_t id) {
  const int64_t begin = text.offsets[0][at], end = text.offsets[0][at + 1];
  ASSERT_EQ(end - begin, id % 3) << id;
  for (int64_t j = begin; j < end; ++j) {
    const int64_t first = text.offsets[1][j], last = text.offsets[1][j + 1];
    ASSERT_EQ(last - first, (id + j - begin) % 4) << id;
    for (int64_t k = first; k < last; ++k) {
      const float* const row = static_cast<const float*>(text.data) + 2 * k;
      EXPECT_EQ(row[0], static_cast<float>(id));
      EXPECT_EQ(row[1], static_cast<float>(10 * (j - begin) + k - first));
    }
  }
}
inline void expect_bag(const ArrayView& bag, int64_t at, int64_t id) {
  const int64_t begin = bag.offsets[0][at], end = bag.offsets[0][at + 1];
  ASSERT_EQ(end - begin, id % 4) << id;
  for (int64_t k = begin; k < end; ++k) {
    EXPECT_EQ(bag.ids[k], id + 100 * (k - begin));
    EXPECT_EQ(static_cast<const float*>(bag.data)[k], static_cast<float>(k - begin) + 0.5F);
  }
}

// Returns the ids of the samples in a block with a slot "id" and any of the others, and checks the values of these.
inline Ids ids_of(const SampleBlock& block) {
  Ids ids;
  for (const Column& column : block.columns()) {
    if (column.slot().name != "id") continue;
    const auto* const first = static_cast<const int64_t*>(column.view().data);
    ids.assign(first, first + column.samples());
  }
  for (const Column& column : block.columns()) {
    const ArrayView view = column.view();
    EXPECT_EQ(column.samples(), static_cast<int64_t>(ids.size())) << column.slot().name;
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (column.slot().name == "value") {
        EXPECT_EQ(static_cast<const float*>(view.data)[3 * i + 1], static_cast<float>(ids[i]) + 0.25F);
      }
      if (column.slot().name == "words") expect_words(view, at, ids[i]);
      if (column.slot().name == "text") expect_text(view, at, ids[i]);
      if (column.slot().name == "bag") expect_bag(view, at, ids[i]);
    }
  }
  return ids;
}

// Calls next once, for at most `most` samples; a reader of minibatches gives one.
inline Ids some(Reader& reader, int64_t most) {
  SampleBlock block(reader.slots(), system_allocator());
  const int64_t count = reader.next(block, most);
  const Ids ids = ids_of(block);
  EXPECT_EQ(count, static_cast<int64_t>(ids.size()));
  return ids;
}
inline Ids minibatch(Reader& reader) { return some(reader, reader.batch()); }

// Reads up to `most` samples, or the rest of the pass and its end, `piece` at a time.
inline Ids rest(Reader& reader, int64_t piece = 3, size_t most = SIZE_MAX) {
  Ids all;
  while (all.size() < most) {
    const auto left = static_cast<int64_t>(std::min<size_t>(most - all.size(), 1000));
    const Ids part = some(reader, reader.batch() > 0 ? reader.batch() : std::min(piece, left));
    if (part.empty()) break;
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace tenon_tests
