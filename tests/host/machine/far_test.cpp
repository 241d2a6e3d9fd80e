// Machines on a device whose memory the host cannot address give the bits of the cpu.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <tenon/tenon_lease.hpp>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_predictor.hpp>
#include <tenon/tenon_updater.hpp>
#include <thread>

#include "tests/support/far_models.h"
#include "tests/support/fashion.h"

namespace tenon_tests {

namespace {

using testing::HasSubstr;

// What `run` collects on the two devices is equal, and not empty.
template <typename Run>
void expect_equal(const Run& run) {
  const Bytes near = run("cpu"), far = run("far");
  ASSERT_EQ(near.size(), far.size());
  ASSERT_FALSE(near.empty());
  for (size_t i = 0; i < near.size(); ++i) EXPECT_EQ(near[i], far[i]) << "number " << i << " of " << near.size();
}

class FarMachine : public testing::TestWithParam<tn_dtype> {
 protected:
  [[nodiscard]] MachineOptions options(const std::string& device, bool training) const {
    MachineOptions options;
    options.max_samples = kSamples;
    options.training = training;
    options.compute = GetParam();
    options.device = device;
    options.seed = 7;
    return options;
  }

  FarHost host_;
};

TEST_P(FarMachine, AnswersAlike) {
  DenseModel model(*host_);
  expect_equal([&](const char* device) {
    const Parameters parameters = host_->parameters(model.outputs(), 1);
    const Machine machine = host_->machine(parameters, model.outputs(), options(device, false));
    Bytes result;
    for (const int64_t samples : {kSamples, int64_t{1}, int64_t{0}, int64_t{4}}) {
      machine.forward(model.feeds(3, samples));
      add(result, machine.cost());
      for (const Layer& layer : {model.scores, model.hidden}) result.push_back(bytes_of(machine.output(layer)));
    }
    return result;
  });
}

TEST_P(FarMachine, TrainsAlike) {
  DenseModel model(*host_);
  expect_equal([&](const char* device) {
    const Parameters parameters = host_->parameters(model.outputs(), 1);
    MachineOptions training = options(device, true);
    training.flags = TN_MACHINE_DATA_GRADIENTS;
    const Machine machine = host_->machine(parameters, model.outputs(), training);
    const Updater updater = host_->updater("adam", {{"learning_rate", 0.1}, {"clip_norm", 0.5}});
    Bytes result;
    for (uint64_t step = 0; step < 4; ++step) {
      for (uint64_t pass = 0; pass <= step % 2; ++pass) {  // gradients add up
        machine.forward(model.feeds(step + 10 * pass));
        machine.backward();
      }
      add(result, machine.cost());
      result.push_back(bytes_of(machine.gradient("hidden.weight")));
      result.push_back(bytes_of(data_gradient(machine, "x")));
      if (step == 2) {
        const std::vector<float> given = drawn(16, 9);
        set_gradient(machine, "hidden.bias", {TN_F32, {16}, given.data()});
      }
      if (step == 3) parameters.set("scores.bias", {TN_F32, {4}, model.x.data()});
      updater.update(machine);
      add_parameters(result, parameters);
    }
    return result;
  });
}

TEST_P(FarMachine, SharesParametersWithMachinesOfTheCpu) {
  DenseModel model(*host_);
  // Steps alternate between the devices; each sees what the other one has changed.
  const auto run = [&](const std::vector<const char*>& devices) {
    const Parameters parameters = host_->parameters(model.outputs(), 1);
    const Updater updater = host_->updater("sgd", {{"learning_rate", 0.1}, {"momentum", 0.9}});
    std::vector<Machine> machines;
    for (const char* device : devices)
      machines.push_back(host_->machine(parameters, model.outputs(), options(device, true)));
    Bytes result;
    for (uint64_t step = 0; step < 6; ++step) {
      const Machine& machine = machines[step % machines.size()];
      machine.forward(model.feeds(step));
      machine.backward();
      add(result, machine.cost());
      updater.update(machine);
      if (step == 2) result.push_back(bytes_of(parameters.get("scores.weight")));
    }
    add_parameters(result, parameters);
    return result;
  };
  const Bytes near = run({"cpu", "cpu"});
  EXPECT_EQ(near, run({"cpu", "far"}));
  EXPECT_EQ(near, run({"far", "cpu"}));
  EXPECT_EQ(near, run({"far", "far"}));
}

INSTANTIATE_TEST_SUITE_P(Types, FarMachine, testing::Values(TN_F32, TN_F64),
                         [](const auto& it) { return it.param == TN_F32 ? "Float32" : "Float64"; });

TEST(FarPredictor, AnswersAlike) {
  const FarHost host;
  DenseModel model(*host);
  expect_equal([&](const char* device) {
    const Parameters parameters = host->parameters(model.outputs(), 1);
    PredictorOptions options;
    options.device = device, options.max_samples = kSamples, options.machines = 2;
    const Predictor predictor(parameters, {model.scores}, options);
    Bytes result;
    const auto predict = [&] {
      predictor.predict({model.feeds(5)[0]},
                        [&](const std::vector<Array>& outputs) { result.push_back(bytes_of(outputs.at(0))); });
    };
    predict();
    parameters.set("scores.bias", {TN_F32, {4}, model.x.data()});
    predict();  // a snapshot
    predictor.refresh(parameters);
    predict();
    return result;
  });
}

TEST(FarTraining, GivesEqualModelsAndAverages) {
  const FarHost host;
  const Perceptron model = perceptron(*host, 32);
  expect_equal([&](const char* device) {
    TrainOptions options;
    options.outputs = model.outputs();
    options.parameters = host->parameters(options.outputs, 5);
    options.updater = host->updater("adam", {});
    options.reader = fashion(*host, "train", 600, 128, 5);
    options.passes = 2;
    options.device = device;
    options.average = AverageOptions{host->parameters(options.outputs, 6), 0.9};
    Bytes result;
    options.handler = [&](Event& event) {
      if (event.kind() == TN_END_ITERATION) add(result, event.cost());
      if (event.kind() == TN_END_PASS) add(result, event.metrics().at(0).value);
    };
    train(options);
    add_parameters(result, options.parameters);
    add_parameters(result, options.average->parameters);
    return result;
  });
}

// Two convolutions with pools, and two layers of products.
TEST(FarTraining, TrainsAConvolutionalModelAlike) {
  const FarHost host;
  Perceptron model = perceptron(*host);
  Layer x = host->layer("reshape", {model.image}, {{"shape", std::vector<int64_t>{28, 28, 1}}}, "square");
  for (const int64_t filters : {4, 8}) {
    const std::string number = std::to_string(filters);
    x = host->layer("conv", {x}, {{"filters", filters}, {"kernel", 5}, {"act", "relu"}}, "conv" + number);
    x = host->layer("pool", {x}, {{"kind", "max"}, {"kernel", 2}}, "pool" + number);
  }
  x = host->layer("fc", {x}, {{"size", 24}, {"act", "relu"}}, "inner");
  model.prediction = host->layer("fc", {x}, {{"size", 10}}, "scores");
  model.cost = host->layer("cross_entropy", {model.prediction, model.label}, {{"from_logits", true}}, "loss");
  expect_equal([&](const char* device) {
    TrainOptions options;
    options.outputs = {model.cost};
    options.parameters = host->parameters(options.outputs, 5);
    options.updater = host->updater("sgd", {{"learning_rate", 0.05}, {"momentum", 0.9}});
    options.reader = fashion(*host, "train", 160, 32, 5);
    options.device = device;
    Bytes result;
    options.handler = [&](Event& event) {
      if (event.kind() == TN_END_ITERATION) add(result, event.cost());
    };
    train(options);
    add_parameters(result, options.parameters);
    return result;
  });
}

TEST_P(FarMachine, TrainsOnSequencesAlike) {
  SequenceModel model(*host_);
  expect_equal([&](const char* device) {
    const Parameters parameters = host_->parameters({model.cost}, 1);
    const Machine machine = host_->machine(parameters, {model.cost, model.states}, options(device, true));
    const Updater updater = host_->updater("adam", {{"learning_rate", 0.1}, {"clip_norm", 0.5}});
    Bytes result;
    for (uint64_t step = 0; step < 4; ++step) {
      for (uint64_t pass = 0; pass <= step % 2; ++pass) {
        machine.forward(model.feeds(step + pass));
        machine.backward();
      }
      add(result, machine.cost());
      result.push_back(bytes_of(machine.output(model.states)));
      const Machine::Rows rows = machine.sparse_gradient("vectors.weight");
      result.push_back(bytes_of(rows.ids));
      result.push_back(bytes_of(rows.values));
      result.push_back(bytes_of(machine.gradient("vectors.weight")));
      updater.update(machine);
      add_parameters(result, parameters);
    }
    return result;
  });
}

// What the application writes and reads between steps: leases, states of updaters, a set with more parameters.
TEST(FarParameters, AreThoseOfTheApplication) {
  const FarHost host;
  DenseModel model(*host);
  expect_equal([&](const char* device) {
    const Parameters parameters = host->parameters(model.outputs(), 1);
    MachineOptions options;
    options.max_samples = kSamples, options.training = true, options.device = device;
    const Machine machine = host->machine(parameters, model.outputs(), options);
    const Updater updater = host->updater("sgd", {{"learning_rate", 0.1}, {"momentum", 0.5}});
    const UpdaterState state(updater, parameters);
    Bytes result;
    const auto step = [&](uint64_t number) {
      machine.forward(model.feeds(number));
      machine.backward();
      updater.update(machine);
      add(result, machine.cost());
    };
    step(0);
    const std::string velocity = nlohmann::json::parse(state.describe()).at(0).at("state");
    result.push_back(bytes_of(state.get(velocity, "scores.weight")));
    const std::vector<float> numbers = drawn(64, 4);
    state.set(velocity, "scores.weight", {TN_F32, {16, 4}, numbers.data()});
    step(1);
    {
      const Lease lease(parameters, "scores.bias", TN_LEASE_WRITE);
      auto* const bias = static_cast<float*>(const_cast<void*>(lease.values().data));
      for (int i = 0; i < 3; ++i) {  // a forward sees what was written before it
        bias[i] += 0.5F;
        machine.forward(model.feeds(2));
        add(result, machine.cost());
      }
      bias[3] = 1;
    }
    step(3);
    add_parameters(result, parameters);
    return result;
  });
}

// Predictions of two threads, and a training beside them.
TEST(FarParameters, ServeSeveralThreads) {
  const FarHost host;
  DenseModel model(*host);
  const Parameters parameters = host->parameters(model.outputs(), 1);
  const std::vector<Feed> feeds = model.feeds(1);
  std::vector<Bytes> results(3);
  std::vector<std::thread> threads;
  for (Bytes& result : results)
    threads.emplace_back([&] {
      MachineOptions options;
      options.max_samples = kSamples, options.device = "far";
      const Machine machine = host->machine(parameters, {model.scores}, options);
      for (int i = 0; i < 20; ++i) {
        machine.forward({feeds[0]});
        result.push_back(bytes_of(machine.output(model.scores)));
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const Bytes& result : results) {
    ASSERT_EQ(result.size(), 20U);
    for (const auto& each : result) EXPECT_EQ(each, results[0][0]);
  }
}

// A failure of the device's late work is that of the step, and the machine works again afterwards.
TEST(FarErrors, EndTheStepThatMadeThem) {
  const FarHost host;
  const Layer order = host->layer("argsort", {host->data(floats("x", {4}))}, {}, "order");
  const Layer few = host->layer("scale_shift", {host->data(floats("few", {2}))}, {}, "scaled");
  const Layer picked = host->layer("gather", {few, order}, {}, "picked");  // fails unless 0 and 1 are the places
  MachineOptions options;
  options.max_samples = 1, options.device = "far";
  const Machine machine = host->machine(host->parameters({picked}, 1), {picked}, options);
  const float values[] = {3, 1, 2, 0}, other[] = {5, 6};
  for (int i = 0; i < 2; ++i) {
    try {
      machine.forward({{"x", {TN_F32, {1, 4}, values}}, {"few", {TN_F32, {1, 2}, other}}});
      FAIL() << "no error";
    } catch (const Error& caught) {
      EXPECT_EQ(caught.code(), TN_BAD_DATA);
      EXPECT_THAT(std::string(caught.what()),
                  testing::AllOf(HasSubstr("layer \"picked\" (gather): "), HasSubstr("id -1 at position 0")));
    }
    EXPECT_THROW((void)machine.output(picked), Error);
    machine.forward({{"x", {TN_F32, {0, 4}, values}}, {"few", {TN_F32, {0, 2}, other}}});
  }
}

// With check_finite the layer is named, as on the cpu.
TEST(FarErrors, NameTheLayerOfNumbersThatAreNotFinite) {
  const FarHost host(1, true);
  const Layer out = host->layer("exp", {host->data(floats("x", {2}))}, {}, "huge");
  MachineOptions options;
  options.device = "far";
  const Machine machine = host->machine(host->parameters({out}, 1), {out}, options);
  const float values[] = {1, 1000};
  try {
    machine.forward({{"x", {TN_F32, {1, 2}, values}}});
    FAIL() << "no error";
  } catch (const Error& caught) {
    EXPECT_THAT(std::string(caught.what()), HasSubstr("layer \"huge\""));
    EXPECT_THAT(std::string(caught.what()), HasSubstr("inf at [0, 1]"));
  }
}

// Trains for some steps of different sizes; returns costs and parameters, and the number of replays.
std::pair<Bytes, uint64_t> train_in_two_sizes(const char* device) {
  const FarHost host;
  DenseModel model(*host);
  MachineOptions options;
  options.max_samples = kSamples, options.training = true, options.device = device;
  const Parameters parameters = host->parameters(model.outputs(), 1);
  const Machine machine = host->machine(parameters, model.outputs(), options);
  const Updater updater = host->updater("sgd", {{"learning_rate", 0.1}});
  Bytes result;
  for (const int64_t samples : {6, 5, 6, 6, 5, 6, 3}) {  // products take sizes from the host
    machine.forward(model.feeds(result.size(), samples));
    machine.backward();
    add(result, machine.cost());
    updater.update(machine);
  }
  add_parameters(result, parameters);
  const auto plan = nlohmann::json::parse(machine.plan());
  EXPECT_EQ(plan.at("batch_invariant"), true);
  return {result, plan.value("replays", uint64_t{0})};
}

// Forward and backward are recorded when they come for the second time, and enqueued by one call from then on.
TEST(FarCaptures, AreReplayedForTheSameWork) {
  const auto [near, none] = train_in_two_sizes("cpu");
  const auto [far, replays] = train_in_two_sizes("far");
  EXPECT_EQ(near, far);
  EXPECT_EQ(none, 0U);
  EXPECT_EQ(replays, 2 * (3U + 1U));  // of 6 and of 5 samples
}

// Work that cannot be recorded, or whose recording cannot be enqueued, is enqueued call by call.
TEST(FarCaptures, AreLeftOutWhereTheyFail) {
  const Bytes near = train_in_two_sizes("cpu").first;
  for (const char* at : {"begin", "enqueue", "end", "launch"}) {
    setenv("TENON_FAR_REFUSES", at, 1);
    const auto [far, replays] = train_in_two_sizes("far");
    unsetenv("TENON_FAR_REFUSES");
    EXPECT_EQ(near, far) << at;
    EXPECT_EQ(replays, 0U) << at;
  }
}

// A recording is not used where operands have moved.
TEST(FarCaptures, AreDroppedWhenAMachineGrows) {
  const FarHost host;
  const Layer table = host->layer("embedding", {host->data([] {
                                    DataOptions ids = integers("ids", 50);
                                    ids.storage = TN_RAGGED, ids.levels = 1;
                                    return ids;
                                  }())},
                                  {{"vocabulary", 50}, {"size", 3}}, "table");
  const auto run = [&](const char* device) {
    MachineOptions options;
    options.max_samples = 1, options.device = device;
    const Machine machine = host->machine(host->parameters({table}, 1), {table}, options);
    Bytes result;
    for (const int64_t rows : {3, 9, 4, 40, 41, 7, 200, 5, 3}) {
      std::vector<int32_t> ids;
      for (int64_t i = 0; i < rows; ++i) ids.push_back(static_cast<int32_t>((i * i + rows) % 50));
      const std::vector<int64_t> offsets{0, rows};
      machine.forward({{"ids", Array::sequences(TN_I32, {rows}, ids.data(), 1, offsets.data())}});
      result.push_back(bytes_of(machine.output(table)));
    }
    const uint64_t replays = nlohmann::json::parse(machine.plan()).value("replays", uint64_t{0});
    EXPECT_EQ(replays > 0, std::string(device) == "far");
    return result;
  };
  EXPECT_EQ(run("cpu"), run("far"));
}

// A checkpoint of one device resumes on the other one, and the training ends with the same model.
TEST(FarTraining, ResumesOnTheOtherDevice) {
  const FarHost host;
  const Perceptron model = perceptron(*host, 16);
  const auto run = [&](const char* first, const char* second) {
    const TemporaryFolder folder;
    Parameters last;
    for (const bool resumes : {false, true}) {
      TrainOptions options;
      options.outputs = model.outputs();
      options.parameters = last = host->parameters(options.outputs, 5);
      options.updater = host->updater("adam", {});
      options.reader = fashion(*host, "train", 400, 64, 5);
      options.passes = 2;
      options.device = resumes ? second : first;
      CheckpointOptions checkpoint;
      checkpoint.folder = folder.path().string();
      checkpoint.every_batches = 3;
      checkpoint.outputs = {model.prediction};
      if (resumes) checkpoint.start = TN_START_RESUME_INEXACTLY;
      options.checkpoint = checkpoint;
      int64_t batches = 0;
      options.handler = [&](Event& event) {
        if (event.kind() == TN_END_ITERATION && ++batches == 4 && !resumes) event.stop();
      };
      train(options);
    }
    Bytes result;
    add_parameters(result, last);
    return result;
  };
  const Bytes near = run("cpu", "cpu");
  EXPECT_EQ(near, run("far", "cpu"));
  EXPECT_EQ(near, run("cpu", "far"));
}

}  // namespace

}  // namespace tenon_tests
