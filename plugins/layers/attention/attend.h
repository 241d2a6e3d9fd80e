// Attention of one head, and its derivative, in tiles: softmax(scale Q K^T) V without the matrix of the weights.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon::attention {

// Rows of a matrix, `stride` elements apart; no data: not there.
template <typename T>
struct Rows {
  T* data = nullptr;
  int64_t stride = 0;

  [[nodiscard]] T* row(int64_t i) const { return data + i * stride; }
};

// One head of one sequence or sample. Query i sees the keys below min(keys, i + seen) for which the mask, if there is
// one, is not 0.
template <typename T>
struct Head {
  Rows<const T> query;  // [queries, depth]
  Rows<const T> key;    // [keys, depth]
  Rows<const T> value;  // [keys, width]
  Rows<const T> mask;   // [queries, keys]
  int64_t queries = 0, keys = 0, depth = 0, width = 0;
  int64_t seen = 0;
  T scale = 0;

  [[nodiscard]] int64_t visible(int64_t query_number) const {
    const int64_t count = query_number + seen;
    return count < 0 ? 0 : count < keys ? count : keys;
  }
};

// What one query sees: the rows `numbers` of keys and values (0, 1, 2 and so on if null), then one row more if last_key
// is not null.
template <typename T>
struct Query {
  const T* query = nullptr;  // [depth]
  Rows<const T> key, value;
  const T* mask = nullptr;  // [count]
  const int64_t* numbers = nullptr;
  int64_t count = 0;
  const T *last_key = nullptr, *last_value = nullptr;
  int64_t depth = 0, width = 0;
  T scale = 0;
};

// The derivatives of all outputs of a head. Those that are not wanted have no data; the others are overwritten.
template <typename T>
struct HeadGradient {
  Rows<const T> output, given;  // [queries, width] what attend wrote, and its gradient
  Rows<const T> log_sums;       // [queries, 1] what attend wrote
  Rows<T> to_query, to_key, to_value;
};

// A query's output is the sum of the visible values, weighted by softmax(scale query . key), 0 if there are none. Its
// bits follow from the query and what it sees, in this order: they are the same for every form of the call, wherever
// the rows lie. Values that are not visible must be finite. Nothing is allocated; scratch is on the stack, below 128
// KiB.
template <typename T>
struct Attend {
  int64_t tile;  // queries that one call computes
  // Outputs [first, first + tile) of a head, at most all. log_sums: the logarithms of the sums of the exponentials of
  // the scores, for the derivative; infinite if a query sees nothing; without data: not wanted.
  void (*tile_of)(const Head<T>& head, int64_t first, const Rows<T>& output, const Rows<T>& log_sums);
  void (*one)(const Query<T>& query, T* output);
  void (*differentiate)(const Head<T>& head, const HeadGradient<T>& gradient);
};
// The functions for this processor.
template <typename T>
const Attend<T>& attend();
template <>
const Attend<float>& attend();
template <>
const Attend<double>& attend();

}  // namespace tenon::attention
