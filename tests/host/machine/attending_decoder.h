// Minibatches of sequences that the steps of scans see, and a decoder that attends over them, with its values by a
// plain loop. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <tenon/tenon.hpp>
#include <tenon/tenon_scan.hpp>
#include <utility>
#include <vector>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

using Numbers = std::vector<double>;
using Lengths = std::vector<int64_t>;

constexpr int64_t kDepth = 3, kSize = 4;

inline Numbers numbers(const Array& array) {
  Numbers result;
  for (int64_t i = 0; i < array.count(); ++i)
    result.push_back(array.dtype == TN_F64 ? static_cast<const double*>(array.data)[i]
                                           : static_cast<double>(static_cast<const float*>(array.data)[i]));
  return result;
}

inline Lengths ends_of(const Lengths& lengths) {
  Lengths ends{0};
  for (const int64_t length : lengths) ends.push_back(ends.back() + length);
  return ends;
}

// Sequences "text" of rows x [3] and truth [4], sequences "other" of rows [4], one row `first` [4] for each, and
// sub-sequences of rows [3], of which each lies in a row of "text".
struct Minibatch {
  Lengths text, other, parts;  // ends
  Numbers x, truth, y, first, part;

  static Minibatch draw(const Lengths& text, const Lengths& other, const Lengths& parts = {}) {
    Minibatch made;
    made.text = ends_of(text);
    made.other = ends_of(other);
    made.parts = ends_of(parts.empty() ? Lengths(static_cast<size_t>(made.text.back()), 1) : parts);
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> number(-1, 1);
    const auto fill = [&](Numbers& to, int64_t count) {
      for (int64_t i = 0; i < count; ++i) to.push_back(number(random));
    };
    fill(made.x, made.text.back() * kDepth);
    fill(made.truth, made.text.back() * kSize);
    fill(made.y, made.other.back() * kSize);
    fill(made.first, made.samples() * kSize);
    fill(made.part, made.parts.back() * kDepth);
    return made;
  }
  [[nodiscard]] int64_t samples() const { return static_cast<int64_t>(text.size()) - 1; }

  // The samples of these numbers, in that order.
  [[nodiscard]] Minibatch of(const std::vector<size_t>& order) const {
    Minibatch made;
    made.text = made.other = made.parts = {0};
    const auto add = [](Numbers& to, const Numbers& from, int64_t begin, int64_t end, int64_t width) {
      to.insert(to.end(), from.begin() + begin * width, from.begin() + end * width);
    };
    for (const size_t s : order) {
      const auto at = static_cast<int64_t>(s);
      add(made.x, x, text[s], text[s + 1], kDepth);
      add(made.truth, truth, text[s], text[s + 1], kSize);
      add(made.y, y, other[s], other[s + 1], kSize);
      add(made.first, first, at, at + 1, kSize);
      for (int64_t row = text[s]; row < text[s + 1]; ++row) {
        const int64_t begin = parts[static_cast<size_t>(row)], end = parts[static_cast<size_t>(row) + 1];
        add(made.part, part, begin, end, kDepth);
        made.parts.push_back(made.parts.back() + end - begin);
      }
      made.text.push_back(made.text.back() + text[s + 1] - text[s]);
      made.other.push_back(made.other.back() + other[s + 1] - other[s]);
    }
    return made;
  }

  [[nodiscard]] std::vector<Feed> feeds(const std::vector<std::string>& names) const {
    const auto rows = [&](const Numbers& of, const Lengths& ends, int64_t width) {
      return Array::sequences(TN_F64, {ends.back(), width}, of.data(), samples(), ends.data());
    };
    std::vector<Feed> feeds;
    for (const std::string& name : names) {
      if (name == "x") feeds.push_back({name, rows(x, text, kDepth)});
      if (name == "truth") feeds.push_back({name, rows(truth, text, kSize)});
      if (name == "y") feeds.push_back({name, rows(y, other, kSize)});
      if (name == "first") feeds.push_back({name, {TN_F64, {samples(), kSize}, first.data()}});
      if (name == "part")
        feeds.push_back(
            {name, Array::nested(TN_F64, {parts.back(), kDepth}, part.data(), samples(), text.data(), parts.data())});
    }
    return feeds;
  }
};

inline Host with_threads(int threads) {
  HostOptions options;
  options.threads = threads;
  options.plugin_paths = {plugin_folder()};
  return Host(options);
}

inline Layer rows(const Host& host, const std::string& name, int64_t width, const std::string& sequence,
                  uint32_t levels = 1) {
  DataOptions options;
  options.name = name, options.dtype = TN_COMPUTE, options.shape = {width}, options.storage = TN_RAGGED;
  options.sequence = sequence, options.levels = levels;
  return host.data(options);
}

// Layers outside of the scans of a host.
struct Data {
  explicit Data(const Host& host)
      : x(rows(host, "x", kDepth, "text")),
        truth(rows(host, "truth", kSize, "text")),
        y(rows(host, "y", kSize, "other")),
        part(rows(host, "part", kDepth, "text", 2)),
        first(host.data({"first", TN_COMPUTE, {kSize}})) {}
  Layer x, truth, y, part, first;
};

struct Model {
  std::vector<std::string> feeds, parameters;
  Layers outputs;  // two costs, then layers to look at
};

// A decoder whose state attends over y, by scores of both kinds.
inline Model decoder(const Host& host, const Data& data, bool reverse = false) {
  const Layer keys = host.layer("fc", {data.y}, {{"size", kDepth}}, "keys");
  ScanOptions options;
  options.reverse = reverse, options.name = "decoder";
  const ScanResult made = scan(
      {data.x},
      [&](Step& step) {
        const Layer h = step.memory(data.first, "h");
        const Layer additive = host.layer("additive_attention", {h, keys, data.y}, {}, "additive");
        const Layer dot = host.layer("dot_attention", {h, data.y}, {{"scale", 0.5}}, "dot");
        const Layer z = host.layer("fc", {step.input(0), h, additive, dot}, {{"size", kSize}, {"act", "tanh"}}, "z");
        step.next(h, z);
        return Layers{z, additive};
      },
      options);
  return {{"x", "truth", "y", "first"},
          {"keys.weight", "keys.bias", "additive.query.weight", "additive.score.weight", "z.weight", "z.weight_1",
           "z.weight_2", "z.weight_3", "z.bias"},
          {host.layer("square_error", {made.results[0], data.truth}, {}, "cost"),
           host.layer("square_error", {made.last[0], data.first}, {}, "last_cost"), made.results[0], made.last[0],
           made.results[1]}};
}

// ---- the decoder by a plain loop

struct Matrix {
  int64_t columns;
  Numbers values;
  // row . matrix
  [[nodiscard]] Numbers times(const double* row, int64_t count) const {
    Numbers result(static_cast<size_t>(columns), 0.0);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < columns; ++j)
        result[static_cast<size_t>(j)] += row[i] * values[static_cast<size_t>(i * columns + j)];
    return result;
  }
};

// Adds the softmax of `scores` as weights of the rows of `values` [count, kSize].
inline Numbers attended(const Numbers& scores, const double* values) {
  Numbers result(static_cast<size_t>(kSize), 0.0);
  double sum = 0, most = -INFINITY;
  for (const double score : scores) most = std::max(most, score);
  for (const double score : scores) sum += std::exp(score - most);
  for (size_t r = 0; r < scores.size(); ++r)
    for (int64_t j = 0; j < kSize; ++j)
      result[static_cast<size_t>(j)] += std::exp(scores[r] - most) / sum * values[static_cast<int64_t>(r) * kSize + j];
  return result;
}

// Returns z for each row, the last z of each sequence, and what additive attention found for each row.
inline std::vector<Numbers> expected(const Minibatch& of, const Parameters& parameters, bool reverse) {
  const auto matrix = [&](const char* name, int64_t columns) { return Matrix{columns, numbers(parameters.get(name))}; };
  const Matrix key = matrix("keys.weight", kDepth), query = matrix("additive.query.weight", kDepth),
               score = matrix("additive.score.weight", 1), zx = matrix("z.weight", kSize),
               zh = matrix("z.weight_1", kSize), za = matrix("z.weight_2", kSize), zd = matrix("z.weight_3", kSize);
  const Numbers key_bias = numbers(parameters.get("keys.bias")), z_bias = numbers(parameters.get("z.bias"));
  Numbers all(of.truth.size()), last, found(of.truth.size());
  for (size_t s = 0; s < static_cast<size_t>(of.samples()); ++s) {
    Numbers h(of.first.begin() + static_cast<int64_t>(s) * kSize,
              of.first.begin() + static_cast<int64_t>(s + 1) * kSize);
    const double* const y = of.y.data() + of.other[s] * kSize;
    for (int64_t k = of.text[s]; k < of.text[s + 1]; ++k) {
      const int64_t row = reverse ? of.text[s] + of.text[s + 1] - 1 - k : k;
      const Numbers q = query.times(h.data(), kSize);
      Numbers scores, products;
      for (int64_t r = 0; r < of.other[s + 1] - of.other[s]; ++r) {
        Numbers bent = key.times(y + r * kSize, kSize);
        for (size_t j = 0; j < bent.size(); ++j) bent[j] = std::tanh(bent[j] + key_bias[j] + q[j]);
        scores.push_back(score.times(bent.data(), kDepth)[0]);
        products.push_back(0.5 * std::inner_product(h.begin(), h.end(), y + r * kSize, 0.0));
      }
      const Numbers a = attended(scores, y), d = attended(products, y);
      const Numbers parts[] = {zx.times(of.x.data() + row * kDepth, kDepth), zh.times(h.data(), kSize),
                               za.times(a.data(), kSize), zd.times(d.data(), kSize), z_bias};
      for (size_t j = 0; j < h.size(); ++j) {
        double sum = 0;
        for (const Numbers& part : parts) sum += part[j];
        h[j] = std::tanh(sum);
        all[static_cast<size_t>(row * kSize) + j] = h[j];
        found[static_cast<size_t>(row * kSize) + j] = a[j];
      }
    }
    last.insert(last.end(), h.begin(), h.end());
  }
  return {all, last, found};
}

}  // namespace tenon_tests
