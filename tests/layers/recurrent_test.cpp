// Recurrent layers, against loops over the rows of each sequence. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/layer_check.h"
#include "tests/support/sanitized.h"

namespace tenon_tests {

namespace {

using Numbers = std::vector<double>;

constexpr size_t kDepth = 2, kSize = 3;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// x W_k + h U_k + b_k of gate k.
Numbers gate(const FormulaArguments& of, size_t gates, size_t k, const double* x, const Numbers& h) {
  const Numbers &w = of.parameters.at("weight"), &u = of.parameters.at("recurrent_weight");
  const auto bias = of.parameters.find("bias");
  Numbers z(kSize, 0.0);
  for (size_t j = 0; j < kSize; ++j) {
    const size_t column = k * kSize + j;
    if (bias != of.parameters.end()) z[j] = bias->second[column];
    for (size_t i = 0; i < kDepth; ++i) z[j] += x[i] * w[i * gates * kSize + column];
    for (size_t i = 0; i < kSize; ++i) z[j] += h[i] * u[i * gates * kSize + column];
  }
  return z;
}

struct State {
  Numbers h, c;
};
using Step = std::function<State(const FormulaArguments& of, const double* x, const State& before)>;

// Output 0: h of each row; 1 and 2: h and c after the last row. Inputs 1 and 2, if there are any, are the first state.
Formula loop(const Step& step, bool reverse, int output) {
  return [=](const FormulaArguments& of) {
    Numbers rows(of.inputs[0].size() / kDepth * kSize), last;
    for (int64_t s = 0; s < of.samples; ++s) {
      const auto first = [&](size_t input) {
        if (of.inputs.size() <= input) return Numbers(kSize, 0.0);
        const auto begin = of.inputs[input].begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(s) * kSize);
        return Numbers(begin, begin + static_cast<std::ptrdiff_t>(kSize));
      };
      State state = {first(1), first(2)};
      const std::vector<int64_t>& offsets = of.offsets[0][0];
      const int64_t begin = offsets[static_cast<size_t>(s)], end = offsets[static_cast<size_t>(s) + 1];
      for (int64_t i = begin; i < end; ++i) {
        const auto row = static_cast<size_t>(reverse ? begin + end - 1 - i : i);
        state = step(of, of.inputs[0].data() + row * kDepth, state);
        std::copy(state.h.begin(), state.h.end(), rows.begin() + static_cast<std::ptrdiff_t>(row * kSize));
      }
      const Numbers& kept = output == 2 ? state.c : state.h;
      last.insert(last.end(), kept.begin(), kept.end());
    }
    return output == 0 ? rows : last;
  };
}

LayerCase recurrent(const std::string& type, const Attributes& attributes, const Step& step, int outputs, bool initial,
                    bool reverse = false) {
  LayerCase layer;
  layer.type = type;
  layer.attributes = attributes;
  layer.inputs = {{{static_cast<int64_t>(kDepth)}}};
  layer.inputs[0].sequence = "text";
  for (int i = 1; initial && i < outputs; ++i) layer.inputs.push_back({{static_cast<int64_t>(kSize)}});
  layer.formula = loop(step, reverse, 0);
  layer.output_shape = {static_cast<int64_t>(kSize)};
  layer.output_rows = true;
  for (int i = 1; i < outputs; ++i)
    layer.more_outputs.push_back({{static_cast<int64_t>(kSize)}, loop(step, reverse, i)});
  layer.samples = {1, 5};
  layer.gradient_rounded = 1;
  return layer;
}

State rnn_step(const FormulaArguments& of, const double* x, const State& before) {
  Numbers h = gate(of, 1, 0, x, before.h);
  for (double& each : h) each = std::tanh(each);
  return {h, before.c};
}

State gru_step(const FormulaArguments& of, const double* x, const State& before) {
  const Numbers u = gate(of, 3, 0, x, before.h), r = gate(of, 3, 1, x, before.h);
  State next = before;
  Numbers kept = before.h;
  for (size_t j = 0; j < kSize; ++j) kept[j] *= sigmoid(r[j]);
  const Numbers c = gate(of, 3, 2, x, kept);
  for (size_t j = 0; j < kSize; ++j) next.h[j] = (1 - sigmoid(u[j])) * before.h[j] + sigmoid(u[j]) * std::tanh(c[j]);
  return next;
}

// With reset_after: r multiplies the product of the state.
State gru_after_step(const FormulaArguments& of, const double* x, const State& before) {
  const Numbers u = gate(of, 3, 0, x, before.h), r = gate(of, 3, 1, x, before.h);
  const Numbers whole = gate(of, 3, 2, x, before.h), input = gate(of, 3, 2, x, Numbers(kSize, 0.0));
  const Numbers& bias = of.parameters.at("candidate_bias");
  State next = before;
  for (size_t j = 0; j < kSize; ++j) {
    const double c = std::tanh(input[j] + sigmoid(r[j]) * (whole[j] - input[j] + bias[j]));
    next.h[j] = (1 - sigmoid(u[j])) * before.h[j] + sigmoid(u[j]) * c;
  }
  return next;
}

State lstm_step(const FormulaArguments& of, const double* x, const State& before) {
  const Numbers i = gate(of, 4, 0, x, before.h), f = gate(of, 4, 1, x, before.h), g = gate(of, 4, 2, x, before.h),
                o = gate(of, 4, 3, x, before.h);
  const auto found = of.parameters.find("peepholes");
  const Numbers p = found == of.parameters.end() ? Numbers(3 * kSize, 0.0) : found->second;
  State next = before;
  for (size_t j = 0; j < kSize; ++j) {
    next.c[j] =
        sigmoid(f[j] + p[kSize + j] * before.c[j]) * before.c[j] + sigmoid(i[j] + p[j] * before.c[j]) * std::tanh(g[j]);
    next.h[j] = sigmoid(o[j] + p[2 * kSize + j] * next.c[j]) * std::tanh(next.c[j]);
  }
  return next;
}

TEST(Recurrent, Rnn) { check_layer(recurrent("rnn", {{"size", 3}}, rnn_step, 2, false)); }

TEST(Recurrent, RnnReversedFromAnInitialState) {
  check_layer(recurrent("rnn", {{"size", 3}, {"reverse", true}, {"bias", false}}, rnn_step, 2, true, true));
}

TEST(Recurrent, Gru) { check_layer(recurrent("gru", {{"size", 3}}, gru_step, 2, true)); }

TEST(Recurrent, GruThatResetsTheProduct) {
  check_layer(recurrent("gru", {{"size", 3}, {"reset_after", true}}, gru_after_step, 2, true));
  check_layer(recurrent("gru", {{"size", 3}, {"reset_after", true}, {"bias", false}}, gru_after_step, 2, false));
}

TEST(Recurrent, Lstm) { check_layer(recurrent("lstm", {{"size", 3}, {"reverse", true}}, lstm_step, 3, true, true)); }

TEST(Recurrent, LstmWithPeepholes) {
  check_layer(recurrent("lstm", {{"size", 3}, {"peepholes", true}}, lstm_step, 3, false));
}

// One step: gates [samples, gates * kSize] and states [samples, kSize], with recurrent_weight but for x W + b.
LayerCase one_step(const std::string& type, const Attributes& attributes, size_t gates, size_t states,
                   const std::function<State(const FormulaArguments& of, const double* z, const State&)>& step) {
  LayerCase layer;
  layer.type = type;
  layer.attributes = attributes;
  layer.inputs.push_back({{static_cast<int64_t>(gates * kSize)}});
  for (size_t i = 0; i < states; ++i) layer.inputs.push_back({{static_cast<int64_t>(kSize)}});
  layer.output_shape = {static_cast<int64_t>(kSize)};
  const auto result = [=](const FormulaArguments& of, bool cell) {
    Numbers all;
    for (size_t s = 0; s < static_cast<size_t>(of.samples); ++s) {
      const auto row = [&](size_t input) {
        const auto begin = of.inputs[input].begin() + static_cast<std::ptrdiff_t>(s * kSize);
        return Numbers(begin, begin + static_cast<std::ptrdiff_t>(kSize));
      };
      // lstm_step has the cell first.
      const State before = states == 2 ? State{row(2), row(1)} : State{row(1), {}};
      const State next = step(of, of.inputs[0].data() + s * gates * kSize, before);
      const Numbers& kept = cell ? next.c : next.h;
      all.insert(all.end(), kept.begin(), kept.end());
    }
    return all;
  };
  layer.formula = [=](const FormulaArguments& of) { return result(of, false); };
  if (states == 2)
    layer.more_outputs.push_back({layer.output_shape, [=](const FormulaArguments& of) { return result(of, true); }});
  layer.gradient_rounded = 1;
  return layer;
}

TEST(Recurrent, StepsWithAStateOfTheirOwn) {
  // The formulas above of a row of zeros, whose bias is the input gates.
  const auto biased = [](size_t gates, const Step& step) {
    return [=](const FormulaArguments& of, const double* z, const State& before) {
      const double x[kDepth] = {};
      FormulaArguments with;
      with.parameters = of.parameters;
      with.parameters["weight"] = Numbers(kDepth * gates * kSize, 0.0);
      with.parameters["bias"] = Numbers(z, z + gates * kSize);
      return step(with, x, before);
    };
  };
  EXPECT_GT(check_layer(one_step("rnn_step", {}, 1, 1, biased(1, rnn_step))), 0);
  EXPECT_GT(check_layer(one_step("gru_step", {{"reset_after", true}}, 3, 1, biased(3, gru_after_step))), 0);
  EXPECT_GT(check_layer(one_step("lstm_step", {}, 4, 2, biased(4, lstm_step))), 0);
  EXPECT_GT(check_layer(one_step("lstm_step", {{"peepholes", true}}, 4, 2, biased(4, lstm_step))), 0);
}

TEST(Recurrent, ManySequencesOfOneRow) {
  if (sanitized()) GTEST_SKIP() << "sanitizers take minutes for ten thousand sequences";
  check_long_sequences(recurrent("gru", {{"size", 3}}, gru_step, 2, false));
}

}  // namespace

}  // namespace tenon_tests
