// The memories of scans: every way to begin them and what every step may leave in them, beside a plain loop, and
// gradients beside differences along a line. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "tests/host/machine/model_gradients.h"

namespace tenon_tests {

namespace {

class ScanMemories : public testing::Test {
 protected:
  const Host host_ = with_threads(2);
  const Data data_{host_};
};

// Compares the gradients of data with the difference of the cost along one line through all of them.
void expect_slope(const Machine& machine, const std::vector<std::string>& feeds, const Minibatch& of) {
  constexpr double kStep = 0x1p-12;
  const auto numbers_of = [&](Minibatch& from) {
    std::vector<double*> result;
    for (const auto& [name, data] : {std::pair{"x", &from.x}, {"part", &from.part}, {"first", &from.first}})
      if (std::find(feeds.begin(), feeds.end(), name) != feeds.end())
        for (double& each : *data) result.push_back(&each);
    return result;
  };
  const auto direction = [](size_t i) { return std::cos(static_cast<double>(3 * i)); };
  Numbers gradient;
  for (const char* name : {"x", "part", "first"})
    if (std::find(feeds.begin(), feeds.end(), name) != feeds.end())
      for (const double each : numbers(data_gradient(machine, name))) gradient.push_back(each);
  double slope = 0;
  for (size_t i = 0; i < gradient.size(); ++i) slope += gradient[i] * direction(i);
  const auto at = [&](double step) {
    Minibatch moved = of;
    const std::vector<double*> all = numbers_of(moved);
    EXPECT_EQ(all.size(), gradient.size());
    for (size_t i = 0; i < all.size(); ++i) *all[i] += step * direction(i);
    machine.forward(moved.feeds(feeds));
    return machine.cost();
  };
  const double difference = (8 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) / (12 * kStep);
  EXPECT_NEAR(slope, difference, 1e-7 * std::max(1.0, std::abs(difference)));
}

// What each of three memories begins with: a number, a layer of its own, or a layer that others begin with, too.
enum class Begin : uint8_t { kNumber, kOwn, kShared };
using Begins = std::array<Begin, 3>;
// What each is left: the memory of that number, the input, or the value that the step computes.
using Left = std::array<size_t, 3>;
constexpr size_t kInput = 3, kComputed = 4;
constexpr std::array<double, 3> kNumbers = {0, 0.5, -1};

// A step that computes tanh(a + b x + c) of its memories a, b and c.
struct Remembering {
  Remembering(const Host& host, const Data& data, const Begins& begins, const Left& left, bool reverse) {
    const auto dense = [&](const Layer& of, int64_t size) {
      return host.layer("fc", {of}, {{"size", size}, {"act", "tanh"}});
    };
    const Layer shared = dense(data.first, kDepth);
    for (const Begin begin : begins)
      starts.push_back(begin == Begin::kShared ? shared : begin == Begin::kOwn ? dense(data.first, kDepth) : Layer());
    ScanOptions options;
    options.reverse = reverse;
    const ScanResult made = scan(
        {data.x},
        [&](Step& step) {
          Layers values;
          for (size_t i = 0; i < starts.size(); ++i)
            values.push_back(begins[i] == Begin::kNumber ? step.memory({kDepth}, kNumbers[i]) : step.memory(starts[i]));
          values.push_back(step.input(0));
          const Layer product = host.layer("mul", {values[1], values[kInput]});
          values.push_back(host.layer("tanh", {host.layer("add", {values[0], product, values[2]})}));
          for (size_t i = 0; i < left.size(); ++i) step.next(values[i], values[left[i]]);
          const auto shaped = [&](const Layer& of) {  // a view of what the step finds
            return reverse ? host.layer("reshape", {of}, {{"shape", std::vector<int64_t>{1, kDepth}}}) : of;
          };
          return Layers{values[kComputed], shaped(values[0]), shaped(values[1]), shaped(values[2])};
        },
        options);
    outputs = made.results;
    outputs.insert(outputs.end(), made.last.begin(), made.last.end());
    all = {host.layer("square_error", {dense(made.results[0], kSize), data.truth}),
           host.layer("sum_cost", {dense(made.last[2], kSize)}), host.layer("sum_cost", {dense(shared, kSize)})};
    all.insert(all.end(), outputs.begin(), outputs.end());
    for (size_t i = 0; i < begins.size(); ++i)
      if (begins[i] != Begin::kNumber) all.push_back(starts[i]);
  }

  Layers starts, outputs, all;
};

// The outputs by a plain loop: what is computed and the memories at each step, and the last values of the memories.
std::vector<Numbers> remembered(const Minibatch& of, const std::array<Numbers, 3>& starts, const Left& left,
                                bool reverse) {
  std::vector<Numbers> made(7);
  for (size_t i = 0; i < 4; ++i) made[i].resize(of.x.size());
  const auto depth = static_cast<size_t>(kDepth);
  for (size_t s = 0; s + 1 < of.text.size(); ++s) {
    std::array<Numbers, 5> values = {Numbers(depth), Numbers(depth), Numbers(depth), Numbers(depth), Numbers(depth)};
    for (size_t i = 0; i < starts.size(); ++i)
      std::copy_n(starts[i].begin() + static_cast<int64_t>(s) * kDepth, depth, values[i].begin());
    for (int64_t k = of.text[s]; k < of.text[s + 1]; ++k) {
      const auto row = static_cast<size_t>((reverse ? of.text[s] + of.text[s + 1] - 1 - k : k) * kDepth);
      for (size_t j = 0; j < depth; ++j) {
        values[kInput][j] = of.x[row + j];
        made[0][row + j] = values[kComputed][j] = std::tanh(values[0][j] + values[1][j] * of.x[row + j] + values[2][j]);
        for (size_t i = 0; i < 3; ++i) made[1 + i][row + j] = values[i][j];
      }
      const std::array<Numbers, 5> before = values;
      for (size_t i = 0; i < left.size(); ++i) values[i] = before[left[i]];
    }
    for (size_t i = 0; i < 3; ++i) made[4 + i].insert(made[4 + i].end(), values[i].begin(), values[i].end());
  }
  return made;
}

void check(const Host& host, const Data& data, const Begins& begins, const Left& left, bool reverse) {
  const Minibatch minibatch = Minibatch::draw({2, 0, 5, 1, 5, 3, 0, 7}, Lengths(8, 1));
  const Remembering model(host, data, begins, left, reverse);
  const Machine machine = machine_of(host, host.parameters(model.all, 5), model.all);
  machine.forward(minibatch.feeds({"x", "truth", "first"}));
  std::array<Numbers, 3> starts;
  for (size_t i = 0; i < starts.size(); ++i)
    starts[i] = begins[i] == Begin::kNumber ? Numbers(static_cast<size_t>(minibatch.samples() * kDepth), kNumbers[i])
                                            : numbers(machine.output(model.starts[i]));
  const std::vector<Numbers> expected = remembered(minibatch, starts, left, reverse);
  for (size_t i = 0; i < expected.size(); ++i)
    expect_near(numbers(machine.output(model.outputs[i])), expected[i], i < 4 ? "at each step" : "last");
  machine.backward();
  expect_slope(machine, {"x", "truth", "first"}, minibatch);
}

// In every combination: two memories may be left one value, or each other.
TEST_F(ScanMemories, AreLeftAnyOfTheValuesOfAStep) {
  for (size_t number = 0; number < 125 && !HasFailure(); ++number) {
    const Left left = {number % 5, number / 5 % 5, number / 25};
    SCOPED_TRACE(testing::Message() << left[0] << " " << left[1] << " " << left[2]);
    check(host_, data_, {Begin::kShared, Begin::kNumber, Begin::kNumber}, left, number % 2 != 0);
  }
}

// In every combination: several memories, and other layers, may share a beginning.
TEST_F(ScanMemories, BeginWithNumbersAndLayers) {
  for (size_t number = 0; number < 27 && !HasFailure(); ++number) {
    const auto begin = [](size_t which) { return static_cast<Begin>(which % 3); };
    SCOPED_TRACE(testing::Message() << number % 3 << " " << number / 3 % 3 << " " << number / 9);
    for (const bool reverse : {false, true})
      check(host_, data_, {begin(number), begin(number / 3), begin(number / 9)}, {kComputed, 0, kComputed}, reverse);
  }
}

// Three scans of two memories each, of which the later ones begin with numbers or the last values of the one before.
TEST_F(ScanMemories, BeginWithTheLastOfOtherScans) {
  const Minibatch minibatch = Minibatch::draw({2, 0, 5, 1, 5, 3}, Lengths(6, 1));
  for (size_t number = 0; number < 81 && !HasFailure(); ++number) {
    SCOPED_TRACE(number);
    Layers last = {data_.first, data_.first}, outputs = {host_.layer("sum_cost", {data_.first})};
    for (size_t k = 0; k < 3; ++k) {
      const size_t which = k == 2 ? number / 9 : number % 9;
      const auto begin = [&](Step& step, size_t of) {
        return of == 2 ? step.memory({kSize}, 0.5) : step.memory(last[of]);
      };
      ScanOptions options;
      options.reverse = number % 2 != 0 && k == 1;
      const ScanResult made = scan(
          {data_.x},
          [&](Step& step) {
            const Layer a = begin(step, which % 3), b = begin(step, which / 3 % 3);
            const Layer next = host_.layer("fc", {step.input(0), a, b}, {{"size", kSize}, {"act", "tanh"}});
            step.next(a, next);
            step.next(b, k == 1 ? a : next);
            return Layers{b};
          },
          options);
      outputs.push_back(host_.layer("square_error", {made.results[0], data_.truth}));
      for (const Layer& each : made.last) outputs.push_back(host_.layer("sum_cost", {each}));
      last = made.last;
    }
    const Machine machine = machine_of(host_, host_.parameters(outputs, 5), outputs);
    machine.forward(minibatch.feeds({"x", "truth", "first"}));
    machine.backward();
    expect_slope(machine, {"x", "truth", "first"}, minibatch);
  }
}

// A scan within the steps of another, with one or two memories each. Which of the inner ones is the outer one left, and
// what else is left in a second memory: the same value, or the other memory.
struct Nesting {
  bool two_inside, same_inside, two_outside, same_outside, second, results;
};

Layers nested(const Host& host, const Data& data, const Nesting& of, bool reverse) {
  ScanOptions options;
  options.reverse = reverse;
  const ScanResult outer = scan(
      {data.part},
      [&](Step& step) {
        const Layer h = step.memory(data.first), k = of.two_outside ? step.memory(data.first) : h;
        const ScanResult inner = scan(
            {step.input(0)},
            [&](Step& token) {
              const Layer g = token.memory(h), other = of.two_inside ? token.memory(k) : g;
              const Layer next = host.layer("fc", {token.input(0), host.layer("mul", {g, other})},
                                            {{"size", kSize}, {"act", "tanh"}, {"parameter_name", "rnn"}});
              token.next(g, next);
              if (of.two_inside) token.next(other, of.same_inside ? next : g);
              return of.results ? Layers{other} : Layers{};
            },
            options);
        const Layer last = inner.last[of.second && of.two_inside ? 1 : 0];
        step.next(h, last);
        if (of.two_outside) step.next(k, of.same_outside ? last : h);
        return of.results ? Layers{k, inner.results[0]} : Layers{k};
      },
      options);
  Layers outputs = {host.layer("square_error", {outer.results[0], data.truth}),
                    host.layer("square_error", {outer.last[0], data.first})};
  if (of.results)
    outputs.push_back(host.layer(
        "sum_cost", {host.layer("sequence_pool", {outer.results[1]}, {{"kind", "max"}, {"level", "sample"}})}));
  return outputs;
}

TEST_F(ScanMemories, OfAScanWithinAStepHaveGradientsOfDifferences) {
  const Minibatch minibatch =
      Minibatch::draw({2, 0, 5, 1, 5, 3}, Lengths(6, 1), {2, 0, 1, 3, 1, 2, 4, 0, 1, 1, 2, 2, 3, 1, 2, 1});
  for (uint32_t number = 0; number < 64 && !HasFailure(); ++number) {
    const auto bit = [number](uint32_t which) { return (number >> which & 1U) != 0; };
    SCOPED_TRACE(number);
    const Layers outputs =
        nested(host_, data_, {bit(0), bit(1), bit(2), bit(3), bit(4), bit(5)}, (number + number / 8) % 2 != 0);
    const Machine machine = machine_of(host_, host_.parameters(outputs, 5), outputs);
    machine.forward(minibatch.feeds({"part", "truth", "first"}));
    machine.backward();
    expect_slope(machine, {"part", "truth", "first"}, minibatch);
  }
}

}  // namespace

}  // namespace tenon_tests
