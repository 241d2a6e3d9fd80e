// Ids that a language model writes, one after the other. Mode "<model>_<samples>_<beam>": "lstm", two layers of
// 256, or "transformer", two blocks of 128 features, 4 heads and a cache; 1,000 words; 128 ids after a first one. With
// a beam of 1 each id is the most probable one. SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <tenon/tenon_generate.hpp>

#include "../support/bench.h"

namespace {

constexpr int64_t kWords = 1000, kLength = 128, kBegin = 1, kEnd = 0;

// The names and shapes of the parameters, for the peers.
struct Network {
  tenon::Layer score;
  std::vector<std::string> parameters;
};

Network lstm(const tenon::Host& host, const tenon::Layer& words) {
  constexpr int64_t kSize = 256;
  Network network;
  tenon::Layer last = host.layer("embedding", {words}, {{"vocabulary", kWords}, {"size", kSize}}, "table");
  for (const std::string name : {"first", "second"}) {
    last = host.layer("lstm", {last}, {{"size", kSize}}, name);
    for (const char* part : {".weight", ".recurrent_weight", ".bias"}) network.parameters.push_back(name + part);
  }
  network.score = host.layer("fc", {last}, {{"size", kWords}}, "score");
  return network;
}

Network transformer(const tenon::Host& host, const tenon::Layer& words) {
  constexpr int64_t kSize = 128;
  Network network;
  tenon::Layer x = host.layer("embedding", {words}, {{"vocabulary", kWords}, {"size", kSize}}, "table");
  x = host.layer("position_embedding", {x}, {{"length", kLength}}, "places");
  for (const std::string block : {"a", "b"}) {
    const auto norm = [&](const tenon::Layer& of, const char* name) {
      for (const char* part : {".scale", ".shift"}) network.parameters.push_back(block + name + part);
      return host.layer("layer_norm", {of}, {}, block + name);
    };
    const tenon::Layer seen =
        host.layer("multi_head_attention", {norm(x, "1")}, {{"heads", 4}, {"causal", true}}, block);
    for (const char* part : {".query", ".key", ".value", ".output"})
      for (const char* kind : {".weight", ".bias"}) network.parameters.push_back(block + part + kind);
    x = host.layer("add", {x, seen});
    const tenon::Attributes up = {{"size", 4 * kSize}, {"act", "gelu"}};
    const tenon::Layer wide = host.layer("fc", {norm(x, "2")}, up, block + "up");
    x = host.layer("add", {x, host.layer("fc", {wide}, {{"size", kSize}}, block + "down")});
    for (const char* part : {"up.weight", "up.bias", "down.weight", "down.bias"})
      network.parameters.push_back(block + part);
  }
  network.score = host.layer("fc", {x}, {{"size", kWords}}, "score");
  network.parameters.emplace_back("places.weight");
  return network;
}

// Weights that make probabilities which differ clearly; the end id gets none.
void fill(const tenon::Parameters& parameters, const std::vector<std::string>& names) {
  uint32_t seed = 1;
  for (const std::string& name : names) {
    const tenon::Array array = parameters.get(name);
    const bool scale = name.find(".scale") != std::string::npos, bias = array.shape.size() == 1;
    std::vector<float> values = bench::numbers(static_cast<size_t>(array.count()), seed++);
    const float factor = bias ? 0.1F : 2 / std::sqrt(static_cast<float>(array.shape[0]));
    for (float& value : values) value = (scale ? 1.0F : 0.0F) + value * (name == "table.weight" ? 1.0F : factor);
    if (name == "score.bias") values[kEnd] = -1e9F;
    parameters.set(name, {TN_F32, array.shape, values.data()});
  }
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    char model[16] = {};
    int samples = 0, beam = 0;
    if (std::sscanf(arguments.mode.c_str(), "%15[a-z]_%d_%d", model, &samples, &beam) != 3)
      throw tenon::Error(TN_INVALID, "expected a mode such as lstm_32_5");
    const tenon::Host host = bench::host(arguments.threads);
    tenon::DataOptions ids;
    ids.name = "words", ids.dtype = TN_I64, ids.storage = TN_RAGGED, ids.index_limit = kWords;
    const tenon::Layer words = host.data(ids);
    Network network = model == std::string("lstm") ? lstm(host, words) : transformer(host, words);
    for (const char* name : {"table.weight", "score.weight", "score.bias"}) network.parameters.emplace_back(name);
    const tenon::Parameters parameters = host.parameters({network.score}, 1);
    fill(parameters, network.parameters);
    bench::write(arguments.folder, parameters, network.parameters);

    tenon::GeneratorOptions made;
    made.from_logits = true, made.max_samples = samples;
    const tenon::Generator generator(parameters, network.score, "words", made);
    std::vector<int64_t> first, ends = {0};
    for (int64_t i = 0; i < samples; ++i) first.push_back(1 + i), ends.push_back(i + 1);
    tenon::GenerateOptions options;
    options.method = beam == 1 ? TN_GENERATE_GREEDY : TN_GENERATE_BEAM;
    options.beam_size = beam, options.end_id = kEnd, options.max_length = kLength + 1;
    options.feeds = {{"words", tenon::Array::sequences(TN_I64, {samples}, first.data(), samples, ends.data())}};
    const auto results = generator.generate(options);
    std::vector<int64_t> best;
    bench::Result result;
    for (const auto& sample : results) {
      best.insert(best.end(), sample[0].ids.begin(), sample[0].ids.end());
      result.loss -= sample[0].score / static_cast<double>(kLength * samples);
    }
    bench::write(arguments.folder, "ids", best);
    const int count = samples == 1 ? 20 : 5;
    result.seconds = bench::mean_seconds(count, [&] { static_cast<void>(generator.generate(options)); }) / kLength;
    return result;
  });
}
