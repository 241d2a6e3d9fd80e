// SPDX-License-Identifier: Apache-2.0
#include "check/bench/fed_values.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tenon::check {

namespace {

// The sub-list [first, first + count] of offsets, from 0 on.
std::vector<int64_t> rebased(const std::vector<int64_t>& offsets, int64_t first, int64_t count) {
  std::vector<int64_t> result;
  for (int64_t i = first; i <= first + count; ++i)
    result.push_back(offsets[static_cast<size_t>(i)] - offsets[static_cast<size_t>(first)]);
  return result;
}

void draw_lengths(const LayerCase& layer_case, FedValues& fed, std::mt19937_64& random) {
  const auto drawn = [&](int64_t count, uint64_t most) {
    std::vector<int64_t> offsets = {0};
    for (int64_t i = 0; i < count; ++i)
      offsets.push_back(offsets.back() + (i == 0 ? 2 : i == 1 ? 0 : static_cast<int64_t>(random() % (most + 1))));
    return offsets;
  };
  for (size_t i = 0; i < layer_case.inputs.size(); ++i) {
    const InputSpec& input = layer_case.inputs[i];
    const std::string name = lengths_name(input, i);
    if (name.empty() || fed.lengths.count(name) != 0) continue;
    FedValues::Lengths& lengths = fed.lengths[name];
    lengths.outer =
        drawn(fed.samples, input.sparse ? static_cast<uint64_t>(std::min<int64_t>(input.shape.at(0), 3)) : 4);
    if (input.levels == 2) lengths.inner = drawn(lengths.outer.back(), 3);
  }
}

double drawn_float(const InputSpec& input, Draw draw, std::mt19937_64& random) {
  const auto at = [&](double share) {
    return std::round((input.low + share * (input.high - input.low)) * 1024) / 1024;
  };
  const double value = at(static_cast<double>(random() % 4096) / 4096);
  switch (draw) {
    case Draw::kDrawn:
      return value;
    case Draw::kZeros:
      return std::max(0.0, input.low);
    case Draw::kEqual:
      return at(0.75);
    case Draw::kTies:
      return at(random() % 2 == 0 ? 0.25 : 0.75);
    case Draw::kTiny:
      return value * 1e-6;
    case Draw::kHuge:
      return value * 500;
  }
  return value;
}

}  // namespace

void Feeds::add(const std::string& name, Array array, bool integers, tn_dtype compute, const Numbers& values) {
  if (integers) {
    auto& elements = integers_.emplace_back();
    for (const double value : values) elements.push_back(static_cast<int32_t>(value));
    array.dtype = TN_I32, array.data = elements.data();
  } else if (compute == TN_F64) {
    array.dtype = TN_F64, array.data = wide_.emplace_back(values).data();
  } else {
    auto& elements = narrow_.emplace_back();
    for (const double value : values) elements.push_back(static_cast<float>(value));
    array.dtype = TN_F32, array.data = elements.data();
  }
  list_.push_back({name, array});
}

int64_t elements_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string lengths_name(const InputSpec& input, size_t i) { return input.sparse ? input_name(i) : input.sequence; }

Layer data_layer(const Host& host, const InputSpec& input, size_t i, bool by_ids) {
  DataOptions options;
  options.name = input_name(i);
  if (!by_ids) options.shape = input.shape;
  options.dtype = by_ids || input.below > 0 ? TN_I32 : input.sparse ? TN_F32 : TN_COMPUTE;
  if (input.below > 0) options.index_limit = input.below;
  if (input.sparse) options.storage = TN_CSR;
  if (!input.sequence.empty()) {
    options.storage = TN_RAGGED;
    options.levels = input.levels;
    options.sequence = input.sequence;
  }
  return host.data(options);
}

int64_t FedValues::rows_before(const InputSpec& input, size_t i, int64_t sample) const {
  const auto entry = lengths.find(lengths_name(input, i));
  if (entry == lengths.end()) return sample;
  const int64_t outer = entry->second.outer[static_cast<size_t>(sample)];
  return input.sparse || input.levels == 1 ? outer : entry->second.inner[static_cast<size_t>(outer)];
}

void FedValues::add_feed(Feeds& to, const InputSpec& input, size_t i, tn_dtype compute, const Part& part,
                         bool by_ids) const {
  const auto entry = lengths.find(lengths_name(input, i));
  const bool ragged = entry != lengths.end(), sparse = input.sparse, nested = ragged && !sparse && input.levels == 2;
  const int64_t begin = rows_before(input, i, part.first);
  int64_t rows = rows_before(input, i, part.first + part.count) - begin;
  std::vector<int64_t> outer, inner;
  if (ragged) outer = rebased(entry->second.outer, part.first, part.count);
  if (nested) inner = rebased(entry->second.inner, entry->second.outer[static_cast<size_t>(part.first)], outer.back());
  if (ragged && part.empty) {
    std::fill(outer.begin(), outer.end(), 0);
    if (nested) inner = {0};
    rows = 0;
  }
  const int64_t width = sparse ? 1 : elements_of(input.shape);
  Numbers elements;  // none of a sparse input: all are 1
  if (!values[i].empty())
    elements.assign(values[i].begin() + begin * width, values[i].begin() + (begin + rows) * width);
  Array array;
  if (!by_ids) array.shape = input.shape;
  array.shape.insert(array.shape.begin(), sparse ? part.count : rows);
  if (by_ids) {
    elements.resize(static_cast<size_t>(rows));
    std::iota(elements.begin(), elements.end(), static_cast<double>(begin));
  }
  if (ragged) {
    array.storage = sparse ? TN_CSR : TN_RAGGED;
    array.levels = sparse ? 0 : nested ? 2 : 1;
    array.samples = part.count;
    array.offsets[0] = to.kept(std::move(outer));
    if (nested) array.offsets[1] = to.kept(std::move(inner));
    if (sparse) array.ids = to.kept({columns[i].begin() + begin, columns[i].begin() + begin + rows});
  }
  to.add(input_name(i), array, by_ids || input.below > 0, sparse ? TN_F32 : compute, elements);
}

FedValues drawn_values(const LayerCase& layer_case, int64_t samples, Draw draw, std::mt19937_64& random) {
  FedValues fed;
  fed.samples = samples;
  draw_lengths(layer_case, fed, random);
  fed.columns.resize(layer_case.inputs.size());
  for (size_t i = 0; i < layer_case.inputs.size(); ++i) {
    const InputSpec& input = layer_case.inputs[i];
    const int64_t rows = fed.rows_before(input, i, samples);
    Numbers& values =
        fed.values.emplace_back(static_cast<size_t>(input.sparse ? rows : rows * elements_of(input.shape)));
    for (double& value : values)
      value = input.below > 0 ? static_cast<double>(random() % static_cast<uint64_t>(input.below))
                              : drawn_float(input, draw, random);
    for (int64_t sample = 0; input.sparse && sample < samples; ++sample) {
      const int64_t count = fed.rows_before(input, i, sample + 1) - fed.rows_before(input, i, sample);
      for (int64_t k = 0; k < count; ++k) fed.columns[i].push_back(k * input.shape.at(0) / count);
    }
  }
  return fed;
}

}  // namespace tenon::check
