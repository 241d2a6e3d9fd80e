// Predictions from a snapshot, by many threads. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <tenon/tenon_lease.hpp>
#include <tenon/tenon_predictor.hpp>
#include <tenon/tenon_scan.hpp>
#include <thread>
#include <vector>

#include "tests/support/fashion.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::HasSubstr;

struct World {
  explicit World(int threads = 2)
      : host(make_host(threads)), model(perceptron(host, 16)), parameters(host.parameters(model.outputs(), 1)) {
    for (size_t i = 0; i < images.size(); ++i) images[i] = static_cast<uint8_t>(i * 7);
  }
  [[nodiscard]] std::vector<Feed> feeds(int64_t samples = 1) const {
    return {{"image", {TN_U8, {samples, 28, 28}, images.data()}}};
  }
  [[nodiscard]] std::vector<float> ask(const Predictor& predictor, int64_t samples = 1) const {
    std::vector<float> answer;
    predictor.predict(feeds(samples), [&](const std::vector<Array>& outputs) {
      EXPECT_EQ(outputs.size(), 1U);
      EXPECT_EQ(outputs[0].shape, (std::vector<int64_t>{samples, 10}));
      const auto* const values = static_cast<const float*>(outputs[0].data);
      answer.assign(values, values + 10 * samples);
    });
    return answer;
  }
  [[nodiscard]] std::vector<float> expected(int64_t samples = 1) const {
    MachineOptions options;
    options.max_samples = samples;
    const Machine machine = host.machine(parameters, {model.prediction}, options);
    machine.forward(feeds(samples));
    const auto* const values = static_cast<const float*>(machine.output(model.prediction).data);
    return {values, values + 10 * samples};
  }
  void fill(float value) const {
    for (const char* name : {"hidden.weight", "hidden.bias", "prediction.weight", "prediction.bias"}) {
      const Array old = parameters.get(name);
      size_t count = 1;
      for (const int64_t size : old.shape) count *= static_cast<size_t>(size);
      const std::vector<float> values(count, value);
      parameters.set(name, {TN_F32, old.shape, values.data()});
    }
  }

  Host host;
  Perceptron model;
  Parameters parameters;
  std::vector<uint8_t> images = std::vector<uint8_t>(16 * 28 * 28);
};

TEST(Predictor, AnswersAsAMachineDoes) {
  const World world;
  PredictorOptions options;
  options.max_samples = 16;
  for (const bool parallel : {false, true}) {
    options.parallel = parallel;
    const Predictor predictor(world.parameters, {world.model.prediction}, options);
    for (const int64_t samples : {1, 3, 16}) EXPECT_EQ(world.ask(predictor, samples), world.expected(samples));
  }
}

TEST(Predictor, IsASnapshotUntilItIsRefreshed) {
  const World world;
  const Predictor predictor(world.parameters, {world.model.prediction});
  const std::vector<float> before = world.expected();
  world.fill(0.01F);
  const std::vector<float> after = world.expected();
  EXPECT_NE(before, after);
  EXPECT_EQ(world.ask(predictor), before);
  predictor.refresh(world.parameters);
  EXPECT_EQ(world.ask(predictor), after);
  world.fill(0.02F);
  predictor.refresh(world.parameters);
  EXPECT_EQ(world.ask(predictor), world.expected());
}

// A refresh copies what has changed: by a write, by a writing lease that has ended, and all while such a lease lives.
TEST(Predictor, ARefreshCopiesOnlyWhatHasChanged) {
  const World world(1);
  const auto bytes = [&] { return world.host.count().bytes_now; };
  const Predictor predictor(world.parameters, {world.model.prediction});
  const uint64_t before = bytes();
  predictor.refresh(world.parameters);
  EXPECT_EQ(bytes(), before);  // the second copy is not made
  world.fill(0.01F);
  predictor.refresh(world.parameters);
  EXPECT_GT(bytes(), before);
  EXPECT_EQ(world.ask(predictor), world.expected());
  {
    const Lease lease(world.parameters, "prediction.bias", TN_LEASE_WRITE);
    auto* const bias = static_cast<float*>(const_cast<void*>(lease.values().data));
    for (const float value : {1.0F, 2.0F}) {
      bias[3] = value;
      predictor.refresh(world.parameters);
      EXPECT_EQ(world.ask(predictor), world.expected());
    }
    bias[4] = 3;
  }
  predictor.refresh(world.parameters);
  EXPECT_EQ(world.ask(predictor), world.expected());
  // Another set has versions of its own.
  const Parameters other = world.host.parameters({world.model.prediction}, 2);
  predictor.refresh(other);
  const std::vector<float> answer = world.ask(predictor);
  EXPECT_NE(answer, world.expected());
  predictor.refresh(world.parameters);
  EXPECT_EQ(world.ask(predictor), world.expected());
}

// Nothing is carried from one prediction to the next, although the model carries memories from minibatch to minibatch.
TEST(Predictor, AnswersDoNotDependOnThoseBefore) {
  const Host host = make_host(2);
  DataOptions rows;
  rows.name = "x", rows.shape = {2}, rows.storage = TN_RAGGED;
  const ScanResult made = scan({host.data(rows)}, [&](Step& step) {
    const Layer h = step.memory({4}, 0, "h", true), count = step.memory({2}, 0, "count", true);
    step.next(h, host.layer("fc", {step.input(0), h, count}, {{"size", 4}, {"act", "tanh"}}, "next"));
    step.next(count, host.layer("add", {count, step.input(0)}));
    return Layers{h};
  });
  const Layers outputs = {made.last[0], made.last[1]};
  const Parameters parameters = host.parameters(outputs, 1);
  const std::vector<float> x = {0.5F, -1, 2, 0.25F, 1, 1, -0.5F, 3, 0, 1};
  // The answers to samples of these lengths, whose rows begin with number `first` of x.
  struct Question {
    size_t first;
    std::vector<int64_t> ends;
  };
  const auto feeds = [&](const Question& of) {
    const auto samples = static_cast<int64_t>(of.ends.size()) - 1;
    return std::vector<Feed>{
        {"x", Array::sequences(TN_F32, {of.ends.back(), 2}, x.data() + of.first, samples, of.ends.data())}};
  };
  const auto values = [](const Array& array) {
    const auto* const from = static_cast<const float*>(array.data);
    return std::vector<float>(from, from + array.count());
  };
  PredictorOptions options;
  options.max_samples = 3;
  for (const uint32_t machines : {1U, 3U}) {
    options.machines = machines;
    const Predictor predictor(parameters, outputs, options);
    for (int round = 0; round < 2; ++round) {
      for (const Question& each :
           {Question{0, {0, 5}}, {0, {0, 2, 4}}, {2, {0, 2, 4}}, {0, {0, 5}}, {4, {0, 0, 1, 3}}, {0, {0, 5}}}) {
        MachineOptions of;
        of.max_samples = 3;
        const Machine machine = host.machine(parameters, outputs, of);
        machine.forward(feeds(each));
        predictor.predict(feeds(each), [&](const std::vector<Array>& answers) {
          ASSERT_EQ(answers.size(), outputs.size());
          for (size_t i = 0; i < outputs.size(); ++i)
            EXPECT_EQ(values(answers[i]), values(machine.output(outputs[i]))) << machines << " " << each.first;
        });
      }
      const Array weight = parameters.get("next.weight");
      const std::vector<float> halves(static_cast<size_t>(weight.count()), 0.5F);
      parameters.set("next.weight", {TN_F32, weight.shape, halves.data()});
      predictor.refresh(parameters);
    }
  }
}

// More threads than machines, refreshes meanwhile: each answer is that of one of the two contents.
TEST(Predictor, ManyThreadsPredictWhileItIsRefreshed) {
  constexpr int kThreads = 8, kTimes = 200;
  const World world;
  world.fill(0.01F);
  const std::vector<float> first = world.expected();
  world.fill(0.02F);
  const std::vector<float> second = world.expected();
  PredictorOptions options;
  options.machines = 3;
  const Predictor predictor(world.parameters, {world.model.prediction}, options);
  std::atomic<int> wrong{0}, left{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kTimes; ++i) {
        const std::vector<float> answer = world.ask(predictor);
        wrong += answer == first || answer == second ? 0 : 1;
      }
      --left;
    });
  for (int i = 0; left > 0 || i == 0; ++i) {
    world.fill(i % 2 == 0 ? 0.01F : 0.02F);
    predictor.refresh(world.parameters);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// A training of the set goes on beside predictions and refreshes.
TEST(Predictor, FollowsATraining) {
  const World world;
  const Predictor predictor(world.parameters, {world.model.prediction});
  TrainOptions options;
  options.outputs = world.model.outputs();
  options.parameters = world.parameters;
  options.updater = world.host.updater("sgd", {{"learning_rate", 0.1}});
  options.reader = fashion(world.host, "train", 512, 32, 1);
  options.passes = 2;
  std::atomic<bool> ended{false};
  std::thread trainer([&] {
    train(options);
    ended = true;
  });
  int refreshes = 0;
  while (!ended || refreshes == 0) {
    predictor.refresh(world.parameters);
    EXPECT_EQ(world.ask(predictor).size(), 10U);
    ++refreshes;
  }
  trainer.join();
  predictor.refresh(world.parameters);
  EXPECT_EQ(world.ask(predictor), world.expected());
}

TEST(Predictor, ItsSinkMayCallTheHostAndThrow) {
  const World world;
  const Predictor predictor(world.parameters, {world.model.prediction});
  int inner = 0;
  predictor.predict(world.feeds(),
                    [&](const std::vector<Array>&) { inner = static_cast<int>(world.ask(predictor).size()); });
  EXPECT_EQ(inner, 10);
  PredictorOptions options;
  options.machines = 1;  // a second prediction would wait for the first one, and the first one for it
  const Predictor single(world.parameters, {world.model.prediction}, options);
  int refusals = 0;
  single.predict(world.feeds(), [&](const std::vector<Array>&) {
    for (const auto& call : {std::function<void()>([&] { (void)world.ask(single); }),
                             std::function<void()>([&] { single.refresh(world.parameters); })}) {
      try {
        call();
      } catch (const Error& error) {
        refusals += error.code() == TN_MISUSE ? 1 : 0;
      }
    }
  });
  EXPECT_EQ(refusals, 2);
  single.refresh(world.parameters);
  EXPECT_EQ(world.ask(single).size(), 10U);
  EXPECT_THROW(predictor.predict(world.feeds(), [](const std::vector<Array>&) { throw std::runtime_error("mine"); }),
               std::runtime_error);
  EXPECT_EQ(world.ask(predictor).size(), 10U);
}

TEST(Predictor, RefusesBadInput) {
  const World world;
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
      return "no error";
    } catch (const Error& error) {
      return error.what();
    }
  };
  PredictorOptions options;
  options.machines = 2000;
  EXPECT_THAT(message([&] { (void)Predictor(world.parameters, {world.model.prediction}, options); }),
              HasSubstr("options.machines is 2000; expected 0 to 1024"));
  options = {};
  options.max_samples = -1;
  EXPECT_THAT(message([&] { (void)Predictor(world.parameters, {world.model.prediction}, options); }),
              HasSubstr("max_samples"));
  EXPECT_THAT(message([&] { (void)Predictor(world.parameters, {}); }), HasSubstr("output"));
  const Perceptron wider = perceptron(world.host, 32);
  EXPECT_THAT(message([&] { (void)Predictor(world.parameters, {wider.prediction}); }),
              HasSubstr("\"hidden.weight\" of the parameters is [784, 16]; the outputs need [784, 32]"));
  const Predictor predictor(world.parameters, {world.model.prediction});
  const std::vector<float> before = world.ask(predictor);
  const Parameters other = world.host.parameters({wider.prediction}, 1);
  EXPECT_THAT(message([&] { predictor.refresh(other); }), HasSubstr("[784, 32]"));
  EXPECT_THAT(message([&] { predictor.refresh(world.host.declare(world.model.outputs())); }), HasSubstr("no values"));
  EXPECT_THAT(message([&] { (void)world.ask(predictor, 2); }), HasSubstr("1"));
  EXPECT_THAT(message([&] { predictor.predict({}, [](const std::vector<Array>&) {}); }), HasSubstr("image"));
  EXPECT_EQ(world.ask(predictor), before);
}

// Predictions need no memory that grows, and neither do predictors that come and go.
TEST(Predictor, DoesNotGrow) {
  const World world(1);
  const auto bytes = [&] { return world.host.count().bytes_now; };
  const Predictor predictor(world.parameters, {world.model.prediction});
  (void)world.ask(predictor);
  const uint64_t before = bytes();
  for (int i = 0; i < 1000; ++i) (void)world.ask(predictor);
  EXPECT_EQ(bytes(), before);
  for (int i = 0; i < 20; ++i) {
    const Predictor another(world.parameters, {world.model.prediction});
    world.fill(0.01F);
    another.refresh(world.parameters);
  }
  EXPECT_EQ(bytes(), before);
}

}  // namespace
}  // namespace tenon_tests
