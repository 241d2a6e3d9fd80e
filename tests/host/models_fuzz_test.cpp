// Damaged model files, topologies and checkpoints through the public API: each is refused or is a model, which saves
// and loads to the same bytes and can be planned. tests/support/fuzz/trials.h has the settings.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <tenon/tenon_topology.hpp>

#include "tests/support/fashion.h"
#include "tests/support/fuzz/model_bytes.h"
#include "tests/support/fuzz/trials.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using nlohmann::json;

constexpr uint64_t kMostComputed = uint64_t{1} << 24;  // bytes of a machine that is made

void put(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// Two samples for each data layer, of zeros; sequences have 2 and 1 rows, those of two levels 1, 1 and 2 in these.
struct ZeroFeeds {
  explicit ZeroFeeds(const Layers& outputs) {
    for (const Layer& layer : data_layers(outputs)) {
      const DataOptions data = inspect_data(layer);
      Array array;
      array.dtype = data.dtype == TN_COMPUTE ? TN_F32 : data.dtype;
      array.shape = data.shape;
      array.storage = data.storage;
      array.samples = 2;
      if (data.storage == TN_CSR) {
        array = Array::sparse(2, data.shape.at(0), kSparse.data(), kIds.data(), nullptr);
      } else if (data.storage == TN_RAGGED) {
        array.levels = data.levels;
        array.offsets = {kOuter.data(), data.levels == 2 ? kInner.data() : nullptr};
        array.shape.insert(array.shape.begin(), data.levels == 2 ? kInner.back() : kOuter.back());
      } else {
        array.shape.insert(array.shape.begin(), 2);
      }
      if (data.storage != TN_CSR) {
        room.emplace_back(static_cast<size_t>(array.count()) * 8);
        array.data = room.back().data();
      }
      feeds.push_back({data.name, array});
    }
  }

  static constexpr std::array<int64_t, 3> kOuter = {0, 2, 3}, kSparse = {0, 1, 1};
  static constexpr std::array<int64_t, 4> kInner = {0, 1, 2, 4};
  static constexpr std::array<int64_t, 1> kIds = {0};
  std::vector<std::vector<char>> room;
  std::vector<Feed> feeds;
};

class ModelsFuzz : public testing::Test {
 protected:
  // The bytes of the model that a file holds, as it is saved.
  [[nodiscard]] std::string saved(const std::string& path) const {
    const Model model = host_.load(path);
    model.parameters.save(model.outputs, folder_.file("saved"));
    return file_bytes(folder_.file("saved"));
  }
  // What is wrong with a topology that the host took: it must write, read, print and plan. bytes: of its machine.
  [[nodiscard]] std::string topology_fault(const Layers& outputs, uint64_t& bytes) const {
    const std::string text = topology(outputs);
    if (topology(read_topology(host_, text)) != text) return "the topology is read back as another one";
    if (print(outputs).empty()) return "the topology prints as nothing";
    MachineOptions options;
    options.max_samples = 3;
    try {
      const json plan = json::parse(host_.machine(host_.declare(outputs), outputs, options).plan());
      bytes = plan.at("bytes").at("machine").get<uint64_t>();
    } catch (const Error& error) {
      return refused(error, {TN_INVALID, TN_UNSUPPORTED}).fault;
    }
    return {};
  }
  // Computes a model with few bytes, and if it can be trained the gradients of a step.
  [[nodiscard]] std::string computing_fault(const Model& model) const {
    MachineOptions options;
    options.max_samples = 2;
    try {
      const ZeroFeeds zeros(model.outputs);
      for (const bool training : {false, true}) {
        options.training = training;
        const Machine machine = host_.machine(model.parameters, model.outputs, options);
        machine.forward(zeros.feeds);
        if (training) machine.backward();
      }
    } catch (const Error& error) {
      return refused(error, {TN_INVALID, TN_UNSUPPORTED, TN_BAD_DATA}).fault;
    }
    return {};
  }
  [[nodiscard]] Ending load(const std::string& bytes) const {
    const std::string path = folder_.file("model");
    put(path, bytes);
    bool described = false;
    try {
      (void)json::parse(host_.describe_model(path));
      described = true;
      const Model model = host_.load(path);
      uint64_t needed = UINT64_MAX;
      std::string fault = topology_fault(model.outputs, needed);
      if (fault.empty() && needed < kMostComputed) fault = computing_fault(model);
      if (!fault.empty()) return {true, fault};
      model.parameters.save(model.outputs, folder_.file("first"));
      if (saved(folder_.file("first")) != file_bytes(folder_.file("first"))) return {true, "saved as another model"};
    } catch (const Error& error) {
      if (!described) return refused(error, {TN_BAD_DATA});
      return refused(error, {TN_BAD_DATA, TN_INVALID, TN_REFUSED, TN_NOT_FOUND, TN_UNSUPPORTED});
    }
    return {true, {}};
  }

  const std::vector<std::string> files_ = [] {
    std::vector<std::string> files = source_files("tests/museum/files", ".safetensors");
    std::erase_if(
        files, [](const std::string& file) { return model_header(file).find("tenon.topology") == std::string::npos; });
    return files;  // without the parts of others
  }();
  const TemporaryFolder folder_;
  const Host host_ = make_host(2);
};

TEST_F(ModelsFuzz, Files) {
  Trials trials("model", 120);
  put(folder_.file("sound"), files_.front());
  const std::string sound = saved(folder_.file("sound"));
  const uint64_t held = host_.count().bytes_now;
  const auto check = [&](const std::string& bytes, Draw& draw) {
    const Ending ending = load(bytes);
    if (!ending.fault.empty()) return ending;
    if (host_.count().bytes_now != held) return Ending{false, "the host keeps memory"};
    if (draw.once_in(10) && saved(folder_.file("sound")) != sound) return Ending{false, "a sound file became another"};
    return ending;
  };
  trials.run([&](Draw& draw) { return damaged_model(draw, files_); }, check, 10);
}

TEST_F(ModelsFuzz, Topologies) {
  Trials trials("topology", 500);
  std::vector<std::string> texts;
  for (const std::string& file : files_) texts.push_back(topology_of(json::parse(model_header(file))).dump(1));
  const auto make = [&](Draw& draw) {
    const std::string &text = draw.one_of(texts), &other = draw.one_of(texts);
    if (draw.once_in(2)) return mutated_text(draw, text, other);
    json tree = json::parse(text);
    mutate_json(draw, tree);
    return json_text(tree);
  };
  const auto check = [&](const std::string& text, Draw& draw) {
    try {
      const Layers outputs = read_topology(host_, text);
      uint64_t needed = UINT64_MAX;
      std::string fault = topology_fault(outputs, needed);
      if (fault.empty() && needed < kMostComputed && draw.once_in(4))
        fault = computing_fault({outputs, host_.parameters(outputs, draw.below(9))});
      return Ending{true, fault};
    } catch (const Error& error) {
      return refused(error, {TN_BAD_DATA, TN_INVALID, TN_REFUSED, TN_NOT_FOUND, TN_UNSUPPORTED});
    }
  };
  trials.run(make, check, 10);
}

// A training of a few minibatches, whose checkpoint another one resumes.
class ResumesFuzz : public testing::Test {
 protected:
  ResumesFuzz() {
    std::string table = "a,b,kind\n";
    for (int i = 0; i < 12; ++i)
      table += std::to_string(i % 5) + "," + std::to_string(i % 7) + ".5," + std::to_string(i % 3) + "\n";
    put(folder_.file("data.csv"), table);
    sound_ = table;
    const Layer x = host_.data({"x", TN_F32, {2}}), kind = host_.data({"kind", TN_I32, {}, 3});
    const Layer hidden = host_.layer("batch_norm", {host_.layer("fc", {x}, {{"size", 4}, {"act", "tanh"}}, "hidden")});
    const Layer score = host_.layer("fc", {hidden}, {{"size", 3}}, "score");
    outputs_ = {host_.layer("cross_entropy", {score, kind}, {{"from_logits", true}}, "cost"),
                host_.layer("accuracy", {score, kind}, {}, "accuracy")};
  }
  // Trains for so many passes of three minibatches, from a checkpoint if there is one.
  [[nodiscard]] TrainOptions training(const std::string& from, int64_t passes) const {
    TrainOptions options;
    options.outputs = outputs_;
    options.parameters = host_.parameters(outputs_, 5);
    options.updater = host_.updater("adam");
    options.reader = host_
                         .reader("csv",
                                 {{"files", std::vector<std::string>{"data.csv"}},
                                  {"columns", std::vector<std::string>{"x = *: f32", "kind: i32 < 3"}}},
                                 folder_.path().string())
                         .shuffle(3)
                         .batch(4);
    options.passes = passes;
    options.average = AverageOptions{host_.parameters(outputs_, 5), 0.9};
    CheckpointOptions checkpoint;
    checkpoint.folder = folder_.file("checkpoints");
    checkpoint.every_batches = from.empty() ? 2 : 0;
    checkpoint.start = from.empty() ? TN_START_FRESH : TN_START_RESUME;
    checkpoint.from = from;
    options.checkpoint = checkpoint;
    return options;
  }
  static std::string values_of(const Parameters& parameters) {
    std::string bytes;
    for (const ParameterInfo& info : entries(parameters)) {
      const Array array = parameters.get(info.name);
      bytes.append(static_cast<const char*>(array.data), static_cast<size_t>(array.count()) * 4);
    }
    return bytes;
  }

  const TemporaryFolder folder_;
  const Host host_ = make_host(2);
  Layers outputs_;
  std::string sound_;  // the data
};

TEST_F(ResumesFuzz, Checkpoints) {
  Trials trials("resume", 60);
  train(training({}, 2));
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.file("checkpoints")))
    if (entry.path().extension() == ".safetensors") files.push_back(file_bytes(entry.path()));
  std::sort(files.begin(), files.end());
  ASSERT_GE(files.size(), 2U);
  const std::string path = folder_.file("damaged.safetensors");
  const std::string before = values_of(host_.parameters(outputs_, 5));
  const auto make = [&](Draw& draw) {
    return draw.once_in(3) ? damaged_model(draw, files) : damaged_record(draw, files);
  };
  const auto check = [&](const std::string& bytes, Draw& /*draw*/) {
    put(path, bytes);
    const TrainOptions options = training(path, 3);
    try {
      train(options);
    } catch (const Error& error) {
      const Ending ending = refused(error, {TN_BAD_DATA, TN_INVALID, TN_UNSUPPORTED, TN_REFUSED});
      if (ending.fault.empty() && values_of(options.parameters) != before)
        return Ending{false, std::string("refused, but parameters have changed: ") + error.what()};
      return ending;
    }
    return Ending{true, {}};
  };
  trials.run(make, check, 10);
}

// The same numbers in a column of another name.
TEST_F(ResumesFuzz, OtherColumnsChangeNothing) {
  train(training({}, 1));
  put(folder_.file("data.csv"), std::string(sound_).replace(0, 3, "a,c"));
  const TrainOptions options = training(folder_.file("checkpoints/checkpoint-1-0.safetensors"), 2);
  const std::string before = values_of(options.parameters);
  try {
    train(options);
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_INVALID);
    EXPECT_NE(std::string(error.what()).find("column 1 is \"c\""), std::string::npos) << error.what();
  }
  EXPECT_EQ(values_of(options.parameters), before);
}

}  // namespace
}  // namespace tenon_tests
