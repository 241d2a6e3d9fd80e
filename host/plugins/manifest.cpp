// Reads the JSON of a plugin's note. SPDX-License-Identifier: Apache-2.0
#include "host/plugins/manifest.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/shape.h"

namespace tenon::host {

namespace {

using Json = NoteTree::Value;

template <typename... Parts>
[[noreturn]] void refuse(const std::string& path, const Parts&... parts) {
  refuse_note(path, text(parts...));
}

// A JSON object of a note.
class NoteObject {
 public:
  NoteObject(const NoteTree& note, const Json& value) : note_(note), value_(value) {
    if (value.kind != NoteTree::Kind::kObject)
      refuse(note.path(value), "expected an object, got ", type_name(value.kind));
  }

  [[nodiscard]] std::string path(const char* key) const { return note_.path(value_) + "." + key; }

  // Returns null if the key is absent or its value is null.
  [[nodiscard]] const Json* find(const char* key) const {
    const Json* const found = note_.find(value_, key);
    return found == nullptr || found->kind == NoteTree::Kind::kNull ? nullptr : found;
  }
  [[nodiscard]] const Json& at(const char* key) const {
    const Json* const found = find(key);
    if (found == nullptr) refuse(path(key), "missing");
    return *found;
  }

  [[nodiscard]] std::string string(const char* key) const { return string_of(note_, at(key)); }
  [[nodiscard]] std::string string_or_empty(const char* key) const {
    const Json* const found = find(key);
    return found == nullptr ? "" : string_of(note_, *found);
  }

  template <typename Integer>
  [[nodiscard]] Integer integer(const char* key) const {
    return integer_of<Integer>(at(key));
  }
  template <typename Integer>
  [[nodiscard]] Integer integer_or_zero(const char* key) const {
    const Json* const found = find(key);
    return found == nullptr ? Integer{0} : integer_of<Integer>(*found);
  }

  [[nodiscard]] bool flag(const char* key) const {
    const Json* const value = find(key);
    if (value == nullptr) return false;
    if (value->kind != NoteTree::Kind::kBool) refuse(path(key), "expected true or false, got ", type_name(value->kind));
    return value->integer != 0;
  }

  [[nodiscard]] std::optional<double> number(const char* key) const {
    const Json* const value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->kind != NoteTree::Kind::kInteger && value->kind != NoteTree::Kind::kUnsigned &&
        value->kind != NoteTree::Kind::kFloat)
      refuse(path(key), "expected a number, got ", type_name(value->kind));
    return value->number;
  }

  // Returns read(note, value) for each entry of a list; empty if the list is absent.
  template <typename Read>
  [[nodiscard]] auto list(const char* key, Read read) const {
    std::vector<decltype(read(note_, value_))> result;
    const Json* const value = find(key);
    if (value == nullptr) return result;
    if (value->kind != NoteTree::Kind::kList) refuse(path(key), "expected a list, got ", type_name(value->kind));
    note_.each(*value, [&](const Json& entry) { result.push_back(read(note_, entry)); });
    return result;
  }
  [[nodiscard]] std::vector<std::string> strings(const char* key) const { return list(key, string_of); }

 private:
  static std::string string_of(const NoteTree& note, const Json& value) {
    if (value.kind != NoteTree::Kind::kText) refuse(note.path(value), "expected a text, got ", type_name(value.kind));
    for (const char c : value.text)
      if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t')
        refuse(note.path(value), "holds the control character ", static_cast<int>(c));  // it could reach a terminal
    return std::string(value.text);
  }

  template <typename Integer>
  [[nodiscard]] Integer integer_of(const Json& value) const {
    const int64_t least = std::numeric_limits<Integer>::min(), most = std::numeric_limits<Integer>::max();
    if (value.kind != NoteTree::Kind::kInteger || value.integer < least || value.integer > most)
      refuse(note_.path(value), "expected an integer from ", least, " to ", most, ", got ", note_.json(value).dump());
    return static_cast<Integer>(value.integer);
  }

  const NoteTree& note_;
  const Json& value_;
};

Port port_from(const NoteTree& note, const Json& value) {
  const NoteObject node(note, value);
  return {node.string("name"), node.string_or_empty("doc"), node.integer_or_zero<uint32_t>("flags")};
}

Attribute attribute_from(const NoteTree& note, const Json& value) {
  const NoteObject node(note, value);
  Attribute result;
  result.name = node.string("name");
  result.doc = node.string_or_empty("doc");
  result.kind = node.integer<int32_t>("kind");
  if (!is_known_kind(result.kind)) return result;
  result.minimum = node.number("minimum");
  result.maximum = node.number("maximum");
  result.choices = node.strings("choices");
  try {
    if (const Json* initial = node.find("initial"))
      result.initial = resolve({result}, {{result.name, value_from_json(note.json(*initial))}}).front();
  } catch (const Error& error) {
    refuse(node.path("initial"), error.message());
  }
  result.required = node.flag("required");
  return result;
}

LayerDescription layer_from(const NoteTree& note, const Json& value) {
  const NoteObject node(note, value);
  LayerDescription result;
  result.type = node.string("type");
  result.role = node.integer<int32_t>("role");
  result.doc = node.string_or_empty("doc");
  result.inputs = node.list("inputs", port_from);
  result.outputs = node.list("outputs", port_from);
  result.attributes = node.list("attributes", attribute_from);
  result.parameters = node.strings("parameters");
  result.state_version = node.integer_or_zero<uint32_t>("state_version");
  result.tables = node.strings("tables");
  result.minor = node.integer_or_zero<uint16_t>("required");
  return result;
}

UpdaterDescription updater_from(const NoteTree& note, const Json& value) {
  const NoteObject node(note, value);
  return {node.string("type"),
          node.string_or_empty("doc"),
          node.list("attributes", attribute_from),
          node.integer_or_zero<uint32_t>("state_version"),
          node.integer_or_zero<uint16_t>("required"),
          ""};
}

ReaderDescription reader_from(const NoteTree& note, const Json& value) {
  const NoteObject node(note, value);
  return {node.string("type"),
          node.string_or_empty("doc"),
          node.list("attributes", attribute_from),
          node.integer_or_zero<uint32_t>("traits"),
          node.strings("tables"),
          node.integer_or_zero<uint16_t>("required"),
          ""};
}

CommDescription comm_from(const NoteTree& note, const Json& value) {
  const NoteObject node(note, value);
  return {node.string("type"),
          node.string_or_empty("doc"),
          node.list("attributes", attribute_from),
          node.integer_or_zero<uint32_t>("traits"),
          node.integer_or_zero<uint16_t>("required"),
          ""};
}

DeviceDescription device_from(const NoteTree& note, const Json& value) {
  const NoteObject node(note, value);
  return {node.string("kind"), node.string_or_empty("doc"), node.integer<int32_t>("dlpack_type"),
          node.strings("tables")};
}

KernelDescription kernel_from(const NoteTree& note, const Json& value) {
  const NoteObject node(note, value);
  KernelDescription result = {node.string("type"),
                              node.string("device"),
                              node.string_or_empty("name"),
                              {},
                              node.integer_or_zero<int32_t>("score"),
                              node.strings("fuses"),
                              node.integer_or_zero<uint16_t>("required"),
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

ProviderDescription provider_from(const NoteTree& note, const Json& value) {
  const NoteObject node(note, value);
  return {node.string("device"), node.string("id"), node.string("name"), node.integer_or_zero<int32_t>("score")};
}

Draft draft_from(const NoteTree& note, const Json& value) {
  const NoteObject node(note, value);
  return {node.string("id"), node.string("digest")};
}

NeededLibrary library_from(const NoteTree& note, const Json& value) {
  const NoteObject node(note, value);
  return {node.string("name"), node.string_or_empty("hint")};
}

}  // namespace

AbiInterval abi_from(const NoteTree& note) {
  const NoteObject abi(note, NoteObject(note, note.root()).at("abi"));
  return {abi.integer<uint16_t>("major"), abi.integer<uint16_t>("built"), abi.integer<uint16_t>("required")};
}

bool is_native(const std::string& arithmetic) {
  if (arithmetic.empty() || arithmetic == "native") return !arithmetic.empty();
  refuse("$.arithmetic", "\"", arithmetic, "\" is unknown; this host reads \"native\"");
}

Manifest manifest_from(const NoteTree& note) {
  const NoteObject node(note, note.root());
  if (const auto form = node.integer<int32_t>("note"); form != 1)
    refuse("$.note", "form ", form, " of the note is unknown; this host reads form 1");
  Manifest result;
  result.abi = abi_from(note);
  result.id = node.string("id");
  result.version = node.string_or_empty("version");
  result.doc = node.string_or_empty("doc");
  result.license = node.string_or_empty("license");
  result.isa = node.string_or_empty("isa");
  result.is_native = is_native(node.string_or_empty("arithmetic"));
  result.layers = node.list("layers", layer_from);
  result.updaters = node.list("updaters", updater_from);
  result.readers = node.list("readers", reader_from);
  result.devices = node.list("devices", device_from);
  result.kernels = node.list("kernels", kernel_from);
  result.libraries = node.list("libraries", library_from);
  result.providers = node.list("providers", provider_from);
  result.options = node.list("options", attribute_from);
  result.comms = node.list("comms", comm_from);
  result.drafts = node.list("drafts", draft_from);
  check_manifest(result);
  return result;
}

}  // namespace tenon::host
