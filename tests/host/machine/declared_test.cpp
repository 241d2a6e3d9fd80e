// Parameters without values: plans made with them, and model files that declare tensors they do not hold.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/fashion.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::HasSubstr;

template <typename Action>
std::string refusal(Action action, tn_status code = TN_MISUSE) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "nothing was refused";
}

MachineOptions training(int64_t samples) {
  MachineOptions options;
  options.max_samples = samples, options.training = true;
  return options;
}

// A plan with declared parameters equals one with values, memory included, and allocates none of that memory.
TEST(Declared, IsPlannedLikeWhatHasValues) {
  const Host host = make_host(2);
  Perceptron model = perceptron(host);
  DataOptions words;
  words.name = "words", words.dtype = TN_I64, words.storage = TN_RAGGED;
  const Layer vectors = host.layer("embedding", {host.data(words)}, {{"vocabulary", 1000}, {"size", 8}}, "vectors");
  const Layer pooled = host.layer("sequence_pool", {vectors}, {{"kind", "sum"}}, "pooled");
  const Layer of_words =
      host.layer("cross_entropy", {host.layer("fc", {pooled}, {{"size", 10}}, "scores"), model.label},
                 {{"from_logits", true}}, "of_words");  // its table has a row-sparse gradient
  const Layers outputs = {model.cost, model.accuracy, of_words};
  const uint64_t before = host.count().bytes_now, peak = host.count().bytes_peak;
  const Parameters declared = host.declare(outputs);
  const Updater updater = host.updater("adam", {});
  const std::string plan = host.machine(declared, outputs, training(64)).plan();
  const std::string states = updater.describe(declared);
  EXPECT_EQ(host.count().bytes_now, before);
  EXPECT_EQ(host.count().bytes_peak, peak) << "not even temporarily";

  const Parameters parameters = host.parameters(outputs, 1);
  EXPECT_EQ(declared.describe(), parameters.describe());
  EXPECT_EQ(plan, host.machine(parameters, outputs, training(64)).plan());
  EXPECT_EQ(states, updater.describe(parameters));
  EXPECT_GT(nlohmann::json::parse(plan)["bytes"]["row_sparse"], 0);
}

TEST(Declared, MayBeLargerThanAnyMemory) {
  const Host host = make_host(1);
  const Perceptron model = perceptron(host, int64_t{1} << 30);
  const uint64_t peak = host.count().bytes_peak;
  const nlohmann::json plan =
      nlohmann::json::parse(host.machine(host.declare(model.outputs()), model.outputs(), training(1)).plan());
  EXPECT_EQ(host.count().bytes_peak, peak);
  const uint64_t weights = (uint64_t{784} + 1 + 10) << 32;  // weights of both layers, and the bias of the first
  EXPECT_EQ(plan["bytes"]["parameters"], weights + 64);
  EXPECT_EQ(plan["bytes"]["gradients"], weights + 64);
}

TEST(Declared, IsGoodForPlansAlone) {
  const Host host = make_host(1);
  const Perceptron model = perceptron(host, 4);
  const Parameters declared = host.declare(model.outputs());
  const std::vector<float> bias(4, 1);
  const std::string only = "only declared";
  EXPECT_THAT(refusal([&] { (void)declared.get("hidden.bias"); }), HasSubstr(only));
  EXPECT_THAT(refusal([&] { declared.set("hidden.bias", {TN_F32, {4}, bias.data()}); }), HasSubstr(only));
  const tenon_tests::TemporaryFolder folder;
  EXPECT_THAT(refusal([&] { declared.save({model.prediction}, folder.file("model.safetensors")); }), HasSubstr(only));
  EXPECT_FALSE(std::filesystem::exists(folder.file("model.safetensors")));

  const Machine machine = host.machine(declared, model.outputs(), training(2));
  const std::vector<uint8_t> images(2 * 784, 1), labels(2, 1);
  EXPECT_THAT(
      refusal([&] {
        machine.forward({{"image", {TN_U8, {2, 28, 28}, images.data()}}, {"label", {TN_U8, {2}, labels.data()}}});
      }),
      HasSubstr(only));
  EXPECT_THAT(refusal([&] { machine.backward(); }), HasSubstr("forward"));
  EXPECT_THAT(refusal([&] { (void)machine.output(model.cost); }), HasSubstr("forward"));
  EXPECT_THAT(refusal([&] { (void)machine.gradient("hidden.bias"); }), HasSubstr("backward"));
  EXPECT_EQ(machine.cost(), 0);
  EXPECT_NO_THROW((void)machine.metrics());
  EXPECT_NO_THROW(host.updater("sgd", {{"learning_rate", 0.1}}).update(machine)) << "there is nothing to update";
  TrainOptions options;
  options.outputs = model.outputs();
  options.parameters = declared;
  options.updater = host.updater("sgd", {{"learning_rate", 0.1}});
  options.reader = fashion(host, "t10k", 8, 4, 1);
  EXPECT_THAT(refusal([&] { train(options); }), HasSubstr(only));
  EXPECT_THAT(refusal([&] { (void)tenon::test(options); }), HasSubstr(only));
  EXPECT_THROW((void)host.declare({}), Error);
}

// Returns a model file of a few hundred bytes and without tensors, whose topology has a layer of the given size.
std::string file_without_tensors(int64_t size) {
  const Host host = make_host(1);
  const tenon_tests::TemporaryFolder folder;
  const std::string path = folder.file("small.safetensors");
  DataOptions x;
  x.name = "x", x.shape = {3};
  const Layers outputs = {host.layer("fc", {host.data(x)}, {{"size", 4}}, "score")};
  host.parameters(outputs, 1).save(outputs, path);
  nlohmann::json topology = nlohmann::json::parse(host.describe_model(path)).at("topology");
  for (nlohmann::json& layer : topology.at("layers"))
    if (layer.at("name") == "score") layer["attributes"]["size"] = size;
  const std::string header = nlohmann::json{{"__metadata__", {{"tenon.topology", topology.dump()}}}}.dump();
  std::string length(8, '\0');
  for (size_t i = 0; i < 2; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  return length + header;
}

TEST(Declared, ASmallFileDoesNotCostWhatItClaims) {
  const tenon_tests::TemporaryFolder folder;
  for (const int64_t size : {int64_t{4}, int64_t{100'000'000}, int64_t{1} << 40}) {
    const std::string bytes = file_without_tensors(size), path = folder.file("claims.safetensors");
    std::ofstream(path, std::ios::binary) << bytes;
    const Host host = make_host(1);
    const uint64_t before = host.count().bytes_now;
    const std::string why = refusal([&] { (void)host.load(path); }, TN_INVALID);
    EXPECT_THAT(why, HasSubstr("tensor \"score.weight\" is missing; tensor \"score.bias\" is missing")) << size;
    EXPECT_EQ(host.count().bytes_now, before);
    EXPECT_LE(host.count().bytes_peak, before + 1024) << size;
  }
}

}  // namespace
}  // namespace tenon_tests
