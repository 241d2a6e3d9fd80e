// The values of a random graph: those from outside, and those that nodes have computed so far, for other nodes to read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <random>

#include "tests/support/graphs/random_graph.h"
#include "tests/support/symbols.h"

namespace tenon_tests {

using namespace tenon::core;

inline constexpr int32_t kRows = TN_SYMBOL_FIRST_RAGGED;           // rows of the samples
inline constexpr int32_t kInnerRows = TN_SYMBOL_FIRST_RAGGED + 1;  // rows of those rows

inline Dim fixed(size_t n) { return tn_dim_constant(static_cast<int64_t>(n)); }
inline bool is_fixed(const Dim& dim) { return dim.symbol == TN_SYMBOL_NONE; }

class RandomValues {
 protected:
  explicit RandomValues(uint64_t seed) : random_(seed), writer_(result_.graph, 0, false, TN_F64) {
    result_.graph.compute = TN_F64;
    result_.smooth = pick(2) == 0;
    set_sizes();
  }

  size_t pick(size_t n) { return static_cast<size_t>(random_() % n); }
  bool one_in(size_t n) { return pick(n) == 0; }
  // Return copies, since the graph grows.
  [[nodiscard]] Spec spec(ValueId value) const { return result_.graph.spec(value); }
  [[nodiscard]] Shape shape(ValueId value) const { return spec(value).shape; }
  [[nodiscard]] bool is_number(ValueId value) const { return spec(value).dtype == TN_F64; }

  void set_sizes() {
    const auto samples = static_cast<int64_t>(1 + pick(4));
    Graph& graph = result_.graph;
    graph.layers = {"one", "other"};
    result_.symbols = symbol_values({0, samples, 0, 0});
    for (const int32_t symbol : {kRows, kInnerRows}) {
      const Dim outer = tn_dim_symbol(symbol == kRows ? int32_t{TN_SYMBOL_SAMPLES} : kRows);
      Numbers offsets{0};
      for (int64_t i = 0; i < tn_dim_value(&outer, result_.symbols.data()); ++i)
        offsets.push_back(offsets.back() + static_cast<double>(pick(4)));
      result_.symbols[static_cast<size_t>(symbol)] = static_cast<int64_t>(offsets.back());
      Dim ends = outer;
      ends.offset = 1;
      const ValueId value = graph.add_external({TN_I64, {ends}, TN_DENSE, 0, {}}, "offsets");
      result_.given[value] = offsets;
      graph.rows[symbol] = {outer, value};
    }
    result_.bounds = result_.symbols;
    for (const int32_t symbol : {int32_t{TN_SYMBOL_SAMPLES}, kRows, kInnerRows})
      result_.bounds[static_cast<size_t>(symbol)] += static_cast<int64_t>(pick(3));
  }

  double number() {
    if (result_.smooth || one_in(3)) return std::uniform_real_distribution<double>(-1.5, 1.5)(random_);
    return static_cast<double>(pick(7)) / 2 - 1.5;  // with ties and zeros
  }

  ValueId given(tn_dtype dtype, const Shape& shape) {
    const ValueId value = result_.graph.add_external({dtype, shape, TN_DENSE, 0, {}}, "given");
    Numbers& numbers = result_.given[value];
    numbers.resize(static_cast<size_t>(count_of(shape, result_.symbols)));
    for (double& each : numbers)
      each = stored_as(dtype, is_float(dtype) ? number() : static_cast<double>(pick(dtype == TN_BOOL ? 2 : 4)));
    return value;
  }
  ValueId external(tn_dtype dtype, const Shape& shape) {
    const ValueId value = known(given(dtype, shape));
    if (dtype == TN_F64) parameters_.push_back(value);
    return value;
  }

  // A parameter that is stored in fp32, converted to the compute type.
  ValueId stored(const Shape& shape) {
    const ValueId parameter = given(TN_F32, shape);
    const ValueId value = writer_.convert(parameter, 1, 0);
    result_.stored[value] = parameter;
    parameters_.push_back(value);
    return known(value);
  }

  // A value of ids below `limit`.
  ValueId ids_of(const Shape& shape, size_t limit) {
    for (const auto& [value, below] : ids_)
      if (below <= limit && same(this->shape(value), shape) && !one_in(3)) return value;
    const ValueId value = result_.graph.add_external({one_in(2) ? TN_I32 : TN_I64, shape, TN_DENSE, 0, {}}, "ids");
    Numbers& numbers = result_.given[value];
    numbers.resize(static_cast<size_t>(count_of(shape, result_.symbols)));
    for (double& id : numbers) id = static_cast<double>(pick(limit));
    ids_.emplace_back(value, limit);
    return known(value);
  }

  ValueId known(ValueId value) {
    values_.push_back(value);
    return value;
  }

  Dim any_dim() { return fixed(1 + pick(4)); }
  Shape any_shape() {
    const int32_t firsts[] = {TN_SYMBOL_SAMPLES, TN_SYMBOL_SAMPLES, TN_SYMBOL_SAMPLES, kRows, kRows, kInnerRows};
    const size_t n = 1 + pick(4);
    if (one_in(4)) return {fixed(n), fixed(n)};  // a square: PER_ROW and PER_COLUMN have the same shape
    Shape shape{one_in(5) ? any_dim() : tn_dim_symbol(firsts[pick(6)])};
    for (size_t i = 0, more = pick(3); i < more; ++i) shape.push_back(any_dim());
    return shape;
  }

  // A value for which `fits` is true, mostly one of the last; kNoValue if there is none.
  template <typename Fits>
  ValueId find(Fits&& fits) {
    std::vector<ValueId> found;
    for (const ValueId value : values_)
      if (fits(value)) found.push_back(value);
    if (found.empty()) return kNoValue;
    const size_t last = std::min<size_t>(found.size(), one_in(3) ? found.size() : 4);
    return found[found.size() - 1 - pick(last)];
  }
  template <typename Fits>
  ValueId find_or(Fits&& fits, const Shape& shape) {
    const ValueId found = one_in(8) ? kNoValue : find(fits);
    if (found != kNoValue) return found;
    return one_in(4) ? stored(shape) : external(TN_F64, shape);
  }
  ValueId any_number() {
    return find_or([&](ValueId value) { return is_number(value); }, any_shape());
  }
  ValueId number_of(const Shape& wanted) {
    return find_or([&](ValueId value) { return is_number(value) && same(shape(value), wanted); }, wanted);
  }

  RandomGraph result_;
  std::mt19937_64 random_;
  GraphWriter writer_;
  std::vector<ValueId> values_;      // values that later steps may read
  std::vector<ValueId> parameters_;  // values whose gradients may be requested

 private:
  std::vector<std::pair<ValueId, size_t>> ids_;
};

}  // namespace tenon_tests
