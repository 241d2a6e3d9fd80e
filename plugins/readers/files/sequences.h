// Samples that are sequences of records. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tenon::files {

enum class Follows { kNewSequence, kSameSequence, kOldSequence };

// An index of sequences: records with equal keys, which follow one another. Records are added in order, then lookups
// begin.
template <typename Key>
class Sequences {
 public:
  // Compares the key of a record with those of the records before. kOldSequence: other records lie between.
  Follows next(const Key& key) {
    if (!keys_.empty() && key == key_) return Follows::kSameSequence;
    if (!keys_.insert(key).second) return Follows::kOldSequence;
    key_ = key;
    return Follows::kNewSequence;
  }
  // Whether a record with this key belongs to the last sequence.
  [[nodiscard]] bool is_last(const Key& key) const { return !keys_.empty() && key == key_; }
  // Begins a sequence with record number `first` of those that the reader keeps.
  void begin(int64_t first) { first_.push_back(first); }
  // Ends the last sequence. records: the number of all that are kept.
  void end(int64_t records) {
    first_.push_back(records);
    keys_.clear();
  }

  [[nodiscard]] int64_t count() const { return static_cast<int64_t>(first_.size()) - 1; }
  // The first record of a sequence, and the one after its last.
  [[nodiscard]] std::pair<int64_t, int64_t> records(int64_t sequence) const {
    return {first_[static_cast<size_t>(sequence)], first_[static_cast<size_t>(sequence) + 1]};
  }

 private:
  Key key_ = {};                  // of the last record
  std::unordered_set<Key> keys_;  // of the sequences that have begun
  std::vector<int64_t> first_;    // records, by sequence
};

}  // namespace tenon::files
