// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/blocks/block.h"

#include <algorithm>
#include <cctype>

#include "base/nearest.h"
#include "host/cli/cli.h"
#include "host/cli/job/toml_tree.h"

namespace tenon::cli {

namespace {

constexpr size_t kMostBlocks = 16;  // of blocks in blocks

// Keys of a layer of type "block", which no parameter may be called.
constexpr const char* kUseKeys[] = {"name", "type", "block", "inputs", "repeat", "parameter_name"};

bool is_use_key(const std::string& key) {
  return std::find(std::begin(kUseKeys), std::end(kUseKeys), key) != std::end(kUseKeys);
}

bool is_word(const std::string& text) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(), fits);
}

template <typename Value>
std::vector<std::string> keys_of(const std::map<std::string, Value>& map) {
  std::vector<std::string> result;
  for (const auto& [key, value] : map) result.push_back(key);
  return result;
}

bool has_parameter(const Block& block, const std::string& name) {
  return block.required.count(name) > 0 || block.defaults.count(name) > 0;
}

std::vector<std::string> parameters_of(const Block& block) {
  std::vector<std::string> result = keys_of(block.defaults);
  result.insert(result.end(), block.required.begin(), block.required.end());
  return result;
}

// Calls `visit` for each text in the values of a node.
template <typename Visit>
void each_text(const Node& node, const Visit& visit) {
  if (const auto* text = node.get<std::string>()) visit(node, *text);
  if (const auto* list = node.get<Node::List>())
    for (const Node& entry : *list) each_text(entry, visit);
  if (const auto* members = node.get<Node::Members>())
    for (const auto& [key, value] : *members) each_text(value, visit);
}

// Reads one [[block]].
class Definition {
 public:
  Definition(const Node& table, std::string what) : section_(table, std::move(what)) {}

  Block read() {
    result_.place = section_.place();
    const auto name = section_.string("name");
    if (!name) section_.missing("name");
    result_.name = *name;
    read_parameters();
    result_.inputs = section_.strings("inputs").value_or(std::vector<std::string>());
    for (const std::string& input : result_.inputs)
      if (!inputs_.insert(input).second)
        section_.fail(section_.find("inputs")->place, "two inputs are called \"" + input + "\"");
    const auto output = section_.string("output");
    const Node* const layers = section_.find("layer");
    section_.finish();
    if (layers == nullptr) section_.missing("layer");
    if (!layers->is_list_of_tables()) section_.wrong("layer", *layers, "[[block.layer]] tables");
    result_.layers = layers->get<Node::List>();
    read_names();
    for (const Node& layer : *result_.layers) check_layer(layer);
    result_.output = output.value_or(*result_.layers->back().text("name"));
    if (layer_named(result_, result_.output).empty())
      section_.fail(section_.find("output")->place, "key \"output\": the block has no layer \"" + result_.output +
                                                        "\"" +
                                                        base::suggestion(result_.output, keys_of(result_.names)));
    for (const std::string& parameter : parameters_of(result_))
      if (used_.count(parameter) == 0)
        section_.fail(section_.place(), "no layer of the block uses the parameter \"" + parameter +
                                            "\": no text has \"{" + parameter + "}\" in it");
    return std::move(result_);
  }

 private:
  void read_parameters() {
    for (const std::string& name : section_.strings("parameters").value_or(std::vector<std::string>()))
      add_parameter(name, nullptr, section_.find("parameters")->place);
    if (const Node* const defaults = section_.table("defaults"))
      for (const auto& [name, value] : *defaults->get<Node::Members>()) add_parameter(name, &value, value.place);
  }

  // value: null if a use must give one.
  void add_parameter(const std::string& name, const Node* value, const Place& place) {
    if (!is_word(name))
      section_.fail(place, "parameter \"" + name + "\": expected letters, digits and _, not beginning with a digit");
    if (is_use_key(name))
      section_.fail(place, "parameter \"" + name + "\": the name is a key of every layer of type \"block\"");
    if (has_parameter(result_, name)) section_.fail(place, "two parameters are called \"" + name + "\"");
    if (value == nullptr)
      result_.required.insert(name);
    else
      result_.defaults.emplace(name, value);
  }

  void read_names() {
    for (const Node& layer : *result_.layers) {
      Section section(layer, "block \"" + result_.name + "\": [[block.layer]]");
      const auto name = section.string("name");
      if (!name) section.missing("name");
      const auto [other, added] = result_.names.emplace(*name, &layer);
      if (!added) section.fail(section.place(), "the name \"" + *name + "\" is taken; see " + other->second->place);
      if (inputs_.count(*name) > 0)
        section.fail(section.place(), "the name \"" + *name + "\" is that of an input of the block");
    }
  }

  void check_layer(const Node& layer) {
    Section section(layer, "block \"" + result_.name + "\": layer \"" + *layer.text("name") + "\"");
    const std::vector<std::string> inputs = section.strings("inputs", true).value_or(std::vector<std::string>());
    for (const std::string& input : inputs) {
      if (input.empty() || inputs_.count(input) > 0 || !layer_named(result_, input).empty()) continue;
      std::vector<std::string> known = keys_of(result_.names);
      known.insert(known.end(), result_.inputs.begin(), result_.inputs.end());
      section.fail(
          section.find("inputs")->place,
          "input \"" + input + "\" is neither an input nor a layer of the block" + base::suggestion(input, known));
    }
    for (const auto& [key, value] : *layer.get<Node::Members>()) {
      const bool fixed = key == "name" || key == "inputs" || (key == "block" && is_use(layer));
      each_text(value, [&, name = key](const Node& node, const std::string& text) {
        find_placeholders(text, [&](size_t, size_t, const std::string& word) {
          if (fixed)
            section.fail(node.place, "key \"" + name + "\" takes no parameter of the block, got \"" + text + "\"");
          if (!has_parameter(result_, word))
            section.fail(node.place, "the block has no parameter \"" + word + "\"" +
                                         base::suggestion(word, parameters_of(result_)));
          used_.insert(word);
        });
      });
    }
  }

  Section section_;
  Block result_;
  std::set<std::string> inputs_;
  std::set<std::string> used_;  // parameters
};

// Refuses unknown blocks, blocks that contain themselves, and too many in each other.
class Nesting {
 public:
  explicit Nesting(const Blocks& blocks) : blocks_(blocks) {}

  // Returns the greatest number of blocks in each other, from this one on.
  size_t depth(const Block& block) {
    if (const auto known = depth_.find(&block); known != depth_.end()) return known->second;
    path_.push_back(&block);
    size_t result = 1;
    for (const Node& layer : *block.layers) {
      if (!is_use(layer)) continue;
      const std::string what = "block \"" + block.name + "\": layer \"" + *layer.text("name") + "\"";
      Section section(layer, what);
      const auto name = section.string("block");
      if (!name) section.missing("block");
      const auto found = blocks_.find(*name);
      if (found == blocks_.end())
        section.fail(section.find("block")->place,
                     "the job has no block \"" + *name + "\"" + base::suggestion(*name, keys_of(blocks_)));
      const auto begin = std::find(path_.begin(), path_.end(), &found->second);
      if (begin != path_.end()) {
        std::string cycle;
        for (auto each = begin; each != path_.end(); ++each)
          cycle += "\"" + (*each)->name + "\" at " + (*each)->place + " contains ";
        section.fail(section.place(), "the blocks form a cycle: " + cycle + "\"" + *name + "\"");
      }
      if (path_.size() < kMostBlocks) result = std::max(result, depth(found->second) + 1);
      if (path_.size() >= kMostBlocks || result > kMostBlocks)
        section.fail(section.place(), "blocks are nested more than " + std::to_string(kMostBlocks) + " deep");
    }
    path_.pop_back();
    return depth_[&block] = result;
  }

 private:
  const Blocks& blocks_;
  std::map<const Block*, size_t> depth_;
  std::vector<const Block*> path_;
};

}  // namespace

bool is_use(const Node& layer) {
  const std::string* const type = layer.text("type");
  return type != nullptr && *type == "block";
}

std::string layer_named(const Block& block, const std::string& name) {
  if (block.names.count(name) > 0) return name;
  const size_t colon = name.rfind(':');
  const auto found = block.names.find(name.substr(0, std::min(colon, name.size())));
  // A block in a block has one output.
  return colon == std::string::npos || found == block.names.end() || is_use(*found->second) ? "" : found->first;
}

void find_placeholders(const std::string& text,
                       const std::function<void(size_t begin, size_t length, const std::string& word)>& found) {
  for (size_t begin = text.find('{'); begin != std::string::npos; begin = text.find('{', begin + 1)) {
    const size_t end = text.find_first_of("{}", begin + 1);
    if (end == std::string::npos || text[end] == '{') continue;
    const std::string word = text.substr(begin + 1, end - begin - 1);
    if (is_word(word)) found(begin, end + 1 - begin, word);
  }
}

Blocks blocks_of(const Node& job) {
  Blocks result;
  const Node* const node = job.find("block");
  if (node == nullptr) return result;
  if (!node->is_list_of_tables())
    throw Failure(kBadConfig, node->place + ": key \"block\": expected [[block]] tables, got " + kind_of(*node));
  for (const Node& table : *node->get<Node::List>()) {
    const std::string* const name = table.text("name");
    const std::string what = name == nullptr ? "[[block]]" : "block \"" + *name + "\"";
    Block block = Definition(table, what).read();
    const auto [other, added] = result.emplace(block.name, std::move(block));
    if (!added)
      throw Failure(kBadConfig, table.place + ": " + what + ": the name is taken; see " + other->second.place);
  }
  Nesting nesting(result);
  for (const auto& [name, block] : result) (void)nesting.depth(block);
  return result;
}

Use use_of(const Node& layer, const Blocks& blocks) {
  const std::string* const given = layer.text("name");
  Section section(layer, given == nullptr ? "[[layer]]" : "layer \"" + *given + "\"");
  Use result;
  result.place = section.place();
  const auto name = section.string("name");
  if (!name) section.missing("name");
  result.name = *name;
  const auto block = section.string("block");
  if (!block) section.missing("block");
  const auto found = blocks.find(*block);
  if (found == blocks.end())
    section.fail(section.find("block")->place, "the job has no block \"" + *block + "\"" +
                                                   (blocks.empty() ? "" : base::suggestion(*block, keys_of(blocks))));
  result.block = &found->second;
  const std::string whose = " of block \"" + *block + "\" at " + result.block->place;
  result.parameter_name = section.string("parameter_name");
  result.repeat = section.integer("repeat", 1, kMostLayers);
  result.inputs = section.strings("inputs", true).value_or(std::vector<std::string>());
  const std::vector<std::string>& inputs = result.block->inputs;
  if (result.inputs.size() != inputs.size())
    section.fail(section.find("inputs") == nullptr ? section.place() : section.find("inputs")->place,
                 "got " + std::to_string(result.inputs.size()) + " inputs, expected the " +
                     std::to_string(inputs.size()) + whose);
  if (result.repeat && inputs.empty())
    section.fail(section.find("repeat")->place, "key \"repeat\" needs an input" + whose + ", which has none");
  for (const auto& [key, value] : *layer.get<Node::Members>()) {
    if (is_use_key(key)) continue;
    if (!has_parameter(*result.block, key)) {
      std::vector<std::string> known = parameters_of(*result.block);
      known.insert(known.end(), std::begin(kUseKeys), std::end(kUseKeys));
      section.fail(value.place, "\"" + key + "\" is no parameter" + whose + base::suggestion(key, known));
    }
    result.given.emplace(key, &value);
  }
  for (const std::string& parameter : result.block->required)
    if (result.given.count(parameter) == 0)
      section.fail(section.place(), "parameter \"" + parameter + "\"" + whose + " is missing");
  return result;
}

}  // namespace tenon::cli
