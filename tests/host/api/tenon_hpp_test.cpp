// The C++ wrapper: lifetimes, errors, exceptions that pass through C. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/support/fashion.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

template <typename Action>
tn_status code_of(Action action) {
  try {
    action();
  } catch (const tenon::Error& error) {
    EXPECT_STRNE(error.what(), "");
    return error.code();
  }
  return TN_OK;
}

class WrapperTest : public testing::Test {
 protected:
  [[nodiscard]] TrainOptions training() const {
    TrainOptions options;
    options.outputs = model_.outputs();
    options.parameters = host_.parameters(options.outputs, 1);
    options.updater = host_.updater("sgd", {{"learning_rate", 0.1}});
    options.reader = fashion(host_, "t10k", 96, 32, 1);
    return options;
  }

  Host host_ = make_host(1);
  Perceptron model_ = perceptron(host_, 4);
};

TEST_F(WrapperTest, ErrorsCarryCodeAndMessage) {
  try {
    (void)host_.layer("cf", {});
    FAIL();
  } catch (const tenon::Error& error) {
    EXPECT_EQ(error.code(), TN_NOT_FOUND);
    EXPECT_NE(std::string(error.what()).find("\"cf\""), std::string::npos) << error.what();
  }
  EXPECT_EQ(code_of([&] { (void)host_.layer("fc", {model_.image}, {{"size", 1.5}}); }), TN_INVALID);
  EXPECT_EQ(code_of([&] { (void)host_.load("/nowhere"); }), TN_NOT_FOUND);
}

TEST_F(WrapperTest, ErrorsCarryComponentAndSubject) {
  const auto failure = [](auto action, const std::string& component, const std::string& subject) {
    try {
      action();
      ADD_FAILURE() << component << " " << subject;
    } catch (const tenon::Error& error) {
      const tenon::Error copy = error;
      EXPECT_EQ(copy.component(), component) << error.what();
      EXPECT_EQ(copy.subject(), subject) << error.what();
    }
  };
  failure([&] { (void)host_.layer("cf", {}); }, "layer type \"cf\"", "");
  failure([&] { (void)host_.layer("fc", {model_.image}, {{"size", 1.5}}, "a"); }, "layer \"a\" (fc)", "size");
  failure(
      [&] {
        (void)host_.layer("fc", {model_.image}, {{"size", 1}, {"drop_rate", 2}}, "a");
      },
      "layer \"a\" (fc)", "drop_rate");
  failure([&] { (void)host_.layer("cross_entropy", {model_.image}, {}, "a"); }, "layer \"a\" (cross_entropy)", "label");
  failure([&] { (void)host_.updater("sgd", {{"rate", 1}}); }, "updater \"sgd\"", "rate");
  failure([&] { (void)host_.reader("idx", {{"files", "none"}, {"classes", "x"}}); }, "reader \"idx\"", "classes");
  failure([&] { (void)host_.load("/nowhere"); }, "", "/nowhere");
  const Parameters parameters = host_.parameters(model_.outputs(), 1);
  failure([&] { (void)parameters.get("nothing"); }, "parameters", "nothing");
  failure([&] { (void)host_.layer("fc", {model_.image}, {{"act", std::string("a\0b", 3)}}); }, "", "act");
}

// The tn_error of a caller from before `component` and `subject` has 4096 bytes; the host writes no more than these.
TEST_F(WrapperTest, ErrorsFillWhatTheirSizeHolds) {
  constexpr uint32_t kBefore = offsetof(tn_error, component);
  tn_layer_options options = {};
  options.size = sizeof options;
  options.type = "cf";
  tn_layer layer = {};
  for (const uint32_t size : {kBefore, uint32_t{offsetof(tn_error, subject)}, uint32_t{sizeof(tn_error)}}) {
    tn_error error;
    std::memset(&error, 'x', sizeof error);
    error.size = size;
    EXPECT_EQ(tn_layer_create(host_.get(), &options, &layer, &error), TN_NOT_FOUND);
    EXPECT_EQ(error.code, TN_NOT_FOUND);
    EXPECT_EQ(std::string(error.message).find("layer type \"cf\" not found"), 0U);
    if (size > kBefore)
      EXPECT_STREQ(error.component, "layer type \"cf\"");
    else
      EXPECT_EQ(error.component[0], 'x');
    EXPECT_EQ(error.subject[0], size == sizeof error ? '\0' : 'x');
  }
  tn_error small;
  std::memset(&small, 'x', sizeof small);
  small.size = kBefore - 1;
  EXPECT_EQ(tn_layer_create(host_.get(), &options, &layer, &small), TN_NOT_FOUND);
  EXPECT_EQ(small.message[0], 'x');
  // A component that is too long is cut and ends with a NUL.
  const std::string longest(3000, 'n');
  options.type = longest.c_str();
  tn_error error = {};
  error.size = sizeof error;
  EXPECT_EQ(tn_layer_create(host_.get(), &options, &layer, &error), TN_NOT_FOUND);
  EXPECT_EQ(std::string(error.component), ("layer type \"" + longest).substr(0, sizeof error.component - 1));
}

TEST_F(WrapperTest, LayersAreFoundByName) {
  const std::optional<Layer> hidden = model_.cost.find("hidden");
  ASSERT_TRUE(hidden.has_value());
  EXPECT_EQ(nlohmann::json::parse(hidden->describe()).at("attributes"),
            nlohmann::json({{"act", "relu"}, {"bias", true}, {"size", 4}}))
      << "with the defaults of the type";
  EXPECT_TRUE(model_.cost.find("cost").has_value());
  EXPECT_FALSE(model_.cost.find("accuracy").has_value()) << "the cost does not depend on it";
  EXPECT_FALSE(hidden->find("hidden/relu").has_value()) << "a layer inside";
}

TEST_F(WrapperTest, ALayerMayBeLikeAnother) {
  const Layer first = host_.layer("softmax", {model_.prediction}, {{"size", 3}, {"act", "relu"}}, "first");
  const auto attributes = [](const Layer& layer) { return nlohmann::json::parse(layer.describe()).at("attributes"); };
  const Layer second = host_.layer("softmax", {model_.prediction}, {}, "second", &first);
  EXPECT_EQ(attributes(second), nlohmann::json({{"size", 3}})) << "without attributes of the host";
  EXPECT_EQ(attributes(host_.layer("softmax", {model_.prediction}, {{"size", 5}}, "third", &first)).at("size"), 5)
      << "what is given comes first";
  EXPECT_EQ(attributes(host_.layer("softmax", {model_.prediction}, {}, "", &first)).at("size"), 3);
  EXPECT_EQ(code_of([&] { (void)host_.layer("fc", {model_.prediction}, {}, "fourth", &first); }), TN_INVALID);
}

TEST_F(WrapperTest, TypesAreDescribed) {
  const auto describe = [&](const char* kind, const char* type) {
    return nlohmann::json::parse(host_.describe_type(kind, type));
  };
  const nlohmann::json fc = describe("layer", "fc");
  EXPECT_EQ(fc.at("type"), "fc");
  EXPECT_EQ(fc.at("role"), "layer");
  EXPECT_EQ(fc.at("other_names"), (std::vector<std::string>{"dense", "linear"}));
  EXPECT_EQ(fc.at("host_attributes"), (std::vector<std::string>{"parameter_name", "act", "drop_rate", "coefficient"}));
  EXPECT_EQ(describe("layer", "cross_entropy").at("role"), "cost");
  EXPECT_EQ(describe("layer", "cross_entropy").at("other_names"), nlohmann::json::array());
  EXPECT_EQ(describe("layer", "accuracy").at("role"), "metric");
  EXPECT_TRUE(describe("updater", "sgd").at("host_attributes").is_array());
  EXPECT_FALSE(describe("reader", "idx").contains("host_attributes"));
  EXPECT_EQ(code_of([&] { (void)host_.describe_type("layer", "cf"); }), TN_NOT_FOUND);
  EXPECT_EQ(code_of([&] { (void)host_.describe_type("device", "cpu"); }), TN_INVALID);
  EXPECT_EQ(tn_type_describe(host_.get(), "layer", "fc", nullptr, nullptr, nullptr), TN_MISUSE);
}

// The wrapper refuses every text with a NUL, since C would cut it there.
TEST_F(WrapperTest, NoTextHasANul) {
  const std::string nul("a\0b", 3);
  const auto refused = [](auto action, const std::string& what) {
    try {
      action();
      ADD_FAILURE() << what;
    } catch (const tenon::Error& error) {
      EXPECT_EQ(error.code(), TN_INVALID) << what;
      EXPECT_EQ(error.what(), what + ": a text must not have a NUL in it; this one has one behind \"a\"");
    }
  };
  const std::vector<std::string> list{"fine", nul};
  refused([&] { (void)host_.layer(nul, {}); }, "type");
  refused([&] { (void)host_.layer("fc", {model_.image}, {{"size", 2}}, nul); }, "name");
  refused([&] { (void)host_.layer("fc", {model_.image}, {{"act", nul}}); }, "attribute \"act\"");
  refused([&] { (void)host_.layer("fc", {model_.image}, {{nul, 1}}); }, "the name of an attribute");
  refused([&] { (void)host_.reader("idx", {{"files", list}}); }, "attribute \"files\"");
  refused([&] { (void)host_.reader("idx", {}, nul); }, "directory");
  refused([&] { (void)host_.reader(nul, {}); }, "type");
  refused([&] { (void)host_.updater(nul); }, "type");
  refused([&] { (void)host_.updater("sgd", {{"schedule.type", nul}}); }, "attribute \"schedule.type\"");
  DataOptions data;
  data.name = nul;
  refused([&] { (void)host_.data(data); }, "options.name");
  data.name = "fine";
  data.sequence = nul;
  refused([&] { (void)host_.data(data); }, "options.sequence");
  refused([&] { (void)host_.load(nul); }, "path");
  refused([&] { (void)host_.describe_model(nul); }, "path");
  TrainOptions options = training();
  refused([&] { options.parameters.save(options.outputs, nul); }, "path");
  refused([&] { (void)options.parameters.get(nul); }, "name");
  refused([&] { options.parameters.set(nul, {}); }, "name");
  MachineOptions machine;
  const Machine made = host_.machine(options.parameters, options.outputs, machine);
  refused([&] { made.forward({{nul, {}}}); }, "the name of a feed");
  refused([&] { (void)made.gradient(nul); }, "parameter");
  refused([&] { (void)made.sparse_gradient(nul); }, "parameter");
  machine.device = nul;
  refused([&] { (void)host_.machine(options.parameters, options.outputs, machine); }, "options.device");
  machine.device.clear();
  machine.immutable_parameters = list;
  refused([&] { (void)host_.machine(options.parameters, options.outputs, machine); }, "options.immutable_parameters");
  options.immutable_parameters = list;
  refused([&] { train(options); }, "options.immutable_parameters");
  options.immutable_parameters.clear();
  options.feeding = {{"image", nul}};
  refused([&] { (void)tenon::test(options); }, "options.feeding");
  const auto samples = [this] { return fashion(host_, "t10k", 4, 2, 1); };
  refused([&] { (void)samples().choose({{nul, "x"}}); }, "a slot to choose");
  refused([&] { (void)samples().choose({{"image", nul}}); }, "the new name of a slot");
  refused([&] { (void)samples().bucket({nul, 2}); }, "options.slot");
  refused([&] { (void)host_.reader(Schema{{{nul}}}, [](Sample&) { return false; }); }, "the name of a slot");
  HostOptions host;
  host.plugin_paths = {nul};
  refused([&] { (void)Host(host); }, "options.plugin_paths");
}

TEST_F(WrapperTest, EmptyObjectsAreMisuse) {
  EXPECT_EQ(code_of([] { (void)Layer().describe(); }), TN_MISUSE);
  EXPECT_EQ(code_of([] { train({}); }), TN_MISUSE);
  EXPECT_EQ(code_of([] { (void)Reader().batch(1); }), TN_MISUSE);
  EXPECT_FALSE(Machine());
}

TEST_F(WrapperTest, HandlerExceptionsComeOutOfTrain) {
  TrainOptions options = training();
  struct Stop {};
  int calls = 0;
  options.handler = [&](tenon::Event& event) {
    ++calls;
    if (event.kind() == TN_END_ITERATION) throw Stop();
  };
  EXPECT_THROW(train(options), Stop);
  EXPECT_EQ(calls, 4) << "start of training, pass and iteration, end of iteration; none after these";
  options.handler = nullptr;
  EXPECT_GT(tenon::test(options).samples, 0) << "the host works after the exception";
}

TEST_F(WrapperTest, HandlersChangeTheRateAndStop) {
  TrainOptions options = training();
  options.passes = 5;
  double seen = 0;
  int iterations = 0;
  options.handler = [&](tenon::Event& event) {
    if (event.kind() != TN_END_ITERATION) return;
    seen = event.learning_rate();
    EXPECT_EQ(event.metrics().at(0).name, "accuracy");
    event.set_learning_rate(0.5);
    if (++iterations == 2) event.stop();
  };
  train(options);
  EXPECT_EQ(iterations, 2);
  EXPECT_EQ(seen, 0.5);
}

TEST_F(WrapperTest, SinkEndsInferOrThrows) {
  TrainOptions options = training();
  options.outputs = {model_.prediction};
  int batches = 0;
  infer(options, [&](const std::vector<Array>& outputs) {
    EXPECT_EQ(outputs.at(0).shape, (std::vector<int64_t>{32, 10}));
    EXPECT_EQ(outputs.at(0).count(), 320);
    return ++batches < 2;
  });
  EXPECT_EQ(batches, 2);
  struct Stop {};
  EXPECT_THROW(infer(options, [](const std::vector<Array>&) -> bool { throw Stop(); }), Stop);
}

TEST_F(WrapperTest, ReadersSurviveAWrapperThatFails) {
  Reader reader =
      host_.reader("idx", {{"files", std::vector<std::string>{kFashion + "t10k-labels-idx1-ubyte.gz"}}}).first_n(5);
  EXPECT_EQ(code_of([&] { (void)std::move(reader).batch(0); }), TN_INVALID);
  Reader batches = std::move(reader).batch(3);
  EXPECT_FALSE(reader);  // NOLINT(bugprone-use-after-move): a moved reader is empty
  EXPECT_EQ(batches.next().at(0).shape, std::vector<int64_t>{3});
  EXPECT_EQ(batches.next().at(0).shape, std::vector<int64_t>{2});
  EXPECT_TRUE(batches.next().empty());
  EXPECT_EQ(batches.next().at(0).shape, std::vector<int64_t>{3}) << "the next pass";
}

TEST_F(WrapperTest, ObjectsKeepTheirHost) {
  std::optional<Host> host(make_host(1));
  const Perceptron model = perceptron(*host, 4);
  Parameters parameters = host->parameters(model.outputs(), 1);
  host.reset();
  const Parameters copy = parameters;
  parameters = Parameters();
  EXPECT_EQ(copy.get("hidden.bias").shape, std::vector<int64_t>{4});
}

TEST_F(WrapperTest, ForeignAndStaleHandlesAreMisuse) {
  const Host other = make_host(1);
  EXPECT_EQ(code_of([&] { (void)other.parameters(model_.outputs(), 1); }), TN_MISUSE);
}

TEST_F(WrapperTest, ParametersGoInAndOut) {
  const Parameters parameters = host_.parameters(model_.outputs(), 1);
  const std::vector<float> values{1, 2, 3, 4};
  parameters.set("hidden.bias", {TN_F32, {4}, values.data()});
  const Array read = parameters.get("hidden.bias");
  ASSERT_EQ(read.count(), 4);
  EXPECT_EQ(static_cast<const float*>(read.data)[2], 3);
  EXPECT_EQ(code_of([&] { parameters.set("hidden.bias", {TN_F32, {2, 2}, values.data()}); }), TN_INVALID);
  EXPECT_EQ(code_of([&] {
              parameters.set("hidden.bias", {TN_F32, std::vector<int64_t>(9, 1), values.data()});
            }),
            TN_INVALID);
}

TEST_F(WrapperTest, ModelsWithManyOutputs) {
  Layers outputs;
  for (int i = 0; i < 20; ++i)
    outputs.push_back(host_.layer("relu", {model_.prediction}, {}, "output" + std::to_string(i)));
  const tenon_tests::TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  const Parameters parameters = host_.parameters(outputs, 7);
  parameters.save(outputs, path);
  const Model model = host_.load(path);
  ASSERT_EQ(model.outputs.size(), outputs.size());
  EXPECT_NE(model.outputs[19].describe().find("output19"), std::string::npos);
  const Array before = parameters.get("hidden.weight"), after = model.parameters.get("hidden.weight");
  ASSERT_EQ(before.shape, after.shape);
  EXPECT_EQ(static_cast<const float*>(before.data)[100], static_cast<const float*>(after.data)[100]);
}

TEST_F(WrapperTest, LogMayThrow) {
  HostOptions options;
  options.plugin_paths = {tenon_tests::plugin_folder()};
  options.log = [](int, const char*) { throw std::runtime_error("a log that fails"); };
  const Host host(options);
  EXPECT_NO_THROW((void)perceptron(host, 4));
}

}  // namespace
}  // namespace tenon_tests
