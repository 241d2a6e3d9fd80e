// Calls of several threads on one host: what runs at the same time, what waits, what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <dlpack/dlpack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/tenon_dlpack.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <tenon/tenon_lease.hpp>
#include <thread>
#include <vector>

#include "tests/support/fashion.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::HasSubstr;

template <typename Call>
void expect_misuse(const Call& call, const std::string& message) {
  try {
    call();
    ADD_FAILURE() << "no error; expected: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_MISUSE);
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

// The name of an object in errors: "machine {0, 5}".
template <typename Object>
std::string name(const char* kind, const Object& object) {
  const auto handle = object.handle();
  return std::string(kind) + " {" + std::to_string(handle.index) + ", " + std::to_string(handle.generation) + "}";
}

// A perceptron, its set, and an image for it.
struct World {
  explicit World(int threads = 2)
      : host(make_host(threads)), model(perceptron(host, 16)), parameters(host.parameters(model.outputs(), 1)) {
    for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<uint8_t>(i * 7);
  }
  [[nodiscard]] std::vector<Feed> feeds() const { return {{"image", {TN_U8, {1, 28, 28}, image.data()}}}; }
  [[nodiscard]] TrainOptions training(int64_t passes) const {
    TrainOptions options;
    options.outputs = model.outputs();
    options.parameters = parameters;
    options.updater = host.updater("sgd", {{"learning_rate", 0.1}});
    options.reader = fashion(host, "train", 256, 64, 1);
    options.passes = passes;
    return options;
  }
  [[nodiscard]] std::vector<float> answer(const Machine& machine) const {
    machine.forward(feeds());
    const Array out = machine.output(model.prediction);
    const auto* const values = static_cast<const float*>(out.data);
    return {values, values + 10};
  }

  Host host;
  Perceptron model;
  Parameters parameters;
  std::vector<uint8_t> image = std::vector<uint8_t>(28 * 28);
};

// A handler runs until another thread has done `work`, which therefore runs during the training.
template <typename Work>
void during_a_training(const World& world, const Work& work) {
  std::atomic<bool> begun{false}, done{false};
  TrainOptions options = world.training(1);
  options.handler = [&](Event& event) {
    if (event.kind() != TN_END_ITERATION) return;
    begun = true;
    while (!done) std::this_thread::yield();
  };
  std::thread trainer([&] { train(options); });
  while (!begun) std::this_thread::yield();
  work();
  done = true;
  trainer.join();
}

TEST(Sharing, EightMachinesOnOneSet) {
  constexpr int kThreads = 8, kTimes = 50;
  const World world;
  const std::vector<float> expected = world.answer(world.host.machine(world.parameters, {world.model.prediction}, {}));
  std::atomic<int> different{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      const Machine machine = world.host.machine(world.parameters, {world.model.prediction}, {});
      for (int i = 0; i < kTimes; ++i) different += world.answer(machine) == expected ? 0 : 1;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(different, 0);
}

// Other objects of the host can be made, used and released, and the set can be read.
TEST(Sharing, AHostAnswersDuringATraining) {
  const World world;
  during_a_training(world, [&] {
    const Machine machine = world.host.machine(world.parameters, {world.model.prediction}, {});
    EXPECT_EQ(world.answer(machine).size(), 10U);
    EXPECT_EQ(read(world.parameters, "hidden.weight").size(), 784U * 16U);
    TrainOptions other = world.training(1);
    other.parameters = world.host.parameters(world.model.outputs(), 2);
    train(other);
    other.parameters = world.parameters;
    EXPECT_EQ(tenon::test(other).samples, 256);
    world.parameters.save(world.model.outputs(), testing::TempDir() + "sharing.safetensors");
  });
}

TEST(Sharing, OnlyTheTrainingWrites) {
  const World world;
  during_a_training(world, [&] {
    const char* const kTrains = "a training on another thread";
    const std::vector<float> values(16, 1.0F);
    expect_misuse([&] { world.parameters.set("hidden.bias", {TN_F32, {16}, values.data()}); }, kTrains);
    expect_misuse([&] { world.parameters.set_names({}); }, kTrains);
    expect_misuse([&] { (void)world.parameters.get("hidden.bias"); }, kTrains);
    expect_misuse([&] { (void)Lease(world.parameters, "hidden.bias", TN_LEASE_READ); }, kTrains);
    expect_misuse([&] { (void)Lease(world.parameters, "hidden.bias", TN_LEASE_WRITE); }, kTrains);
    expect_misuse([&] { train(world.training(1)); },
                  name("parameters", world.parameters) + ": a training of these parameters has not ended");
  });
  const std::vector<float> values(16, 1.0F);
  world.parameters.set("hidden.bias", {TN_F32, {16}, values.data()});
}

// The set is between two steps while a handler runs: nobody waits for the handler's end.
TEST(Sharing, AHandlerMayWaitForAThreadThatCallsTheHost) {
  const World world;
  int answers = 0;
  TrainOptions options = world.training(1);
  options.handler = [&](Event& event) {
    if (event.kind() != TN_END_ITERATION) return;
    std::thread([&] { answers += read(world.parameters, "hidden.bias").size() == 16 ? 1 : 0; }).join();
    (void)world.parameters.get("hidden.bias");
    const Lease lease(world.parameters, "prediction.bias", TN_LEASE_WRITE);
    static_cast<float*>(const_cast<void*>(lease.values().data))[0] += 1;
  };
  train(options);
  EXPECT_EQ(answers, 4);
  EXPECT_GT(read(world.parameters, "prediction.bias")[0], 1);
}

TEST(Sharing, AHandlersWritingLeaseEndsWithIt) {
  const World world;
  std::optional<Lease> kept;
  TrainOptions options = world.training(1);
  options.handler = [&](Event& event) {
    if (event.kind() == TN_END_ITERATION) kept.emplace(world.parameters, "prediction.bias", TN_LEASE_WRITE);
  };
  expect_misuse([&] { train(options); }, "outlives the handler");
  kept.reset();
  options.handler = nullptr;
  train(options);
}

// Values that a training on another thread writes are copied between two steps: never a part of an update.
TEST(Sharing, ReadsSeeWholeUpdates) {
  const World world;
  const Layer zero = world.host.data({"zero", TN_F32, {4096}});
  const Layer scaled =
      world.host.layer("fc", {world.host.data({"one", TN_F32, {1}})}, {{"size", 4096}, {"bias", false}}, "wide");
  const Layer cost = world.host.layer("square_error", {scaled, zero}, {}, "wide_cost");
  const Parameters parameters = world.host.parameters({cost}, 1);
  const std::vector<float> start(4096, 1.0F), zeros(4096, 0.0F);
  parameters.set("wide.weight", {TN_F32, {1, 4096}, start.data()});
  MachineOptions machine_options;
  machine_options.training = true;
  const Machine machine = world.host.machine(parameters, {cost}, machine_options);
  const Updater updater = world.host.updater("sgd", {{"learning_rate", 0.001}});
  std::atomic<bool> ended{false};
  std::thread trainer([&] {
    const float one = 1;
    for (int i = 0; i < 300; ++i) {
      machine.forward({{"one", {TN_F32, {1, 1}, &one}}, {"zero", {TN_F32, {1, 4096}, zeros.data()}}});
      machine.backward();
      updater.update(machine);
    }
    ended = true;
  });
  int reads = 0;
  while (!ended || reads == 0) {
    const std::vector<float> values = read(parameters, "wide.weight");
    EXPECT_EQ(values, std::vector<float>(4096, values[0]));
    ++reads;
  }
  trainer.join();
  EXPECT_LT(read(parameters, "wide.weight")[0], 1);
}

TEST(Sharing, OneCallAtATimeOnAMachine) {
  const World world;
  const Machine machine = world.host.machine(world.parameters, {world.model.prediction}, {});
  // A call that lasts as long as its callback: the plan is written inside it.
  int refused = 0;
  const auto write = [](void* user, const char*, size_t) { (*static_cast<std::function<void()>*>(user))(); };
  std::function<void()> inside = [&] {
    const std::string used = name("machine", machine) + ": the machine is in use by a call that has not ended";
    expect_misuse([&] { (void)world.answer(machine); }, used);
    std::thread([&] { expect_misuse([&] { (void)world.answer(machine); }, used); }).join();
    ++refused;
  };
  ASSERT_EQ(tn_machine_plan(world.host.get(), machine.handle(), write, &inside, nullptr), TN_OK);
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(world.answer(machine).size(), 10U);
}

TEST(Sharing, LayersAndMachinesAreMadeByManyThreads) {
  constexpr int kThreads = 6;
  const World world;
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        const Layer in = world.host.data({"in" + std::to_string(t), TN_F32, {8}});
        const Layer out = world.host.layer("fc", {in}, {{"size", 4}, {"act", "tanh"}});
        const Parameters parameters = world.host.parameters({out}, 3);
        const Machine machine = world.host.machine(parameters, {out}, {});
        const std::vector<float> values(8, 0.5F);
        machine.forward({{"in" + std::to_string(t), {TN_F32, {1, 8}, values.data()}}});
        made += machine.output(out).shape == std::vector<int64_t>{1, 4} ? 1 : 0;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, kThreads * 5);
}

TEST(Leases, AreViewsUntilTheyEnd) {
  World world;
  std::vector<float> values(16);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  {
    const Lease lease(world.parameters, "hidden.bias", TN_LEASE_WRITE);
    EXPECT_EQ(lease.values().shape, std::vector<int64_t>{16});
    std::memcpy(const_cast<void*>(lease.values().data), values.data(), 16 * sizeof(float));
    expect_misuse([&] { train(world.training(1)); },
                  name("parameters", world.parameters) + ": the parameters cannot be trained while a writing lease");
    expect_misuse([&] { (void)Lease(world.parameters, "hidden.bias", TN_LEASE_READ); }, "a writing lease");
    EXPECT_EQ(world.answer(world.host.machine(world.parameters, {world.model.prediction}, {})).size(), 10U);
  }
  EXPECT_EQ(read(world.parameters, "hidden.bias"), values);
  const Lease kept(world.parameters, "hidden.bias", TN_LEASE_READ);
  train(world.training(1));
  world.parameters = {};  // the lease keeps the memory
  EXPECT_NE(static_cast<const float*>(kept.values().data)[3], 0);
}

TEST(Leases, KeepAnOutputUntilTheNextForward) {
  const World world;
  std::vector<float> answer;
  std::optional<Lease> lease;
  {
    const Machine machine = world.host.machine(world.parameters, {world.model.prediction}, {});
    answer = world.answer(machine);
    lease.emplace(machine, world.model.prediction);
    EXPECT_EQ(lease->values().shape, (std::vector<int64_t>{1, 10}));
    expect_misuse([&] { (void)world.answer(machine); },
                  name("machine", machine) + ": a lease of an output of the machine is held");
    lease.reset();
    EXPECT_EQ(world.answer(machine), answer);
    lease.emplace(machine, world.model.prediction);
  }
  EXPECT_EQ(std::memcmp(lease->values().data, answer.data(), 10 * sizeof(float)), 0);  // it keeps the memory
  lease.reset();
  DLManagedTensor* tensor = nullptr;
  const Machine machine = world.host.machine(world.parameters, {world.model.prediction}, {});
  EXPECT_EQ(tn_machine_dlpack(world.host.get(), machine.handle(), world.model.prediction.handle(), &tensor, nullptr),
            TN_MISUSE);  // before a forward
  EXPECT_EQ(world.answer(machine), answer);
  ASSERT_EQ(tn_machine_dlpack(world.host.get(), machine.handle(), world.model.prediction.handle(), &tensor, nullptr),
            TN_OK);
  EXPECT_EQ(tensor->dl_tensor.shape[1], 10);
  EXPECT_EQ(std::memcmp(tensor->dl_tensor.data, answer.data(), 10 * sizeof(float)), 0);
  tensor->deleter(tensor);
  EXPECT_EQ(world.answer(machine), answer);
}

TEST(Leases, RefuseBadArguments) {
  const World world;
  tn_lease lease = {};
  tn_array values = {};
  tn_error error = {};
  error.size = sizeof error;
  const auto take = [&](const char* name, int32_t mode) {
    return tn_parameters_lease(world.host.get(), world.parameters.handle(), name, mode, &lease, &values, &error);
  };
  EXPECT_EQ(take("hidden.bias", 2), TN_INVALID);
  EXPECT_STREQ(error.message, "mode is 2; expected TN_LEASE_READ or TN_LEASE_WRITE");
  EXPECT_EQ(take("hidden.bia", TN_LEASE_WRITE), TN_NOT_FOUND);
  EXPECT_EQ(take(nullptr, TN_LEASE_WRITE), TN_MISUSE);
  ASSERT_EQ(take("hidden.bias", TN_LEASE_WRITE), TN_OK);
  EXPECT_EQ(tn_lease_release(world.host.get(), lease, &error), TN_OK);
  EXPECT_EQ(tn_lease_release(world.host.get(), lease, &error), TN_MISUSE);
  uint64_t bytes = 4;
  float number = 0;
  EXPECT_EQ(tn_parameters_read(world.host.get(), world.parameters.handle(), "hidden.bias", &number, &bytes, &error),
            TN_NEED_CAPACITY);
  EXPECT_EQ(bytes, 64U);
  EXPECT_STREQ(error.message, "parameter \"hidden.bias\" has 64 bytes; there is room for 4");
  const Parameters declared = world.host.declare(world.model.outputs());
  EXPECT_EQ(
      tn_parameters_lease(world.host.get(), declared.handle(), "hidden.bias", TN_LEASE_READ, &lease, &values, &error),
      TN_MISUSE);
}

TEST(Leases, AsDlpackOutliveTheHost) {
  DLManagedTensor* tensor = nullptr;
  std::vector<float> expected;
  {
    const World world;
    ASSERT_EQ(tn_parameters_dlpack(world.host.get(), world.parameters.handle(), "hidden.weight", TN_LEASE_READ, &tensor,
                                   nullptr),
              TN_OK);
    expected = read(world.parameters, "hidden.weight");
  }
  EXPECT_EQ(tensor->dl_tensor.ndim, 2);
  EXPECT_EQ(tensor->dl_tensor.shape[0], 784);
  EXPECT_EQ(tensor->dl_tensor.shape[1], 16);
  EXPECT_EQ(tensor->dl_tensor.strides, nullptr);
  EXPECT_EQ(tensor->dl_tensor.device.device_type, kDLCPU);
  EXPECT_EQ(std::memcmp(tensor->dl_tensor.data, expected.data(), expected.size() * sizeof(float)), 0);
  std::thread([&] { tensor->deleter(tensor); }).join();
}

TEST(Leases, AsVersionedDlpackSayWhatIsReadOnly) {
  DLManagedTensorVersioned *read = nullptr, *written = nullptr, *output = nullptr;
  {
    const World world;
    const auto lease = [&](int32_t mode, DLManagedTensorVersioned** tensor) {
      return tn_parameters_dlpack_versioned(world.host.get(), world.parameters.handle(), "hidden.bias", mode, tensor,
                                            nullptr);
    };
    ASSERT_EQ(lease(TN_LEASE_WRITE, &written), TN_OK);
    EXPECT_EQ(lease(TN_LEASE_READ, &read), TN_MISUSE);  // a writing lease is alone
    EXPECT_EQ(written->flags & 1U, 0U);
    static_cast<float*>(written->dl_tensor.data)[0] = 7;
    written->deleter(written);
    ASSERT_EQ(lease(TN_LEASE_READ, &read), TN_OK);
    const Machine machine = world.host.machine(world.parameters, {world.model.prediction}, {});
    (void)world.answer(machine);
    ASSERT_EQ(tn_machine_dlpack_versioned(world.host.get(), machine.handle(), world.model.prediction.handle(), &output,
                                          nullptr),
              TN_OK);
    EXPECT_EQ(output->flags & 1U, 1U);
    EXPECT_EQ(output->dl_tensor.shape[1], 10);
    output->deleter(output);
  }
  EXPECT_EQ(read->version.major, 1U);
  EXPECT_EQ(read->flags & 1U, 1U);
  EXPECT_EQ(read->dl_tensor.ndim, 1);
  EXPECT_EQ(read->dl_tensor.shape[0], 16);
  EXPECT_EQ(static_cast<const float*>(read->dl_tensor.data)[0], 7.0F);
  read->deleter(read);
}

}  // namespace
}  // namespace tenon_tests
