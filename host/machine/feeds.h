// The arrays that a machine is fed: checks before anything changes, then their way into its memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/array_view.h"
#include "host/machine/compiled_model.h"

namespace tenon {

// Whether arrays are copied, or lent until the next forward and unchanged until then.
enum class FeedMode { kCopied, kLent };

// The arrays in the order of `feeds`. Errors name a data layer that does not exist, is fed twice, or not at all.
[[nodiscard]] std::vector<ArrayView> by_number(const std::vector<Feed>& feeds, const std::vector<NamedArray>& arrays);

// Borrows the model.
class FeedChecker {
 public:
  FeedChecker(const CompiledModel& model, int64_t max_samples) : model_(model), max_samples_(max_samples) {}
  // Checks arrays[i] for feed i: type, shape, storage, offsets, indices, and equal lengths where data layers share a
  // sequence. Returns the sizes of all symbols. Errors name the data layer and where in it.
  [[nodiscard]] std::vector<int64_t> check(const std::vector<ArrayView>& arrays) const;

 private:
  [[nodiscard]] std::vector<int64_t> sizes(const std::vector<ArrayView>& arrays) const;
  [[nodiscard]] int64_t check_dense(const Feed& feed, const ArrayView& array) const;
  void check_samples(const Feed& feed, int64_t samples) const;
  int64_t check_rows(const Feed& feed, const ArrayView& array, std::vector<int64_t>& symbols) const;
  void check_indices(const Feed& feed, const ArrayView& array) const;
  void check_shared(const std::vector<ArrayView>& arrays, const std::vector<int64_t>& symbols) const;

  const CompiledModel& model_;
  int64_t max_samples_;
};

// Puts checked arrays into the memory of the model, or has kernels read them where they lie: that needs
// FeedMode::kLent, a device that reads host memory, and its alignment. Computes the offsets of joined sequences.
// `symbols` from check.
void take_feeds(CompiledModel& model, const Device& device, const std::vector<ArrayView>& arrays,
                const std::vector<int64_t>& symbols, FeedMode mode);

}  // namespace tenon
