// SPDX-License-Identifier: Apache-2.0
#include "host/training/data/data_digest.h"

#include <algorithm>

#include "base/xxh3.h"
#include "core/error.h"

namespace tenon::host {

std::string digest_of(const SampleBlock& samples) {
  base::Xxh3 hash;
  for (const Column& column : samples.columns()) {
    const ArrayView view = column.view();
    const auto add = [&](const void* data, int64_t count, uint64_t element) {
      hash.update(&count, sizeof count);
      if (data != nullptr) hash.update(data, static_cast<uint64_t>(count) * element);
    };
    // The rows of all samples, in bytes: of a dense column one for each sample.
    int64_t entries = column.samples();
    if (view.storage != TN_DENSE) {
      add(view.offsets[0], entries + 1, sizeof(int64_t));
      entries = view.offsets[0][entries];
      if (view.levels == 2) {
        add(view.offsets[1], entries + 1, sizeof(int64_t));
        entries = view.offsets[1][entries];
      }
    }
    if (view.storage == TN_CSR) add(view.ids, entries, sizeof(int64_t));
    add(view.data, entries, column.slot().bytes);
  }
  return hash.finish();
}

std::string digest_of(const std::string& text) {
  base::Xxh3 hash;
  hash.update(text.data(), text.size());
  return hash.finish();
}

std::string digest_of(const ParameterSet& set, const ParameterEntry& entry) {
  base::Xxh3 hash;
  if (!entry.table) hash.update(set.values(entry), entry.count * sizeof(float));
  return hash.finish();
}

std::string digest_of(const ParameterSet& set) {
  base::Xxh3 hash;
  for (const ParameterEntry& entry : set.entries())
    if (!entry.table) hash.update(set.values(entry), entry.count * sizeof(float));
  return hash.finish();
}

std::optional<std::string> digest_again(Reader& reader, const DataDigest& digest,
                                        const std::shared_ptr<Allocator>& allocator, int64_t samples) {
  try {
    reader.seek(digest.pass, 0);
  } catch (const Error& error) {
    if (error.code() == TN_UNSUPPORTED) return std::nullopt;
    throw;
  }
  SampleBlock block(reader.slots(), allocator);
  while (reader.next(block, reader.batch()) > 0 && block.samples() < samples) continue;
  if (samples == 0) return digest_of(block);
  // Fewer in whole minibatches: the pass may have more, which the reader drops.
  if (block.samples() < samples && block.samples() % reader.batch() == 0) return std::nullopt;
  block.truncate(std::min(samples, block.samples()));
  return digest_of(block);
}

}  // namespace tenon::host
