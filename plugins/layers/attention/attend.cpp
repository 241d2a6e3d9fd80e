// A tile is a vector register or more of queries: scores are kept as [keys, queries], so that maxima and sums over the
// keys are vectors, and a key needs no copy. Keys go by in blocks of kKeys. A query has a running maximum m, sum s and
// output o; a block with the maximum b multiplies s and o by exp(m - max(m, b)) before it adds its own terms (Milakov
// and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022). Blocks begin
// at multiples of kKeys of what a query sees, and all chains of a query are in the order of the keys, so hidden keys,
// whose terms are 0, change no bit. The derivative computes the weights again, from scores and log_sums.
// SPDX-License-Identifier: Apache-2.0
#include "attend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend.cpp"
// clang-format off: Highway needs this order
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "targets.h"
// clang-format on

#include <hwy/contrib/math/math-inl.h>
#include <tenon/elementary.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::attention::HWY_NAMESPACE {
namespace {

constexpr int64_t kKeys = 128;   // of a block
constexpr int64_t kDepth = 128;  // features that are copied at once
constexpr int64_t kChains = 8;   // of the sum of a block: chain i has the keys i, i + 8, i + 16 and so on
constexpr int64_t kFew = 2;      // queries that are computed one by one

// Queries of a tile: columns of its scores.
template <class T>
constexpr int64_t kTile = (HWY_TARGET == HWY_AVX3 ? 3 : 2) * kWidth<T>;
template <class T>
constexpr T kInf = std::numeric_limits<T>::infinity();

// exp(x) of x <= 0, or NaN.
template <class T>
HWY_INLINE Vector<T> exponential(Vector<T> x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(Tag<T>(), x));
}
// The number that is subtracted from scores, given their largest: finite if all keys are hidden.
template <class T>
HWY_INLINE Vector<T> subtracted(Vector<T> most) {
  return hn::IfThenZeroElse(hn::Eq(most, hn::Set(Tag<T>(), -kInf<T>)), most);
}
// The sum of the chains of a block.
template <class V, class Add>
HWY_INLINE V fold(V (&sums)[kChains], const Add& add) {
#pragma GCC unroll 8
  for (int64_t half = kChains / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (int64_t i = 0; i < half; ++i) sums[i] = add(sums[i], sums[i + half]);
  return sums[0];
}

// Rows of a tile of queries, transposed to [features, kTile], a few features at a time, times a factor.
template <class T>
class Transposed {
 public:
  Transposed(const Rows<const T>& rows, int64_t first, int64_t count, T factor)
      : rows_{rows.row(first), rows.stride}, count_(count), factor_(factor) {
    std::fill_n(copy_, kDepth * kTile<T>, T(0));
  }
  // Features [first, first + count), count <= kDepth; valid until the next call.
  const T* features(int64_t first, int64_t count) {
    if (first == first_) return copy_;
    for (int64_t q = 0; q < count_; ++q) {
      const T* const from = rows_.row(q) + first;
      for (int64_t i = 0; i < count; ++i) copy_[i * kTile<T> + q] = factor_ * from[i];
    }
    first_ = first;
    return copy_;
  }

 private:
  Rows<const T> rows_;
  int64_t count_, first_ = -1;
  T factor_;
  HWY_ALIGN T copy_[kDepth * kTile<T>];
};

// A block of a tile: keys [key, key + keys) and queries [query, query + queries).
struct Block {
  int64_t query, queries, key, keys;
  int64_t vectors;  // of queries
};

template <class T>
Block tile_at(const Head<T>& head, int64_t first) {
  Block tile = {first, std::min(kTile<T>, head.queries - first), 0, 0, 0};
  tile.vectors = (tile.queries + kWidth<T> - 1) / kWidth<T>;
  return tile;
}

// products [keys, kTile]: of `rows` of the keys' number with the rows of the tile.
template <class T>
void multiply_rows(const Rows<const T>& rows, int64_t features, const Block& block, Transposed<T>& tile, T* products) {
  for (int64_t first = 0; first < features; first += kDepth) {
    const int64_t count = std::min(kDepth, features - first);
    multiply<T>({rows.row(block.key) + first, rows.stride, 1, tile.features(first, count), kTile<T>, products, kTile<T>,
                 block.keys, block.vectors * kWidth<T>, count, first > 0});
  }
}

// Scores of keys that a query does not see become -infinity.
template <class T>
void hide(const Head<T>& head, const Block& block, T* scores) {
  for (int64_t k = std::max(block.key, head.visible(block.query)); k < block.key + block.keys; ++k) {
    const int64_t hidden = std::min(block.queries, k + 1 - head.seen - block.query);
    std::fill_n(scores + (k - block.key) * kTile<T>, std::max<int64_t>(hidden, 0), -kInf<T>);
  }
  if (head.mask.data == nullptr) return;
  for (int64_t q = 0; q < block.queries; ++q) {
    const T* const mask = head.mask.row(block.query + q) + block.key;
    for (int64_t k = 0; k < block.keys; ++k)
      if (mask[k] == 0) scores[k * kTile<T> + q] = -kInf<T>;
  }
}

// The largest of `most` and numbers [count], each kTile numbers apart.
template <class T>
HWY_INLINE Vector<T> largest(const T* numbers, int64_t count, Vector<T> most) {
  const Tag<T> d;
  Vector<T> a = most, b = most;  // two, because each waits for the one before
  int64_t k = 0;
  for (; k + 2 <= count; k += 2) {
    a = hn::Max(a, hn::Load(d, numbers + k * kTile<T>));
    b = hn::Max(b, hn::Load(d, numbers + (k + 1) * kTile<T>));
  }
  if (k < count) a = hn::Max(a, hn::Load(d, numbers + k * kTile<T>));
  return hn::Max(a, b);
}

template <class T>
struct Running {
  HWY_ALIGN T most[kTile<T>];
  HWY_ALIGN T sum[kTile<T>];
  HWY_ALIGN T factor[kTile<T>];  // of what was summed before the last block
};

// Replaces the scores of a block by exponentials of them minus the running maximum.
template <class T>
void weigh(const Block& block, T* scores, Running<T>& running) {
  const Tag<T> d;
  for (int64_t v = 0; v < block.vectors * kWidth<T>; v += kWidth<T>) {
    const Vector<T> before = hn::Load(d, running.most + v);
    const Vector<T> most = largest(scores + v, block.keys, before);
    const Vector<T> base = subtracted<T>(most);
    Vector<T> sums[kChains];
    for (Vector<T>& sum : sums) sum = hn::Zero(d);
    const auto add = [&](int64_t k, Vector<T>& sum) {
      T* const at = scores + k * kTile<T> + v;
      const Vector<T> weight = exponential<T>(hn::Sub(hn::Load(d, at), base));
      hn::Store(weight, d, at);
      sum = hn::Add(sum, weight);
    };
    int64_t k = 0;
    for (; k + kChains <= block.keys; k += kChains)
#pragma GCC unroll 8
      for (int64_t i = 0; i < kChains; ++i) add(k + i, sums[i]);
    for (int64_t i = 0; k + i < block.keys; ++i) add(k + i, sums[i]);
    const Vector<T> factor = exponential<T>(hn::Sub(before, base));
    hn::Store(hn::MulAdd(hn::Load(d, running.sum + v), factor,
                         fold(sums, [](Vector<T> a, Vector<T> b) { return hn::Add(a, b); })),
              d, running.sum + v);
    hn::Store(most, d, running.most + v);
    hn::Store(factor, d, running.factor + v);
  }
}

// numbers [count] *= factor
template <class T>
void scale(T* numbers, int64_t count, T factor) {
  if (factor == 1) return;
  for (int64_t i = 0; i < count; ++i) numbers[i] *= factor;
}

// Divides an output by its sum, 0 if there was nothing to add. Returns what the derivative needs.
template <class T>
T finish(T* output, int64_t width, T most, T sum) {
  if (sum == 0) {
    std::fill_n(output, width, T(0));
    return kInf<T>;
  }
  scale(output, width, 1 / sum);
  return most + static_cast<T>(tn_math_log(static_cast<double>(sum)));
}

#if HWY_TARGET != HWY_SCALAR
// Loads 16 bytes of each of some rows as the blocks of a vector: block b from row b * (elements of a block).
template <class D, class T>
HWY_INLINE hn::Vec<D> load_blocks(D d, const T* const* rows, int64_t at) {
  if constexpr (hn::MaxLanes(D()) > 16 / sizeof(T)) {
    const hn::Half<D> half;
    return hn::Combine(d, load_blocks(half, rows + hn::MaxLanes(half), at), load_blocks(half, rows, at));
  } else {
    return hn::LoadU(d, rows[0] + at);
  }
}
#endif

// Scores of one query and a vector of keys: lane k that of rows[k].
template <class T>
HWY_INLINE Vector<T> score_vector(const Query<T>& q, const T* const* rows) {
  const Tag<T> d;
  Vector<T> sum = hn::Zero(d);
  const auto add = [&](Vector<T> keys, int64_t i) { sum = hn::MulAdd(keys, hn::Set(d, q.scale * q.query[i]), sum); };
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  // Squares of kSide keys by kSide features are transposed in registers, as many as a vector has blocks.
  constexpr int64_t kSide = 16 / sizeof(T);
  for (; i + kSide <= q.depth; i += kSide) {
    const auto r0 = load_blocks(d, rows, i), r1 = load_blocks(d, rows + 1, i);
    if constexpr (kSide == 2) {
      add(hn::InterleaveLower(d, r0, r1), i);
      add(hn::InterleaveUpper(d, r0, r1), i + 1);
    } else {
      const auto r2 = load_blocks(d, rows + 2, i), r3 = load_blocks(d, rows + 3, i);
      const auto p0 = hn::InterleaveLower(d, r0, r2), p1 = hn::InterleaveUpper(d, r0, r2);
      const auto q0 = hn::InterleaveLower(d, r1, r3), q1 = hn::InterleaveUpper(d, r1, r3);
      add(hn::InterleaveLower(d, p0, q0), i);
      add(hn::InterleaveUpper(d, p0, q0), i + 1);
      add(hn::InterleaveLower(d, p1, q1), i + 2);
      add(hn::InterleaveUpper(d, p1, q1), i + 3);
    }
  }
#endif
  for (; i < q.depth; ++i) {
    HWY_ALIGN T keys[kWidth<T>];
    for (int64_t k = 0; k < kWidth<T>; ++k) keys[k] = rows[k][i];
    add(hn::Load(d, keys), i);
  }
  return sum;
}

// Scores of one query and the keys rows[0, count), to numbers [count]; both have room for whole vectors.
template <class T>
void score_one(const Query<T>& q, const T** rows, int64_t count, T* numbers) {
  for (int64_t k = 0; k < count; k += kWidth<T>) {
    for (int64_t i = count; i < k + kWidth<T>; ++i) rows[i] = rows[count - 1];
    hn::Store(score_vector(q, rows + k), Tag<T>(), numbers + k);
  }
}

// output [width] = before * output + the sum of the values rows[0, count), weighted; 0 times no output is 0.
template <class T>
void mix_one(const T* weights, const T* const* rows, int64_t count, int64_t width, T before, T* output) {
  const Tag<T> d;
  constexpr int kVectors = 4;
  constexpr int64_t kLanes = kWidth<T>;
  const Vector<T> factor = hn::Set(d, before);
  int64_t j = 0;
  for (; j + kVectors * kLanes <= width; j += kVectors * kLanes) {
    Vector<T> sums[kVectors];
    for (int v = 0; v < kVectors; ++v) sums[v] = hn::Mul(factor, hn::LoadU(d, output + j + v * kLanes));
    for (int64_t k = 0; k < count; ++k) {
      const Vector<T> weight = hn::Set(d, weights[k]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[v] = hn::MulAdd(weight, hn::LoadU(d, rows[k] + j + v * kLanes), sums[v]);
    }
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, output + j + v * kLanes);
  }
  for (; j < width; j += kLanes) {
    const int64_t left = std::min(kLanes, width - j);
    Vector<T> sum = hn::Mul(factor, load_part(output + j, left));
    for (int64_t k = 0; k < count; ++k) sum = hn::MulAdd(hn::Set(d, weights[k]), load_part(rows[k] + j, left), sum);
    store_part<T>(sum, output + j, left);
  }
}

template <class T>
T attend_one(const Query<T>& q, T* output) {
  const Tag<T> d;
  const int64_t total = q.count + (q.last_key == nullptr ? 0 : 1);
  std::fill_n(output, q.width, T(0));
  T most = -kInf<T>, sum = 0;
  for (int64_t first = 0; first < total; first += kKeys) {
    const int64_t count = std::min(kKeys, total - first);
    const T *keys[kKeys], *values[kKeys];
    for (int64_t k = 0; k < count; ++k) {
      const bool last = first + k == q.count;
      const int64_t number = last ? 0 : q.numbers == nullptr ? first + k : q.numbers[first + k];
      keys[k] = last ? q.last_key : q.key.row(number);
      values[k] = last ? q.last_value : q.value.row(number);
    }
    HWY_ALIGN T weights[kKeys];
    score_one(q, keys, count, weights);
    for (int64_t k = 0; k < count; ++k)
      if (q.mask != nullptr && q.mask[first + k] == 0) weights[k] = -kInf<T>;
    const T before = most;
    for (int64_t k = 0; k < count; ++k) most = weights[k] > most ? weights[k] : most;
    const Vector<T> base = subtracted<T>(hn::Set(d, most));
    constexpr int64_t kStep = std::max(kWidth<T>, kChains);
    const int64_t padded = (count + kStep - 1) / kStep * kStep;
    std::fill_n(weights + count, padded - count, -kInf<T>);
    for (int64_t k = 0; k < padded; k += kWidth<T>)
      hn::Store(exponential<T>(hn::Sub(hn::Load(d, weights + k), base)), d, weights + k);
    T sums[kChains] = {};
    for (int64_t k = 0; k < padded; k += kChains)
      for (int64_t c = 0; c < kChains; ++c) sums[c] += weights[k + c];
    const Vector<T> factor = exponential<T>(hn::Sub(hn::Set(d, before), base));
    sum = hn::GetLane(hn::MulAdd(hn::Set(d, sum), factor, hn::Set(d, fold(sums, std::plus<T>()))));
    mix_one(weights, values, count, q.width, hn::GetLane(factor), output);
  }
  return finish(output, q.width, most, sum);
}

// Query `number` of a head, on its own.
template <class T>
Query<T> query_of(const Head<T>& head, int64_t number) {
  Query<T> query;
  query.query = head.query.row(number);
  query.key = head.key;
  query.value = head.value;
  query.mask = head.mask.data == nullptr ? nullptr : head.mask.row(number);
  query.count = head.visible(number);
  query.depth = head.depth;
  query.width = head.width;
  query.scale = head.scale;
  return query;
}

template <class T>
void attend_tile(const Head<T>& head, int64_t first, const Rows<T>& output, const Rows<T>& log_sums) {
  Block block = tile_at(head, first);
  const auto keep = [&](int64_t q, T log_sum) {
    if (log_sums.data != nullptr) *log_sums.row(first + q) = log_sum;
  };
  if (block.queries <= kFew) {
    for (int64_t q = 0; q < block.queries; ++q) keep(q, attend_one(query_of(head, first + q), output.row(first + q)));
    return;
  }
  Transposed<T> queries(head.query, first, block.queries, head.scale);
  HWY_ALIGN T scores[kKeys * kTile<T>];
  Running<T> running;
  std::fill_n(running.most, kTile<T>, -kInf<T>);
  std::fill_n(running.sum, kTile<T>, T(0));
  const int64_t end = head.visible(first + block.queries - 1);
  for (; block.key < end; block.key += kKeys) {
    block.keys = std::min(kKeys, end - block.key);
    multiply_rows(head.key, head.depth, block, queries, scores);
    hide(head, block, scores);
    weigh(block, scores, running);
    for (int64_t q = 0; block.key > 0 && q < block.queries; ++q)
      scale(output.row(first + q), head.width, running.factor[q]);
    multiply<T>({scores, 1, kTile<T>, head.value.row(block.key), head.value.stride, output.row(first), output.stride,
                 block.queries, head.width, block.keys, block.key > 0});
  }
  for (int64_t q = 0; q < block.queries; ++q)
    keep(q, finish(output.row(first + q), head.width, running.most[q], running.sum[q]));
}

// What the gradient of a tile needs of its queries: log_sums, and the mean of the gradients of the weights.
template <class T>
struct Known {
  HWY_ALIGN T log_sums[kTile<T>];
  HWY_ALIGN T means[kTile<T>];

  Known(const HeadGradient<T>& of, const Block& block, int64_t width) {
    std::fill_n(log_sums, kTile<T>, kInf<T>);
    std::fill_n(means, kTile<T>, T(0));
    for (int64_t q = 0; q < block.queries; ++q) log_sums[q] = *of.log_sums.row(block.query + q);
    for (int64_t q = 0; q < block.queries; q += kChains)
      dots({of.given.row(block.query + q), of.given.stride}, {of.output.row(block.query + q), of.output.stride},
           std::min(kChains, block.queries - q), width, means + q);
  }

 private:
  // Products of rows of a and b, each a chain as in a product of matrices: if a query sees one key, its mean is the
  // gradient of the weight to the bit, and no rounding is left of their difference, which is 0.
  static void dots(const Rows<const T>& a, const Rows<const T>& b, int64_t count, int64_t width, T* to) {
    const hn::CappedTag<T, 1> one;
    hn::Vec<decltype(one)> sums[kChains];
    for (auto& sum : sums) sum = hn::Zero(one);
    for (int64_t i = 0; i < width; ++i)
#pragma GCC unroll 8
      for (int64_t c = 0; c < kChains; ++c)
        if (c < count) sums[c] = hn::MulAdd(hn::LoadU(one, a.row(c) + i), hn::LoadU(one, b.row(c) + i), sums[c]);
    for (int64_t c = 0; c < count; ++c) to[c] = hn::GetLane(sums[c]);
  }
};

// Replaces scores by weights.
template <class T>
void weigh_again(const Block& block, const Known<T>& known, T* scores) {
  const Tag<T> d;
  for (int64_t k = 0; k < block.keys; ++k)
    for (int64_t v = 0; v < block.vectors * kWidth<T>; v += kWidth<T>) {
      T* const at = scores + k * kTile<T> + v;
      hn::Store(exponential<T>(hn::Sub(hn::Load(d, at), hn::Load(d, known.log_sums + v))), d, at);
    }
}

// Replaces weights by the gradients of query . key, given those of the weights.
template <class T>
void derive_scores(const Block& block, const Known<T>& known, T factor, const T* gradients, T* weights) {
  const Tag<T> d;
  for (int64_t k = 0; k < block.keys; ++k)
    for (int64_t v = 0; v < block.vectors * kWidth<T>; v += kWidth<T>) {
      T* const at = weights + k * kTile<T> + v;
      const Vector<T> gradient = hn::Sub(hn::Load(d, gradients + k * kTile<T> + v), hn::Load(d, known.means + v));
      hn::Store(hn::Mul(hn::Mul(hn::Load(d, at), hn::Set(d, factor)), gradient), d, at);
    }
}

template <class T>
void differentiate_tile(const Head<T>& head, const HeadGradient<T>& of, Block block) {
  const int64_t first = block.query;
  const Known<T> known(of, block, head.width);
  Transposed<T> queries(head.query, first, block.queries, head.scale), given(of.given, first, block.queries, 1);
  HWY_ALIGN T weights[kKeys * kTile<T>], gradients[kKeys * kTile<T>];
  const int64_t end = head.visible(first + block.queries - 1);
  for (; block.key < end; block.key += kKeys) {
    block.keys = std::min(kKeys, end - block.key);
    multiply_rows(head.key, head.depth, block, queries, weights);
    hide(head, block, weights);
    weigh_again(block, known, weights);
    if (of.to_value.data != nullptr)
      multiply<T>({weights, kTile<T>, 1, of.given.row(first), of.given.stride, of.to_value.row(block.key),
                   of.to_value.stride, block.keys, head.width, block.queries, true});
    if (of.to_query.data == nullptr && of.to_key.data == nullptr) continue;
    multiply_rows(head.value, head.width, block, given, gradients);
    derive_scores(block, known, head.scale, gradients, weights);
    if (of.to_key.data != nullptr)
      multiply<T>({weights, kTile<T>, 1, head.query.row(first), head.query.stride, of.to_key.row(block.key),
                   of.to_key.stride, block.keys, head.depth, block.queries, true});
    if (of.to_query.data != nullptr)
      multiply<T>({weights, 1, kTile<T>, head.key.row(block.key), head.key.stride, of.to_query.row(first),
                   of.to_query.stride, block.queries, head.depth, block.keys, true});
  }
}

template <class T>
void clear(const Rows<T>& rows, int64_t count, int64_t width) {
  for (int64_t i = 0; rows.data != nullptr && i < count; ++i) std::fill_n(rows.row(i), width, T(0));
}

template <class T>
void differentiate(const Head<T>& head, const HeadGradient<T>& of) {
  clear(of.to_query, head.queries, head.depth);
  clear(of.to_key, head.keys, head.depth);
  clear(of.to_value, head.keys, head.width);
  for (int64_t first = 0; first < head.queries; first += kTile<T>) differentiate_tile(head, of, tile_at(head, first));
}

}  // namespace

template <class T>
const Attend<T>& find() {
  static constexpr Attend<T> kFunctions = {kTile<T>, &attend_tile<T>,
                                           [](const Query<T>& query, T* output) { attend_one(query, output); },
                                           &differentiate<T>};
  return kFunctions;
}

}  // namespace tenon::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::attention {

template <>
const Attend<float>& attend() {
  TENON_CHOOSE(find<float>());
}
template <>
const Attend<double>& attend() {
  TENON_CHOOSE(find<double>());
}

}  // namespace tenon::attention
#endif
