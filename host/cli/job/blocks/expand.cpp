// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/blocks/expand.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "host/cli/cli.h"
#include "host/cli/job/blocks/block.h"
#include "host/cli/job/blocks/cond.h"
#include "host/cli/job/toml_tree.h"

namespace tenon::cli {

namespace {

constexpr size_t kMostBytes = 256 << 20;  // of the layers of blocks, with their texts and places

size_t bytes_of(const Node& node) {
  size_t result = sizeof(Node) + node.place.size();
  if (const auto* text = node.get<std::string>()) result += text->size();
  if (const auto* list = node.get<Node::List>())
    for (const Node& entry : *list) result += bytes_of(entry);
  if (const auto* members = node.get<Node::Members>())
    for (const auto& [key, value] : *members) result += key.size() + bytes_of(value);
  return result;
}

// Returns a value as a part of a text, nothing for a list, a table or a date.
std::optional<std::string> text_of(const Node& node) {
  if (const auto* text = node.get<std::string>()) return *text;
  if (const auto* integer = node.get<int64_t>()) return std::to_string(*integer);
  if (const auto* flag = node.get<bool>()) return *flag ? "true" : "false";
  const auto* number = node.get<double>();
  if (number == nullptr) return std::nullopt;
  std::array<char, 32> digits{};  // the shortest that are read as this number again
  return std::string(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), *number).ptr);
}

Node text_node(std::string text, const Place& place) {
  Node result;
  result.value = std::move(text);
  result.place = place;
  return result;
}

// One repetition of a use.
struct Instance {
  std::string name;                           // "tower.0"
  std::string parameter_name;                 // the same, unless the use gives another
  std::map<std::string, std::string> inputs;  // the names outside of the block for those inside

  [[nodiscard]] std::string outside(const std::string& inside) const {
    if (inside.empty()) return inside;  // an optional input that is left out
    const auto input = inputs.find(inside);
    return input == inputs.end() ? name + "." + inside : input->second;
  }
};

class Expansion {
 public:
  explicit Expansion(const Blocks& blocks) : blocks_(blocks) {}

  std::map<std::string, JobBlock> replace(Node::List& layers) {
    int64_t number = 0;
    for (const Node& layer : layers) require(number += is_use(layer) ? count(layer) : 1, layer);
    bytes_ = 0;
    Node::List flat;
    for (Node& layer : layers) {
      if (is_use(layer))
        expand(layer, flat);
      else
        flat.push_back(std::move(layer));
    }
    layers = std::move(flat);
    return std::move(names_);
  }

 private:
  // Returns the number of layers that a use expands to, without repeating any. Gives up above kMostLayers.
  int64_t count(const Node& layer) {
    const Use use = use_of(layer, blocks_);
    int64_t once = 0;
    for (const Node& inner : *use.block->layers) require(once += is_use(inner) ? count(copy(inner, use)) : 1, layer);
    const int64_t result = use.repeat.value_or(1) * once;  // both at most kMostLayers
    require(result, layer);
    return result;
  }

  static void require(int64_t layers, const Node& layer) {
    if (layers > kMostLayers)
      throw Failure(kBadConfig,
                    layer.place + ": the blocks expand to more than " + std::to_string(kMostLayers) + " layers");
  }

  // Appends the layers of a use.
  void expand(const Node& layer, Node::List& to) {
    const Use use = use_of(layer, blocks_);
    Instance instance;
    for (size_t i = 0; i < use.inputs.size(); ++i) instance.inputs[use.block->inputs[i]] = use.inputs[i];
    std::string output;
    for (int64_t i = 0; i < use.repeat.value_or(1); ++i) {
      const std::string number = use.repeat ? "." + std::to_string(i) : "";
      instance.name = use.name + number;
      instance.parameter_name = use.parameter_name.value_or(use.name) + number;
      for (const Node& inner : *use.block->layers) append(inner, use, instance, to);
      output = instance.name + "." + use.block->output;
      if (use.repeat) name(instance.name, output, use);
      if (use.repeat) instance.inputs[use.block->inputs.front()] = output;
    }
    name(use.name, output, use);
  }

  void name(const std::string& block, const std::string& output, const Use& use) {
    const auto [other, added] = names_.emplace(block, JobBlock{use.place, output});
    if (!added)
      throw Failure(kBadConfig, use.place + ": layer \"" + block + "\": the name is taken; see " + other->second.place);
  }

  void append(const Node& inner, const Use& use, const Instance& instance, Node::List& to) {
    Node layer = copy(inner, use);
    auto& members = *layer.get<Node::Members>();
    const std::string local = *inner.text("name");
    members.at("name").value = instance.name + "." + local;
    if (Node* const inputs = layer.find("inputs")) {
      if (auto* one = inputs->get<std::string>()) *one = instance.outside(*one);
      if (auto* list = inputs->get<Node::List>())
        for (Node& each : *list) each.value = instance.outside(*each.get<std::string>());
    }
    if (instance.parameter_name != instance.name)
      members.try_emplace("parameter_name", text_node(instance.parameter_name + "." + local, use.place));
    if (!is_use(layer))
      to.push_back(std::move(layer));
    else if (is_use(inner))
      expand(layer, to);
    else
      throw Failure(kBadConfig, layer.place + ": layer \"" + local + "\": a parameter cannot make it a block");
  }

  // Returns a copy of a value in the block of a use, with the values of the parameters.
  Node copy(const Node& from, const Use& use) {
    Node result;
    result.place = use.place + ": in block \"" + use.block->name + "\" at " + from.place;
    result.is_inline = from.is_inline;
    charge(sizeof(Node) + result.place.size(), use);
    if (const auto* text = from.get<std::string>()) {
      fill(result, *text, use);
    } else if (const auto* list = from.get<Node::List>()) {
      auto& to = result.value.emplace<Node::List>();
      for (const Node& entry : *list) to.push_back(copy(entry, use));
    } else if (const auto* members = from.get<Node::Members>()) {
      auto& to = result.value.emplace<Node::Members>();
      for (const auto& [key, value] : *members) {
        charge(key.size(), use);
        to.emplace(key, copy(value, use));
      }
    } else {
      result.value = from.value;
    }
    return result;
  }

  // Sets `to` to a text of a block, with the values of the parameters. A text that is one parameter alone becomes its
  // value, of any kind.
  void fill(Node& to, const std::string& text, const Use& use) {
    std::string filled;
    size_t done = 0;
    const Node* whole = nullptr;
    find_placeholders(text, [&](size_t begin, size_t length, const std::string& word) {
      const Node& value = use.value(word);
      if (length == text.size()) {
        whole = &value;
        return;
      }
      const std::optional<std::string> part = text_of(value);
      if (!part)
        throw Failure(kBadConfig, to.place + ": \"" + text + "\": the parameter \"" + word + "\" is " + kind_of(value) +
                                      ", which cannot be a part of a text");
      charge(begin - done + part->size(), use);
      filled.append(text, done, begin - done).append(*part);
      done = begin + length;
    });
    charge(whole != nullptr ? bytes_of(*whole) : text.size() - done, use);
    if (whole != nullptr)
      to.value = whole->value;
    else
      to.value = filled.append(text, done);
  }

  void charge(size_t bytes, const Use& use) {
    bytes_ += bytes;
    if (bytes_ > kMostBytes)
      throw Failure(kBadConfig,
                    use.place + ": the blocks expand to more than " + std::to_string(kMostBytes >> 20) + " MiB");
  }

  const Blocks& blocks_;
  std::map<std::string, JobBlock> names_;
  size_t bytes_ = 0;  // copied so far
};

// Replaces the uses of blocks in the list `layer` of a table. Returns the blocks by name.
std::map<std::string, JobBlock> expand_in(Node& table, const Blocks& blocks) {
  Node* const node = table.find("layer");
  auto* const layers = node == nullptr || !node->is_list_of_tables() ? nullptr : node->get<Node::List>();
  if (layers == nullptr || std::none_of(layers->begin(), layers->end(), is_use)) return {};
  return Expansion(blocks).replace(*layers);
}

}  // namespace

std::map<std::string, JobBlock> expand_blocks(Node& job) {
  const Blocks blocks = blocks_of(job);
  std::map<std::string, JobBlock> names = expand_in(job, blocks);
  const auto expand_inside = [&](Node& table, const std::string& name) {
    for (auto& [block, of] : expand_in(table, blocks))
      names.emplace(name + "." + block, JobBlock{of.place, name + "." + of.output});
  };
  const auto each = [&](const char* key, const auto& work) {
    Node* const tables = job.find(key);
    if (tables == nullptr || !tables->is_list_of_tables()) return;
    for (Node& table : *tables->get<Node::List>()) work(table);
  };
  each("scan", [&](Node& scan) {
    const std::string* const name = scan.text("name");
    expand_inside(scan, name == nullptr ? "" : *name);
  });
  each("cond", [&](Node& cond) {
    for (const BranchTable& branch : branch_tables(cond)) expand_inside(*branch.table, branch.name);
  });
  job.get<Node::Members>()->erase("block");
  return names;
}

}  // namespace tenon::cli
