// SPDX-License-Identifier: Apache-2.0
#include "host/machine/feeds.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <string_view>

#include "base/nearest.h"
#include "core/alignment.h"
#include "core/array_view.h"
#include "core/error.h"
#include "host/machine/widening.h"

namespace tenon::host {

namespace {

[[noreturn]] void refuse_unknown(const std::vector<Feed>& feeds, const std::string& name) {
  std::vector<std::string> names;
  for (const Feed& feed : feeds) names.push_back(feed.name);
  fail(TN_NOT_FOUND, SubjectName{name}, "there is no data layer \"", name, "\"", base::suggestion(name, names));
}

// unknown: arrays with names that no data layer has, which were ignored.
[[noreturn]] void refuse_missing(const std::string& name, const std::vector<std::string>& unknown) {
  const std::string near = base::nearest(name, unknown);
  fail(TN_INVALID, SubjectName{name}, "data layer \"", name, "\" is not fed",
       near.empty() ? "" : "; \"" + near + "\" is no data layer of the machine");
}

}  // namespace

std::vector<ArrayView> by_number(const std::vector<Feed>& feeds, const std::vector<NamedArray>& arrays,
                                 UnknownFeeds unknown) {
  std::vector<ArrayView> result(feeds.size());
  std::vector<bool> fed(feeds.size(), false);
  std::vector<std::string> ignored;
  for (const NamedArray& given : arrays) {
    const auto known =
        std::find_if(feeds.begin(), feeds.end(), [&](const Feed& feed) { return feed.name == given.name; });
    if (known == feeds.end()) {
      if (unknown == UnknownFeeds::kRefused) refuse_unknown(feeds, given.name);
      ignored.push_back(given.name);
      continue;
    }
    const auto number = static_cast<size_t>(known - feeds.begin());
    if (fed[number]) fail(TN_INVALID, SubjectName{given.name}, "data layer \"", given.name, "\" is fed twice");
    fed[number] = true;
    result[number] = given.array;
  }
  const auto missing = std::find(fed.begin(), fed.end(), false);
  if (missing != fed.end()) refuse_missing(feeds[static_cast<size_t>(missing - fed.begin())].name, ignored);
  return result;
}

MinibatchSizes FeedChecker::check(const std::vector<ArrayView>& arrays) const {
  MinibatchSizes found = sizes(arrays);
  for (size_t i = 0; i < arrays.size(); ++i) check_indices(model_.lowered.feeds[i], arrays[i]);
  check_shared(arrays, found.symbols);
  return found;
}

// Checks types, shapes and offsets. Returns the sizes of all symbols.
MinibatchSizes FeedChecker::sizes(const std::vector<ArrayView>& arrays) const {
  const Lowered& lowered = model_.lowered;
  MinibatchSizes found;
  std::vector<int64_t>& symbols = found.symbols;
  symbols.assign(model_.bounds.size(), -1);
  int64_t& samples = symbols[TN_SYMBOL_SAMPLES];
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Feed& feed = lowered.feeds[i];
    if (arrays[i].storage != feed.spec.storage)
      fail(TN_INVALID, SubjectName{feed.name}, "data layer \"", feed.name, "\": expected ",
           storage_name(feed.spec.storage), " data, got ", storage_name(arrays[i].storage));
    const bool dense = feed.rows.empty();
    const int64_t count = dense ? check_dense(feed, arrays[i]) : check_rows(feed, arrays[i], symbols);
    if (dense) check_samples(feed, count);
    if (samples >= 0 && samples != count)
      fail(TN_INVALID, SubjectName{feed.name}, "data layer \"", feed.name, "\" has ", count, " samples, data layer \"",
           lowered.feeds[0].name, "\" has ", samples);
    samples = count;
  }
  for (int64_t& size : symbols) size = std::max<int64_t>(size, 0);
  const auto is_derived = [](const RaggedUse& rows) { return rows.name.empty(); };
  if (!model_.calls->graph().orders.empty() || std::any_of(lowered.rows.begin(), lowered.rows.end(), is_derived))
    derive(arrays, found);
  return found;
}

std::vector<int64_t> FeedChecker::joined(const std::vector<std::vector<int64_t>>& parts) const {
  std::vector<int64_t> sums(model_.bounds.size());
  for (const std::vector<int64_t>& part : parts)
    std::transform(sums.begin(), sums.end(), part.begin(), sums.begin(), std::plus<>());
  for (const RaggedUse& rows : model_.lowered.rows)  // a bound, whose constant counts once
    if (rows.is_written()) sums[static_cast<size_t>(rows.symbol)] = tn_dim_value(&rows.derived.bound, sums.data());
  return sums;
}

namespace {

// Returns the rows of a sequence that a layer derives from a sequence of `rows`, of TN_ROWS_CONCATENATED followed by
// `second`.
int64_t derived_length(const DerivedRows& derived, int64_t rows, int64_t second) {
  switch (derived.rule) {
    case TN_ROWS_CONCATENATED:
      return rows + second;
    case TN_ROWS_FIRST:
      return std::min(rows, derived.count);
    default: {  // TN_ROWS_STRIDED
      const int64_t padded = rows + derived.padding;
      return padded < derived.window ? 0 : (padded - derived.window) / derived.stride + 1;
    }
  }
}

}  // namespace

namespace {

// Returns how many rows the steps of sequences see together if each step sees the whole sequence `source`.
int64_t rows_seen(const Graph& graph, const StepRows& rows, const int64_t* steps, const int64_t* source,
                  int64_t sequences) {
  int64_t sum = 0;
  for (int64_t s = 0; s < sequences; ++s) {
    int64_t product = 0;
    if (__builtin_mul_overflow(steps[s + 1] - steps[s], source[s + 1] - source[s], &product) ||
        __builtin_add_overflow(sum, product, &sum))
      fail(TN_INVALID, ComponentName{text("layer \"", graph.layers[static_cast<size_t>(rows.layer)], "\"")},
           "its steps see more than 2^63 - 1 rows of whole sequences in a minibatch; sequence ", s, " has ",
           steps[s + 1] - steps[s], " steps and sees ", source[s + 1] - source[s], " rows at each");
  }
  return sum;
}

}  // namespace

// Computes the sizes and offsets of the rows that layers derive, and the sizes of the steps of scans. Each comes after
// the rows that it is derived from.
void FeedChecker::derive(const std::vector<ArrayView>& arrays, MinibatchSizes& sizes) const {
  const Lowered& lowered = model_.lowered;
  sizes.derived_offsets.resize(lowered.rows.size());
  const auto offsets_of = [&](int32_t symbol) -> const int64_t* {
    for (size_t i = 0; i < lowered.rows.size(); ++i)
      if (lowered.rows[i].symbol == symbol && lowered.rows[i].name.empty()) return sizes.derived_offsets[i].data();
    for (size_t i = 0; i < arrays.size(); ++i)
      for (size_t level = 0; level < lowered.feeds[i].rows.size(); ++level)
        if (lowered.feeds[i].rows[level] == symbol) return arrays[i].offsets[level];
    return nullptr;
  };
  for (size_t i = 0; i < lowered.rows.size(); ++i) {
    const RaggedUse& rows = lowered.rows[i];
    if (!rows.name.empty()) continue;
    int64_t& size = sizes.symbols[static_cast<size_t>(rows.symbol)];
    if (rows.is_written()) {
      size = tn_dim_value(&rows.derived.bound, sizes.symbols.data());
      continue;
    }
    const int64_t* const first = offsets_of(rows.derived.first);
    const int64_t* const second = rows.derived.second == 0 ? nullptr : offsets_of(rows.derived.second);
    const auto sequences = static_cast<size_t>(tn_dim_value(&rows.of.outer, sizes.symbols.data()));
    std::vector<int64_t>& offsets = sizes.derived_offsets[i];
    offsets.assign(sequences + 1, 0);
    for (size_t s = 0; s < sequences; ++s)
      offsets[s + 1] = offsets[s] + derived_length(rows.derived, first[s + 1] - first[s],
                                                   second == nullptr ? 0 : second[s + 1] - second[s]);
    size = offsets.back();
  }
  const Graph& graph = model_.calls->graph();
  for (size_t i = 0; i < graph.orders.size(); ++i) {
    const StepOrder& order = graph.orders[i];
    const int64_t rows = sizes.symbols[static_cast<size_t>(order.rows)];
    const Dim& outer = graph.rows.at(order.rows).outer;
    const int64_t sequences = tn_dim_value(&outer, sizes.symbols.data());
    sizes.symbols[static_cast<size_t>(order.steps.symbol)] = rows;
    sizes.symbols[static_cast<size_t>(order.states.symbol)] = rows + sequences;
    for (const StepRows& seen : graph.step_rows) {
      if (static_cast<size_t>(seen.order) != i) continue;
      int64_t& size = sizes.symbols[static_cast<size_t>(seen.rows.symbol)];
      size = seen.whole ? rows_seen(graph, seen, offsets_of(order.rows), offsets_of(seen.source), sequences)
                        : sizes.symbols[static_cast<size_t>(seen.source)];
    }
  }
}

namespace {

// The spec of the arrays for a data layer.
Spec as_fed(const Feed& feed) {
  Spec spec = feed.spec;
  if (feed.channels_first) std::rotate(spec.shape.begin() + 1, spec.shape.end() - 1, spec.shape.end());
  return spec;
}

// The dimension of an array for the data layer that is dimension `i` of the layer's output, above 0.
size_t place_as_fed(const Feed& feed, size_t i) {
  if (!feed.channels_first) return i;
  return i + 1 == feed.spec.shape.size() ? 1 : i + 1;
}

// The elements of an array with channels first, in the order of the data layer's output.
ArrayView channels_last(ArrayView array) {
  if (array.strides.empty()) {
    array.strides.assign(array.shape.size(), 1);
    for (size_t i = array.shape.size() - 1; i > 0; --i) array.strides[i - 1] = array.strides[i] * array.shape[i];
  }
  std::rotate(array.shape.begin() + 1, array.shape.begin() + 2, array.shape.end());
  std::rotate(array.strides.begin() + 1, array.strides.begin() + 2, array.strides.end());
  return array;
}

}  // namespace

// Checks type, shape and data. Returns the first dimension: the samples, or the rows of a ragged array.
int64_t FeedChecker::check_dense(const Feed& feed, const ArrayView& array) const {
  const Shape& shape = feed.spec.shape;
  const bool widened = feed.weights == kNoValue && widens(array.dtype, feed.spec.dtype);
  bool fits = (array.dtype == feed.spec.dtype || widened) && array.shape.size() == shape.size();
  for (size_t i = 1; fits && i < shape.size(); ++i) fits = array.shape[place_as_fed(feed, i)] == shape[i].offset;
  if (!fits)
    fail(TN_INVALID, SubjectName{feed.name}, "data layer \"", feed.name, "\": expected ", to_string(as_fed(feed)),
         feed.channels_first ? " (channels first)" : "", ", got ", dtype_name(array.dtype), " ",
         to_string(array.shape));
  const int64_t first = array.shape[0];
  if (first < 0)
    fail(TN_INVALID, SubjectName{feed.name}, "data layer \"", feed.name, "\": a negative number of rows, ", first);
  if (first > 0 && array.data == nullptr && feed.weights == kNoValue)
    fail(TN_MISUSE, SubjectName{feed.name}, "data layer \"", feed.name, "\": null data");
  return first;
}

void FeedChecker::check_samples(const Feed& feed, int64_t samples) const {
  if (samples < 0 || samples > max_samples_)
    fail(TN_INVALID, SubjectName{feed.name}, "data layer \"", feed.name, "\": ", samples,
         " samples; the machine was made for at most ", max_samples_);
}

// Checks the offsets of a ragged or sparse feed, and sets the sizes of its symbols. Returns the number of samples.
int64_t FeedChecker::check_rows(const Feed& feed, const ArrayView& array, std::vector<int64_t>& symbols) const {
  const auto bad = [&](const auto&... parts) {
    fail(TN_INVALID, SubjectName{feed.name}, "data layer \"", feed.name, "\": ", parts...);
  };
  const bool sparse = feed.weights != kNoValue;
  const int64_t first = check_dense(feed, array);
  const int64_t samples = sparse ? first : array.samples;
  check_samples(feed, samples);  // before that many offsets are read
  if (!sparse && array.levels != feed.spec.levels) bad("expected ", feed.spec.levels, " levels, got ", array.levels);
  int64_t count = samples;  // of sequences at this level
  for (size_t level = 0; level < feed.rows.size(); ++level) {
    const int64_t* offsets = array.offsets[level];
    if (offsets == nullptr) bad("no offsets of level ", level);
    if (offsets[0] != 0) bad("the offsets of level ", level, " begin with ", offsets[0], "; expected 0");
    for (int64_t i = 0; i < count; ++i)
      if (offsets[i + 1] < offsets[i])
        bad("the offsets of level ", level, " fall from ", offsets[i], " to ", offsets[i + 1], " at sequence ", i);
    count = offsets[count];
    symbols[static_cast<size_t>(feed.rows[level])] = count;
  }
  if (!sparse && count != first) bad("its offsets end at ", count, ", and there are ", first, " rows");
  if (sparse && count > 0 && array.ids == nullptr) bad("entries without ids");
  return samples;
}

// Returns the place of a sample, row or inner sequence of the arrays: "sample 3 of the minibatch".
std::string FeedChecker::place(const char* what, int64_t number) const {
  if (std::string_view(what) == "sample") return text(what, ' ', first_sample_ + number, " of the minibatch");
  return text(what, ' ', number, first_sample_ == 0 ? "" : text(" from sample ", first_sample_, " on"),
              " of the minibatch");
}

void FeedChecker::check_indices(const Feed& feed, const ArrayView& array) const {
  if (feed.limits.empty()) return;
  const bool sparse = feed.weights != kNoValue;
  if (!sparse && is_float(array.dtype)) return;
  const ArrayView ids = sparse ? ArrayView{TN_I64, {array.offsets[0][array.shape[0]]}, array.ids} : array;
  for (const auto& [limit, by] : feed.limits) {
    const std::optional<IndexBeyond> found = first_beyond(ids, limit);
    if (!found) continue;
    std::string what;
    if (sparse) {
      const int64_t* const offsets = array.offsets[0];
      const int64_t* const next = std::upper_bound(offsets, offsets + array.shape[0] + 1, found->element);
      what = "a column of " + place("sample", next - offsets - 1);
    } else {
      int64_t per_row = 1;
      for (size_t i = 1; i < ids.shape.size(); ++i) per_row *= ids.shape[i];
      what = place(feed.rows.empty() ? "sample" : "row", found->element / per_row);
    }
    fail(TN_BAD_DATA, SubjectName{feed.name}, "data layer \"", feed.name, "\": ", what, " is ", found->value, "; ",
         by == feed.name ? "expected " : "layer \"" + by + "\" needs ", to_string(limit));
  }
}

// Throws if data layers with the same `sequence` have sequences of different lengths.
void FeedChecker::check_shared(const std::vector<ArrayView>& arrays, const std::vector<int64_t>& symbols) const {
  std::map<int32_t, size_t> known;  // per symbol: the first feed that has it
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Feed& feed = model_.lowered.feeds[i];
    for (size_t level = 0; level < feed.rows.size(); ++level) {
      const size_t other = known.try_emplace(feed.rows[level], i).first->second;
      const int64_t *ends = arrays[i].offsets[level], *other_ends = arrays[other].offsets[level];
      const Dim& outer = model_.calls->graph().rows.at(feed.rows[level]).outer;
      const int64_t count = tn_dim_value(&outer, symbols.data());
      const auto differs = std::mismatch(ends, ends + count + 1, other_ends).first - ends;
      if (differs > count) continue;
      fail(TN_BAD_DATA, SubjectName{model_.lowered.feeds[other].name}, "data layers \"",
           model_.lowered.feeds[other].name, "\" and \"", feed.name,
           "\" are of one sequence, and differ in the length of ",
           place(level == 0 ? "sample" : "inner sequence", differs - 1), ": ",
           other_ends[differs] - other_ends[differs - 1], " and ", ends[differs] - ends[differs - 1]);
    }
  }
}

namespace {

// Copies or binds the feeds of one minibatch.
class FeedTaker {
 public:
  FeedTaker(CompiledModel& model, HostAccess& access, const std::vector<int64_t>& symbols, FeedMode mode)
      : model_(model),
        access_(access),
        calls_(*model.calls),
        symbols_(symbols),
        in_place_(mode == FeedMode::kLent && access.device()->reads_host_memory()) {}

  void take(const Feed& feed, const ArrayView& array) {
    if (feed.channels_first) return take_values(feed, channels_last(array));
    for (size_t level = 0; level < feed.rows.size(); ++level) {
      const RaggedDim& of = calls_.graph().rows.at(feed.rows[level]);
      // Always copied: sealed calls hold the address of the offsets.
      copy(of.offsets, array.offsets[level], (static_cast<uint64_t>(size_of(of.outer)) + 1) * sizeof(int64_t));
    }
    feed.weights != kNoValue ? take_entries(feed, array) : take_values(feed, array);
  }

  void take_offsets(const RaggedUse& rows, const std::vector<int64_t>& offsets) {
    copy(rows.of.offsets, offsets.data(), offsets.size() * sizeof(int64_t));
  }

 private:
  [[nodiscard]] int64_t size_of(const Dim& dim) const { return tn_dim_value(&dim, symbols_.data()); }

  void take_values(const Feed& feed, const ArrayView& array) {
    if (array.dtype != feed.spec.dtype || !is_row_major(array))
      return write(feed.value, element_bytes({feed.spec.dtype, array.shape}),
                   [&](std::byte* to) { copy_widened(array, feed.spec.dtype, to); });
    put(feed.value, array.data, element_bytes(array));
  }

  // Takes the entries of a sparse feed: ids, and values in the compute type (1 if the array has none).
  void take_entries(const Feed& feed, const ArrayView& array) {
    const auto entries = static_cast<size_t>(symbols_[static_cast<size_t>(feed.rows[0])]);
    put(feed.value, array.ids, entries * sizeof(int64_t));
    const auto* values = static_cast<const float*>(array.data);
    const bool wide = calls_.graph().spec(feed.weights).dtype == TN_F64;
    if (!wide && values != nullptr) return put(feed.weights, values, entries * sizeof(float));
    const auto fill = [&](auto* to) {
      for (size_t i = 0; i < entries; ++i) to[i] = values == nullptr ? 1 : values[i];
    };
    write(feed.weights, entries * (wide ? sizeof(double) : sizeof(float)), [&](std::byte* to) {
      if (wide)
        fill(reinterpret_cast<double*>(to));
      else
        fill(reinterpret_cast<float*>(to));
    });
  }

  // Binds the array if that is possible, else copies it.
  void put(ValueId value, const void* from, uint64_t bytes) {
    const bool aligned = from != nullptr && reinterpret_cast<uintptr_t>(from) % kCacheLine == 0;
    if (!in_place_ || !aligned) return copy(value, from, bytes);
    place(value, const_cast<void*>(from));  // an input: calls do not write to it
  }
  void copy(ValueId value, const void* from, uint64_t bytes) {
    write(value, bytes, [&](std::byte* to) { std::memcpy(to, from, bytes); });
  }
  template <typename Fill>
  void write(ValueId value, uint64_t bytes, const Fill& fill) {
    std::byte* const own = model_.memory.fed.at(value).own;
    access_.write_by(own, bytes, fill);
    place(value, own);
  }
  void place(ValueId value, void* memory) {
    if (calls_.memory(value) == memory) return;
    for (const ValueId view : model_.memory.fed.at(value).views) calls_.bind(view, memory);
  }

  CompiledModel& model_;
  HostAccess& access_;
  CallArray& calls_;
  const std::vector<int64_t>& symbols_;
  bool in_place_;
};

}  // namespace

void take_feeds(CompiledModel& model, HostAccess& access, const std::vector<ArrayView>& arrays,
                const MinibatchSizes& sizes, FeedMode mode) {
  FeedTaker taker(model, access, sizes.symbols, mode);
  for (size_t i = 0; i < arrays.size(); ++i) taker.take(model.lowered.feeds[i], arrays[i]);
  for (size_t i = 0; i < sizes.derived_offsets.size(); ++i)
    if (!sizes.derived_offsets[i].empty()) taker.take_offsets(model.lowered.rows[i], sizes.derived_offsets[i]);
}

}  // namespace tenon::host
