// Training through the public API on real data. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/support/fashion.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Trains on a part of Fashion-MNIST and saves the model; returns the bytes of the file. The last minibatch is shorter.
std::string trained(int threads, uint64_t* workers = nullptr, uint64_t seed = 5) {
  const Host host = make_host(threads);
  const Perceptron model = perceptron(host);
  TrainOptions options;
  options.outputs = model.outputs();
  options.parameters = host.parameters(options.outputs, seed);
  options.updater = host.updater("adam", {});
  options.reader = fashion(host, "train", 1000, 128, seed);
  options.passes = 2;
  train(options);
  if (workers != nullptr) *workers = host.count().workers_computed;
  const tenon_tests::TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  options.parameters.save({model.prediction}, path);
  return bytes_of_file(path);
}

TEST(Training, OneSeedGivesOneFileForAnyThreads) {
  uint64_t workers = 0;
  const std::string one = trained(1, &workers);
  EXPECT_EQ(workers, 1U);
  ASSERT_GT(one.size(), 400'000U);
  EXPECT_EQ(one, trained(1));
  EXPECT_EQ(one, trained(2, &workers));
  EXPECT_GE(workers, 2U);
  EXPECT_EQ(one, trained(3));
  EXPECT_EQ(one, trained(8));
  EXPECT_NE(one, trained(2, nullptr, 6));
}

TEST(Training, LearnsAndTellsEvents) {
  const Host host = make_host(2);
  const Perceptron model = perceptron(host);
  TrainOptions options;
  options.outputs = model.outputs();
  options.parameters = host.parameters(options.outputs, 1);
  options.updater = host.updater("adam", {});
  options.reader = fashion(host, "train", 600, 256, 1);
  options.passes = 2;
  std::vector<int> kinds;
  std::vector<double> costs;
  int64_t samples = 0;
  options.handler = [&](Event& event) {
    kinds.push_back(event.kind());
    if (event.kind() == TN_END_ITERATION) samples += event.samples();
    if (event.kind() == TN_END_PASS) {
      costs.push_back(event.cost());
      EXPECT_EQ(event.samples(), 600);
      ASSERT_EQ(event.metrics().size(), 1U);
      EXPECT_EQ(event.metrics()[0].name, "accuracy");
    }
  };
  train(options);
  const std::vector<int> pass = {TN_BEGIN_PASS,    TN_BEGIN_ITERATION, TN_END_ITERATION, TN_BEGIN_ITERATION,
                                 TN_END_ITERATION, TN_BEGIN_ITERATION, TN_END_ITERATION, TN_END_PASS};
  std::vector<int> expected = {TN_BEGIN_TRAINING};
  for (int i = 0; i < 2; ++i) expected.insert(expected.end(), pass.begin(), pass.end());
  expected.push_back(TN_END_TRAINING);
  EXPECT_EQ(kinds, expected);
  EXPECT_EQ(samples, 1200);
  ASSERT_EQ(costs.size(), 2U);
  EXPECT_LT(costs[1], 0.8 * costs[0]);

  TrainOptions testing_options = options;
  testing_options.reader = fashion(host, "t10k", 1000, 128, 1);
  testing_options.handler = nullptr;
  const TestResult result = tenon::test(testing_options);
  EXPECT_EQ(result.samples, 1000);
  EXPECT_GT(result.metrics.at(0).value, 0.5);
}

TEST(Training, HandlersStopTestAndChangeTheRate) {
  const Host host = make_host(1);
  const Perceptron model = perceptron(host, 16);
  TrainOptions options;
  options.outputs = model.outputs();
  options.parameters = host.parameters(options.outputs, 1);
  options.updater = host.updater("sgd", {{"learning_rate", 0.1}});
  options.reader = fashion(host, "train", 512, 128, 1);
  options.passes = 100;
  int iterations = 0;
  int64_t tested = 0;
  options.handler = [&](Event& event) {
    if (event.kind() != TN_END_ITERATION) return;
    if (++iterations == 2) event.set_learning_rate(0);
    if (iterations == 3) {
      EXPECT_EQ(event.learning_rate(), 0);
    }
    if (iterations == 4) {
      TrainOptions inner = options;
      inner.handler = nullptr;
      inner.reader = fashion(host, "t10k", 256, 64, 1);
      tested = tenon::test(inner).samples;
    }
    if (iterations == 5) event.stop();
  };
  train(options);
  EXPECT_EQ(iterations, 5);
  EXPECT_EQ(tested, 256);
}

// Samples that a handler read from the reader of its training would be missing in the training.
TEST(Training, AHandlerCannotUseItsReader) {
  const Host host = make_host(1);
  const Perceptron model = perceptron(host, 16);
  TrainOptions options;
  options.outputs = model.outputs();
  options.parameters = host.parameters(options.outputs, 1);
  options.updater = host.updater("sgd", {{"learning_rate", 0.1}});
  options.reader = fashion(host, "train", 512, 128, 1);
  options.passes = 2;
  int calls = 0, refusals = 0;
  const auto refused = [&](const auto& call) {
    ++calls;
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_MISUSE);
      EXPECT_THAT(error.what(), HasSubstr("the reader is in use by a call"));
      ++refusals;
    }
  };
  int64_t samples = 0;
  options.handler = [&](Event& event) {
    if (event.kind() == TN_END_ITERATION) samples += event.samples();
    refused([&] { (void)options.reader.next(); });
    refused([&] { options.reader.seek({}); });
    refused([&] { (void)std::move(options.reader).buffered(2); });
    TrainOptions inner = options;
    inner.handler = nullptr;
    refused([&] { (void)tenon::test(inner); });
  };
  train(options);
  EXPECT_EQ(samples, 1024);
  EXPECT_EQ(refusals, calls);
  EXPECT_EQ(options.reader.next().size(), 2U);
}

TEST(Training, TwoMachinesShareTheSet) {
  const Host host = make_host(1);
  const Perceptron model = perceptron(host, 16);
  const Parameters parameters = host.parameters(model.outputs(), 1);
  MachineOptions options;
  options.max_samples = 2;
  options.training = true;
  const Machine trained = host.machine(parameters, {model.cost}, options);
  options.training = false;
  const Machine other = host.machine(parameters, {model.prediction}, options);
  const std::vector<uint8_t> images(2 * 784, 100);
  const std::vector<uint8_t> labels = {3, 4};
  const Feed image{"image", {TN_U8, {2, 28, 28}, images.data()}};
  const auto predict = [&] {
    other.forward({image});
    const Array output = other.output(model.prediction);
    const auto* data = static_cast<const float*>(output.data);
    return std::vector<float>(data, data + output.count());
  };
  const std::vector<float> before = predict();
  EXPECT_EQ(before, predict());
  const Updater updater = host.updater("sgd", {{"learning_rate", 0.5}});
  trained.forward({image, {"label", {TN_U8, {2}, labels.data()}}});
  trained.backward();
  updater.update(trained);
  EXPECT_NE(before, predict());
}

// The bytes in a plan are the bytes that the host allocates.
TEST(Plan, BytesAreThoseOfTheAllocator) {
  struct Job {
    int64_t hidden, batch;
    bool training;
  };
  for (const Job& job : {Job{128, 128, true}, Job{32, 7, true}, Job{300, 64, false}}) {
    const Host host = make_host(2);
    const Perceptron model = perceptron(host, job.hidden);
    const uint64_t empty = host.count().bytes_now;
    const Parameters parameters = host.parameters(model.outputs(), 1);
    const uint64_t with_parameters = host.count().bytes_now;
    MachineOptions options;
    options.max_samples = job.batch;
    options.training = job.training;
    const Machine machine = host.machine(parameters, model.outputs(), options);
    const nlohmann::json plan = nlohmann::json::parse(machine.plan());
    EXPECT_EQ(plan["bytes"]["parameters"], with_parameters - empty);
    EXPECT_EQ(plan["bytes"]["machine"], host.count().bytes_now - with_parameters);
    uint64_t sum = 0;
    for (const char* part : {"control", "feeds", "gradients", "arena", "workspace"})
      sum += plan["bytes"][part].get<uint64_t>();
    EXPECT_EQ(plan["bytes"]["machine"], sum);
    EXPECT_GE(plan["bytes"]["arena"], plan["bytes"]["live_bound"]);
    EXPECT_LE(plan["bytes"]["arena"].get<double>(), 1.1 * plan["bytes"]["live_bound"].get<double>());

    std::vector<uint8_t> images(static_cast<size_t>(job.batch) * 784, 1);
    std::vector<uint8_t> labels(static_cast<size_t>(job.batch), 1);
    const uint64_t planned = host.count().bytes_now;
    machine.forward(
        {{"image", {TN_U8, {job.batch, 28, 28}, images.data()}}, {"label", {TN_U8, {job.batch}, labels.data()}}});
    if (job.training) {
      machine.backward();
      const Updater updater = host.updater("adam", {});
      updater.update(machine);
      const nlohmann::json kept = nlohmann::json::parse(updater.describe(parameters));
      EXPECT_EQ(host.count().bytes_now - planned,
                kept["state_bytes"].get<uint64_t>() + kept["workspace_bytes"].get<uint64_t>());
    } else {
      EXPECT_EQ(host.count().bytes_now, planned);
    }
  }
}

TEST(Plan, ListsLayersCallsAndGroups) {
  const Host host = make_host(1);
  const Perceptron model = perceptron(host);
  const Parameters parameters = host.parameters(model.outputs(), 1);
  MachineOptions options;
  options.max_samples = 128;
  options.training = true;
  const nlohmann::json plan = nlohmann::json::parse(host.machine(parameters, model.outputs(), options).plan());
  std::vector<std::string> layers;
  for (const auto& layer : plan["layers"]) layers.push_back(layer["name"]);
  EXPECT_THAT(layers, ElementsAre("image", "hidden/fc", "hidden/relu", "prediction", "label", "cost", "accuracy"));
  int gemms = 0;
  bool joined = false;
  for (const auto& call : plan["calls"]) {
    gemms += call["call"] == "gemm" ? 1 : 0;
    joined = joined || call["layers"] == nlohmann::json({"hidden/fc", "hidden/relu"});
  }
  EXPECT_EQ(gemms, 5) << "two forward; the first layer's input needs no gradient";
  EXPECT_TRUE(joined) << plan["calls"].dump(1);
  std::vector<std::string> saved;
  for (const auto& value : plan["saved"])
    saved.push_back(value["layer"].get<std::string>() + " " + value["value"].get<std::string>());
  EXPECT_THAT(saved, ElementsAre("hidden/fc float32 [samples, 28, 28]", "hidden/relu float32 [samples, 128]",
                                 "prediction float32 [samples, 10]"))
      << "the image as floats, the activation, and the input of the cost";
}

template <typename Work>
std::string message(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Errors, OfLayersNameTheThing) {
  const Host host = make_host(1);
  const Perceptron model = perceptron(host, 8);
  const auto layer = [&](const std::string& type, const Layers& inputs, const Attributes& attributes) {
    return message([&] { static_cast<void>(host.layer(type, inputs, attributes, "mine")); });
  };
  EXPECT_THAT(layer("relo", {model.image}, {}), HasSubstr("did you mean \"relu\""));
  EXPECT_THAT(layer("swish", {model.image}, {}), HasSubstr("did you mean \"silu\"?"));  // not "mish", its neighbour
  EXPECT_THAT(layer("fc", {model.image}, {{"sise", 3}}), HasSubstr("did you mean \"size\""));
  EXPECT_THAT(layer("fc", {model.image}, {}), testing::AllOf(HasSubstr("size"), HasSubstr("\"mine\"")));
  EXPECT_THAT(layer("fc", {model.image}, {{"size", 0}}), HasSubstr("size"));
  EXPECT_THAT(layer("fc", {model.image}, {{"size", "big"}}), HasSubstr("size"));
  EXPECT_THAT(layer("fc", {}, {{"size", 1}}), HasSubstr("mine"));
  EXPECT_THAT(layer("cross_entropy", {model.prediction, model.image}, {}),
              testing::AllOf(HasSubstr("label"), HasSubstr("one value for each row")));
  EXPECT_THAT(
      layer("fc", {model.image}, {{"size", 1}, {"act", "rely"}}),
      testing::AllOf(testing::StartsWith("layer \"mine\" (fc): attribute \"act\": layer type \"rely\" not found"),
                     HasSubstr("did you mean \"relu\"")));
  try {
    static_cast<void>(host.layer("fc", {model.image}, {{"size", 1}, {"act", "embedding"}}, "mine"));
    ADD_FAILURE() << "an activation without its required attribute";
  } catch (const Error& error) {
    EXPECT_EQ(error.component(), "layer \"mine\" (fc)");
    EXPECT_EQ(error.subject(), "act");
    EXPECT_THAT(error.what(), HasSubstr("attribute \"act\": layer \"mine/embedding\" (embedding): "));
  }
  EXPECT_THAT(layer("fc", {model.image}, {{"size", 1}, {"param.weigth.decay_multiplier", 0}}),
              HasSubstr("did you mean \"weight\""));

  const Layers same = {host.layer("fc", {model.image}, {{"size", 1}}, "same"),
                       host.layer("fc", {model.image}, {{"size", 2}}, "same")};
  EXPECT_THAT(message([&] { static_cast<void>(host.parameters({host.layer("concat", same, {}, "both")}, 1)); }),
              testing::MatchesRegex("two different layers are named \"same\": fc of image, .*\\[samples, 1\\]; "
                                    "and fc of image, .*\\[samples, 2\\]"));
}

TEST(Errors, OfFeedsNameTheThing) {
  const Host host = make_host(1);
  const Perceptron model = perceptron(host, 8);
  const Parameters parameters = host.parameters(model.outputs(), 1);
  MachineOptions options;
  options.max_samples = 4;
  const Machine machine = host.machine(parameters, model.outputs(), options);
  const std::vector<uint8_t> images(4 * 784, 1);
  const std::vector<uint8_t> labels = {1, 2, 10, 3};
  const Feed image{"image", {TN_U8, {4, 28, 28}, images.data()}};
  EXPECT_THAT(message([&] { machine.forward({image}); }), HasSubstr("\"label\" is not fed"));
  EXPECT_THAT(message([&] {
                machine.forward({image, {"label", {TN_U8, {4}, labels.data()}}});
              }),
              testing::AllOf(HasSubstr("\"label\""), HasSubstr("sample 2"), HasSubstr("10"), HasSubstr("0 to 9")));
  EXPECT_THAT(message([&] { machine.forward({image, {"label", {TN_U8, {3}, labels.data()}}}); }), HasSubstr("samples"));
  EXPECT_THAT(
      message([&] {
        machine.forward({{"image", {TN_U8, {4, 28, 27}, images.data()}}, {"label", {TN_U8, {4}, labels.data()}}});
      }),
      testing::AllOf(HasSubstr("[samples, 28, 28]"), HasSubstr("[4, 28, 27]")));
  EXPECT_EQ(message([&] {
              machine.forward({image, {"label", {TN_U8, {4}, labels.data()}}, image});
            }),
            "data layer \"image\" is fed twice");
  EXPECT_THAT(message([&] { machine.backward(); }), HasSubstr("training"));
  EXPECT_THAT(message([&] { static_cast<void>(machine.output(model.prediction)); }), HasSubstr("keep_all"));
}

TEST(Errors, OfDataLayersNameTheThing) {
  const Host host = make_host(1);
  const auto data = [&](const auto& change) {
    DataOptions source;
    source.name = "x", source.dtype = TN_F32;
    change(source);
    return message([&] { static_cast<void>(host.data(source)); });
  };
  EXPECT_EQ(data([](DataOptions& x) { x.scale = 0.5; }),
            "data layer \"x\": scale and offset are for integers; it holds float32");
  EXPECT_EQ(data([](DataOptions& x) { x.index_limit = 3; }),
            "data layer \"x\": index_limit is for integers; it holds float32");
  EXPECT_EQ(data([](DataOptions& x) { x.dtype = TN_I32, x.index_limit = -2; }),
            "data layer \"x\": index_limit is -2; expected at least 1, or -1 if unknown");
  EXPECT_EQ(data([](DataOptions& x) { x.sequence = "text"; }),
            "data layer \"x\": sequence is \"text\"; expected none where storage is not TN_RAGGED");
}

TEST(Errors, OfReadersNameTheThing) {
  const Host host = make_host(1);
  const Perceptron model = perceptron(host, 8);
  const Parameters parameters = host.parameters(model.outputs(), 1);
  TrainOptions twice;
  twice.outputs = {model.cost};
  twice.parameters = parameters;
  twice.reader = fashion(host, "t10k", 8, 4, 1);
  twice.feeding = {{"label", "image"}};
  EXPECT_EQ(message([&] { static_cast<void>(tenon::test(twice)); }),
            "data layer \"image\": the slots \"image\" and \"label\" both feed it");
  twice.feeding = {{"image", "picture"}};
  EXPECT_EQ(message([&] { static_cast<void>(tenon::test(twice)); }),
            "data layer \"image\": no slot of the reader feeds it; the slot of that name feeds \"picture\"");

  TrainOptions samples;
  samples.outputs = {model.cost};
  samples.parameters = parameters;
  samples.reader = host.reader({{"image", TN_U8, {28, 28}}, {"label", TN_U8, {}, 10}}, [](Sample&) { return false; });
  EXPECT_EQ(message([&] { static_cast<void>(tenon::test(samples)); }),
            "the reader yields samples; wrap it with batch or bucket first");
}

TEST(Errors, StatusesHaveTexts) {
  EXPECT_STREQ(tn_status_text(TN_INTERNAL + 1), "unknown status");
  EXPECT_STREQ(tn_status_text(-1), "unknown status");
}

TEST(Errors, LayersBelongToTheirHost) {
  const Host host = make_host(1), other = make_host(1);
  const Perceptron model = perceptron(host, 8);
  EXPECT_EQ(tn_layer_release(other.get(), model.cost.handle(), nullptr), TN_MISUSE);
}

// A test after a training that stopped within a pass begins a new pass: it reads all samples.
TEST(Training, EveryPassBeginsWithTheFirstSample) {
  const Host host = make_host(1);
  const Perceptron model = perceptron(host, 8);
  TrainOptions options;
  options.outputs = model.outputs();
  options.parameters = host.parameters(options.outputs, 1);
  options.updater = host.updater("sgd", {{"learning_rate", 0.1}});
  options.reader = fashion(host, "t10k", 100, 16, 1);
  int64_t batches = 0;
  options.handler = [&](const Event& event) {
    if (event.kind() == TN_END_ITERATION && ++batches == 2) event.stop();
  };
  train(options);
  options.handler = nullptr;
  EXPECT_EQ(tenon::test(options).samples, 100);
}

TEST(Errors, ZeroedHandlesAndChains) {
  const Host host = make_host(1);
  const Perceptron model = perceptron(host, 8);
  Layers outputs = model.outputs();
  const Parameters parameters = host.parameters(outputs, 1);
  outputs.emplace_back();
  try {
    (void)host.machine(parameters, outputs, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_MISUSE);
    EXPECT_THAT(error.what(), HasSubstr("is a zeroed handle"));
  }
  // Releasing a long chain of layers must not recurse.
  Layer last = model.prediction;
  for (int i = 0; i < 100000; ++i) last = host.layer("relu", {last}, {});
}

TEST(Models, AreReadBack) {
  const tenon_tests::TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  const Host host = make_host(1);
  const Perceptron model = perceptron(host, 16);
  const Parameters parameters = host.parameters(model.outputs(), 9);
  parameters.save({model.prediction}, path);
  const Host other = make_host(1);
  const Model loaded = other.load(path);
  ASSERT_EQ(loaded.outputs.size(), 1U);
  EXPECT_EQ(nlohmann::json::parse(loaded.parameters.describe()), nlohmann::json::parse(parameters.describe()));
  const Array a = parameters.get("hidden.weight");
  const Array b = loaded.parameters.get("hidden.weight");
  EXPECT_EQ(std::memcmp(a.data, b.data, static_cast<size_t>(a.count()) * 4), 0);
  const std::string again = folder.file("again.safetensors");
  loaded.parameters.save(loaded.outputs, again);
  EXPECT_EQ(bytes_of_file(path), bytes_of_file(again));
}

}  // namespace
}  // namespace tenon_tests
