// Models from the bytes of a model file. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/host/training/line_model.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

using testing::AllOf;
using testing::HasSubstr;

class ModelMemory : public LineModel {
 protected:
  [[nodiscard]] std::string read(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::string bytes_of(const Parameters& of, const Layers& outputs) const {
    of.save(outputs, folder_.file("saved.safetensors"));
    return read(folder_.file("saved.safetensors"));
  }
  std::string refused(const std::string& bytes, tn_status code = TN_BAD_DATA) const {
    const std::string message = refusal([&] { (void)host_.load_memory(bytes.data(), bytes.size()); }, code);
    EXPECT_THAT(message, HasSubstr("the model in memory"));
    return message;
  }

  TemporaryFolder folder_;
};

TEST_F(ModelMemory, IsThatOfTheFile) {
  TrainOptions options = training();
  train(options);
  std::string bytes = bytes_of(options.parameters, {line_, cost_});
  const Model model = host_.load_memory(bytes.data(), bytes.size());
  bytes.assign(bytes.size(), 'x');  // not kept
  bytes.clear();
  bytes.shrink_to_fit();
  EXPECT_EQ(values(model.parameters), values(options));
  ASSERT_EQ(model.outputs.size(), 2U);
  EXPECT_EQ(bytes_of(model.parameters, model.outputs), read(folder_.file("saved.safetensors")));
  MachineOptions one;
  one.max_samples = 1;
  Machine machine = host_.machine(model.parameters, {model.outputs[0]}, one);
  const Floats x = {2};
  machine.forward({{"x", {TN_F32, {1, 1}, x.data()}}});
  EXPECT_EQ(numbers(machine.output(model.outputs[0]))[0], 2 * values(options)[0] + values(options)[1]);
}

TEST_F(ModelMemory, HasNoParts) {
  TrainOptions options = training();
  options.parameters.save({line_, cost_}, folder_.file("whole.safetensors"));
  host_.split_model(folder_.file("whole.safetensors"), folder_.file("split.safetensors"), {"line.weight"}, 2);
  EXPECT_THAT(refused(read(folder_.file("split.safetensors")), TN_UNSUPPORTED),
              AllOf(HasSubstr("split.parts/000-of-002.safetensors"), HasSubstr("a model in memory is one file")));
}

TEST_F(ModelMemory, OfManyOutputsAndOfACheckpoint) {
  Layers outputs;
  for (int i = 0; i < 40; ++i) outputs.push_back(host_.layer("fc", {x_}, {{"size", 1}}, "out" + std::to_string(i)));
  const std::string many = bytes_of(host_.parameters(outputs, 1), outputs);
  EXPECT_EQ(host_.load_memory(many.data(), many.size()).outputs.size(), 40U);
  TrainOptions options = training();
  options.checkpoint.emplace();
  options.checkpoint->folder = folder_.file("saves");
  std::string written;
  options.handler = [&](const Event& event) {
    if (event.kind() == TN_CHECKPOINT) written = event.checkpoint();
  };
  train(options);
  const std::string checkpoint = read(written);
  EXPECT_EQ(values(host_.load_memory(checkpoint.data(), checkpoint.size()).parameters), values(options));
}

// The bytes need not begin at any multiple.
TEST_F(ModelMemory, AtAnyAddress) {
  const std::string bytes = bytes_of(parameters(), {line_});
  for (size_t at = 0; at < 9; ++at) {
    const std::string room = std::string(at, 'x') + bytes;
    EXPECT_EQ(values(host_.load_memory(room.data() + at, bytes.size()).parameters), (Floats{1, 0}));
  }
}

TEST_F(ModelMemory, EveryDamageIsRefused) {
  const std::string bytes = bytes_of(parameters(), {line_});
  for (size_t size = 0; size < bytes.size(); ++size) refused(bytes.substr(0, size));
  refused(bytes + "x");
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    const std::string message = refusal([&] { (void)host_.load_memory(damaged.data(), damaged.size()); }, TN_BAD_DATA);
    EXPECT_NE(message, "") << at;
  }
  EXPECT_THAT(refused("{\"version\": 1, \"layers\": []}"), HasSubstr("not a model file"));
  const std::string tensors = std::string("\x02\0\0\0\0\0\0\0{}", 10);
  EXPECT_THAT(refused(tensors), HasSubstr("it holds no topology, only tensors"));
}

TEST_F(ModelMemory, WrongCalls) {
  EXPECT_THAT(refusal([&] { (void)host_.load_memory(nullptr, 3); }, TN_MISUSE), HasSubstr("data is null"));
  EXPECT_THAT(refused(""), HasSubstr("0 bytes"));
  const std::string bytes = bytes_of(parameters(), {line_, cost_});
  tn_parameters set = {7, 7};
  tn_layer outputs[2] = {};
  uint32_t count = 1;
  tn_error error = {};
  error.size = sizeof error;
  EXPECT_EQ(tn_model_load_memory(host_.get(), bytes.data(), bytes.size(), outputs, &count, &set, &error),
            TN_NEED_CAPACITY);
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(set.index, 7U) << "nothing is written";
  ASSERT_EQ(tn_model_load_memory(host_.get(), bytes.data(), bytes.size(), outputs, &count, &set, &error), TN_OK);
  tn_parameters_release(host_.get(), set, nullptr);
  for (const tn_layer output : outputs) tn_layer_release(host_.get(), output, nullptr);
}

// A model whose layers are of a plugin that this host lacks.
TEST_F(ModelMemory, UnknownTypesAreNamed) {
  const std::string bytes = bytes_of(parameters(), {cost_});  // of test_layers
  const Host other({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  EXPECT_THAT(refusal([&] { (void)other.load_memory(bytes.data(), bytes.size()); }, TN_NOT_FOUND),
              AllOf(HasSubstr("the model in memory"), HasSubstr("test_cost")));
}

}  // namespace
}  // namespace tenon_tests
