// The kernels of attention against plain loops in fp64, where queries, keys and features fill several tiles and blocks:
// outputs, gradients, and bits. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <tenon/tenon_machine.hpp>

#include "tests/support/paths.h"

namespace tenon_tests {
namespace {

using tenon::Array;
using tenon::Host;
using tenon::HostOptions;
using tenon::Layer;
using tenon::Machine;
using tenon::MachineOptions;
using Floats = std::vector<float>;
using Values = std::vector<double>;

struct Sizes {
  int64_t heads, depth, width;  // features of a head
  bool causal = false;
};

// The rows of one sample or sequence.
struct Rows {
  int64_t queries, keys;
};

Floats normal(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> numbers(0, 1);
  Floats values(static_cast<size_t>(count));
  for (float& each : values) each = numbers(random);
  return values;
}

// What is fed: query, key and value, and the gradient of the output. mask: [queries, keys], empty: none.
struct Fed {
  Floats query, key, value, given, mask;
};

// The output, and the gradients of query, key and value.
struct Results {
  Values output, query, key, value;
};

// One head of one sample, added to results; all offsets are those of its first rows.
void add_head(const Sizes& s, const Rows& rows, const Fed& fed, int64_t head, int64_t first_query, int64_t first_key,
              const float* mask, Results& to) {
  const int64_t features = s.heads * s.depth, widths = s.heads * s.width;
  const double scale = 1 / std::sqrt(static_cast<double>(s.depth));
  const auto in_keys = [&](int64_t row, int64_t d) { return static_cast<size_t>(row * features + head * s.depth + d); };
  const auto in_values = [&](int64_t row, int64_t d) { return static_cast<size_t>(row * widths + head * s.width + d); };
  for (int64_t q = 0; q < rows.queries; ++q) {
    const int64_t query = first_query + q;
    Values weights(static_cast<size_t>(rows.keys), 0.0), given = weights;
    double most = -INFINITY, sum = 0, mean = 0;
    const auto visible = [&](int64_t k) {
      return (!s.causal || k <= q + rows.keys - rows.queries) && (mask == nullptr || mask[q * rows.keys + k] != 0);
    };
    for (int64_t k = 0; k < rows.keys; ++k) {
      double& score = weights[static_cast<size_t>(k)];
      for (int64_t d = 0; d < s.depth; ++d)
        score += scale * static_cast<double>(fed.query[in_keys(query, d)]) *
                 static_cast<double>(fed.key[in_keys(first_key + k, d)]);
      if (visible(k)) most = std::max(most, score);
    }
    for (int64_t k = 0; k < rows.keys; ++k) {
      double& weight = weights[static_cast<size_t>(k)];
      sum += weight = visible(k) ? std::exp(weight - most) : 0;
    }
    for (int64_t k = 0; k < rows.keys; ++k) {
      double& weight = weights[static_cast<size_t>(k)];
      if (sum > 0) weight /= sum;
      for (int64_t d = 0; d < s.width; ++d) {
        const double of = static_cast<double>(fed.given[in_values(query, d)]);
        const double value = static_cast<double>(fed.value[in_values(first_key + k, d)]);
        to.output[in_values(query, d)] += weight * value;
        to.value[in_values(first_key + k, d)] += weight * of;
        given[static_cast<size_t>(k)] += of * value;
      }
      mean += weight * given[static_cast<size_t>(k)];
    }
    for (int64_t k = 0; k < rows.keys; ++k) {
      const double of = weights[static_cast<size_t>(k)] * (given[static_cast<size_t>(k)] - mean) * scale;
      for (int64_t d = 0; d < s.depth; ++d) {
        to.query[in_keys(query, d)] += of * static_cast<double>(fed.key[in_keys(first_key + k, d)]);
        to.key[in_keys(first_key + k, d)] += of * static_cast<double>(fed.query[in_keys(query, d)]);
      }
    }
  }
}

Results expected(const Sizes& s, const std::vector<Rows>& samples, const Fed& fed) {
  Results all = {Values(fed.given.size(), 0.0), Values(fed.query.size(), 0.0), Values(fed.key.size(), 0.0),
                 Values(fed.value.size(), 0.0)};
  int64_t query = 0, key = 0, at = 0;
  for (const Rows& rows : samples) {
    for (int64_t head = 0; head < s.heads; ++head)
      add_head(s, rows, fed, head, query, key, fed.mask.empty() ? nullptr : fed.mask.data() + at, all);
    query += rows.queries, key += rows.keys, at += rows.queries * rows.keys;
  }
  return all;
}

Fed drawn(const Sizes& s, const std::vector<Rows>& samples) {
  int64_t queries = 0, keys = 0;
  for (const Rows& rows : samples) queries += rows.queries, keys += rows.keys;
  return {normal(queries * s.heads * s.depth, 1),
          normal(keys * s.heads * s.depth, 2),
          normal(keys * s.heads * s.width, 3),
          normal(queries * s.heads * s.width, 4),
          {}};
}

template <typename T>
Values wide(const Array& array) {
  const T* const data = static_cast<const T*>(array.data);
  return {data, data + array.count()};
}
Values read(const Array& array) { return array.dtype == TN_F64 ? wide<double>(array) : wide<float>(array); }

// A layer of attention on a host of its own. Dense: all samples have the rows of the first.
class Attending {
 public:
  Attending(const Sizes& sizes, const std::vector<Rows>& samples, bool ragged, tn_dtype compute, int threads,
            int64_t mask_rank = 0)
      : host_(HostOptions{threads, {plugin_folder()}, nullptr, {}}), sizes_(sizes), samples_(samples), ragged_(ragged) {
    tenon::Layers inputs;
    for (const char* name : {"query", "key", "value"}) inputs.push_back(data(name));
    if (mask_rank > 0) {
      tenon::DataOptions mask;
      mask.name = "mask", mask.dtype = TN_F32;
      mask.shape = mask_rank == 2 ? std::vector{samples[0].keys} : std::vector{samples[0].queries, samples[0].keys};
      inputs.push_back(host_.data(mask));
      mask_shape_ = mask.shape;
    }
    layer_ = host_.layer(ragged ? "sequence_attention" : "attention", inputs,
                         {{"heads", sizes.heads}, {"causal", sizes.causal}});
    MachineOptions options;
    options.max_samples = static_cast<int64_t>(samples.size()), options.training = true, options.compute = compute;
    options.flags = TN_MACHINE_DATA_GRADIENTS | TN_MACHINE_GIVEN_GRADIENTS;
    parameters_ = host_.parameters({layer_}, 1);
    machine_ = host_.machine(parameters_, {layer_}, options);
  }

  [[nodiscard]] Results run(const Fed& fed) const {
    std::vector<tenon::Feed> feeds = {
        {"query", array("query", fed.query)}, {"key", array("key", fed.key)}, {"value", array("value", fed.value)}};
    if (!mask_shape_.empty()) {
      std::vector<int64_t> shape = {static_cast<int64_t>(samples_.size())};
      shape.insert(shape.end(), mask_shape_.begin(), mask_shape_.end());
      feeds.push_back({"mask", {TN_F32, shape, fed.mask.data()}});
    }
    machine_.forward(feeds);
    Results results;
    results.output = read(machine_.output(layer_));
    const Floats& given = fed.given;
    const std::vector<double> doubles(given.begin(), given.end());
    Array gradient = machine_.output(layer_);
    gradient.data = gradient.dtype == TN_F64 ? static_cast<const void*>(doubles.data()) : given.data();
    backward_from(machine_, {{layer_, gradient}});
    results.query = read(data_gradient(machine_, "query"));
    results.key = read(data_gradient(machine_, "key"));
    results.value = read(data_gradient(machine_, "value"));
    if (!mask_shape_.empty()) {
      const Values of_mask = read(data_gradient(machine_, "mask"));
      EXPECT_EQ(of_mask, Values(of_mask.size(), 0.0)) << "a mask has no derivative";
    }
    return results;
  }

 private:
  [[nodiscard]] int64_t features(const std::string& name) const {
    return sizes_.heads * (name == "value" ? sizes_.width : sizes_.depth);
  }
  Layer data(const std::string& name) {
    tenon::DataOptions options;
    options.name = name;
    if (ragged_) {
      options.storage = TN_RAGGED, options.sequence = "text", options.shape = {features(name)};
      ends_ = {0};
      for (const Rows& rows : samples_) ends_.push_back(ends_.back() + rows.queries);
    } else {
      options.shape = {name == "query" ? samples_[0].queries : samples_[0].keys, features(name)};
    }
    return host_.data(options);
  }
  [[nodiscard]] Array array(const std::string& name, const Floats& values) const {
    const auto samples = static_cast<int64_t>(samples_.size());
    if (ragged_) return Array::sequences(TN_F32, {ends_.back(), features(name)}, values.data(), samples, ends_.data());
    return {TN_F32, {samples, name == "query" ? samples_[0].queries : samples_[0].keys, features(name)}, values.data()};
  }

  Host host_;
  Sizes sizes_;
  std::vector<Rows> samples_;
  bool ragged_;
  std::vector<int64_t> ends_, mask_shape_;
  Layer layer_;
  tenon::Parameters parameters_;
  Machine machine_;
};

// The largest difference, relative to the largest number.
double distance(const Values& a, const Values& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0, size = 1e-30;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    most = std::max(most, std::abs(a[i] - b[i]));
    size = std::max(size, std::abs(b[i]));
    if (std::isnan(a[i])) return INFINITY;
  }
  return most / size;
}

void expect_near(const Results& found, const Results& sought, double tolerance, const std::string& what) {
  EXPECT_LT(distance(found.output, sought.output), tolerance) << what << ": output";
  EXPECT_LT(distance(found.query, sought.query), tolerance) << what << ": gradient of the query";
  EXPECT_LT(distance(found.key, sought.key), tolerance) << what << ": gradient of the key";
  EXPECT_LT(distance(found.value, sought.value), tolerance) << what << ": gradient of the value";
}

void check(const Sizes& sizes, const std::vector<Rows>& samples, bool ragged, Fed fed, int64_t mask_rank = 0) {
  const Results sought = expected(sizes, samples, fed);
  if (mask_rank == 2) {  // the numbers of the first query of each sample are those of all
    Floats rows;
    for (size_t i = 0; i < samples.size(); ++i) {
      const auto from = fed.mask.begin() + static_cast<int64_t>(i) * samples[0].queries * samples[0].keys;
      rows.insert(rows.end(), from, from + samples[0].keys);
    }
    fed.mask = rows;
  }
  const std::string what = "queries " + std::to_string(samples[0].queries) + ", keys " +
                           std::to_string(samples[0].keys) + ", depth " + std::to_string(sizes.depth) +
                           (sizes.causal ? ", causal" : "");
  expect_near(Attending(sizes, samples, ragged, TN_F64, 1, mask_rank).run(fed), sought, 1e-13, "fp64, " + what);
  std::optional<Results> first;
  for (const int threads : {1, 2, 8}) {
    const Results found = Attending(sizes, samples, ragged, TN_F32, threads, mask_rank).run(fed);
    if (!first) expect_near(found, sought, 5e-6, "fp32, " + what);
    if (!first) first = found;
    EXPECT_TRUE(found.output == first->output && found.query == first->query && found.key == first->key &&
                found.value == first->value)
        << what << ": other bits with " << threads << " threads";
  }
}

TEST(Attend, DenseSamples) {
  for (const bool causal : {false, true}) {
    check({2, 5, 3, causal}, {{1, 300}, {1, 300}}, false, drawn({2, 5, 3}, {{1, 300}, {1, 300}}));
    for (const Rows& rows : {Rows{2, 130}, Rows{50, 50}, Rows{131, 300}, Rows{300, 131}, Rows{3, 1}})
      check({2, 20, 9, causal}, {rows, rows}, false, drawn({2, 20, 9}, {rows, rows}));
    check({1, 150, 260, causal}, {{60, 140}}, false, drawn({1, 150, 260}, {{60, 140}}));
    check({1, 64, 64, causal}, {{256, 256}}, false, drawn({1, 64, 64}, {{256, 256}}));
  }
}

TEST(Attend, Masks) {
  const std::vector<Rows> samples = {{70, 150}, {70, 150}};
  for (const bool causal : {false, true})
    for (const int64_t rank : {2, 3}) {
      const Sizes sizes = {2, 4, 6, causal};
      Fed fed = drawn(sizes, samples);
      std::mt19937 random(5);
      fed.mask.resize(2 * 70 * 150);
      for (size_t i = 0; i < fed.mask.size(); ++i)
        fed.mask[i] = rank == 2 && i / 150 % 70 > 0 ? fed.mask[i - 150] : random() % 3 == 0 ? 0.0F : 1.0F;
      if (rank == 3) std::fill_n(fed.mask.begin() + 3 * 150, 150, 0.0F);  // query 3 of the first sample sees nothing
      check(sizes, samples, false, fed, rank);
    }
}

TEST(Attend, Sequences) {
  const std::vector<Rows> samples = {{300, 300}, {0, 0}, {1, 1}, {49, 49}, {2, 2}, {129, 129}, {0, 0}};
  for (const bool causal : {false, true}) {
    check({3, 7, 18, causal}, samples, true, drawn({3, 7, 18}, samples));
    check({1, 32, 16, causal}, samples, true, drawn({1, 32, 16}, samples));
  }
  check({2, 4, 4, true}, {{0, 0}, {0, 0}}, true, drawn({2, 4, 4}, {{0, 0}, {0, 0}}));
}

// The bits of a query are the same alone, in other tiles and in a minibatch, and large scores do not overflow.
TEST(Attend, BitsOfAQuery) {
  const Sizes sizes = {2, 24, 10, true};
  const std::vector<Rows> samples = {{140, 290}, {140, 290}, {140, 290}};
  Fed fed = drawn(sizes, samples);
  for (float& each : fed.query) each *= 40;
  const Results all = Attending(sizes, samples, false, TN_F32, 1).run(fed);
  EXPECT_LT(distance(all.output, expected(sizes, samples, fed).output), 2e-5);
  const auto part = [](const Floats& of, int64_t first, int64_t count) {
    return Floats(of.begin() + first, of.begin() + first + count);
  };
  for (const int64_t queries : {1, 2, 3, 17, 139}) {  // the last ones of the second sample
    const int64_t first = 280 - queries;
    const Fed alone = {part(fed.query, first * 48, queries * 48),
                       part(fed.key, 290 * 48, 290 * 48),
                       part(fed.value, 290 * 20, 290 * 20),
                       part(fed.given, first * 20, queries * 20),
                       {}};
    const Values output = Attending(sizes, {{queries, 290}}, false, TN_F32, 1).run(alone).output;
    EXPECT_TRUE(std::equal(output.begin(), output.end(), all.output.begin() + first * 20)) << queries;
  }
}

}  // namespace
}  // namespace tenon_tests
