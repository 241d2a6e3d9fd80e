// Makes layers from the topology in a model file. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "host/layers/host_attributes.h"
#include "host/layers/layer_factory.h"

namespace tenon::host {

namespace {

using nlohmann::json;

const char* kind_of(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "a list";
    case json::value_t::string:
      return "a text";
    case json::value_t::boolean:
      return "true or false";
    default:
      return "a number";
  }
}

template <typename... Parts>
[[noreturn]] void bad(const Parts&... parts) {
  fail(TN_BAD_DATA, "topology: ", parts...);
}

// A value of the file, which may be of any kind, and its name in messages.
class JsonNode {
 public:
  JsonNode(const json& value, std::string who) : value_(value), who_(std::move(who)) {}

  [[nodiscard]] JsonNode at(const std::string& key) const {
    const auto found = object().find(key);
    if (found == value_.end()) bad(member(key), " is missing");
    return {*found, member(key)};
  }
  [[nodiscard]] const std::string& who() const { return who_; }
  [[nodiscard]] bool has(const char* key) const { return object().contains(key); }
  [[nodiscard]] const json& object() const {
    if (!value_.is_object()) unexpected("an object");
    return value_;
  }
  [[nodiscard]] std::vector<JsonNode> list() const {
    if (!value_.is_array()) unexpected("a list");
    std::vector<JsonNode> result;
    for (size_t i = 0; i < value_.size(); ++i) result.emplace_back(value_[i], core::text(who_, "[", i, "]"));
    return result;
  }
  [[nodiscard]] std::string text() const {
    if (!value_.is_string()) unexpected("a text");
    return std::get<std::string>(value());
  }
  [[nodiscard]] int64_t integer() const {
    if (!value_.is_number_integer()) unexpected("an integer");
    return std::get<int64_t>(value());
  }
  [[nodiscard]] double number() const {
    if (!value_.is_number()) unexpected("a number");
    return value_.get<double>();
  }
  [[nodiscard]] bool boolean() const {
    if (!value_.is_boolean()) unexpected("true or false");
    return value_.get<bool>();
  }
  [[nodiscard]] const json& json_value() const { return value_; }
  [[nodiscard]] Value value() const {
    try {
      return value_from_json(value_);
    } catch (const Error& error) {
      bad(who_, ": ", error.message());
    }
  }

 private:
  [[noreturn]] void unexpected(const char* expected) const {
    bad(who_, " is ", kind_of(value_), "; expected ", expected);
  }
  [[nodiscard]] std::string member(const std::string& key) const {
    return core::text(who_, who_.empty() ? "\"" : ": \"", key, "\"");
  }

  const json& value_;
  std::string who_;
};

// Returns the layer output whose output_name is `name`.
LayerOutput find_output(const std::map<std::string, LayerRef>& layers, const std::string& name) {
  if (name.empty()) return {};
  const auto whole = layers.find(name);
  if (whole != layers.end()) return {whole->second, 0};
  const size_t colon = name.rfind(':');
  const auto entry = colon == std::string::npos ? layers.end() : layers.find(name.substr(0, colon));
  if (entry == layers.end()) bad("layer \"", name, "\" is used before it is described");
  const std::string number = name.substr(colon + 1);
  const bool digits = !number.empty() && number.size() < 6 &&
                      std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
  const auto output = digits ? static_cast<uint32_t>(std::stoul(number)) : ~0U;
  if (output >= entry->second->outputs.size()) bad("no output \"", name, "\"");
  return {entry->second, output};
}

std::vector<LayerOutput> inputs_of(const JsonNode& entry, const std::map<std::string, LayerRef>& layers) {
  std::vector<LayerOutput> inputs;
  for (const JsonNode& input : entry.at("inputs").list()) inputs.push_back(find_output(layers, input.text()));
  return inputs;
}

DataSource source_from(const JsonNode& entry) {
  DataSource source;
  source.dtype = dtype_from_name(entry.at("dtype").text());
  for (const JsonNode& extent : entry.at("shape").list()) source.shape.push_back(extent.integer());
  source.index_limit = entry.at("index_limit").integer();
  source.scale = entry.at("scale").number();
  source.offset = entry.at("offset").number();
  if (entry.has("layout")) {
    const std::string layout = entry.at("layout").text();
    if (layout != "channels_first") bad("layout \"", layout, "\"; expected \"channels_first\", or none");
    source.channels_first = true;
  }
  if (!entry.has("storage")) return source;
  const std::string storage = entry.at("storage").text();
  if (storage != "ragged" && storage != "csr") bad("storage \"", storage, "\"");
  source.storage = storage == "csr" ? TN_CSR : TN_RAGGED;
  if (storage == "csr") return source;
  const int64_t levels = entry.at("levels").integer();
  if (levels != 1 && levels != 2) bad(levels, " levels; expected 1 or 2");
  source.levels = static_cast<uint32_t>(levels);
  source.sequence = entry.at("sequence").text();
  return source;
}

TypeVersion version_from(const JsonNode& entry) {
  const JsonNode plugin = entry.at("plugin");
  const JsonNode state = plugin.at("state_version");
  TypeVersion from{plugin.at("id").text(), plugin.at("version").text(), 0};
  const int64_t number = state.integer();
  if (number < 0 || number > std::numeric_limits<uint32_t>::max())
    bad(state.who(), " is ", number, "; expected 0 to ", std::numeric_limits<uint32_t>::max());
  from.state_version = static_cast<uint32_t>(number);
  return from;
}

// Reads the members that layers and inner layers share. Moves attributes of the host to `host`. Null stands for an
// absent attribute in files that state a version.
SavedLayer layer_from(const JsonNode& entry, Values& host) {
  SavedLayer layer{entry.at("name").text(), entry.at("type").text(), {}, {}};
  if (entry.has("plugin")) layer.from = version_from(entry);
  const JsonNode attributes = entry.at("attributes");
  for (const auto& [key, value] : attributes.object().items()) {
    if (key.find('\0') != std::string::npos)
      bad("layer \"", layer.name, "\": the name of an attribute has a NUL in it");
    const bool own = !is_host_attribute(key);
    const bool absent = own && layer.from && value.is_null();
    (own ? layer.attributes : host)[key] = absent ? Value() : attributes.at(key).value();
  }
  return layer;
}

std::map<std::string, SavedLayer> inner_layers_from(const JsonNode& entry) {
  std::map<std::string, SavedLayer> result;
  if (!entry.has("inner")) return result;
  for (const JsonNode& inner : entry.at("inner").list()) {
    Values host;
    SavedLayer layer = layer_from(inner, host);
    if (!layer.from) bad(inner.who(), ": \"plugin\" is missing");
    if (!host.empty()) bad(inner.who(), ": \"attributes\": \"", host.begin()->first, "\" is an attribute of the host");
    const std::string name = layer.name;
    if (!result.emplace(name, std::move(layer)).second) bad("two inner layers named \"", name, "\"");
  }
  return result;
}

// Checks the description of buffers, which only other programs read.
void check_buffers(const JsonNode& entry) {
  if (!entry.has("buffers")) return;
  const JsonNode buffers = entry.at("buffers");
  for (const auto& item : buffers.object().items()) static_cast<void>(buffers.at(item.key()).text());
}

// The scans of a file, by name.
class SavedScans {
 public:
  explicit SavedScans(LayerFactory& factory) : factory_(factory) {}

  // Makes a layer that is a part of a scan.
  LayerRef part(const JsonNode& entry, const std::string& name, const std::string& type,
                std::vector<LayerOutput> inputs) {
    const auto needs = [&](size_t count) {
      if (inputs.size() < count) bad(entry.who(), ": \"inputs\" has ", inputs.size(), "; expected ", count);
    };
    needs(1);
    if (type == "scan_input") return of(entry, inputs.size() > 1 ? inputs[1] : inputs[0]).input(name, inputs[0]);
    if (type == "scan_memory") {
      needs(2);
      MemoryStart start{{}, inputs[0], entry.at("initial_value").number()};
      for (const JsonNode& extent : entry.at("shape").list()) start.shape.push_back(extent.integer());
      start.carry = entry.has("carry") && entry.at("carry").boolean();
      return of(entry, inputs[1]).memory(name, std::move(start));
    }
    if (type != "scan") bad(entry.who(), ": a part of a scan has the type \"", type, "\"");
    const int64_t results = entry.at("results").integer();
    const auto others = static_cast<int64_t>(inputs.size()) - 1;
    if (results < 0 || results > others || (others - results) % 2 != 0)
      bad(entry.who(), ": ", results, " results of ", others, " inputs");
    const auto first = inputs.begin() + 1 + static_cast<std::ptrdiff_t>(results);
    std::vector<std::pair<LayerOutput, LayerOutput>> memories;
    for (auto each = first; each != inputs.end(); each += 2) memories.emplace_back(each[0], each[1]);
    return of(entry, inputs[0]).end({inputs.begin() + 1, first}, memories);
  }

 private:
  OpenScan& of(const JsonNode& entry, const LayerOutput& over) {
    const JsonNode scan = entry.at("scan");
    const std::string name = scan.at("name").text();
    std::shared_ptr<OpenScan>& known = scans_[name];
    if (known == nullptr) known = factory_.begin_scan(name, over, scan.at("reverse").boolean());
    if (!known->is_over(over)) bad(entry.who(), ": scan \"", name, "\" goes through other sequences");
    if (known->scan()->ended) bad(entry.who(), ": scan \"", name, "\" has ended");
    return *known;
  }

  LayerFactory& factory_;
  std::map<std::string, std::shared_ptr<OpenScan>> scans_;
};

// The branches of a file, by the name of the layer that stands for them.
class SavedConds {
 public:
  explicit SavedConds(LayerFactory& factory) : factory_(factory) {}

  // Makes a layer that is a part of branches.
  LayerRef part(const JsonNode& entry, const std::string& name, const std::string& type,
                std::vector<LayerOutput> inputs) {
    const bool input = type == "cond_input";
    if (!input && type != "cond") bad(entry.who(), ": a part of branches has the type \"", type, "\"");
    const JsonNode described = entry.at("cond");
    const int64_t given = described.at("branches").integer();
    const size_t before = input ? 2 : 1;  // the rows of the branches
    if (given < 1 || inputs.size() < before || static_cast<uint64_t>(given) > inputs.size() - before)
      bad(entry.who(), ": ", given, " branches of ", inputs.size(), " inputs");
    const auto count = static_cast<size_t>(given);
    const auto first = inputs.begin() + static_cast<std::ptrdiff_t>(before);
    const auto rest = first + static_cast<std::ptrdiff_t>(count);
    OpenCond& cond = of(entry, described.at("name").text(), *(first - 1), {first, rest});
    if (!input) return end(entry, cond, count, {rest, inputs.end()});
    const int64_t branch = entry.at("branch").integer();
    if (branch < 0 || branch >= given) bad(entry.who(), ": branch ", branch, " of ", given, " branches");
    if (inputs.end() - rest > 1)
      bad(entry.who(), ": \"inputs\" has ", inputs.size(), "; expected ", before + count + 1);
    return cond.input(static_cast<size_t>(branch), name, inputs[0], rest == inputs.end() ? LayerOutput() : *rest);
  }

 private:
  OpenCond& of(const JsonNode& entry, const std::string& name, const LayerOutput& over,
               const std::vector<LayerOutput>& rows) {
    std::shared_ptr<OpenCond>& known = conds_[name];
    if (known == nullptr) known = factory_.begin_cond(name, over, rows);
    if (!known->is_of(over, rows)) bad(entry.who(), ": cond \"", name, "\" chooses other rows");
    if (known->has_ended()) bad(entry.who(), ": cond \"", name, "\" has ended");
    return *known;
  }
  // results: for each of them, for each branch, the rows of sequences or none, and the result.
  static LayerRef end(const JsonNode& entry, OpenCond& cond, size_t branches, const std::vector<LayerOutput>& results) {
    if (results.size() % (2 * branches) != 0)
      bad(entry.who(), ": ", results.size(), " inputs for the results of ", branches, " branches");
    std::vector<std::vector<LayerOutput>> by_branch(branches);
    for (size_t i = 0; i < results.size(); i += 2) by_branch[i / 2 % branches].push_back(results[i + 1]);
    return cond.end(by_branch);
  }

  LayerFactory& factory_;
  std::map<std::string, std::shared_ptr<OpenCond>> conds_;
};

}  // namespace

RestoredTopology LayerFactory::from_json(const json& described, StoredTensors* tensors) {
  const JsonNode topology(described, "");
  if (!described.is_object()) bad("it is ", kind_of(described), "; expected an object");
  if (const int64_t version = topology.at("version").integer(); version != 1)
    fail(TN_UNSUPPORTED, "topology version ", version, "; expected 1");
  const std::vector<JsonNode> entries = topology.at("layers").list(), names = topology.at("outputs").list();
  std::map<std::string, LayerRef> layers;
  SharedChanges changes;
  SavedScans scans(*this);
  SavedConds conds(*this);
  for (const JsonNode& entry : entries) {
    const std::string name = entry.at("name").text(), type = entry.at("type").text();
    LayerRef made;
    if (entry.has("dtype")) {
      made = data(name, source_from(entry));
    } else if (entry.has("scan")) {
      made = scans.part(entry, name, type, inputs_of(entry, layers));
    } else if (entry.has("cond")) {
      made = conds.part(entry, name, type, inputs_of(entry, layers));
    } else {
      std::vector<LayerOutput> inputs = inputs_of(entry, layers);
      Values host;
      SavedLayer saved = layer_from(entry, host);
      check_buffers(entry);
      LayerRestorer restorer(std::move(saved), inner_layers_from(entry), tensors);
      try {
        made = make(type, name, std::move(inputs), host, &restorer).layer;
      } catch (const Error& error) {
        restorer.rethrow(error);
      }
      changes.add(made, restorer.changes());
    }
    if (!layers.emplace(name, std::move(made)).second) bad("two layers named \"", name, "\"");
  }
  RestoredTopology result;
  for (const JsonNode& output : names) {
    result.outputs.push_back(find_output(layers, output.text()));
    if (result.outputs.back().layer == nullptr) bad("an output without a name");
  }
  if (result.outputs.empty()) bad("\"outputs\" is empty");
  result.changes = changes.take();
  return result;
}

}  // namespace tenon::host
