// SPDX-License-Identifier: Apache-2.0
#include "check/bench/generation.h"

#include <tenon/tenon_generate.hpp>

#include "check/cases/attributes.h"
#include "check/cases/fault.h"

namespace tenon::check {

std::string generated(const Host& host, const std::string& type, const LayerCase& layer_case, uint64_t seed) {
  constexpr int64_t kIds = 2;  // of which any layer with two columns has scores
  DataOptions data;
  data.name = "ids", data.dtype = TN_I32, data.index_limit = kIds;
  data.storage = TN_RAGGED, data.levels = 1, data.sequence = "ids";
  const Layer ids = host.data(data);
  Layers inputs;
  for (const InputSpec& input : layer_case.inputs) {
    if (input.sequence.empty() || input.levels != 1 || input.shape.size() != 1 || input.below > 0)
      throw Skip("an input is no sequence of vectors");
    inputs.push_back(host.layer("check.rows", {ids}, {{"height", kIds}, {"width", input.shape[0]}, {"sparse", false}},
                                "in" + std::to_string(inputs.size())));
  }
  const json schema = json::parse(host.describe_type("layer", type)).at("attributes");
  const Layer scores = host.layer(type, inputs, attributes_of(layer_case.attributes, schema), "checked").output(0);
  GeneratorOptions of_scores;
  of_scores.from_logits = true;
  const Generator generator(host.parameters({scores}, seed), scores, "ids", of_scores);
  const int32_t prompts[] = {1, 0, 1};
  const int64_t offsets[] = {0, 1, 3};
  Array prompt{TN_I32, {3}, prompts};
  prompt.storage = TN_RAGGED, prompt.levels = 1, prompt.samples = 2, prompt.offsets = {offsets, nullptr};
  GenerateOptions options;
  options.method = TN_GENERATE_GREEDY, options.max_length = 6, options.end_id = -1;
  options.feeds = {{"ids", prompt}};
  std::string bytes;
  for (const std::vector<Generation>& results : generator.generate(options))
    for (const Generation& result : results) {
      for (const int64_t id : result.ids) bytes += std::to_string(id) + ' ';
      bytes.append(reinterpret_cast<const char*>(&result.score), sizeof result.score);
    }
  return bytes;
}

}  // namespace tenon::check
