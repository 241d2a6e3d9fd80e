// SPDX-License-Identifier: Apache-2.0
#include "tests/support/faults_job.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

namespace fs = std::filesystem;

std::string bytes_of(const Array& array) {
  const size_t element = array.dtype == TN_F32 ? 4 : 8;
  return {static_cast<const char*>(array.data), static_cast<size_t>(array.count()) * element};
}

void write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::string idx_header(std::initializer_list<uint32_t> shape) {
  std::string result{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const uint32_t extent : shape)
    for (int shift = 24; shift >= 0; shift -= 8) result += static_cast<char>(extent >> shift & 0xff);
  return result;
}

// Links only the plugins that a job needs into its folder, so that loading is fast.
void offer_plugins(const fs::path& folder, std::initializer_list<const char*> plugins) {
  for (const std::string plugin : plugins) {
    const fs::path link = folder / "plugins" / (plugin + ".so");
    fs::create_directories(link.parent_path());
    fs::create_symlink(fs::path(tenon_tests::plugin_folder()) / (plugin + ".so"), link);
  }
  fs::create_directories(folder / "saved");
}

class ImageJob final : public FaultsJob {
 public:
  using FaultsJob::FaultsJob;

 private:
  [[nodiscard]] Reader images(const Host& host, const std::string& name) const {
    return host.reader("idx",
                       {{"files", std::vector<std::string>{name + "-images", name + "-labels"}},
                        {"names", std::vector<std::string>{"image", "label"}}},
                       folder());
  }
  [[nodiscard]] Network build(const Host& host) const override {
    DataOptions pixels;
    pixels.name = "image";
    pixels.dtype = TN_U8;
    pixels.shape = {4, 4};
    pixels.scale = 1.0 / 255;
    const Layer image = host.data(pixels);
    DataOptions truth;
    truth.name = "label";
    truth.dtype = TN_U8;
    const Layer label = host.data(truth);
    const Layer hidden = host.layer("fc", {image}, {{"size", 6}, {"act", "relu"}, {"drop_rate", 0.25}}, "hidden");
    const Layer score = host.layer("fc", {hidden}, {{"size", 3}}, "score");
    return {host.layer("cross_entropy", {score, label}, {{"from_logits", true}}, "cost"),
            host.layer("accuracy", {score, label}, {}, "accuracy"), host.layer("softmax", {score}, {}, "prediction"),
            images(host, "train").shuffle(4).batch(8).buffered(2), images(host, "test").batch(8)};
  }
};

class WordJob final : public FaultsJob {
 public:
  using FaultsJob::FaultsJob;

 private:
  [[nodiscard]] Reader words(const Host& host, const std::string& name) const {
    return host.reader("text",
                       {{"files", std::vector<std::string>{name}},
                        {"split", "words"},
                        {"vocabulary", "vocabulary"},
                        {"window", 3},
                        {"most_kept_bytes", 0},
                        {"names", std::vector<std::string>{"first", "second", "next"}}},
                       folder());
  }
  [[nodiscard]] Network build(const Host& host) const override {
    const auto vector_of = [&](const char* name) {
      DataOptions word;
      word.name = name;
      word.dtype = TN_I32;
      return host.layer("embedding", {host.data(word)}, {{"vocabulary", 8}, {"size", 4}, {"parameter_name", "words"}},
                        std::string(name) + "_vector");
    };
    const Layer context = host.layer("concat", {vector_of("first"), vector_of("second")}, {}, "context");
    const Layer score = host.layer("fc", {context}, {{"size", 8}, {"act", "tanh"}}, "score");
    DataOptions truth;
    truth.name = "next";
    truth.dtype = TN_I32;
    const Layer next = host.data(truth);
    return {host.layer("cross_entropy", {score, next}, {{"from_logits", true}}, "cost"),
            host.layer("accuracy", {score, next}, {}, "accuracy"), host.layer("softmax", {score}, {}, "prediction"),
            words(host, "train").shuffle(4, 10).batch(8), words(host, "test").batch(8)};
  }
};

}  // namespace

void FaultsJob::prepare(Step step) {
  if (step == Step::kTrain) {
    parameters_ = host_->parameters({network_->cost, network_->prediction}, 7);
    updater_ = host_->updater("adam", {{"learning_rate", 0.05}});
  } else if (step == Step::kSave) {
    write(model_path(), "the model before");
  }
}

void FaultsJob::run(Step step) {
  switch (step) {
    case Step::kHost:
      host_.emplace(HostOptions{
          2, {folder_ + "/plugins"}, allocator_, {}, TN_CHECK_OFF});  // checks keep some memory for each call
      break;
    case Step::kBuild:
      network_ = build(*host_);
      break;
    case Step::kPlan:
      return plan();
    case Step::kTrain:
      return train();
    case Step::kSave:
      return parameters_.save({network_->cost, network_->accuracy, network_->prediction}, model_path());
    case Step::kLoad:
      model_ = host_->load(model_path());
      break;
    case Step::kTest:
      return test();
    case Step::kInfer:
      return infer();
  }
}

std::string FaultsJob::state() const {
  std::string result;
  for (const nlohmann::json& entry : nlohmann::json::parse(parameters_.describe()))
    result += bytes_of(parameters_.get(entry["name"]));
  return result;
}

TrainOptions FaultsJob::options(const Layers& outputs, const Parameters& parameters, const Reader& reader) const {
  TrainOptions result;
  result.outputs = outputs;
  result.parameters = parameters;
  result.updater = updater_;
  result.reader = reader;
  result.passes = 2;
  result.seed = 11;
  return result;
}

void FaultsJob::plan() {
  MachineOptions wanted;
  wanted.max_samples = 8;
  wanted.training = true;
  const Layers outputs = {network_->cost, network_->accuracy};
  products_.plan = host_->machine(host_->parameters(outputs, 7), outputs, wanted).plan();
}

void FaultsJob::train() {
  network_->train.seek({0, 0});
  TrainOptions training = options({network_->cost, network_->accuracy}, parameters_, network_->train);
  if (states != nullptr)
    training.handler = [this](const Event& event) {
      if (event.kind() == TN_BEGIN_TRAINING || event.kind() == TN_END_ITERATION) states->insert(state());
    };
  tenon::train(training);
}

void FaultsJob::test() {
  const TestResult result =
      tenon::test(options({model_->outputs[0], model_->outputs[1]}, model_->parameters, network_->test));
  products_.cost = result.cost;
  products_.accuracy = result.metrics.at(0).value;
}

void FaultsJob::infer() {
  std::string predictions;
  tenon::infer(options({model_->outputs[2]}, model_->parameters, network_->test),
               [&](const std::vector<Array>& outputs) {
                 predictions += bytes_of(outputs[0]);
                 return true;
               });
  products_.predictions = std::move(predictions);
}

void write_image_job(const std::string& folder) {
  offer_plugins(folder, {"layers/fc", "layers/cross_entropy", "layers/accuracy", "layers/softmax", "layers/activations",
                         "layers/dropout", "updaters/adam", "readers/idx", "devices/cpu"});
  for (const auto& [name, count] : {std::pair("train", 20U), std::pair("test", 11U)}) {
    std::string images = idx_header({count, 4, 4}), labels = idx_header({count});
    for (uint32_t i = 0; i < count; ++i) {
      for (uint32_t pixel = 0; pixel < 16; ++pixel)
        images += static_cast<char>(pixel / 4 == i % 3 ? 200 + (i + pixel) % 50 : (7 * i + pixel) % 40);
      labels += static_cast<char>(i % 3);
    }
    write(fs::path(folder) / (std::string(name) + "-images"), images);
    write(fs::path(folder) / (std::string(name) + "-labels"), labels);
  }
}

std::unique_ptr<FaultsJob> image_job(const std::string& folder, const tn_allocator* allocator) {
  return std::make_unique<ImageJob>(folder, allocator);
}

void write_word_job(const std::string& folder) {
  offer_plugins(folder, {"layers/fc", "layers/cross_entropy", "layers/accuracy", "layers/softmax", "layers/activations",
                         "layers/embedding", "layers/shapes", "updaters/adam", "readers/text", "devices/cpu"});
  write(fs::path(folder) / "vocabulary", "<unk>\na\nb\nc\nd\ne\nf\ng\n");
  for (const auto& [name, count] : {std::pair("train", 30U), std::pair("test", 14U)}) {
    std::string text;
    for (uint32_t i = 0; i < count; ++i) text += {static_cast<char>('a' + i * i % 7), i % 10 == 9 ? '\n' : ' '};
    write(fs::path(folder) / name, text);
  }
}

std::unique_ptr<FaultsJob> word_job(const std::string& folder, const tn_allocator* allocator) {
  return std::make_unique<WordJob>(folder, allocator);
}

}  // namespace tenon_tests
