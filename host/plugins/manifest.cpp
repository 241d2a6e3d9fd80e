// Reads the JSON of a plugin's note. SPDX-License-Identifier: Apache-2.0
#include "host/plugins/manifest.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/shape.h"

namespace tenon::host {

namespace {

using nlohmann::json;

constexpr size_t kDeepest = 16;  // the manifest itself needs 6

template <typename... Parts>
[[noreturn]] void refuse(const std::string& path, const Parts&... parts) {
  fail(TN_REFUSED, "its note at ", path, ": ", parts...);
}

// Follows the JSON parser: tracks its path for messages, limits the depth and refuses duplicate keys.
class Guard {
 public:
  bool on(json::parse_event_t event, const json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        if (frames_.size() == kDeepest) refuse(path(), "nested deeper than ", kDeepest);
        frames_.push_back({event == json::parse_event_t::array_start, 0, "", {}});
        break;
      case json::parse_event_t::key:
        frames_.back().key = parsed.get<std::string>();
        if (!frames_.back().keys.insert(frames_.back().key).second) refuse(path(), "duplicate key");
        break;
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end:
        frames_.pop_back();
        [[fallthrough]];
      case json::parse_event_t::value:
        if (!frames_.empty()) ++frames_.back().index;
        break;
    }
    return true;
  }

  [[nodiscard]] std::string path() const {
    std::string result = "$";
    for (const Frame& frame : frames_) {
      if (frame.array)
        result += text("[", frame.index, "]");
      else if (!frame.key.empty())
        result += "." + frame.key;
    }
    return result;
  }

 private:
  struct Frame {
    bool array;
    size_t index;
    std::string key;
    std::set<std::string> keys;
  };
  std::vector<Frame> frames_;
};

// A JSON object and the path that leads to it, for messages.
class Node {
 public:
  Node(const json& value, std::string path) : value_(&value), path_(std::move(path)) {
    if (!value_->is_object()) refuse(path_, "expected an object, got ", value_->type_name());
  }

  [[nodiscard]] std::string path(const char* key) const { return path_ + "." + key; }
  [[nodiscard]] const std::string& path() const { return path_; }

  // Returns null if the key is absent or its value is null.
  [[nodiscard]] const json* find(const char* key) const {
    const auto found = value_->find(key);
    return found == value_->end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] const json& at(const char* key) const {
    const json* found = find(key);
    if (found == nullptr) refuse(path(key), "missing");
    return *found;
  }

  [[nodiscard]] std::string string(const char* key) const { return string_of(at(key), path(key)); }
  [[nodiscard]] std::string string_or_empty(const char* key) const { return find(key) == nullptr ? "" : string(key); }

  template <typename Integer>
  [[nodiscard]] Integer integer(const char* key) const {
    const json& value = at(key);
    const int64_t least = std::numeric_limits<Integer>::min(), most = std::numeric_limits<Integer>::max();
    const bool whole = value.is_number_integer() &&
                       !(value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX));
    if (!whole || value.get<int64_t>() < least || value.get<int64_t>() > most)
      refuse(path(key), "expected an integer from ", least, " to ", most, ", got ", value.dump());
    return static_cast<Integer>(value.get<int64_t>());
  }
  template <typename Integer>
  [[nodiscard]] Integer integer_or_zero(const char* key) const {
    return find(key) == nullptr ? Integer{0} : integer<Integer>(key);
  }

  [[nodiscard]] bool flag(const char* key) const {
    const json* value = find(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) refuse(path(key), "expected true or false, got ", value->type_name());
    return value->get<bool>();
  }

  [[nodiscard]] std::optional<double> number(const char* key) const {
    const json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) refuse(path(key), "expected a number, got ", value->type_name());
    return value->get<double>();
  }

  // Returns read(value, path) for each entry of a list; empty if the list is absent.
  template <typename Read>
  [[nodiscard]] auto list(const char* key, Read read) const {
    std::vector<decltype(read(*value_, path_))> result;
    const json* value = find(key);
    if (value == nullptr) return result;
    if (!value->is_array()) refuse(path(key), "expected a list, got ", value->type_name());
    for (size_t i = 0; i < value->size(); ++i) result.push_back(read((*value)[i], text(path(key), "[", i, "]")));
    return result;
  }
  [[nodiscard]] std::vector<std::string> strings(const char* key) const { return list(key, string_of); }

 private:
  static std::string string_of(const json& value, const std::string& path) {
    if (!value.is_string()) refuse(path, "expected a text, got ", value.type_name());
    std::string result = value.get<std::string>();
    for (const char c : result)
      if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t')
        refuse(path, "holds the control character ", static_cast<int>(c));  // it could reach a terminal
    return result;
  }

  const json* value_;
  std::string path_;
};

Port port_from(const json& value, const std::string& path) {
  const Node node(value, path);
  return {node.string("name"), node.string_or_empty("doc"), node.integer_or_zero<uint32_t>("flags")};
}

Attribute attribute_from(const json& value, const std::string& path) {
  const Node node(value, path);
  Attribute result;
  result.name = node.string("name");
  result.doc = node.string_or_empty("doc");
  result.kind = node.integer<int32_t>("kind");
  if (!is_known_kind(result.kind)) return result;
  result.minimum = node.number("minimum");
  result.maximum = node.number("maximum");
  result.choices = node.strings("choices");
  try {
    if (const json* initial = node.find("initial"))
      result.initial = resolve({result}, {{result.name, value_from_json(*initial)}}).front();
  } catch (const Error& error) {
    refuse(node.path("initial"), error.message());
  }
  result.required = node.flag("required");
  return result;
}

LayerDescription layer_from(const json& value, const std::string& path) {
  const Node node(value, path);
  LayerDescription result;
  result.type = node.string("type");
  result.role = node.integer<int32_t>("role");
  result.doc = node.string_or_empty("doc");
  result.inputs = node.list("inputs", port_from);
  result.outputs = node.list("outputs", port_from);
  result.attributes = node.list("attributes", attribute_from);
  result.parameters = node.strings("parameters");
  result.state_version = node.integer_or_zero<uint32_t>("state_version");
  return result;
}

UpdaterDescription updater_from(const json& value, const std::string& path) {
  const Node node(value, path);
  return {node.string("type"), node.string_or_empty("doc"), node.list("attributes", attribute_from),
          node.integer_or_zero<uint32_t>("state_version"), ""};
}

ReaderDescription reader_from(const json& value, const std::string& path) {
  const Node node(value, path);
  return {node.string("type"), node.string_or_empty("doc"), node.list("attributes", attribute_from),
          node.integer_or_zero<uint32_t>("traits"), ""};
}

DeviceDescription device_from(const json& value, const std::string& path) {
  const Node node(value, path);
  return {node.string("kind"), node.string_or_empty("doc"), node.integer<int32_t>("dlpack_type"),
          node.strings("tables")};
}

KernelDescription kernel_from(const json& value, const std::string& path) {
  const Node node(value, path);
  KernelDescription result = {node.string("type"),
                              node.string("device"),
                              node.string_or_empty("name"),
                              {},
                              node.integer_or_zero<int32_t>("score"),
                              node.strings("fuses"),
                              ""};
  std::string unknown;
  for (const std::string& name : node.strings("dtypes")) {
    try {
      result.dtypes.push_back(dtype_from_name(name));
    } catch (const Error&) {
      unknown = name;
    }
  }
  // A kernel that also computes in a type of a later version is offered for the others.
  if (result.dtypes.empty() && !unknown.empty()) result.refused = unknown_value(text("compute type \"", unknown, "\""));
  return result;
}

ProviderDescription provider_from(const json& value, const std::string& path) {
  const Node node(value, path);
  return {node.string("device"), node.string("id"), node.string("name"), node.integer_or_zero<int32_t>("score")};
}

NeededLibrary library_from(const json& value, const std::string& path) {
  const Node node(value, path);
  return {node.string("name"), node.string_or_empty("hint")};
}

}  // namespace

json parse_note(const std::string& note) {
  if (note.size() > TN_NOTE_LIMIT)
    fail(TN_REFUSED, "its note has ", note.size(), " bytes; at most ", TN_NOTE_LIMIT, " are allowed");
  Guard guard;
  try {
    return json::parse(
        note, [&guard](int, json::parse_event_t event, const json& parsed) { return guard.on(event, parsed); });
  } catch (const json::exception& error) {
    const std::string what = error.what();  // "[json.exception.parse_error.101] parse error at line 1 ..."
    const size_t prefix = what.find("] ");
    refuse(guard.path(), prefix == std::string::npos ? what : what.substr(prefix + 2));
  }
}

AbiInterval abi_from(const json& note) {
  const Node node(note, "$");
  const Node abi(node.at("abi"), "$.abi");
  return {abi.integer<uint16_t>("major"), abi.integer<uint16_t>("built"), abi.integer<uint16_t>("required")};
}

Manifest manifest_from(const json& note) {
  const Node node(note, "$");
  if (const auto form = node.integer<int32_t>("note"); form != 1)
    refuse("$.note", "form ", form, " of the note is unknown; this host reads form 1");
  Manifest result;
  result.abi = abi_from(note);
  result.id = node.string("id");
  result.version = node.string_or_empty("version");
  result.doc = node.string_or_empty("doc");
  result.license = node.string_or_empty("license");
  result.isa = node.string_or_empty("isa");
  result.layers = node.list("layers", layer_from);
  result.updaters = node.list("updaters", updater_from);
  result.readers = node.list("readers", reader_from);
  result.devices = node.list("devices", device_from);
  result.kernels = node.list("kernels", kernel_from);
  result.libraries = node.list("libraries", library_from);
  result.providers = node.list("providers", provider_from);
  result.options = node.list("options", attribute_from);
  check_manifest(result);
  return result;
}

}  // namespace tenon::host
