// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/topology.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "base/text.h"
#include "host/cli/cli.h"
#include "host/cli/job/component.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

// Returns kLayer for an unknown type: it is refused when the layer is made.
Role role_of(const Host& host, const std::string& type) try {
  const json described = json::parse(host.describe_type("layer", type));
  const std::string role = described.at("role").get<std::string>();
  return role == "cost" ? Role::kCost : role == "metric" ? Role::kMetric : Role::kLayer;
} catch (const Error& error) {
  if (error.code() != TN_NOT_FOUND && error.code() != TN_REFUSED) throw;
  return Role::kLayer;
}

tn_dtype dtype_of(const std::string& name) {
  static const std::map<std::string, tn_dtype> names = {{"float32", TN_F32},   {"float64", TN_F64}, {"float16", TN_F16},
                                                        {"bfloat16", TN_BF16}, {"int8", TN_I8},     {"int16", TN_I16},
                                                        {"int32", TN_I32},     {"int64", TN_I64},   {"uint8", TN_U8},
                                                        {"uint16", TN_U16},    {"uint32", TN_U32},  {"bool", TN_BOOL}};
  const auto found = names.find(name);
  if (found == names.end()) throw Failure(kInternal, "the library describes a slot of unknown type \"" + name + "\"");
  return found->second;
}

}  // namespace

Topology::Topology(const Host& host, const Job& job, const JobReader& reader, const OpenReader& open)
    : host_(host), job_(job), reader_(reader), open_(open) {
  for (const JobLayer& layer : job.layers) by_name_.emplace(layer.name, &layer);
  for (const JobLayer& layer : job.layers)
    if (roles_.find(layer.type) == roles_.end()) roles_.emplace(layer.type, role_of(host, layer.type));
}

Topology::Output Topology::find(const std::string& name) const {
  const auto layer = [this](const std::string& wanted) {
    const auto found = by_name_.find(wanted);
    return found == by_name_.end() ? nullptr : found->second;
  };
  if (const JobLayer* const whole = layer(name)) return {whole, 0, true};
  if (const auto block = job_.blocks.find(name); block != job_.blocks.end()) {
    const Output output = find(block->second.output);
    return {output.layer, output.number, true};
  }
  const size_t colon = name.rfind(':');
  if (colon == std::string::npos) return {};
  const JobLayer* const of = layer(name.substr(0, colon));
  uint32_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, failure] = std::from_chars(name.data() + colon + 1, end, number);
  if (failure == std::errc() && rest == end) return {of, number, false};
  if (of == nullptr) return {};
  const std::vector<std::string> named = output_names(of->type);
  const auto found = std::find(named.begin(), named.end(), name.substr(colon + 1));
  return found == named.end() ? Output() : Output{of, static_cast<uint32_t>(found - named.begin()), false};
}

std::vector<std::string> Topology::output_names(const std::string& type) const try {
  std::vector<std::string> result;
  const json described = json::parse(host_.describe_type("layer", type));
  for (const json& output : described.at("outputs")) result.push_back(output.at("name"));
  return result;
} catch (const Error&) {  // another message says that there is no such type
  return {};
}

std::vector<std::string> Topology::names() const {
  std::vector<std::string> result;
  for (const JobLayer& layer : job_.layers) result.push_back(layer.name);
  for (const auto& [name, block] : job_.blocks) result.push_back(name);
  return result;
}

std::string Topology::unknown(const std::string& name) const {
  return "the job has no layer \"" + name + "\"" + base::suggestion(name, names());
}

Layer Topology::layer(const std::string& name) {
  const Output output = find(name);
  if (output.layer == nullptr) throw Failure(kBadConfig, unknown(name));
  return layer(output, output.layer->place);
}

Layer Topology::layer(const Output& output, const Place& user) {
  Layer made = whole(*output.layer);
  if (output.whole && output.number == 0) return made;
  try {
    return made.output(output.number);
  } catch (const Error& error) {
    throw Failure(kBadConfig, user + ": " + error.what());
  }
}

Layers Topology::layers(const std::vector<std::string>& names) {
  Layers result;
  for (const std::string& name : names) result.push_back(layer(name));
  return result;
}

// Layers whose inputs are still to be made wait in a list: a chain may be longer than the thread's stack allows.
Layer Topology::whole(const JobLayer& wanted) {
  std::vector<Waiting> path{{&wanted}};
  while (made_.count(wanted.name) == 0) {
    const JobLayer& layer = *path.back().layer;
    if (path.back().checked == layer.inputs.size()) {
      made_.emplace(layer.name, make(layer));
      path.pop_back();
      continue;
    }
    const JobLayer* const source = source_of(layer.inputs[path.back().checked++]).layer;
    if (source == nullptr || made_.count(source->name) != 0) continue;
    const auto begin =
        std::find_if(path.begin(), path.end(), [&](const Waiting& each) { return each.layer == source; });
    if (begin != path.end()) {
      std::string cycle;
      for (auto step = begin; step != path.end(); ++step) cycle += "\"" + step->layer->name + "\" needs ";
      throw Failure(kBadConfig,
                    source->inputs_place + ": the layers form a cycle: " + cycle + "\"" + source->name + "\"");
    }
    path.push_back({source});
  }
  return made_.at(wanted.name);
}

Layer Topology::make(const JobLayer& layer) {
  Layers inputs;
  for (const std::string& name : layer.inputs) inputs.push_back(input(layer, name));
  if (layer.part) return make_part(layer, inputs);
  if (layer.cond_part) return make_cond_part(layer, inputs);
  try {
    find_saved(layer);
    Attributes attributes = layer.attributes;
    while (true) try {
        return host_.layer(layer.type, inputs, attributes, layer.name, saved_like(layer.name));
      } catch (const Error& error) {
        const std::optional<int64_t> value = value_for(layer, error);
        const auto added = [&](const Attribute& attribute) { return attribute.name == error.subject(); };
        if (!value || std::any_of(attributes.begin(), attributes.end(), added)) throw;
        attributes.push_back({error.subject(), *value});
      }
  } catch (const Error& error) {
    const std::string section = "layer \"" + layer.name + "\"";
    const std::string message = error.what() + label_hint(layer, error);
    rethrow_at(Error(error.code(), message, error.component(), error.subject()), host_,
               {"layer", layer, section, {"name", "type", "inputs"}, section + " (" + layer.type + ")", true});
  }
}

Layer Topology::make_part(const JobLayer& layer, const Layers& inputs) try {
  const JobScan& scan = *layer.scan;
  const auto found = steps_.find(&scan);
  const size_t over = layer.part->kind == JobScanPart::Kind::kScan ? 0 : 1;
  Step& step = found != steps_.end()
                   ? found->second
                   : steps_.emplace(&scan, begin_scan({inputs.at(over)}, {scan.reverse, scan.name})).first->second;
  switch (layer.part->kind) {
    case JobScanPart::Kind::kInput:
      return step.input(inputs[0], layer.name);
    case JobScanPart::Kind::kMemory:
      return inputs[0] ? step.memory(inputs[0], layer.name)
                       : step.memory(layer.part->shape, layer.part->value, layer.name, layer.part->carry);
    default:
      break;
  }
  const auto first = inputs.begin() + 1 + static_cast<std::ptrdiff_t>(scan.results);
  for (auto memory = first; memory != inputs.end(); memory += 2) step.next(memory[0], memory[1]);
  return end_scan(step, {inputs.begin() + 1, first}).layer;
} catch (const Error& error) {
  throw Failure(exit_code(error.code()), layer.place + ": " + error.what());
}

Layer Topology::make_cond_part(const JobLayer& layer, const Layers& inputs) try {
  const JobCond& of = *layer.cond;
  auto found = conds_.find(&of);
  if (found == conds_.end()) {
    Layers rows;
    for (uint32_t i = 0; i < of.branches; ++i) rows.push_back(inputs.at(1).output(i));
    found = conds_.emplace(&of, begin_cond(inputs[0], rows, of.name)).first;
  }
  if (layer.cond_part->kind == JobCondPart::Kind::kInput)
    return found->second.input(layer.cond_part->branch, inputs.at(2), layer.name);
  std::vector<Layers> results;
  for (auto each = inputs.begin() + 2; each != inputs.end(); each += static_cast<std::ptrdiff_t>(of.results))
    results.emplace_back(each, each + static_cast<std::ptrdiff_t>(of.results));
  return end_cond(found->second, results).layer;
} catch (const Error& error) {
  throw Failure(exit_code(error.code()), layer.place + ": " + error.what());
}

std::optional<int64_t> Topology::value_for(const JobLayer& layer, const Error& error) const {
  const std::string& name = error.subject();
  if (std::string(error.what()).find("attribute \"" + name + "\" is missing") == std::string::npos) return {};
  if (name == "size") return size_for(layer);
  if (name != "vocabulary" && name != "classes") return {};
  for (const std::string& input : layer.inputs)
    if (const Slot* const slot = slot_of(input); slot != nullptr) {
      if (slot->storage == TN_CSR) return slot->shape.at(0);
      if (slot->index_limit >= 0) return slot->index_limit;
    }
  return {};
}

// What a cost compares with integers are classes, with other numbers as many. Several costs must agree.
std::optional<int64_t> Topology::size_for(const JobLayer& layer) const {
  std::optional<int64_t> size;
  for (const JobLayer& cost : job_.layers) {
    if (roles_.at(cost.type) != Role::kCost || cost.inputs.empty() || find(cost.inputs[0]).layer != &layer) continue;
    for (const std::string& input : cost.inputs) {
      const Slot* const slot = slot_of(input);
      if (slot == nullptr) continue;
      const bool classes = slot->index_limit >= 0;
      if (!classes && (slot->shape.size() > 1 || slot->dtype.find("int") != std::string::npos)) return {};
      const int64_t numbers = slot->shape.empty() ? 1 : slot->shape[0];
      const int64_t outputs = classes ? slot->index_limit : numbers;
      if (size && *size != outputs) return {};
      size = outputs;
      break;  // inputs behind the label are weights and others
    }
  }
  return size;
}

// A column of a table without a type is whole numbers of any size or, as "1.0", numbers.
std::string Topology::label_hint(const JobLayer& layer, const Error& error) const {
  const bool size = error.subject() == "size", cost = roles_.at(layer.type) == Role::kCost;
  if (!size && !(cost && std::string(error.what()).find("are not integers") != std::string::npos)) return "";
  for (const JobLayer& user : job_.layers) {
    if (size ? roles_.at(user.type) != Role::kCost || user.inputs.empty() || find(user.inputs[0]).layer != &layer
             : &user != &layer)
      continue;
    for (const std::string& input : user.inputs)
      if (const Slot* const slot = slot_of(input); slot != nullptr && slot->index_limit < 0 && slot->shape.empty())
        return "; the reader does not know how many classes \"" + input + "\" has: with csv \"" + slot->name +
               ": i32 < 10\" in columns says so";
  }
  return "";
}

const Slot* Topology::slot_of(const std::string& input) const {
  if (input.empty() || source_of(input).layer != nullptr) return nullptr;
  for (const Slot& slot : open_.slots)
    if (use_of(reader_, slot.name).layer == input) return &slot;
  return nullptr;
}

void Topology::find_saved(const JobLayer& layer) {
  for (const Layer& output : saved_)
    if (std::optional<Layer> found = output.find(layer.name)) {
      const json type = json::parse(host_.describe_type("layer", layer.type)).at("type");  // a former name is replaced
      if (json::parse(found->describe()).at("type") == type) like_.emplace(layer.name, std::move(*found));
      return;
    }
}

const Layer* Topology::saved_like(const std::string& name) const {
  const auto found = like_.find(name);
  return found == like_.end() ? nullptr : &found->second;
}

Topology::Output Topology::source_of(const std::string& input) const {
  const Output output = find(input);
  const auto feeds = [&](const Slot& slot) { return use_of(reader_, slot.name).layer == input; };
  const bool slot = !output.whole && std::any_of(open_.slots.begin(), open_.slots.end(), feeds);
  return slot ? Output() : output;
}

Layer Topology::input(const JobLayer& layer, const std::string& name) {
  if (name.empty()) return {};  // an optional input that is left out
  const Output source = source_of(name);
  return source.layer != nullptr ? this->layer(source, layer.inputs_place) : data(layer, name);
}

Layer Topology::data(const JobLayer& user, const std::string& name) {
  const auto made = data_.find(name);
  if (made != data_.end()) return made->second.layer;
  std::vector<std::string> fed;
  for (const Slot& slot : open_.slots) {
    const JobSlot use = use_of(reader_, slot.name);
    fed.push_back(use.layer);
    if (use.layer != name) continue;
    DataOptions options;
    options.name = name;
    options.dtype = dtype_of(slot.dtype);
    options.shape = slot.shape;
    options.index_limit = slot.index_limit;
    options.scale = use.scale;
    options.offset = use.offset;
    options.storage = slot.storage;
    options.levels = slot.levels;
    options.sequence = use.sequence;
    options.layout = use.channels_first ? TN_CHANNELS_FIRST : TN_CHANNELS_LAST;
    DataLayer& data = data_[name];
    data.slot = slot;
    data.scale = use.scale;
    data.offset = use.offset;
    data.channels_first = use.channels_first;
    return data.layer = host_.data(options);
  }
  std::vector<std::string> known = names();
  known.insert(known.end(), fed.begin(), fed.end());
  const std::string near = base::nearest(name, known);
  throw Failure(kBadConfig,
                user.inputs_place + ": layer \"" + user.name + "\": input \"" + name +
                    "\" is not a layer of the job, and no slot of [reader." + reader_.name + "] feeds it" +
                    (near.empty() ? "; layers: " + base::listed(names()) + "; slots feed: " + base::listed(fed)
                                  : "; did you mean \"" + near + "\"?"));
}

std::vector<std::string> Topology::outputs() const {
  for (const std::string& name : job_.outputs)
    if (find(name).layer == nullptr)
      throw Failure(kBadConfig, job_.outputs_place + ": key \"outputs\": " + unknown(name));
  if (!job_.outputs.empty()) return job_.outputs;
  std::set<const JobLayer*> used;
  for (const JobLayer& layer : job_.layers)
    for (const std::string& input : layer.inputs) {
      const Output output = find(input);
      // A cost that a metric reads is trained as well: a perplexity does not take it out of the model.
      if (output.layer != nullptr && roles_.at(layer.type) == Role::kMetric && role(input) == Role::kCost) continue;
      used.insert(output.layer);
    }
  std::vector<std::string> result;
  for (const JobLayer& layer : job_.layers)
    if (used.count(&layer) == 0 && !layer.is_inside()) result.push_back(layer.name);
  // Every layer is used by another one, so there is a cycle. Making any of them reports it.
  return result.empty() ? names() : result;
}

Role Topology::role(const std::string& name) const {
  const Output output = find(name);
  if (output.layer == nullptr) throw Failure(kBadConfig, unknown(name));
  return output.number == 0 ? roles_.at(output.layer->type) : Role::kLayer;  // output 0 of a cost is the cost
}

std::vector<std::string> Topology::measured() const {
  std::vector<std::string> result;
  for (const std::string& name : outputs())
    if (role(name) != Role::kLayer) result.push_back(name);
  return result;
}

std::set<std::string> Topology::inputs_of(std::vector<std::string> left) const {
  std::set<std::string> inputs;
  while (!left.empty()) {
    const JobLayer* const layer = find(left.back()).layer;
    left.pop_back();
    if (layer == nullptr) continue;  // a slot
    for (const std::string& input : layer->inputs)
      if (!input.empty() && inputs.insert(input).second) left.push_back(input);
  }
  return inputs;
}

// Returns whether the layer is computed from a cost, directly or not.
bool Topology::reads_cost(const std::string& name) const {
  const std::set<std::string> inputs = inputs_of({name});
  return std::any_of(inputs.begin(), inputs.end(),
                     [this](const std::string& input) { return has_layer(input) && role(input) == Role::kCost; });
}

std::vector<std::string> Topology::trained() const {
  std::vector<std::string> result;
  for (const std::string& name : outputs())
    if (role(name) != Role::kLayer || reads_cost(name)) result.push_back(name);
  return result;
}

std::map<std::string, json> Topology::described() const {
  std::map<std::string, json> result;
  for (const auto& [name, layer] : made_) result[name] = json::parse(layer.describe());
  for (const auto& [name, data] : data_) {
    result[name] = {{"type", "data"},           {"dtype", data.slot.dtype},
                    {"shape", data.slot.shape}, {"index_limit", data.slot.index_limit},
                    {"scale", data.scale},      {"offset", data.offset}};
    if (data.channels_first) result[name]["layout"] = "channels_first";
  }
  return result;
}

void Topology::check_fed_by(const JobReader& reader, const OpenReader& open) const {
  for (const auto& [name, data] : data_) {
    const auto feeds = [&, layer = name](const Slot& slot) { return use_of(reader, slot.name).layer == layer; };
    const auto slot = std::find_if(open.slots.begin(), open.slots.end(), feeds);
    const std::string what = reader.place + ": [reader." + reader.name + "]: ";
    if (slot == open.slots.end())
      throw Failure(kBadConfig,
                    what + "no slot feeds data layer \"" + name + "\"" + base::suggestion(name, names_of(open.slots)));
    if (slot->dtype != data.slot.dtype || slot->shape != data.slot.shape || slot->storage != data.slot.storage ||
        slot->levels != data.slot.levels)
      throw Failure(kBadConfig, what + "slot \"" + slot->name + "\" holds " + to_string(*slot) + ", but data layer \"" +
                                    name + "\" is " + to_string(data.slot) + " in [reader." + reader_.name + "]");
    const bool fewer = slot->named && data.slot.named && slot->index_limit < data.slot.index_limit;
    if (slot->index_limit >= 0 && data.slot.index_limit >= 0 && slot->index_limit != data.slot.index_limit && !fewer)
      throw Failure(kBadConfig, what + "slot \"" + slot->name + "\" has numbers below " +
                                    std::to_string(slot->index_limit) + ", but data layer \"" + name +
                                    "\" has numbers below " + std::to_string(data.slot.index_limit) + " in [reader." +
                                    reader_.name + "], " + reader_.place +
                                    ": give both readers the same vocabulary, labels or classes");
  }
}

// The component of a layer's error is `layer "hidden" (fc)`, of a leaf of its expansion `layer "hidden/fc" (fc)`.
void Topology::rethrow(const Error& error) const {
  const JobLayer* found = nullptr;
  for (const JobLayer& layer : job_.layers) {
    const std::string begin = "layer \"" + layer.name;
    if (error.component().rfind(begin, 0) != 0) continue;
    const char next = error.component()[begin.size()];
    const bool longer = found == nullptr || layer.name.size() > found->name.size();
    if ((next == '"' || next == '/') && longer) found = &layer;
  }
  const auto throw_at = [&](const Place& place) {
    throw Failure(exit_code(error.code()), place + ": " + error.what());
  };
  if (found != nullptr) throw_at(found->place);
  for (size_t i = 0; i < job_.updater_groups.size(); ++i)
    if (error.component() == "updater group " + std::to_string(i + 1)) throw_at(job_.updater_groups[i].place);
  const std::vector<std::string>& frozen = job_.immutable_parameters;
  if (error.code() == TN_NOT_FOUND && std::find(frozen.begin(), frozen.end(), error.subject()) != frozen.end())
    throw_at(job_.immutable_place);
  throw error;
}

}  // namespace tenon::cli
