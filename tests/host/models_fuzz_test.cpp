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

  const std::vector<std::string> files_ = source_files("tests/data", ".safetensors");
  const TemporaryFolder folder_;
  const Host host_ = make_host(2);
};

TEST_F(ModelsFuzz, Files) {
  Trials trials("model", 150);
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

}  // namespace
}  // namespace tenon_tests
