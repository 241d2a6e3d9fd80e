// SPDX-License-Identifier: Apache-2.0
#include "host/layers/topology_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/text.h"
#include "core/error.h"
#include "host/layers/host_attributes.h"
#include "host/layers/layer_ports.h"

namespace tenon::host {

namespace {

// The name of the layer that stands for a block outside, and the number of a branch; "" for the global block.
using BlockKey = std::pair<std::string, size_t>;

BlockKey block_of(const Layer& layer) {
  if (layer.scan != nullptr) return {layer.scan->name, 0};
  if (layer.branch != nullptr) return {layer.branch->cond->name, layer.branch->number};
  return {};
}

// A list of words with commas between them.
class Words {
 public:
  void add(const std::string& word) { base::append(text_, word); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class TextWriter {
 public:
  TextWriter(const Topology& topology, Registry& registry, const SymbolNames& names)
      : topology_(topology), registry_(registry), names_(names) {
    for (const LayerRef& layer : topology.layers) blocks_[block_of(*layer)].push_back(layer);
  }

  std::string run() {
    write_block({}, "block 0", 0);
    Words outputs;
    for (const LayerOutput& output : topology_.outputs) outputs.add(output_name(output));
    line(0, "outputs " + outputs.text());
    return std::move(text_);
  }

 private:
  // A name with a line end in it must not look like two lines.
  void line(int depth, std::string words) {
    std::replace(words.begin(), words.end(), '\n', ' ');
    text_ += std::string(static_cast<size_t>(2 * depth), ' ') + words + "\n";
  }

  void write_block(const BlockKey& key, const std::string& title, int depth) {
    line(depth, title + " {");
    if (depth == 0) write_parameters();
    for (const LayerRef& layer : blocks_[key]) {
      write_blocks_of(*layer, depth + 1);
      line(depth + 1, operator_of(layer));
    }
    line(depth, "}");
  }

  // Writes the blocks whose results a layer gives outside.
  void write_blocks_of(const Layer& layer, int depth) {
    if (layer.scan_part() && layer.scan_part()->kind == ScanPart::Kind::kScan)
      write_block({layer.name, 0}, text("block ", ++last_block_, ", each step of ", layer.name), depth);
    if (!layer.cond_part() || layer.cond_part()->kind != CondPart::Kind::kCond) return;
    for (size_t branch = 0; branch < layer.cond_part()->cond->branches; ++branch)
      write_block({layer.name, branch}, text("block ", ++last_block_, ", branch ", branch, " of ", layer.name), depth);
  }

  // Writes each parameter and buffer once, with the attributes that a layer states for it.
  void write_parameters() {
    std::set<std::string> known;
    for (const LayerRef& layer : topology_.layers)
      for (const LayerRef& leaf : leaves_of(layer)) {
        for (const LayerParameter& each : leaf->parameters) write_parameter("parameter ", each, *layer, known);
        for (const LayerParameter& each : leaf->buffers) write_parameter("buffer ", each, *layer, known);
      }
  }
  void write_parameter(const char* word, const LayerParameter& parameter, const Layer& layer,
                       std::set<std::string>& known) {
    if (!known.insert(parameter.name).second) return;
    Words settings;
    for (const auto& [name, value] : layer.given) {
      const auto setting = parameter_setting(name);
      if (setting && setting->suffix == parameter.path && setting->key != kNameKey)
        settings.add(setting->key + " = " + shown(value));
    }
    Spec spec = parameter.spec;
    if (spec.dtype == TN_COMPUTE) spec.dtype = TN_F32;  // the type of stored values
    line(1, word + parameter.name + ": " + to_string(spec, names_) +
                (settings.text().empty() ? "" : " (" + settings.text() + ")"));
  }

  [[nodiscard]] std::string operator_of(const LayerRef& layer) const {
    Words outputs, arguments;
    for (uint32_t i = 0; i < layer->outputs.size(); ++i)
      outputs.add(output_name({layer, i}) + ": " + to_string(layer->outputs[i], names_));
    add_inputs(*layer, arguments);
    add_parameters(layer, arguments);
    add_attributes(*layer, arguments);
    const std::string made = outputs.text().empty() ? layer->name : outputs.text();
    return made + " = " + layer->type + "(" + arguments.text() + ")";
  }

  // Inputs by port; several of one port as a list.
  void add_inputs(const Layer& layer, Words& arguments) const {
    for (size_t i = 0; i < layer.inputs.size();) {
      const std::string port = input_port(registry_, layer, i);
      std::vector<std::string> values;
      for (; i < layer.inputs.size() && input_port(registry_, layer, i) == port; ++i)
        values.push_back(layer.inputs[i].layer == nullptr ? "none" : output_name(layer.inputs[i]));
      Words list;
      for (const std::string& value : values) list.add(value);
      if (values.size() > 1)
        arguments.add(port + " = [" + list.text() + "]");
      else if (layer.inputs[i - 1].layer != nullptr)
        arguments.add(port + " = " + list.text());
    }
  }

  static void add_parameters(const LayerRef& layer, Words& arguments) {
    for (const LayerRef& leaf : leaves_of(layer))
      for (const auto* const list : {&leaf->parameters, &leaf->buffers})
        for (const LayerParameter& each : *list) arguments.add(each.path + " = " + each.name);
  }

  // Those of the type that are not absent, and those of the host that are not of a parameter.
  static void add_attributes(const Layer& layer, Words& arguments) {
    Values all = part_attributes(layer);
    all.insert(layer.resolved.begin(), layer.resolved.end());
    for (const auto& [name, value] : layer.given)
      if (!parameter_setting(name) && name != kParameterName) all.emplace(name, value);
    for (const auto& [name, value] : all)
      if (!std::holds_alternative<Absent>(value)) arguments.add(name + " = " + shown(value));
  }

  const Topology& topology_;
  Registry& registry_;
  const SymbolNames& names_;
  std::map<BlockKey, std::vector<LayerRef>> blocks_;
  size_t last_block_ = 0;
  std::string text_;
};

}  // namespace

std::string text_of(const Topology& topology, Registry& registry, const SymbolNames& names) {
  return TextWriter(topology, registry, names).run();
}

}  // namespace tenon::host
