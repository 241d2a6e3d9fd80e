// Machines on the device "cuda" beside those on "cpu"; run on an emulated GPU, skipped without one.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <tenon/tenon_updater.hpp>

#include "tests/devices/device_under_test.h"
#include "tests/devices/emulated_driver.h"
#include "tests/support/far.h"
#include "tests/support/fashion.h"

namespace tenon_tests {

namespace {

class CudaMachine : public testing::Test {
 protected:
  void SetUp() override {
    if (device_plugin("cuda")->devices[0]->count(nullptr, nullptr) <= 0)
      GTEST_SKIP() << "no CUDA device on this machine";
  }
  static MachineOptions options(const std::string& device, int64_t samples) {
    MachineOptions options;
    options.max_samples = samples;
    options.training = true;
    options.device = device;
    options.seed = 7;
    return options;
  }

  Host host_ = make_host(2);
};

std::vector<std::string> names_of(const Parameters& parameters) {
  std::vector<std::string> names;
  for (const auto& entry : nlohmann::json::parse(parameters.describe())) names.push_back(entry.at("name"));
  return names;
}

const float* floats_of(const Array& array) { return static_cast<const float*>(array.data); }

// The elements differ by at most `ulps` units in the last place of the largest element.
void expect_near(const Array& want, const Array& got, double ulps, const std::string& what) {
  ASSERT_EQ(want.count(), got.count()) << what;
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < want.count(); ++i) {
    const double value = floats_of(want)[i];
    largest = std::max(largest, std::fabs(value));
    difference = std::max(difference, std::fabs(value - floats_of(got)[i]));
    ASSERT_TRUE(std::isfinite(floats_of(got)[i])) << what;
  }
  EXPECT_LE(difference, ulps * largest * 0x1p-23) << what;
}

// Trains a model of images of Fashion-MNIST on both devices from the same parameters in each step: their gradients
// differ by at most 32 units in the last place of the largest element.
void expect_same_gradients(const Host& host, const Layers& outputs, int steps, int64_t batch,
                           const MachineOptions& near_options, const MachineOptions& far_options) {
  const Parameters near = host.parameters(outputs, 1), far = host.parameters(outputs, 1);
  const Machine cpu = host.machine(near, outputs, near_options), cuda = host.machine(far, outputs, far_options);
  const Updater with_cpu = host.updater("adam", {{"learning_rate", 0.01}});
  const Updater with_cuda = host.updater("adam", {{"learning_rate", 0.01}});
  const Reader reader = fashion(host, "train", steps * batch, batch, 5);
  for (int step = 0; step < steps; ++step) {
    SCOPED_TRACE(step);
    const auto arrays = reader.next();
    ASSERT_EQ(arrays.size(), 2U);
    const std::vector<Feed> feeds = {{"image", arrays[0]}, {"label", arrays[1]}};
    for (const Machine* machine : {&cpu, &cuda}) {
      machine->forward(feeds);
      machine->backward();
    }
    EXPECT_NEAR(cuda.cost(), cpu.cost(), 1e-6 * cpu.cost());
    for (const std::string& name : names_of(near)) expect_near(cpu.gradient(name), cuda.gradient(name), 32, name);
    with_cpu.update(cpu);
    with_cuda.update(cuda);
    for (const std::string& name : names_of(near)) {
      expect_near(near.get(name), far.get(name), 500, name);
      far.set(name, near.get(name));
    }
  }
}

// The library of the emulated GPU has no functions. With one that has, nothing is said.
TEST_F(CudaMachine, TheLogSaysWhyProductsAreSlow) {
  HostOptions host_options{1, {plugin_folder()}, nullptr, {}};
  std::string log;
  host_options.log = [&](int level, const char* message) { log += std::to_string(level) + " " + message; };
  const Host host(host_options);
  const Layer out = host.layer("fc", {host.data([] {
                                 DataOptions input;
                                 input.name = "x", input.shape = {4};
                                 return input;
                               }())},
                               {{"size", 3}}, "out");
  MachineOptions on_cuda;
  on_cuda.device = "cuda";
  const Machine machine = host.machine(host.parameters({out}, 1), {out}, on_cuda);
  const bool takes_sizes = machine.plan().find("host_sizes") != std::string::npos;
  const std::string words =
      "2 device cuda: products run without cublasLt: libcublasLt.so.13 is too old: it has no cublasLtCreate";
  EXPECT_EQ(log.find(words) == std::string::npos, takes_sizes) << log;
  EXPECT_EQ(nlohmann::json::parse(machine.plan()).at("batch_invariant"), !takes_sizes);
}

TEST_F(CudaMachine, GradientsOfAPerceptron) {
  expect_same_gradients(host_, perceptron(host_, 32).outputs(), 20, 64, options("cpu", 64), options("cuda", 64));
}

// LeNet-5 (LeCun et al., 1998) on images of 14 x 14, with maxima and means.
TEST_F(CudaMachine, GradientsOfLeNet) {
  DataOptions image, label;
  image.name = "image", image.dtype = TN_U8, image.shape = {28, 28}, image.scale = 1.0 / 255;
  label.name = "label", label.dtype = TN_U8;
  const Layer whole =
      host_.layer("reshape", {host_.data(image)}, {{"shape", std::vector<int64_t>{28, 28, 1}}}, "whole");
  Layer x = host_.layer("resize", {whole}, {{"size", std::vector<int64_t>{14, 14}}, {"kind", "linear"}}, "small");
  x = host_.layer("conv", {x}, {{"filters", 6}, {"kernel", 5}, {"same", true}, {"act", "relu"}}, "first");
  x = host_.layer("pool", {x}, {{"kind", "max"}, {"kernel", 2}}, "maxima");
  x = host_.layer("conv", {x}, {{"filters", 16}, {"kernel", 3}, {"act", "relu"}}, "second");
  x = host_.layer("pool", {x}, {{"kind", "average"}, {"kernel", 2}}, "means");
  x = host_.layer("fc", {x}, {{"size", 84}, {"act", "relu"}}, "third");
  x = host_.layer("fc", {x}, {{"size", 10}}, "score");
  const Layer cost = host_.layer("cross_entropy", {x, host_.data(label)}, {{"from_logits", true}}, "cost");
  expect_same_gradients(host_, {cost}, 3, 16, options("cpu", 16), options("cuda", 16));
}

// Factors are rounded where cublasLt is present, as on the cpu, and to TF32, too; else not at all.
TEST_F(CudaMachine, RoundsProductsByOption) {
  const Perceptron model = perceptron(host_, 32);
  const Reader reader = fashion(host_, "train", 64, 64, 5);
  const auto arrays = reader.next();
  bool has_library = false;
  const auto gradients = [&](const char* device, tn_dtype compute) {
    MachineOptions chosen = options(device, 64);
    chosen.compute = compute;
    const Parameters parameters = host_.parameters(model.outputs(), 1);
    const Machine machine = host_.machine(parameters, model.outputs(), chosen);
    machine.forward({Feed{"image", arrays[0]}, Feed{"label", arrays[1]}});
    machine.backward();
    has_library = machine.plan().find("host_sizes") != std::string::npos;
    std::vector<float> all;
    for (const std::string& name : names_of(parameters)) {
      const Array gradient = machine.gradient(name);
      all.insert(all.end(), floats_of(gradient), floats_of(gradient) + gradient.count());
    }
    return all;
  };
  const auto distance = [](const std::vector<float>& a, const std::vector<float>& b) {
    double largest = 0, most = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::fabs(static_cast<double>(a[i])));
      most = std::max(most, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    }
    return most / largest;
  };
  const auto want = gradients("cpu", TN_F32), brain = gradients("cpu", TN_BF16);
  const auto full = gradients("cuda", TN_F32), rounded = gradients("cuda", TN_BF16), tf32 = gradients("cuda", TN_TF32);
  EXPECT_LT(distance(want, full), 1e-5);
  EXPECT_GT(distance(want, brain), 2e-4);
  if (has_library) {
    EXPECT_LT(distance(brain, rounded), distance(want, brain) / 4);
    EXPECT_GT(distance(full, tf32), 2e-5);
    EXPECT_LT(distance(full, tf32), distance(full, rounded));
  } else {
    EXPECT_EQ(full, rounded);
    EXPECT_EQ(full, tf32);
  }
}

// Tables with row-sparse gradients, their updates, loops over sequences, sparse input.
struct Words {
  static constexpr int64_t kWords = 40;
  explicit Words(const Host& host) {
    DataOptions words, bag, label;
    words.name = "words", words.dtype = TN_I32, words.index_limit = kWords, words.storage = TN_RAGGED, words.levels = 1;
    bag.name = "bag", bag.shape = {kWords}, bag.storage = TN_CSR;
    label.name = "label", label.dtype = TN_I32, label.index_limit = 4;
    const Layer vectors = host.layer("embedding", {host.data(words)}, {{"vocabulary", kWords}, {"size", 6}}, "vectors");
    const Layer rows = host.layer("gru", {host.layer("fc", {vectors}, {{"size", 15}}, "mixed")}, {{"size", 5}}, "gru");
    const Layer pooled = host.layer("sequence_pool", {rows}, {{"kind", "max"}}, "pooled");
    const Layer scores = host.layer("fc", {pooled, host.layer("fc", {host.data(bag)}, {{"size", 5}}, "from_bag")},
                                    {{"size", 4}}, "scores");
    cost = host.layer("cross_entropy", {scores, host.data(label)}, {{"from_logits", true}}, "cost");
  }
  std::vector<Feed> feeds(uint64_t step) {
    list.clear(), offsets = {0}, entries.clear(), ends = {0}, classes.clear();
    for (uint64_t i = 0; i < 6; ++i) {
      for (uint64_t k = 0; k < (i * 5 + step) % 4 + 3 * step; ++k)
        list.push_back(static_cast<int32_t>((k * k + step + i) % kWords));
      for (uint64_t k = 0; k < i % 3; ++k) entries.push_back(static_cast<int64_t>((k * 7 + i + step) % kWords));
      offsets.push_back(static_cast<int64_t>(list.size()));
      ends.push_back(static_cast<int64_t>(entries.size()));
      classes.push_back(static_cast<int32_t>(i % 4));
    }
    Array words = {TN_I32, {offsets.back()}, list.data()}, bag = {TN_F32, {6, kWords}, nullptr};
    words.storage = TN_RAGGED, words.levels = 1, words.offsets[0] = offsets.data(), words.samples = 6;
    bag.storage = TN_CSR, bag.offsets[0] = ends.data(), bag.ids = entries.data(), bag.samples = 6;
    return {{"words", words}, {"bag", bag}, {"label", {TN_I32, {6}, classes.data()}}};
  }

  Layer cost;
  std::vector<int32_t> list, classes;
  std::vector<int64_t> offsets, entries, ends;
};

TEST_F(CudaMachine, TrainsOnRowsAndSequences) {
  Words model(host_);
  const Parameters near = host_.parameters({model.cost}, 1), far = host_.parameters({model.cost}, 1);
  const auto train = [&](const Parameters& parameters, const std::string& device) {
    const Machine machine = host_.machine(parameters, {model.cost}, options(device, 6));
    const Updater updater = host_.updater("adam", {{"learning_rate", 0.05}});
    std::vector<double> costs;
    for (uint64_t step = 0; step < 4; ++step) {
      machine.forward(model.feeds(step));
      machine.backward();
      costs.push_back(machine.cost());
      updater.update(machine);
    }
    return costs;
  };
  const std::vector<double> want = train(near, "cpu"), got = train(far, "cuda");
  for (size_t step = 0; step < want.size(); ++step) EXPECT_NEAR(got[step], want[step], 1e-5 * want[step]) << step;
  for (const std::string& name : names_of(near)) expect_near(near.get(name), far.get(name), 1000, name);
}

// Fails every allocation of device memory once: a clear error, all memory given back, and then it works.
TEST_F(CudaMachine, WithoutMemory) {
  const std::optional<EmulatedDriver> driver = EmulatedDriver::find();
  if (!driver) GTEST_SKIP() << "no emulated GPU";
  Words model(host_);
  const auto step = [&] {
    const Parameters parameters = host_.parameters({model.cost}, 1);
    const Machine machine = host_.machine(parameters, {model.cost}, options("cuda", 6));
    machine.forward(model.feeds(2));
    machine.backward();
    const Updater updater = host_.updater("sgd", {{"learning_rate", 0.05}});
    updater.update(machine);
    return machine.cost() + floats_of(parameters.get("gru.recurrent_weight"))[3];
  };
  const double want = step();
  const size_t held = driver->used();  // by the device itself
  int failures = 0;
  for (;; ++failures) {
    driver->fail_after(failures);
    std::optional<double> got;
    try {
      got = step();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_OUT_OF_MEMORY) << error.what();
      EXPECT_NE(std::string(error.what()).find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << error.what();
    }
    driver->fail_after(-1);
    EXPECT_EQ(driver->used(), held) << "after allocation " << failures << " failed";
    if (!got) continue;
    EXPECT_EQ(*got, want);
    break;
  }
  EXPECT_GT(failures, 4);
  EXPECT_EQ(step(), want);
}

}  // namespace

}  // namespace tenon_tests
