// What a machine is fed: every array is checked before anything changes, then copied.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "core/alignment.h"
#include "core/checked.h"
#include "core/error.h"
#include "host/machine/machine.h"

namespace tenon {

namespace {

// The integer at `index` of an array.
int64_t integer_at(const void* data, tn_dtype dtype, size_t index) {
  switch (dtype) {
    case TN_U8:
    case TN_BOOL:
      return static_cast<const uint8_t*>(data)[index];
    case TN_I8:
      return static_cast<const int8_t*>(data)[index];
    case TN_I16:
      return static_cast<const int16_t*>(data)[index];
    case TN_U16:
      return static_cast<const uint16_t*>(data)[index];
    case TN_I32:
      return static_cast<const int32_t*>(data)[index];
    case TN_U32:
      return static_cast<const uint32_t*>(data)[index];
    default:
      return static_cast<const int64_t*>(data)[index];
  }
}

// The next size of a dimension of rows that must hold `needed`.
int64_t grown(int64_t bound, int64_t needed) {
  while (bound < needed) bound = checked_multiply(bound, int64_t{2}, "rows");
  return bound;
}

}  // namespace

// Gives the number of samples.
int64_t Machine::check_dense(const Feed& feed, const ArrayView& array) const {
  const Shape& shape = feed.spec.shape;
  bool fits = array.dtype == feed.spec.dtype && array.shape.size() == shape.size();
  for (size_t i = 1; fits && i < shape.size(); ++i) fits = array.shape[i] == shape[i].offset;
  if (!fits)
    fail(TN_INVALID, "data layer \"", feed.name, "\": expected ", to_string(feed.spec), ", got ",
         dtype_name(array.dtype), " ", to_string(array.shape));
  const int64_t first = array.shape[0];
  if (first < 0) fail(TN_INVALID, "data layer \"", feed.name, "\": a negative number of rows, ", first);
  if (first > 0 && array.data == nullptr && feed.weights == kNoValue)
    fail(TN_MISUSE, "data layer \"", feed.name, "\": null data");
  return first;
}

void Machine::check_samples(const Feed& feed, int64_t samples) const {
  if (samples < 0 || samples > options_.max_samples)
    fail(TN_INVALID, "data layer \"", feed.name, "\": ", samples, " samples; the machine was made for at most ",
         options_.max_samples);
}

// Of a ragged or a sparse feed: fills the sizes of its rows in. Gives the number of samples.
int64_t Machine::check_rows(const Feed& feed, const ArrayView& array, std::vector<int64_t>& symbols) const {
  const auto bad = [&](const auto&... parts) { fail(TN_INVALID, "data layer \"", feed.name, "\": ", parts...); };
  const bool sparse = feed.weights != kNoValue;
  const int64_t first = check_dense(feed, array);
  const int64_t samples = sparse ? first : array.samples;
  check_samples(feed, samples);  // before as many offsets are read
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

// Sizes of all symbols.
std::vector<int64_t> Machine::check_feeds(const std::vector<NamedArray>& feeds) const {
  std::vector<std::string> names;
  for (const Feed& feed : lowered_.feeds) names.push_back(feed.name);
  std::vector<int64_t> symbols(bounds_.size(), -1);
  int64_t& samples = symbols[TN_SYMBOL_SAMPLES];
  for (size_t i = 0; i < feeds.size(); ++i) {
    const NamedArray& given = feeds[i];
    for (size_t other = 0; other < i; ++other)
      if (feeds[other].name == given.name) fail(TN_INVALID, "data layer \"", given.name, "\" is fed twice");
    const auto feed = std::find_if(lowered_.feeds.begin(), lowered_.feeds.end(),
                                   [&](const Feed& known) { return known.name == given.name; });
    if (feed == lowered_.feeds.end())
      fail(TN_NOT_FOUND, "there is no data layer \"", given.name, "\"", suggestion(given.name, names));
    if (given.array.storage != feed->spec.storage)
      fail(TN_INVALID, "data layer \"", given.name, "\": expected ", storage_name(feed->spec.storage), " data, got ",
           storage_name(given.array.storage));
    const bool dense = feed->rows.empty();
    const int64_t count = dense ? check_dense(*feed, given.array) : check_rows(*feed, given.array, symbols);
    if (dense) check_samples(*feed, count);
    if (samples >= 0 && samples != count)
      fail(TN_INVALID, "data layer \"", given.name, "\" has ", count, " samples, another one ", samples);
    samples = count;
  }
  for (const std::string& name : names)
    if (std::none_of(feeds.begin(), feeds.end(), [&](const NamedArray& given) { return given.name == name; }))
      fail(TN_INVALID, "data layer \"", name, "\" is not fed");
  for (const RowsUse& rows : lowered_.rows)
    if (rows.name.empty())
      symbols[static_cast<size_t>(rows.symbol)] =
          symbols[static_cast<size_t>(rows.joined.first)] + symbols[static_cast<size_t>(rows.joined.second)];
  for (int64_t& size : symbols) size = std::max<int64_t>(size, 0);
  return symbols;
}

// Data layers with one sequence have their rows alike.
void Machine::check_shared(const std::vector<NamedArray>& feeds, const std::vector<int64_t>& symbols) const {
  std::map<int32_t, const NamedArray*> known;
  for (const NamedArray& given : feeds)
    for (const Feed& feed : lowered_.feeds) {
      if (feed.name != given.name) continue;
      for (size_t level = 0; level < feed.rows.size(); ++level) {
        const NamedArray& other = *known.try_emplace(feed.rows[level], &given).first->second;
        const int64_t *ends = given.array.offsets[level], *other_ends = other.array.offsets[level];
        const Dim& outer = calls_->graph().rows.at(feed.rows[level]).outer;
        const int64_t count = tn_dim_value(&outer, symbols.data());
        const auto differs = std::mismatch(ends, ends + count + 1, other_ends).first - ends;
        if (differs <= count)
          fail(TN_BAD_DATA, "data layers \"", other.name, "\" and \"", given.name,
               "\" are of one sequence, and differ in the length of ", level == 0 ? "sample " : "inner sequence ",
               differs - 1, " of the minibatch: ", other_ends[differs] - other_ends[differs - 1], " and ",
               ends[differs] - ends[differs - 1]);
      }
    }
}

void Machine::check_indices(const Feed& feed, const ArrayView& array) const {
  if (feed.index_limit < 0) return;
  const bool sparse = feed.weights != kNoValue;
  if (!sparse && is_float(array.dtype)) return;
  size_t per_row = 1;
  for (size_t i = 1; !sparse && i < array.shape.size(); ++i) per_row *= static_cast<size_t>(array.shape[i]);
  const auto rows =
      sparse ? static_cast<size_t>(array.offsets[0][array.shape[0]]) : static_cast<size_t>(array.shape[0]);
  const void* data = sparse ? array.ids : array.data;
  const tn_dtype dtype = sparse ? TN_I64 : array.dtype;
  for (size_t i = 0; i < rows * per_row; ++i) {
    const int64_t value = integer_at(data, dtype, i);
    if (value >= 0 && value < feed.index_limit) continue;
    fail(TN_BAD_DATA, "data layer \"", feed.name, "\": ", feed.rows.empty() ? "sample " : "row ", i / per_row,
         " of the minibatch is ", value, "; ",
         feed.limited_by == feed.name ? "expected " : "layer \"" + feed.limited_by + "\" needs ", "0 to ",
         feed.index_limit - 1);
  }
}

// Plans anew with larger bounds where a minibatch has more rows than fit. Gradients go on.
void Machine::reserve(const std::vector<int64_t>& symbols) {
  std::map<int32_t, int64_t> bounds = row_bounds_;
  bool fits = true;
  for (const RowsUse& rows : lowered_.rows) {
    const auto at = static_cast<size_t>(rows.symbol);
    if (symbols[at] <= bounds_[at]) continue;
    if (options_.max_rows > 0)
      fail(TN_INVALID, "data layer \"", rows.name, "\": ", symbols[at],
           " rows in a minibatch; the machine was made for at most ", options_.max_rows);
    fits = false;
    if (!rows.name.empty()) bounds[rows.symbol] = grown(bounds_[at], symbols[at]);
  }
  if (fits) return;
  Machine larger(topology_, set_, *registry_, device_, parallel_, options_, std::move(bounds));
  adopt(larger);
}

void Machine::begin_step(const std::vector<int64_t>& symbols) {
  const bool changed = symbols != symbols_;
  symbols_ = symbols;
  if (options_.training) random_->step = set_->updates();
  std::copy(symbols.begin(), symbols.end(), device_symbols_);
  for (const auto& [symbol, value] : inverses_) {
    const int64_t size = symbols[static_cast<size_t>(symbol)];
    const double inverse = size > 0 ? 1.0 / static_cast<double>(size) : 0.0;
    void* const to = calls_->memory(value);
    if (options_.compute == TN_F64) {
      std::memcpy(to, &inverse, sizeof inverse);
    } else {
      const auto narrow = static_cast<float>(inverse);
      std::memcpy(to, &narrow, sizeof narrow);
    }
  }
  if (changed) calls_->resize(symbols);
}

// Puts what is fed into the value's memory, or has kernels read it where it lies: that needs a device whose memory is
// the host's, and its alignment.
void Machine::take(ValueId value, const void* from, uint64_t bytes, Feeding feeding) {
  const FedMemory& fed = fed_memory_.at(value);
  const bool in_place = feeding == Feeding::kLent && device_->reads_host_memory() &&
                        reinterpret_cast<uintptr_t>(from) % kCacheLine == 0 && from != nullptr;
  void* const memory = in_place ? const_cast<void*>(from) : fed.own;  // an input: nobody writes to it
  if (!in_place && bytes > 0) std::memcpy(memory, from, bytes);
  if (calls_->memory(value) == memory) return;
  for (const ValueId view : fed.views) calls_->bind(view, memory);
}

void Machine::take_feed(const Feed& feed, const ArrayView& array, Feeding feeding) {
  for (size_t level = 0; level < feed.rows.size(); ++level) {
    const RowsOf& of = calls_->graph().rows.at(feed.rows[level]);
    take(of.offsets, array.offsets[level], (static_cast<uint64_t>(size_of(of.outer)) + 1) * sizeof(int64_t),
         Feeding::kCopied);  // sealed calls know where offsets are
  }
  if (feed.weights == kNoValue) {
    uint64_t bytes = tn_dtype_bytes(array.dtype);
    for (const int64_t extent : array.shape) bytes *= static_cast<uint64_t>(extent);
    take(feed.value, array.data, bytes, feeding);
    return;
  }
  const auto entries = static_cast<size_t>(symbols_[static_cast<size_t>(feed.rows[0])]);
  take(feed.value, array.ids, entries * sizeof(int64_t), feeding);
  const auto* values = static_cast<const float*>(array.data);
  if (options_.compute == TN_F32 && values != nullptr) {
    take(feed.weights, values, entries * sizeof(float), feeding);
    return;
  }
  const auto weigh = [&](auto* to) {
    for (size_t i = 0; i < entries; ++i) to[i] = values == nullptr ? 1 : values[i];
  };
  take(feed.weights, nullptr, 0, Feeding::kCopied);
  if (options_.compute == TN_F64)
    weigh(static_cast<double*>(calls_->memory(feed.weights)));
  else
    weigh(static_cast<float*>(calls_->memory(feed.weights)));
}

// Offsets of sequences that are two others behind one another.
void Machine::join_rows() {
  const Graph& graph = calls_->graph();
  const auto offsets = [&](int32_t symbol) {
    return static_cast<int64_t*>(calls_->memory(graph.rows.at(symbol).offsets));
  };
  for (const RowsUse& rows : lowered_.rows) {
    if (!rows.name.empty()) continue;
    const int64_t* first = offsets(rows.joined.first);
    const int64_t* second = offsets(rows.joined.second);
    int64_t* joined = offsets(rows.symbol);
    for (int64_t i = 0; i <= size_of(rows.of.outer); ++i) joined[i] = first[i] + second[i];
  }
}

void Machine::forward(const std::vector<NamedArray>& feeds, Feeding feeding) {
  if (!set_->has_values())
    fail(TN_MISUSE, "the machine can only be planned: its parameters have no values, they were only declared");
  const std::vector<int64_t> symbols = check_feeds(feeds);
  const auto each = [&](auto&& work) {
    for (const Feed& feed : lowered_.feeds)
      for (const NamedArray& given : feeds)
        if (given.name == feed.name) work(feed, given.array);
  };
  each([&](const Feed& feed, const ArrayView& array) { check_indices(feed, array); });
  check_shared(feeds, symbols);
  reserve(symbols);
  samples_ = -1;
  fresh_ = false;
  begin_step(symbols);
  const int64_t samples = symbols[TN_SYMBOL_SAMPLES];
  if (samples > 0) {
    each([&](const Feed& feed, const ArrayView& array) { take_feed(feed, array, feeding); });
    join_rows();
    calls_->run(false, execution_, errors_);
  }
  samples_ = samples;
  fresh_ = true;
}

}  // namespace tenon
