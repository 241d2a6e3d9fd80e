// SPDX-License-Identifier: Apache-2.0
#include "host/cli/build.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "host/cli/cli.h"
#include "host/cli/suggest.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

// A component of the job, with the names that messages use.
struct JobComponent {
  const char* kind;  // "layer", "updater", "reader"
  const JobType& type;
  std::string section;            // for messages: `layer "hidden"`, "[updater]"
  std::vector<std::string> keys;  // keys of the job file beside the attributes
  std::string component;          // its name in errors of the library
  bool named = false;             // the library's messages name the section already
};

// Returns the names of a type's attributes, host attributes included.
std::vector<std::string> attributes_of(const Host& host, const JobComponent& wanted) {
  const json described = json::parse(host.describe_type(wanted.kind, wanted.type.type));
  std::vector<std::string> result = described.value("host_attributes", std::vector<std::string>());
  for (const json& attribute : described.at("attributes")) result.push_back(attribute.at("name").get<std::string>());
  return result;
}

// Throws an error of the library as a Failure that begins with the place of the component or attribute in the job.
[[noreturn]] void rethrow_at(const Error& error, const Host& host, const JobComponent& wanted) {
  const bool own = error.component() == wanted.component;
  const std::string message = (own && wanted.named ? "" : wanted.section + ": ") + error.what();
  const auto place = own ? wanted.type.places.find(error.subject()) : wanted.type.places.end();
  if (place == wanted.type.places.end()) throw Failure(exit_code(error.code()), wanted.type.place + ": " + message);
  const std::string key = nearest(place->first, wanted.keys);
  if (!key.empty() && nearest(place->first, attributes_of(host, wanted)).empty())
    throw Failure(kBadConfig, place->second + ": " + wanted.section + ": unknown key \"" + place->first +
                                  "\"; did you mean \"" + key + "\"?");
  throw Failure(exit_code(error.code()), place->second + ": " + message);
}

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

void read_schema(OpenReader& open) {
  const json schema = json::parse(open.reader.describe());
  open.samples = schema.at("samples").get<int64_t>();
  open.batch = schema.at("batch").get<int64_t>();
  for (const json& entry : schema.at("slots")) open.slots.push_back(slot_of(entry));
  for (const Names& names : open.reader.names())
    for (Slot& slot : open.slots) slot.named = slot.named || slot.name == names.slot;
}

std::vector<std::string> names_of(const std::vector<Slot>& slots) {
  std::vector<std::string> result;
  for (const Slot& slot : slots) result.push_back(slot.name);
  return result;
}

const Slot* find(const std::vector<Slot>& slots, const std::string& name) {
  const auto found = std::find_if(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.name == name; });
  return found == slots.end() ? nullptr : &*found;
}

// Refuses keys that have no effect on a slot of this kind.
void check_use(const JobReader& reader, const JobSlot& use, const Slot& slot) {
  const auto refuse = [&](const char* keys, const char* needed) {
    throw Failure(kBadConfig, use.place + ": [reader." + reader.name + "]: slot \"" + use.slot + "\": " + keys +
                                  " for " + needed + ", but the slot holds " + to_string(slot));
  };
  if ((use.scale != 1 || use.offset != 0) && slot.dtype.find("float") != std::string::npos)
    refuse("scale and offset are", "integers");
  if (!use.sequence.empty() && slot.storage != TN_RAGGED) refuse("key \"sequence\" is", "sequences");
}

// Connects slots to data layers as the job says. [reader.test] may lack slots that it takes over from [reader.train],
// such as labels.
void use_slots(const JobReader& reader, OpenReader& open) {
  for (const JobSlot& use : reader.slots) {
    const Slot* slot = find(open.slots, use.slot);
    if (slot == nullptr && reader.own_slots)
      throw Failure(kBadConfig, use.place + ": [reader." + reader.name + "]: the reader has no slot \"" + use.slot +
                                    "\"" + suggestion(use.slot, names_of(open.slots)));
    if (slot == nullptr) continue;
    check_use(reader, use, *slot);
    if (use.slot != use.layer) open.feeding.emplace_back(use.slot, use.layer);
  }
}

// Returns the job's entry for a slot; without one the slot feeds the data layer of its name.
JobSlot use_of(const JobReader& reader, const std::string& slot) {
  for (const JobSlot& use : reader.slots)
    if (use.slot == slot) return use;
  JobSlot result;
  result.slot = result.layer = slot;
  return result;
}

// Returns the name of a slot before `choose`, "" if `choose` drops it.
std::string before(const JobSource& source, const std::string& slot) {
  if (source.choose.empty()) return slot;
  for (const auto& [old, chosen] : source.choose)
    if (chosen == slot) return old;
  return "";
}

// Turns names by data layer into names by slot of a source, for the data layers that its slots feed.
std::vector<Names> names_for(const JobReader& reader, const JobSource& source, const std::vector<Names>& known) {
  std::vector<Names> result;
  for (Names names : known) {
    std::string slot = use_of(reader, names.slot).layer == names.slot ? names.slot : "";
    for (const JobSlot& use : reader.slots)
      if (use.layer == names.slot) slot = use.slot;
    if (&source != &reader) slot = before(reader, slot);
    names.slot = before(source, slot);
    if (!names.slot.empty()) result.push_back(std::move(names));
  }
  return result;
}

Reader open_source(const Host& host, const Job& job, const JobReader& reader, const JobSource& source,
                   const std::vector<Names>& known, bool schema_alone) {
  Reader opened = host.reader(source.type, source.attributes, job.directory, static_cast<uint32_t>(reader.shard),
                              static_cast<uint32_t>(reader.shards), names_for(reader, source, known),
                              static_cast<uint64_t>(job.seed), schema_alone);
  return source.choose.empty() ? opened : std::move(opened).choose(source.choose);
}

Reader open_parts(const Host& host, const Job& job, const JobReader& reader, const std::string& what,
                  const std::vector<Names>& known, bool schema_alone) {
  std::vector<Reader> parts;
  for (const JobSource& part : reader.parts) {
    try {
      parts.push_back(open_source(host, job, reader, part, known, schema_alone));
    } catch (const Error& error) {
      rethrow_at(error, host,
                 {"reader",
                  part,
                  what + ": part " + std::to_string(parts.size() + 1),
                  {"type", "choose"},
                  "reader \"" + part.type + "\""});
    }
  }
  Reader joined = reader.join == "chain"        ? chain(std::move(parts))
                  : reader.join == "interleave" ? interleave(std::move(parts))
                                                : compose(std::move(parts));
  return reader.choose.empty() ? joined : std::move(joined).choose(reader.choose);
}

Reader in_minibatches(Reader samples, const Job& job, const JobReader& reader, bool in_order) {
  if (in_order || !reader.bucket) return std::move(samples).batch(reader.batch, reader.drop_last && !in_order);
  BucketOptions options;
  options.slot = reader.bucket->slot;
  options.window = reader.bucket->window;
  options.samples = reader.batch;
  options.rows = reader.bucket->rows;
  options.seed = static_cast<uint64_t>(job.seed);
  return std::move(samples).bucket(options);
}

}  // namespace

OpenReader open_reader(const Host& host, const Job& job, const JobReader& reader, bool in_order,
                       const std::vector<Names>& known, bool schema_alone) {
  OpenReader open;
  const std::string what = "[reader." + reader.name + "]";
  try {
    Reader samples = reader.parts.empty() ? open_source(host, job, reader, reader, known, schema_alone)
                                          : open_parts(host, job, reader, what, known, schema_alone);
    if (reader.first_n) samples = std::move(samples).first_n(*reader.first_n);
    if (reader.shuffle && !in_order)
      samples = std::move(samples).shuffle(static_cast<uint64_t>(job.seed), reader.shuffle_buffer);
    open.reader = in_minibatches(std::move(samples), job, reader, in_order);
    if (reader.prefetch > 0) open.reader = std::move(open.reader).buffered(reader.prefetch);
    read_schema(open);
    use_slots(reader, open);
  } catch (const Error& error) {
    std::vector<std::string> keys{"type", "part", "join", "choose"};
    keys.insert(keys.end(), std::begin(kReaderKeys), std::end(kReaderKeys));
    rethrow_at(error, host, {"reader", reader, what, keys, "reader \"" + reader.type + "\""});
  }
  return open;
}

std::vector<Names> names_of(const JobReader& reader, const OpenReader& open) {
  std::vector<Names> result = open.reader.names();
  for (Names& names : result) names.slot = use_of(reader, names.slot).layer;
  return result;
}

void require_samples(const JobReader& reader, int64_t samples) {
  if (samples == 0)
    throw Failure(kBadData, reader.place + ": [reader." + reader.name +
                                "] gave no samples: its data is empty, or shards or drop_last leave nothing of it");
}

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
  uint32_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, failure] = std::from_chars(name.data() + colon + 1, end, number);
  if (failure != std::errc() || rest != end) return {};
  return {layer(name.substr(0, colon)), number, false};
}

std::vector<std::string> Topology::names() const {
  std::vector<std::string> result;
  for (const JobLayer& layer : job_.layers) result.push_back(layer.name);
  for (const auto& [name, block] : job_.blocks) result.push_back(name);
  return result;
}

std::string Topology::unknown(const std::string& name) const {
  return "the job has no layer \"" + name + "\"" + suggestion(name, names());
}

Layer Topology::layer(const std::string& name) {
  const Output output = find(name);
  if (output.layer == nullptr) throw Failure(kBadConfig, unknown(name));
  return layer(output, output.layer->place);
}

Layer Topology::layer(const Output& output, const Place& user) {
  const auto known = made_.find(output.layer->name);
  const Layer made = known != made_.end() ? known->second : made_[output.layer->name] = make(*output.layer);
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

Layer Topology::make(const JobLayer& layer) {
  const auto begin = std::find(path_.begin(), path_.end(), layer.name);
  if (begin != path_.end()) {
    std::string cycle;
    for (auto step = begin; step != path_.end(); ++step) cycle += "\"" + *step + "\" needs ";
    throw Failure(kBadConfig, layer.inputs_place + ": the layers form a cycle: " + cycle + "\"" + layer.name + "\"");
  }
  constexpr size_t kMostDepth = 10000;
  if (path_.size() == kMostDepth)
    throw Failure(kBadConfig, layer.place + ": layer \"" + layer.name + "\": a chain of more than " +
                                  std::to_string(kMostDepth) + " layers");
  path_.push_back(layer.name);
  Layers inputs;
  for (const std::string& name : layer.inputs) inputs.push_back(input(layer, name));
  path_.pop_back();
  try {
    find_saved(layer);
    return host_.layer(layer.type, inputs, layer.attributes, layer.name, saved_like(layer.name));
  } catch (const Error& error) {
    const std::string section = "layer \"" + layer.name + "\"";
    const std::string message = error.what() + limits_for(layer, error);
    rethrow_at(Error(error.code(), message, error.component(), error.subject()), host_,
               {"layer", layer, section, {"name", "type", "inputs"}, section + " (" + layer.type + ")", true});
  }
}

// The attribute that is missing may be a number of classes or words.
std::string Topology::limits_for(const JobLayer& layer, const Error& error) const {
  std::string result;
  if (std::string(error.what()).find("attribute \"" + error.subject() + "\" is missing") == std::string::npos)
    return result;
  for (const std::string& input : layer.inputs)
    if (const auto data = data_.find(input); data != data_.end() && data->second.slot.index_limit >= 0)
      result += "; \"" + input + "\" has integers from 0 to " + std::to_string(data->second.slot.index_limit - 1);
  return result;
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

Layer Topology::input(const JobLayer& layer, const std::string& name) {
  const Output output = find(name);
  const auto feeds = [&](const Slot& slot) { return use_of(reader_, slot.name).layer == name; };
  const bool slot = !output.whole && std::any_of(open_.slots.begin(), open_.slots.end(), feeds);
  return output.layer != nullptr && !slot ? this->layer(output, layer.inputs_place) : data(layer, name);
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
    DataLayer& data = data_[name];
    data.slot = slot;
    data.scale = use.scale;
    data.offset = use.offset;
    return data.layer = host_.data(options);
  }
  std::vector<std::string> known = names();
  known.insert(known.end(), fed.begin(), fed.end());
  const std::string near = nearest(name, known);
  throw Failure(kBadConfig, user.inputs_place + ": layer \"" + user.name + "\": input \"" + name +
                                "\" is not a layer of the job, and no slot of [reader." + reader_.name + "] feeds it" +
                                (near.empty() ? "; layers: " + listed(names()) + "; slots feed: " + listed(fed)
                                              : "; did you mean \"" + near + "\"?"));
}

std::vector<std::string> Topology::outputs() const {
  for (const std::string& name : job_.outputs)
    if (find(name).layer == nullptr)
      throw Failure(kBadConfig, job_.outputs_place + ": key \"outputs\": " + unknown(name));
  if (!job_.outputs.empty()) return job_.outputs;
  std::set<const JobLayer*> used;
  for (const JobLayer& layer : job_.layers)
    for (const std::string& input : layer.inputs) used.insert(find(input).layer);
  std::vector<std::string> result;
  for (const JobLayer& layer : job_.layers)
    if (used.count(&layer) == 0) result.push_back(layer.name);
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
      if (inputs.insert(input).second) left.push_back(input);
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
  for (const auto& [name, data] : data_)
    result[name] = {{"type", "data"},           {"dtype", data.slot.dtype},
                    {"shape", data.slot.shape}, {"index_limit", data.slot.index_limit},
                    {"scale", data.scale},      {"offset", data.offset}};
  return result;
}

void Topology::check_fed_by(const JobReader& reader, const OpenReader& open) const {
  for (const auto& [name, data] : data_) {
    const auto feeds = [&, layer = name](const Slot& slot) { return use_of(reader, slot.name).layer == layer; };
    const auto slot = std::find_if(open.slots.begin(), open.slots.end(), feeds);
    const std::string what = reader.place + ": [reader." + reader.name + "]: ";
    if (slot == open.slots.end())
      throw Failure(kBadConfig,
                    what + "no slot feeds data layer \"" + name + "\"" + suggestion(name, names_of(open.slots)));
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
  if (found == nullptr) throw error;
  throw Failure(exit_code(error.code()), found->place + ": " + error.what());
}

Updater make_updater(const Host& host, const Job& job) {
  if (!job.updater) throw Failure(kBadConfig, job.path + ": training needs an [updater]");
  try {
    return host.updater(job.updater->type, job.updater->attributes);
  } catch (const Error& error) {
    rethrow_at(error, host, {"updater", *job.updater, "[updater]", {"type"}, "updater \"" + job.updater->type + "\""});
  }
}

std::vector<UpdaterGroup> make_updater_groups(const Host& host, const Job& job) {
  std::vector<UpdaterGroup> result;
  for (size_t i = 0; i < job.updater_groups.size(); ++i) {
    const JobUpdaterGroup& group = job.updater_groups[i];
    try {
      result.push_back({host.updater(group.type, group.attributes), group.parameters});
    } catch (const Error& error) {
      rethrow_at(error, host,
                 {"updater", group, group_name(i), {"type", "parameters"}, "updater \"" + group.type + "\""});
    }
  }
  return result;
}

const JobReader& reader_of(const Job& job, const std::string& name) {
  if (name == "train" && job.train) return *job.train;
  if (name == "test" && job.test) return *job.test;
  throw Failure(kBadConfig, job.path + ": the job has no [reader." + name + "]");
}

}  // namespace tenon::cli
