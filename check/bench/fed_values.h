// What is fed to the inputs of a case: values and lengths, drawn here or by others. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <random>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "check/cases/layer_case.h"
#include "check/cases/numbers.h"

namespace tenon::check {

// The kind of the floats that are fed.
enum class Draw {
  kDrawn,  // from their range
  kZeros,
  kEqual,  // all alike
  kTies,   // one of two numbers each; of tests alone
  kTiny,   // times 1e-6
  kHuge    // times 500
};

// Samples [first, first + count) of those that are fed.
struct Part {
  int64_t first = 0, count = 0;
  bool empty = false;  // sequences have no rows
};

// Arrays for one forward, and their memory.
class Feeds {
 public:
  [[nodiscard]] const std::vector<Feed>& list() const { return list_; }
  // Adds an array of integers or, of float inputs, of the compute type.
  void add(const std::string& name, Array array, bool integers, tn_dtype compute, const Numbers& values);
  // Keeps a list as long as the feeds.
  [[nodiscard]] const int64_t* kept(std::vector<int64_t> list) { return offsets_.emplace_back(std::move(list)).data(); }

 private:
  std::vector<Feed> list_;
  std::deque<std::vector<float>> narrow_;
  std::deque<Numbers> wide_;
  std::deque<std::vector<int32_t>> integers_;
  std::deque<std::vector<int64_t>> offsets_;
};

[[nodiscard]] int64_t elements_of(const std::vector<int64_t>& shape);
[[nodiscard]] inline std::string input_name(size_t i) { return "in" + std::to_string(i); }
// The name under which FedValues has the lengths of an input: those of a sparse one are its entries; "" without.
[[nodiscard]] std::string lengths_name(const InputSpec& input, size_t i);

// The data layer of an input; `by_ids`: of the numbers of its rows in place of floats.
[[nodiscard]] Layer data_layer(const Host& host, const InputSpec& input, size_t i, bool by_ids);

struct FedValues {
  struct Lengths {
    std::vector<int64_t> outer = {};  // [samples + 1] rows, or inner sequences
    std::vector<int64_t> inner = {};  // [inner sequences + 1] rows; empty with one level
  };
  int64_t samples = 0;
  std::map<std::string, Lengths> lengths = {};     // by lengths_name
  std::vector<Numbers> values = {};                // of each input, of all samples; of a sparse one none: all are 1
  std::vector<std::vector<int64_t>> columns = {};  // of sparse inputs: the column of each entry

  // The number of rows, or of entries, of input i before a sample.
  [[nodiscard]] int64_t rows_before(const InputSpec& input, size_t i, int64_t sample) const;
  // Adds the array of input i. `by_ids`: the numbers of its rows in place of floats.
  void add_feed(Feeds& to, const InputSpec& input, size_t i, tn_dtype compute, const Part& part, bool by_ids) const;
};

// Draws values for a case: multiples of 2^-10, so that steps of differences are exact.
[[nodiscard]] FedValues drawn_values(const LayerCase& layer_case, int64_t samples, Draw draw, std::mt19937_64& random);

}  // namespace tenon::check
