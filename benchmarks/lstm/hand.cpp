// Row 9 written by hand, mode "ragged": a product for the inputs of all rows, and at each step one product and one loop
// over the gates. The texts are ordered by length, so that the texts that still run are the first ones. One thread;
// reads the files that Tenon's program wrote. SPDX-License-Identifier: Apache-2.0
#include <cblas.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Matrix = std::vector<float>;  // row-major
constexpr int64_t kWords = 10'000, kSize = 256, kGates = 4 * kSize;

template <typename T>
std::vector<T> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<T> values(static_cast<size_t>(std::max<std::streamoff>(file.tellg(), 0)) / sizeof(T));
  file.seekg(0).read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  if (!file || values.empty()) throw std::runtime_error("cannot read " + path);
  return values;
}

// C [m, n] = op(A) op(B) + beta C.
void multiply(CBLAS_TRANSPOSE of_a, CBLAS_TRANSPOSE of_b, int64_t m, int64_t n, int64_t k, const float* a,
              const float* b, float beta, float* c) {
  cblas_sgemm(CblasRowMajor, of_a, of_b, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), 1, a,
              static_cast<int>(of_a == CblasTrans ? m : k), b, static_cast<int>(of_b == CblasTrans ? k : n), beta, c,
              static_cast<int>(n));
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

void subtract(Matrix& from, const Matrix& values) {
  for (size_t i = 0; i < from.size(); ++i) from[i] -= values[i];
}

// Adds the rows of a matrix to a row of kWidth.
template <int64_t kWidth>
void add_bias(Matrix& to, const Matrix& bias) {
  for (size_t i = 0; i < to.size(); i += kWidth)
    for (size_t j = 0; j < kWidth; ++j) to[i + j] += bias[j];
}
template <int64_t kWidth>
Matrix sum_of_rows(const Matrix& values) {
  Matrix sum(kWidth);
  for (size_t i = 0; i < values.size(); i += kWidth)
    for (size_t j = 0; j < kWidth; ++j) sum[j] += values[i + j];
  return sum;
}

// The rows in the order of the steps.
struct Steps {
  explicit Steps(const std::vector<int64_t>& offsets) {
    std::vector<int64_t> texts(offsets.size() - 1);
    std::iota(texts.begin(), texts.end(), 0);
    const auto length = [&](int64_t i) {
      return offsets[static_cast<size_t>(i) + 1] - offsets[static_cast<size_t>(i)];
    };
    std::stable_sort(texts.begin(), texts.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
    for (int64_t t = 0; t < length(texts[0]); ++t) {
      begin.push_back(static_cast<int64_t>(row.size()));
      for (const int64_t i : texts)
        if (t < length(i)) row.push_back(offsets[static_cast<size_t>(i)] + t);
    }
    begin.push_back(static_cast<int64_t>(row.size()));
  }
  [[nodiscard]] int64_t count() const { return static_cast<int64_t>(begin.size()) - 1; }
  [[nodiscard]] int64_t running(int64_t t) const {
    return begin[static_cast<size_t>(t) + 1] - begin[static_cast<size_t>(t)];
  }
  std::vector<int64_t> row, begin;
};

// Values of all rows are in the order of the steps.
class Lstm {
 public:
  Lstm(const Steps& steps, const std::string& file)
      : steps_(steps),
        weight_(read<float>(file + ".weight")),
        recurrent_(read<float>(file + ".recurrent_weight")),
        bias_(kGates),
        gates_(steps.row.size() * kGates),
        cell_(steps.row.size() * kSize),
        output_(cell_.size()),
        before_(cell_.size()) {}

  const Matrix& forward(const Matrix& input) {
    input_ = &input;
    multiply(CblasNoTrans, CblasNoTrans, rows(), kGates, kSize, input.data(), weight_.data(), 0, gates_.data());
    add_bias<kGates>(gates_, bias_);
    for (int64_t t = 0; t < steps_.count(); ++t) {
      const int64_t n = steps_.running(t), begin = steps_.begin[static_cast<size_t>(t)];
      const int64_t former = t == 0 ? 0 : steps_.begin[static_cast<size_t>(t) - 1];
      float* const z = gates_.data() + begin * kGates;
      if (t > 0) {
        std::copy_n(output_.data() + former * kSize, n * kSize, before_.data() + begin * kSize);
        multiply(CblasNoTrans, CblasNoTrans, n, kGates, kSize, output_.data() + former * kSize, recurrent_.data(), 1,
                 z);
      }
      for (int64_t i = 0; i < n; ++i)
        next(z + i * kGates, t == 0 ? nullptr : cell_.data() + (former + i) * kSize, cell_.data() + (begin + i) * kSize,
             output_.data() + (begin + i) * kSize);
    }
    return output_;
  }

  // Returns the gradient of the input, and updates the parameters. given: that of the output; it is changed.
  Matrix backward(Matrix& given) {
    Matrix of_gates(gates_.size()), of_cell(cell_.size()), of_input(cell_.size());
    for (int64_t t = steps_.count() - 1; t >= 0; --t) {
      const int64_t n = steps_.running(t), begin = steps_.begin[static_cast<size_t>(t)];
      const int64_t former = t == 0 ? 0 : steps_.begin[static_cast<size_t>(t) - 1];
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = (begin + i) * kSize, was = (former + i) * kSize;
        before(gates_.data() + (begin + i) * kGates, cell_.data() + at, t == 0 ? nullptr : cell_.data() + was,
               given.data() + at, of_cell.data() + at, of_gates.data() + (begin + i) * kGates,
               t == 0 ? nullptr : of_cell.data() + was);
      }
      if (t > 0)
        multiply(CblasNoTrans, CblasTrans, n, kSize, kGates, of_gates.data() + begin * kGates, recurrent_.data(), 1,
                 given.data() + former * kSize);
    }
    multiply(CblasNoTrans, CblasTrans, rows(), kSize, kGates, of_gates.data(), weight_.data(), 0, of_input.data());
    Matrix of_weight(weight_.size());
    multiply(CblasTrans, CblasNoTrans, kSize, kGates, rows(), input_->data(), of_gates.data(), 0, of_weight.data());
    subtract(weight_, of_weight);
    multiply(CblasTrans, CblasNoTrans, kSize, kGates, rows(), before_.data(), of_gates.data(), 0, of_weight.data());
    subtract(recurrent_, of_weight);
    subtract(bias_, sum_of_rows<kGates>(of_gates));
    return of_input;
  }

 private:
  [[nodiscard]] int64_t rows() const { return static_cast<int64_t>(steps_.row.size()); }

  // z: the sums of the gates i, f, g, o, which become their values. was: the cell before; null: zeros.
  static void next(float* z, const float* was, float* cell, float* output) {
    for (int64_t j = 0; j < kSize; ++j) {
      const float i = sigmoid(z[j]), f = sigmoid(z[kSize + j]), g = std::tanh(z[2 * kSize + j]);
      const float o = sigmoid(z[3 * kSize + j]), c = i * g + (was == nullptr ? 0 : f * was[j]);
      z[j] = i, z[kSize + j] = f, z[2 * kSize + j] = g, z[3 * kSize + j] = o;
      cell[j] = c;
      output[j] = o * std::tanh(c);
    }
  }
  static void before(const float* gates, const float* cell, const float* was, const float* given, const float* of_cell,
                     float* of_gates, float* of_was) {
    for (int64_t j = 0; j < kSize; ++j) {
      const float i = gates[j], f = gates[kSize + j], g = gates[2 * kSize + j], o = gates[3 * kSize + j];
      const float bounded = std::tanh(cell[j]), c = of_cell[j] + given[j] * o * (1 - bounded * bounded);
      of_gates[j] = c * g * i * (1 - i);
      of_gates[kSize + j] = was == nullptr ? 0 : c * was[j] * f * (1 - f);
      of_gates[2 * kSize + j] = c * i * (1 - g * g);
      of_gates[3 * kSize + j] = given[j] * bounded * o * (1 - o);
      if (of_was != nullptr) of_was[j] = c * f;
    }
  }

  const Steps& steps_;
  const Matrix* input_ = nullptr;
  Matrix weight_, recurrent_, bias_;
  Matrix gates_, cell_, output_, before_;
};

class Model {
 public:
  explicit Model(const std::string& folder)
      : steps_(read<int64_t>(folder + "/offsets")),
        word_(in_order(read<int64_t>(folder + "/word"))),
        next_(in_order(read<int64_t>(folder + "/next"))),
        table_(read<float>(folder + "/table.weight")),
        first_(steps_, folder + "/first"),
        second_(steps_, folder + "/second"),
        weight_(read<float>(folder + "/logits.weight")),
        bias_(kWords) {}

  // Returns the cost before the update.
  double step() {
    const auto rows = static_cast<int64_t>(word_.size());
    Matrix vectors(word_.size() * kSize), scores(word_.size() * kWords);
    for (size_t i = 0; i < word_.size(); ++i)
      std::copy_n(table_.begin() + word_[i] * kSize, kSize, vectors.begin() + static_cast<int64_t>(i) * kSize);
    const Matrix& states = second_.forward(first_.forward(vectors));
    multiply(CblasNoTrans, CblasNoTrans, rows, kWords, kSize, states.data(), weight_.data(), 0, scores.data());
    add_bias<kWords>(scores, bias_);
    double cost = 0;
    for (size_t i = 0; i < word_.size(); ++i) cost += to_gradient(scores.data() + i * kWords, next_[i]);
    Matrix given(states.size()), of_weight(weight_.size());
    multiply(CblasNoTrans, CblasTrans, rows, kSize, kWords, scores.data(), weight_.data(), 0, given.data());
    multiply(CblasTrans, CblasNoTrans, kSize, kWords, rows, states.data(), scores.data(), 0, of_weight.data());
    subtract(weight_, of_weight);
    subtract(bias_, sum_of_rows<kWords>(scores));
    given = second_.backward(given);
    given = first_.backward(given);
    for (size_t i = 0; i < word_.size(); ++i)
      for (int64_t j = 0; j < kSize; ++j)
        table_[static_cast<size_t>(word_[i] * kSize + j)] -= given[i * kSize + static_cast<size_t>(j)];
    return cost / static_cast<double>(rows);
  }

 private:
  [[nodiscard]] std::vector<int64_t> in_order(const std::vector<int64_t>& values) const {
    std::vector<int64_t> made;
    for (const int64_t row : steps_.row) made.push_back(values[static_cast<size_t>(row)]);
    return made;
  }

  // Returns the cost of a row of scores, which become the gradient of the mean cost.
  double to_gradient(float* scores, int64_t label) const {
    const float most = *std::max_element(scores, scores + kWords), of_label = scores[label];
    float sum = 0;
    for (int64_t j = 0; j < kWords; ++j) sum += scores[j] = std::exp(scores[j] - most);
    const float factor = 1 / (sum * static_cast<float>(word_.size()));
    for (int64_t j = 0; j < kWords; ++j) scores[j] *= factor;
    scores[label] -= 1 / static_cast<float>(word_.size());
    return std::log(sum) + most - of_label;
  }

  const Steps steps_;
  const std::vector<int64_t> word_, next_;
  Matrix table_;
  Lstm first_, second_;
  Matrix weight_, bias_;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3 || std::string(argv[1]) != "1") throw std::runtime_error("usage: hand 1 FOLDER");
  Model model(argv[2]);
  double loss = 0;
  for (int i = 0; i < 3; ++i) loss = model.step();
  model.step();
  constexpr int kSteps = 5;
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < kSteps; ++i) model.step();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
  std::printf("{\"seconds\": %.9g, \"loss\": %.9g}\n", taken.count() / kSteps, loss);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
