// Memories of scans that are carried from minibatch to minibatch: texts in pieces equal whole ones, gradients end at
// the beginning of a piece, and what is refused. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/tenon_scan.hpp>
#include <tenon/tenon_topology.hpp>

#include "tests/host/machine/model_gradients.h"
#include "tests/support/refused.h"

namespace tenon_tests {

namespace {

using testing::HasSubstr;

const Lengths kText = {7, 0, 3, 5, 1}, kCut = {4, 0, 3, 0, 1};  // rows of each sample, and in its first piece

// The rows of text from number `begin` of each sample on, up to number `end`.
Minibatch piece(const Minibatch& of, const Lengths& begin, const Lengths& end) {
  Minibatch made;
  made.text = made.parts = {0};
  made.first = of.first;
  for (size_t s = 0; s < begin.size(); ++s) {
    const int64_t from = of.text[s] + begin[s], to = of.text[s] + end[s];
    made.x.insert(made.x.end(), of.x.begin() + from * kDepth, of.x.begin() + to * kDepth);
    made.text.push_back(made.text.back() + end[s] - begin[s]);
    made.part.insert(made.part.end(), of.part.begin() + of.parts[static_cast<size_t>(from)] * kDepth,
                     of.part.begin() + of.parts[static_cast<size_t>(to)] * kDepth);
    for (int64_t row = from; row < to; ++row)
      made.parts.push_back(made.parts.back() + of.parts[static_cast<size_t>(row) + 1] -
                           of.parts[static_cast<size_t>(row)]);
  }
  made.truth.resize(static_cast<size_t>(made.text.back() * kSize));
  made.other.resize(made.text.size(), 0);
  return made;
}

enum class Start : uint8_t { kZeros, kCarried, kGiven };  // kGiven: with the slot "first"

// A scan over "x", or over "part" with an inner one that goes on where the last one ended. Output 0: a cost of the last
// states, then these.
Layers model(const Host& host, const Data& data, Start start, bool nested) {
  const auto next = [&](const Layer& row, const Layer& before) {
    return host.layer("fc", {row, before}, {{"size", kSize}, {"act", "tanh"}, {"parameter_name", "step"}});
  };
  const ScanResult made = scan({nested ? data.part : data.x}, [&](Step& step) {
    const Layer h =
        start == Start::kGiven ? step.memory(data.first, "h") : step.memory({kSize}, 0, "h", start == Start::kCarried);
    if (!nested) {
      step.next(h, next(step.input(0), h));
      return Layers{h};
    }
    const ScanResult inner = scan({step.input(0)}, [&](Step& token) {
      const Layer g = token.memory(h, "g");
      token.next(g, next(token.input(0), g));
      return Layers{};
    });
    step.next(h, inner.last[0]);
    return Layers{h};
  });
  const Layer cost = host.layer("square_error", {made.last[0], data.first});
  return {cost, made.last[0]};
}

class CarriedMemories : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] std::vector<std::string> feeds() const { return {GetParam() ? "part" : "x", "first"}; }

  const Host host_ = with_threads(2);
  const Data data_{host_};
  const Minibatch whole_ =
      Minibatch::draw(kText, Lengths(kText.size(), 1), {2, 0, 1, 3, 1, 2, 1, 0, 2, 1, 1, 2, 2, 0, 1, 1});
  const Minibatch first_ = piece(whole_, Lengths(kText.size(), 0), kCut), second_ = piece(whole_, kCut, kText);
};

TEST_P(CarriedMemories, APieceGoesOnWhereTheLastOneEnded) {
  const Layers carried = model(host_, data_, Start::kCarried, GetParam());
  const Layers plain = model(host_, data_, Start::kZeros, GetParam());
  const Parameters parameters = host_.parameters(carried, 3);
  const Machine pieces = machine_of(host_, parameters, carried), whole = machine_of(host_, parameters, plain);
  whole.forward(whole_.feeds(feeds()));
  for (int pass = 0; pass < 2; ++pass) {
    pieces.reset_carried();
    pieces.forward(first_.feeds(feeds()));
    pieces.forward(second_.feeds(feeds()));
    EXPECT_EQ(numbers(pieces.output(carried[1])), numbers(whole.output(plain[1])));
  }
  // Samples that the forward before did not have begin with zeros.
  pieces.reset_carried();
  pieces.forward(first_.of({0}).feeds(feeds()));
  pieces.forward(second_.feeds(feeds()));
  const Numbers found = numbers(pieces.output(carried[1]));
  pieces.reset_carried();
  pieces.forward(second_.feeds(feeds()));
  const Numbers fresh = numbers(pieces.output(carried[1])), expected = numbers(whole.output(plain[1]));
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i], i < static_cast<size_t>(kSize) ? expected[i] : fresh[i]) << i;
}

TEST_P(CarriedMemories, GradientsEndAtTheBeginningOfAPiece) {
  const Layers carried = model(host_, data_, Start::kCarried, GetParam());
  const Layers given = model(host_, data_, Start::kGiven, GetParam());
  const Parameters parameters = host_.parameters(carried, 3);
  const Machine pieces = machine_of(host_, parameters, carried), expected = machine_of(host_, parameters, given);
  pieces.forward(first_.feeds(feeds()));
  Minibatch goes_on = second_;
  goes_on.first = numbers(pieces.output(carried[1]));
  pieces.forward(goes_on.feeds(feeds()));
  pieces.backward();
  expected.forward(goes_on.feeds(feeds()));
  expected.backward();
  EXPECT_EQ(pieces.cost(), expected.cost());
  for (const char* name : {"step.weight", "step.weight_1", "step.bias"})
    EXPECT_EQ(numbers(pieces.gradient(name)), numbers(expected.gradient(name))) << name;
}

TEST_P(CarriedMemories, BitsDoNotDependOnThreads) {
  std::vector<Numbers> known;
  for (const int threads : {1, 2, 3, 8}) {
    const Host host = with_threads(threads);
    const Layers made = model(host, Data(host), Start::kCarried, GetParam());
    const Machine machine = machine_of(host, host.parameters(made, 5), made);
    for (const Minibatch& each : {first_, second_}) machine.forward(each.feeds(feeds()));
    machine.backward();
    const std::vector<Numbers> results = {numbers(machine.output(made[1])), numbers(machine.gradient("step.weight_1"))};
    if (known.empty()) known = results;
    EXPECT_EQ(results, known) << threads;
  }
}

TEST_P(CarriedMemories, FilesSayWhatIsCarried) {
  const Layers carried = model(host_, data_, Start::kCarried, GetParam());
  const std::string written = topology(carried);
  EXPECT_THAT(written, HasSubstr("\"carry\""));
  EXPECT_EQ(topology(read_topology(with_threads(1), written)), written);
  EXPECT_EQ(topology(model(host_, data_, Start::kZeros, GetParam())).find("\"carry\""), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Scans, CarriedMemories, testing::Values(false, true),
                         [](const auto& of) { return of.param ? "nested" : "plain"; });

class CarriedMemoriesRefused : public testing::Test {
 protected:
  const Host host_ = with_threads(1);
  const Data data_{host_};
};

TEST_F(CarriedMemoriesRefused, InitialValues) {
  static_cast<void>(scan({data_.x}, [&](Step& step) {
    const Error error = refused([&] { static_cast<void>(step.memory({kSize}, 0.5, "h", true)); });
    EXPECT_EQ(error.code(), TN_INVALID);
    EXPECT_THAT(error.what(),
                HasSubstr("memory \"h\" is carried from minibatch to minibatch and has an initial value"));
    return Layers{step.input(0)};
  }));
}

TEST_F(CarriedMemoriesRefused, SequencesThatAreNotOneForEachSample) {
  static_cast<void>(scan({data_.part}, [&](Step& step) {
    static_cast<void>(scan({step.input(0)}, [&](Step& token) {
      const Error error = refused([&] { static_cast<void>(token.memory({kSize}, 0, "g", true)); });
      EXPECT_EQ(error.code(), TN_UNSUPPORTED);
      EXPECT_THAT(error.what(), HasSubstr("memory \"g\" is carried from minibatch to minibatch, but there is one for "
                                          "each of steps of \"text\"; expected one for each sample"));
      return Layers{token.input(0)};
    }));
    return Layers{step.input(0)};
  }));
}

}  // namespace

}  // namespace tenon_tests
