// Reads a plugin's descriptor into owning structs, with its sizes and pointers checked.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "base/utf8.h"
#include "core/attribute.h"
#include "core/error.h"
#include "host/plugins/loader.h"
#include "host/plugins/offered_table.h"
#include "sdk/manifest/tables.h"

namespace tenon::host {

namespace {

// Checks the structs of one component. `owner` names the component in every message: layer type "relu".
struct Context {
  std::string owner;

  template <typename... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(TN_REFUSED, owner, ": ", parts...);
  }

  // Returns *table. Its size must include `member`, which ends at `end`, and be a multiple of the alignment, as every
  // sizeof is.
  template <typename Struct>
  const Struct& checked(const Struct* table, size_t end, const char* what, const char* member) const {
    if (table == nullptr) refuse("its ", what, " is null");
    if (table->size < end || table->size % alignof(Struct) != 0)
      refuse("its ", what, " of ", table->size, " bytes is not sound: it must hold \"", member, "\", which ends at ",
             end);
    return *table;
  }

  std::string name(const char* string, const char* member) const {
    if (string == nullptr || *string == '\0') refuse("\"", member, "\" is empty");
    return utf8(string, member);
  }
  // Returns "" for null.
  std::string utf8(const char* string, const char* member) const {
    std::string result = string == nullptr ? "" : string;
    if (!base::is_utf8(result)) refuse("\"", member, "\" is not UTF-8");
    return result;
  }

  // Returns read(entry) for each entry of a counted list of pointers.
  template <typename Entry, typename Read>
  auto list(const Entry* const* entries, uint32_t count, const char* member, Read read) const {
    std::vector<decltype(read(entries[0]))> result;
    if (entries == nullptr && count > 0) refuse("\"", member, "\" is null, but counts ", count);
    for (uint32_t i = 0; i < count; ++i) {
      if (entries[i] == nullptr) refuse("entry ", i, " of \"", member, "\" is null");
      result.push_back(read(entries[i]));
    }
    return result;
  }
};

#define TN_END_OF(type, member) (offsetof(type, member) + sizeof(type::member))
#define TN_CHECKED(context, pointer, type, what, member) \
  (context).checked<type>((pointer), TN_END_OF(type, member), what, #member)  // NOLINT(bugprone-sizeof-expression)

// Refuses reserved members and unknown bits that are not zero.
template <typename Number>
void require_zero(const Context& context, Number value, const char* what) {
  if (value != 0) context.refuse("its ", what, " is ", value, "; expected 0");
}

Attribute attribute_of(const Context& context, const tn_attribute* attribute) {
  if (const tn_attribute& known = TN_CHECKED(context, attribute, tn_attribute, "attribute", choices);
      !is_known_kind(known.kind)) {
    Attribute result;
    result.name = context.name(known.name, "name");
    result.doc = context.utf8(known.doc, "doc");
    result.kind = known.kind;
    return result;
  }
  require_zero(context, attribute->flags & ~uint32_t{TN_ATTR_REQUIRED}, "unknown flags of an attribute");
  require_zero(context, attribute->has_range & ~3U, "unknown bits of has_range of an attribute");
  if (attribute->kind != TN_ATTR_STRING && attribute->kind != TN_ATTR_STRINGS && attribute->choices != nullptr)
    context.refuse("attribute \"", attribute->name == nullptr ? "" : attribute->name, "\" has choices and is no text");
  try {
    return Attribute::from(*attribute);
  } catch (const Error& error) {
    context.refuse(error.message());
  }
}

std::vector<Attribute> attributes_of(const Context& context, const tn_attribute* const* attributes, uint32_t count) {
  return context.list(attributes, count, "attributes",
                      [&](const tn_attribute* entry) { return attribute_of(context, entry); });
}

std::vector<Port> ports_of(const Context& context, const tn_port* const* ports, uint32_t count, const char* member) {
  return context.list(ports, count, member, [&](const tn_port* entry) {
    const tn_port& port = TN_CHECKED(context, entry, tn_port, "port", doc);
    return Port{context.name(port.name, "name"), context.utf8(port.doc, "doc"), port.flags};
  });
}

// Model files of hosts before 0.2 state none, for which 0 stands.
uint32_t checked_state_version(const Context& context, uint32_t version) {
  if (version == 0) context.refuse("its state_version is 0; expected at least 1");
  return version;
}

LayerDescription layer_of(const Context& plugin, const tn_layer_type* entry) {
  Context context{plugin.owner + ", a layer type"};
  const tn_layer_type& table = TN_CHECKED(context, entry, tn_layer_type, "table", user);
  const auto& d = TN_CHECKED(context, table.description, tn_layer_description, "description", state_version);
  LayerDescription result;
  result.type = context.name(d.type, "type");
  context.owner = "layer type \"" + result.type + "\"";
  result.doc = context.utf8(d.doc, "doc");
  result.role = d.role;
  result.inputs = ports_of(context, d.inputs, d.inputs_count, "inputs");
  result.outputs = ports_of(context, d.outputs, d.outputs_count, "outputs");
  result.attributes = attributes_of(context, d.attributes, d.attributes_count);
  result.parameters = context.list(d.parameters, d.parameters_count, "parameters",
                                   [&](const char* suffix) { return context.name(suffix, "parameters"); });
  result.state_version = checked_state_version(context, d.state_version);
  require_zero(context, table.reserved, "reserved member");
  require_zero(context, d.reserved, "description's reserved member");
  if (d.role != TN_ROLE_METRIC && table.finalize != nullptr) context.refuse("it is no metric, but has a finalize");
  return result;
}

UpdaterDescription updater_of(const Context& plugin, const tn_updater_type* entry) {
  Context context{plugin.owner + ", an updater type"};
  const tn_updater_type& table = TN_CHECKED(context, entry, tn_updater_type, "table", user);
  const auto& d = TN_CHECKED(context, table.description, tn_updater_description, "description", state_version);
  const std::string type = context.name(d.type, "type");
  context.owner = "updater type \"" + type + "\"";
  require_zero(context, table.reserved | d.reserved, "reserved member");
  return {type,
          context.utf8(d.doc, "doc"),
          attributes_of(context, d.attributes, d.attributes_count),
          checked_state_version(context, d.state_version),
          0,
          ""};
}

ReaderDescription reader_of(const Context& plugin, const tn_reader_type* entry) {
  Context context{plugin.owner + ", a reader type"};
  const tn_reader_type& table = TN_CHECKED(context, entry, tn_reader_type, "table", user);
  const auto& d = TN_CHECKED(context, table.description, tn_reader_description, "description", traits);
  const std::string type = context.name(d.type, "type");
  context.owner = "reader type \"" + type + "\"";
  require_zero(context, table.reserved | d.reserved, "reserved member");
  return {type, context.utf8(d.doc, "doc"), attributes_of(context, d.attributes, d.attributes_count), d.traits, {}, 0,
          ""};
}

// Another draft may have other members: nothing of it is read but its digest.
CommDescription comm_of(const Context& plugin, const tn_comm_type* entry) {
  Context context{plugin.owner + ", a communicator"};
  const uint32_t draft = TN_CHECKED(context, entry, tn_comm_type, "table", draft).draft;
  if (const std::string fault = draft_fault(draft_of(TN_COMM, draft)); !fault.empty())
    context.refuse("its table is ", fault);
  const tn_comm_type& table = TN_CHECKED(context, entry, tn_comm_type, "table", user);
  const auto& d = TN_CHECKED(context, table.description, tn_comm_description, "description", reserved);
  const std::string type = context.name(d.type, "type");
  context.owner = "communicator \"" + type + "\"";
  require_zero(context, d.reserved, "reserved member");
  return {type, context.utf8(d.doc, "doc"), attributes_of(context, d.attributes, d.attributes_count), d.traits, 0, ""};
}

DeviceDescription device_of(const Context& plugin, const tn_device_type* entry) {
  Context context{plugin.owner + ", a device"};
  const tn_device_type& table = TN_CHECKED(context, entry, tn_device_type, "table", user);
  const auto& d = TN_CHECKED(context, table.description, tn_device_description, "description", tables);
  DeviceDescription result = {context.name(d.kind, "kind"), context.utf8(d.doc, "doc"), d.dlpack_type, {}};
  context.owner = "device \"" + result.kind + "\"";
  require_zero(context, table.reserved, "reserved member");
  if (d.tables != nullptr)
    for (const char* const* id = d.tables; *id != nullptr; ++id) result.tables.emplace_back(*id);
  return result;
}

KernelDescription kernel_of(const Context& plugin, const tn_kernel* entry) {
  Context context{plugin.owner + ", a kernel"};
  const tn_kernel& table = TN_CHECKED(context, entry, tn_kernel, "table", state_version);
  KernelDescription result;
  result.name = context.name(table.name, "name");
  context.owner = "kernel \"" + result.name + "\"";
  result.type = context.name(table.type, "type");
  result.device = context.name(table.device, "device");
  if (table.dtypes == nullptr && table.dtypes_count > 0) context.refuse("\"dtypes\" is null");
  result.dtypes.assign(table.dtypes, table.dtypes + table.dtypes_count);
  result.score = table.score;
  require_zero(context, table.reserved, "reserved member");
  if (TN_HAS(&table, tn_kernel, reserved2)) require_zero(context, table.reserved2, "reserved member");
  if (table.attributes == nullptr && table.attributes_count > 0) context.refuse("\"attributes\" is null");
  for (uint32_t i = 0; i < table.attributes_count; ++i) (void)context.name(table.attributes[i], "attributes");
  if (table.fusion != nullptr) {
    const tn_fusion_pattern& fusion = TN_CHECKED(context, table.fusion, tn_fusion_pattern, "fusion", types);
    result.chain = context.list(fusion.types, fusion.types_count, "fusion: types",
                                [&](const char* type) { return context.name(type, "fusion: types"); });
    if (result.chain.empty()) context.refuse("its fusion pattern names no layer type");
  }
  return result;
}

ProviderDescription provider_of(const Context& plugin, const tn_provider* entry) {
  Context context{plugin.owner + ", a provider"};
  const tn_provider& provider = TN_CHECKED(context, entry, tn_provider, "table", shared);
  const std::string name = context.name(provider.name, "name");
  context.owner = "provider \"" + name + "\"";
  if (provider.table == nullptr) context.refuse("its table is null");
  if (const std::string fault = table_fault(context.name(provider.id, "id"), provider.table); !fault.empty())
    context.refuse("its table ", fault);
  return {context.name(provider.device, "device"), context.name(provider.id, "id"), name, provider.score};
}

NeededLibrary library_of(const Context& plugin, const tn_library* entry) {
  const tn_library& library = TN_CHECKED(plugin, entry, tn_library, "library", hint);
  require_zero(plugin, library.reserved, "reserved member of a library");
  return {plugin.name(library.name, "libraries: name"), plugin.utf8(library.hint, "hint")};
}

// Asks components of one kind, which were read into `components`, for the tables that they offer by id. owner: TN_OF_*.
template <typename Entry, typename Description>
void read_offers(uint32_t owner, const Entry* const* entries, std::vector<Description>& components,
                 std::vector<Draft>& drafts) {
  for (size_t i = 0; i < components.size(); ++i) {
    Offers offers = offers_of(owner, entries[i]->extension, entries[i]->user);
    components[i].tables = std::move(offers.tables);
    for (Draft& draft : offers.drafts)
      if (std::find(drafts.begin(), drafts.end(), draft) == drafts.end()) drafts.push_back(std::move(draft));
  }
}

// Reads the communicators, which versions before 0.4 have no list of, and their draft.
void read_comms(const Context& context, const tn_plugin& plugin, Manifest& result) {
  if (!TN_HAS(&plugin, tn_plugin, comms)) return;
  if (plugin.arithmetic != TN_ARITHMETIC_DEFAULT && plugin.arithmetic != TN_ARITHMETIC_NATIVE)
    context.refuse("its member \"arithmetic\" is ", plugin.arithmetic, "; expected 0 or TN_ARITHMETIC_NATIVE, 2");
  result.is_native = plugin.arithmetic == TN_ARITHMETIC_NATIVE;
  result.comms = context.list(plugin.comms, plugin.comms_count, "comms",
                              [&](const tn_comm_type* entry) { return comm_of(context, entry); });
  if (!result.comms.empty()) result.drafts.push_back(draft_of(TN_COMM, TN_COMM_DRAFT));
}

// Reads the requirements of single components into their descriptions.
void read_requirements(const Context& context, const tn_plugin& plugin, Manifest& result) {
  if (!TN_HAS(&plugin, tn_plugin, requirements)) return;
  require_zero(context, plugin.reserved4, "reserved member");
  context.list(plugin.requirements, plugin.requirements_count, "requirements", [&](const tn_requirement* entry) {
    const tn_requirement& requirement = TN_CHECKED(context, entry, tn_requirement, "requirement", component);
    if (requirement.minor > std::numeric_limits<uint16_t>::max())
      context.refuse("a requirement states the minor version ", requirement.minor);
    bool is_own = false;
    const auto read = [&](const auto* const* entries, auto& components) {
      for (size_t i = 0; i < components.size(); ++i) {
        if (static_cast<const void*>(entries[i]) != requirement.component) continue;
        components[i].minor = static_cast<uint16_t>(requirement.minor);
        is_own = true;
      }
    };
    read(plugin.layers, result.layers);
    read(plugin.updaters, result.updaters);
    read(plugin.readers, result.readers);
    read(plugin.kernels, result.kernels);
    read(plugin.comms, result.comms);
    if (!is_own)
      context.refuse("a requirement is for none of its layers, updaters, readers, kernels and communicators");
    return is_own;
  });
}

}  // namespace

Manifest describe(const tn_plugin& descriptor) {
  Context context{"the plugin"};
  const tn_plugin& plugin = TN_CHECKED(context, &descriptor, tn_plugin, "descriptor", providers);
  Manifest result;
  if (plugin.id == nullptr && plugin.version == nullptr && plugin.license == nullptr && plugin.doc != nullptr)
    context.refuse("it cannot be described: ", context.utf8(plugin.doc, "doc"));
  require_zero(context, plugin.reserved | plugin.reserved2 | plugin.abi.reserved, "reserved member");
  result.abi = {plugin.abi.major, plugin.abi.built, plugin.abi.required};
  result.id = context.name(plugin.id, "id");
  context.owner = "plugin \"" + result.id + "\"";
  result.version = context.utf8(plugin.version, "version");
  result.doc = context.utf8(plugin.doc, "doc");
  result.license = context.utf8(plugin.license, "license");
  result.isa = context.utf8(plugin.isa, "isa");
  const auto with = [&context](auto read) {
    return [&context, read](const auto* entry) { return read(context, entry); };
  };
  result.layers = context.list(plugin.layers, plugin.layers_count, "layers", with(layer_of));
  result.updaters = context.list(plugin.updaters, plugin.updaters_count, "updaters", with(updater_of));
  result.readers = context.list(plugin.readers, plugin.readers_count, "readers", with(reader_of));
  result.devices = context.list(plugin.devices, plugin.devices_count, "devices", with(device_of));
  result.kernels = context.list(plugin.kernels, plugin.kernels_count, "kernels", with(kernel_of));
  result.libraries = context.list(plugin.libraries, plugin.libraries_count, "libraries", with(library_of));
  result.providers = context.list(plugin.providers, plugin.providers_count, "providers", with(provider_of));
  if (TN_HAS(&plugin, tn_plugin, options)) {
    require_zero(context, plugin.reserved3, "reserved member");
    result.options = context.list(plugin.options, plugin.options_count, "options",
                                  [&](const tn_attribute* entry) { return attribute_of(context, entry); });
  }
  read_offers(TN_OF_LAYERS, plugin.layers, result.layers, result.drafts);
  read_offers(TN_OF_READERS, plugin.readers, result.readers, result.drafts);
  read_comms(context, plugin, result);
  read_requirements(context, plugin, result);
  check_manifest(result);
  return result;
}

}  // namespace tenon::host
