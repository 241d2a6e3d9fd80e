// The definition of a block, and what one use of it says. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/toml/node.h"

namespace tenon::cli {

using toml_file::Node;
using toml_file::Place;

constexpr int64_t kMostLayers = 10'000;  // of a job with blocks

// [[block]]. Its layers see the inputs and each other alone.
struct Block {
  Place place;
  std::string name;
  std::vector<std::string> inputs;
  std::string output;                           // a layer of it, or one of its outputs: "parts:1"
  std::set<std::string> required;               // the parameters that a use must give
  std::map<std::string, const Node*> defaults;  // and those that it may give
  const Node::List* layers = nullptr;
  std::map<std::string, const Node*> names;  // the layers by name
};
using Blocks = std::map<std::string, Block>;

// Reads and checks the blocks of a job. The blocks point into `job`.
[[nodiscard]] Blocks blocks_of(const Node& job);

// Whether the table of a layer uses a block.
[[nodiscard]] bool is_use(const Node& layer);

// Returns the layer of a block that a name in it means, "parts" or "parts:1" without the number; "" if there is none.
[[nodiscard]] std::string layer_named(const Block& block, const std::string& name);

// One layer of type "block".
struct Use {
  Place place;
  const Block* block = nullptr;
  std::string name;
  std::optional<std::string> parameter_name;
  std::vector<std::string> inputs;
  std::optional<int64_t> repeat;
  std::map<std::string, const Node*> given;  // parameters

  [[nodiscard]] const Node& value(const std::string& parameter) const {
    const auto found = given.find(parameter);
    return *(found == given.end() ? block->defaults.at(parameter) : found->second);
  }
};
// Throws Failure with the places of both. The result points into `layer` and `blocks`.
[[nodiscard]] Use use_of(const Node& layer, const Blocks& blocks);

// Calls `found` for each "{word}" in a text: with the begin and the length of all of it, and the word.
void find_placeholders(const std::string& text,
                       const std::function<void(size_t begin, size_t length, const std::string& word)>& found);

}  // namespace tenon::cli
