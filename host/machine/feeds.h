// Feeds: checks the arrays of a minibatch, then copies them into the memory of a machine, or binds them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/array_view.h"
#include "host/machine/compiled_model.h"

namespace tenon::host {

using namespace core;

// The sizes of a minibatch.
struct MinibatchSizes {
  std::vector<int64_t> symbols;  // by symbol; of rows that a call writes: the bound
  // By number in Lowered::rows: the offsets of the rows that layers derive from those that are fed; else empty.
  std::vector<std::vector<int64_t>> derived_offsets;
};

// Whether arrays are copied, or borrowed: valid and unchanged until the next forward.
enum class FeedMode { kCopied, kLent };

// Whether arrays for data layers that a machine does not have are an error.
enum class UnknownFeeds { kRefused, kIgnored };

// Returns the arrays in the order of `feeds`. Throws naming a data layer that does not exist, is fed twice or not fed.
[[nodiscard]] std::vector<ArrayView> by_number(const std::vector<Feed>& feeds, const std::vector<NamedArray>& arrays,
                                               UnknownFeeds unknown = UnknownFeeds::kRefused);

// Checks the arrays of minibatches. Borrows the model.
class FeedChecker {
 public:
  // first_sample: the number in the minibatch of the first sample of the arrays, for messages.
  FeedChecker(const CompiledModel& model, int64_t max_samples, int64_t first_sample = 0)
      : model_(model), max_samples_(max_samples), first_sample_(first_sample) {}
  // Checks arrays[i] for feed i: type (that of the data layer, or one that widens to it), shape, storage, offsets,
  // indices, and equal lengths if data layers share a sequence. Errors name the data layer and the place in it.
  [[nodiscard]] MinibatchSizes check(const std::vector<ArrayView>& arrays) const;
  // Returns the sizes of arrays whose indices need no check any more, such as a range of checked ones.
  [[nodiscard]] MinibatchSizes sizes(const std::vector<ArrayView>& arrays) const;
  // Returns the sizes, by symbol, of a minibatch whose parts have these.
  [[nodiscard]] std::vector<int64_t> joined(const std::vector<std::vector<int64_t>>& parts) const;

 private:
  void derive(const std::vector<ArrayView>& arrays, MinibatchSizes& sizes) const;
  [[nodiscard]] int64_t check_dense(const Feed& feed, const ArrayView& array) const;
  void check_samples(const Feed& feed, int64_t samples) const;
  int64_t check_rows(const Feed& feed, const ArrayView& array, std::vector<int64_t>& symbols) const;
  void check_indices(const Feed& feed, const ArrayView& array) const;
  void check_shared(const std::vector<ArrayView>& arrays, const std::vector<int64_t>& symbols) const;
  [[nodiscard]] std::string place(const char* what, int64_t number) const;

  const CompiledModel& model_;
  int64_t max_samples_, first_sample_;
};

// Copies checked arrays into the memory of the model, widened if their types are narrower. With FeedMode::kLent, binds
// aligned arrays instead of copying them if kernels can read host memory. Also copies the offsets of derived rows.
// sizes: the result of check.
void take_feeds(CompiledModel& model, HostAccess& access, const std::vector<ArrayView>& arrays,
                const MinibatchSizes& sizes, FeedMode mode);

}  // namespace tenon::host
