// The numbers of samples among the records of the data, some of which are left out. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tenon::files {

class RecordNumbers {
 public:
  // The next records of the data are samples, of any shard.
  void add_samples(int64_t count) { samples_ += count; }
  // The next record of the data is left out.
  void leave_out() {
    ++left_out_;
    if (gaps_.empty() || gaps_.back().first != samples_) gaps_.emplace_back(samples_, 0);
    gaps_.back().second = left_out_;
  }
  // The number of records, with those that are left out.
  [[nodiscard]] int64_t count() const { return samples_ + left_out_; }
  // The number of the record of a sample, both from 0.
  [[nodiscard]] int64_t of(int64_t sample) const {
    const auto after = std::upper_bound(gaps_.begin(), gaps_.end(), sample,
                                        [](int64_t number, const auto& gap) { return number < gap.first; });
    return sample + (after == gaps_.begin() ? 0 : std::prev(after)->second);
  }

 private:
  int64_t samples_ = 0, left_out_ = 0;
  std::vector<std::pair<int64_t, int64_t>> gaps_;  // a sample, and the records before it that are left out
};

}  // namespace tenon::files
