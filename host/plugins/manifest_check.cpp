// Checks a manifest: interface version, CPU features, names, agreement with the loaded descriptor.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string_view>

#include "core/error.h"
#include "core/shape.h"
#include "host/plugins/manifest.h"

namespace tenon::host {

bool is_word(std::string_view name) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto more = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && letter(name.front()) && std::all_of(name.begin(), name.end(), more);
}

namespace {

constexpr size_t kLongestChain = 8;  // of layers that a kernel fuses

// Words with dots between them.
bool is_path_of_words(std::string_view name) {
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    if (!is_word(name.substr(0, dot))) return false;
    name.remove_prefix(dot + 1);
  }
  return is_word(name);
}

// "word" or "vendor.word"
bool is_type_name(std::string_view name) {
  return std::count(name.begin(), name.end(), '.') <= 1 && is_path_of_words(name);
}

using Names = std::set<std::string>;

// The attributes that interface 0.2 keeps for the host, which takes them before the type sees them. Names that a later
// version adds are not refused here: plugins built before it may have them.
constexpr std::string_view kOfLayers[] = {"act", "coefficient", "drop_rate", "parameter_name"};
constexpr std::string_view kOfUpdaters[] = {"clip_norm", "clip_value", "l1", "l2", "schedule"};

// Names without "vendor." are of the plugins of Tenon, whose ids begin with "tenon.".
void check_type(const Manifest& of, const char* what, const std::string& name, Names& seen) {
  if (!is_type_name(name))
    fail(TN_REFUSED, what, " \"", name, "\": the name must be lower case letters, digits and _, after at most one ",
         "\"vendor.\"");
  if (name.find('.') == std::string::npos && !of.id.starts_with("tenon."))
    fail(TN_REFUSED, what, " \"", name, "\": the name needs a \"vendor.\" before it, since the id \"", of.id,
         "\" does not begin with \"tenon.\"");
  if (!seen.insert(name).second) fail(TN_REFUSED, "duplicate ", what, " \"", name, "\"");
}

void check_unique(const std::string& owner, const char* what, const std::string& name, Names& seen) {
  if (!seen.insert(name).second) fail(TN_REFUSED, owner, ": duplicate ", what, " \"", name, "\"");
}

// Checks the name of an attribute or port.
void check_word(const std::string& owner, const char* what, const std::string& name, Names& seen) {
  if (!is_word(name))
    fail(TN_REFUSED, owner, ": ", what, " \"", name, "\": the name must be lower case letters, digits and _");
  check_unique(owner, what, name, seen);
}

void check_attributes(const std::string& owner, const std::vector<Attribute>& attributes,
                      std::span<const std::string_view> of_host = {}) {
  Names seen;
  for (const Attribute& attribute : attributes) {
    check_word(owner, "attribute", attribute.name, seen);
    if (std::find(of_host.begin(), of_host.end(), attribute.name) != of_host.end())
      fail(TN_REFUSED, owner, ": the attribute \"", attribute.name, "\" is one of the host");
    if ((attribute.minimum && !std::isfinite(*attribute.minimum)) ||
        (attribute.maximum && !std::isfinite(*attribute.maximum)) ||
        (attribute.minimum && attribute.maximum && *attribute.minimum > *attribute.maximum))
      fail(TN_REFUSED, owner, ": attribute \"", attribute.name, "\": empty or infinite range");
  }
}

// Returns the first unknown value of a type, "" if all are known.
std::string unknown_of(const std::vector<Attribute>& attributes) {
  for (const Attribute& attribute : attributes)
    if (!is_known_kind(attribute.kind)) return text("kind ", attribute.kind, " of attribute \"", attribute.name, "\"");
  return "";
}
std::string unknown_of(const char* what, const std::vector<Port>& ports) {
  constexpr uint32_t kKnown = TN_PORT_OPTIONAL | TN_PORT_VARIADIC | TN_PORT_INTEGER | TN_PORT_ANY | TN_PORT_SPARSE;
  for (const Port& port : ports)
    if ((port.flags & ~kKnown) != 0) return text("flags ", port.flags & ~kKnown, " of ", what, " \"", port.name, "\"");
  return "";
}
std::string unknown_of(const LayerDescription& layer) {
  if (layer.role < TN_ROLE_LAYER || layer.role > TN_ROLE_METRIC) return text("role ", layer.role);
  for (const std::string& found :
       {unknown_of("input", layer.inputs), unknown_of("output", layer.outputs), unknown_of(layer.attributes)})
    if (!found.empty()) return found;
  return "";
}
std::string unknown_of(const UpdaterDescription& updater) { return unknown_of(updater.attributes); }
std::string unknown_of(const ReaderDescription& reader) {
  const uint32_t unknown = reader.traits & ~kKnownTraits;
  return unknown != 0 ? text("traits ", unknown) : unknown_of(reader.attributes);
}
std::string unknown_of(const CommDescription& comm) {
  const uint32_t unknown = comm.traits & ~kKnownCommTraits;
  return unknown != 0 ? text("traits ", unknown) : unknown_of(comm.attributes);
}
// Leaves out compute types of later versions, unless the kernel has no others.
std::string unknown_of(KernelDescription& kernel) {
  if (kernel.chain.size() > kLongestChain) return text("chain of ", kernel.chain.size(), " layers");
  const auto unknown = [](tn_dtype dtype) { return dtype == TN_COMPUTE || !is_float(dtype); };
  const auto found = std::find_if(kernel.dtypes.begin(), kernel.dtypes.end(), unknown);
  if (found == kernel.dtypes.end()) return "";
  const tn_dtype first = *found;
  kernel.dtypes.erase(std::remove_if(found, kernel.dtypes.end(), unknown), kernel.dtypes.end());
  return kernel.dtypes.empty() ? text("compute type ", dtype_name(first)) : "";
}

template <typename Description>
void mark_unknown(std::vector<Description>& components) {
  for (Description& component : components) {
    if (!component.refused.empty()) continue;
    if (component.minor > TN_ABI_MINOR) {
      component.refused = text("it needs a host of ", TN_ABI_MAJOR, ".", component.minor,
                               " or later; this host offers version ", TN_ABI_MAJOR, ".", TN_ABI_MINOR);
      continue;
    }
    if (const std::string found = unknown_of(component); !found.empty()) component.refused = unknown_value(found);
  }
}

void check_ports(const std::string& owner, const char* what, const std::vector<Port>& ports, uint32_t never) {
  Names seen;
  for (const Port& port : ports) {
    check_word(owner, what, port.name, seen);
    constexpr uint32_t kKinds = TN_PORT_INTEGER | TN_PORT_ANY;
    if ((port.flags & never) != 0 || (port.flags & kKinds) == kKinds)
      fail(TN_REFUSED, owner, ": ", what, " \"", port.name, "\" has flags that exclude each other or are for inputs");
    if ((port.flags & TN_PORT_VARIADIC) != 0 && &port != &ports.back())
      fail(TN_REFUSED, owner, ": ", what, " \"", port.name, "\" is variadic but not the last one");
  }
}

void check_layer(const LayerDescription& layer) {
  const std::string owner = "layer type \"" + layer.type + "\"";
  check_attributes(owner, layer.attributes, kOfLayers);
  check_ports(owner, "input", layer.inputs, 0);
  check_ports(owner, "output", layer.outputs, TN_PORT_OPTIONAL | TN_PORT_SPARSE);
  Names parameters;
  for (const std::string& suffix : layer.parameters) {
    if (!is_path_of_words(suffix))
      fail(TN_REFUSED, owner, ": parameter \"", suffix,
           "\": the name must be words of lower case letters, digits and _, and dots between them");
    check_unique(owner, "parameter", suffix, parameters);
  }
  if (layer.refused.empty() && layer.outputs.empty() != (layer.role == TN_ROLE_METRIC))
    fail(TN_REFUSED, owner, layer.outputs.empty() ? " has no output" : " is a metric but has outputs");
}

void check_chain(const std::string& owner, const KernelDescription& kernel) {
  if (kernel.chain.empty()) return;
  if (kernel.chain.size() < 2)
    fail(TN_REFUSED, owner, " fuses a chain of ", kernel.chain.size(), " layer; expected 2 to ", kLongestChain);
  for (const std::string& type : kernel.chain)
    if (!is_type_name(type)) fail(TN_REFUSED, owner, " fuses the malformed layer type \"", type, "\"");
  if (kernel.chain.back() != kernel.type)
    fail(TN_REFUSED, owner, " is for the layer type \"", kernel.type, "\", but the chain that it fuses ends in \"",
         kernel.chain.back(), "\"");
}

struct Feature {
  std::string_view name;
  bool present;
};

std::vector<Feature> cpu_features() {
#if defined(__x86_64__)
#define TN_FEATURE(name) Feature{name, __builtin_cpu_supports(name) != 0}  // the builtin needs a literal
  __builtin_cpu_init();
  return {TN_FEATURE("sse3"),     TN_FEATURE("ssse3"),     TN_FEATURE("sse4.1"),   TN_FEATURE("sse4.2"),
          TN_FEATURE("popcnt"),   TN_FEATURE("aes"),       TN_FEATURE("pclmul"),   TN_FEATURE("bmi"),
          TN_FEATURE("bmi2"),     TN_FEATURE("avx"),       TN_FEATURE("avx2"),     TN_FEATURE("fma"),
          TN_FEATURE("avx512f"),  TN_FEATURE("avx512cd"),  TN_FEATURE("avx512bw"), TN_FEATURE("avx512dq"),
          TN_FEATURE("avx512vl"), TN_FEATURE("avx512vnni")};
#undef TN_FEATURE
#else
  return {};
#endif
}

// Whether an entry of a list, of any kind, is a refused component.
template <typename Entry>
bool is_refused(const Entry& entry) {
  if constexpr (requires { entry.refused; }) return !entry.refused.empty();
  return false;
}

// Describes the first difference of two lists, "" if they are equal. name(entry) returns an entry's name.
template <typename Entry, typename Name>
std::string list_difference(const char* what, const std::vector<Entry>& note, const std::vector<Entry>& plugin,
                            Name name) {
  for (size_t i = 0; i < note.size() && i < plugin.size(); ++i) {
    if (note[i] == plugin[i]) continue;
    if (name(note[i]) != name(plugin[i]))
      return text("the note has the ", what, " \"", name(note[i]), "\" where the code has \"", name(plugin[i]), "\"");
    if (is_refused(note[i])) continue;
    return text("the ", what, " \"", name(note[i]), "\" differs in the code");
  }
  if (note.size() == plugin.size()) return "";
  return text("the note lists ", note.size(), " of ", what, ", the code ", plugin.size());
}

std::string text_difference(const char* what, const std::string& note, const std::string& plugin) {
  return note == plugin ? "" : text("the note has the ", what, " \"", note, "\", the code \"", plugin, "\"");
}

// Describes the first difference of attributes between types of the same name.
template <typename Description>
std::string attributes_difference(const char* what, const std::vector<Description>& note,
                                  const std::vector<Description>& plugin) {
  for (size_t i = 0; i < note.size() && i < plugin.size(); ++i) {
    if (note[i].type != plugin[i].type) break;
    if (is_refused(note[i])) continue;
    const std::string found = list_difference("attribute", note[i].attributes, plugin[i].attributes,
                                              [](const Attribute& attribute) { return attribute.name; });
    if (!found.empty()) return text(what, " \"", note[i].type, "\": ", found);
  }
  return "";
}

// Describes a table or draft of this host that one of note and code has and the other lacks, and takes both lists out
// of the descriptions; "" if there is none. A note lists what its writer knew, so the code may offer more tables.
template <typename Description>
std::string table_difference(const char* what, std::vector<Description>& note, std::vector<Description>& plugin) {
  std::string difference;
  for (size_t i = 0; i < note.size() && i < plugin.size(); ++i) {
    const auto& tables = plugin[i].tables;
    for (const std::string& id : note[i].tables)
      if (difference.empty() && is_known_table(id) && std::find(tables.begin(), tables.end(), id) == tables.end())
        difference = text("the note of the ", what, " \"", note[i].type, "\" lists the table \"", id,
                          "\", which the code does not offer");
    note[i].tables = plugin[i].tables = {};
  }
  return difference;
}
std::string draft_difference(const std::vector<Draft>& note, const std::vector<Draft>& plugin) {
  for (const auto& [some, others] : {std::pair(&note, &plugin), std::pair(&plugin, &note)})
    for (const Draft& draft : *some)
      if (is_known_table(draft.id) && std::find(others->begin(), others->end(), draft) == others->end())
        return text("note and code differ in the draft of the table \"", draft.id, "\" that they state");
  return "";
}

}  // namespace

void check_abi(const AbiInterval& abi, const HostAbi& host) {
  const bool too_new = abi.major > host.major || (abi.major == host.major && abi.required > host.minor);
  const bool is_former = abi.major == 0 && host.major == 1;
  const bool too_old = (abi.major < host.major && !is_former) || (abi.major == 0 && abi.built < host.oldest);
  if (!too_new && !too_old) return;
  const std::string built = text("it was built with version ", abi.major, ".", abi.built, " of the plugin interface");
  const std::string offered = text("; this host offers version ", host.major, ".", host.minor);
  if (too_new)
    fail(TN_REFUSED, built, " and needs a host of ", abi.major, ".", abi.required, " or later", offered,
         "; update Tenon, or get a build of this plugin for an older version");
  fail(TN_REFUSED, built, offered, " and accepts plugins built with 0.", host.oldest,
       " or later; rebuild the plugin with the SDK of this Tenon, or get a newer build");
}

void check_isa(const std::string& isa) {
  const std::vector<Feature> features = cpu_features();
  for (size_t begin = 0; begin < isa.size();) {
    const size_t comma = std::min(isa.find(',', begin), isa.size());
    std::string_view name = std::string_view(isa).substr(begin, comma - begin);
    begin = comma + 1;
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    if (name.empty()) continue;
    const auto found = std::find_if(features.begin(), features.end(), [&](const Feature& f) { return f.name == name; });
    if (found == features.end())
      fail(TN_REFUSED, "it needs the CPU feature \"", name, "\", which this host does not know on this machine");
    if (!found->present) fail(TN_REFUSED, "it needs the CPU feature \"", name, "\", which this CPU does not have");
  }
}

bool is_known_kind(int32_t kind) { return kind >= TN_ATTR_BOOL && kind <= TN_ATTR_STRINGS; }

std::string unknown_value(const std::string& what) {
  return text("its ", what, " is unknown to this host, which offers version ", TN_ABI_MAJOR, ".", TN_ABI_MINOR,
              " of the plugin interface; update Tenon to use it");
}

// Options are of the whole plugin, so an unknown kind refuses all of it.
static void check_options(const std::vector<Attribute>& options) {
  for (const Attribute& option : options)
    if (option.kind < TN_ATTR_BOOL || option.kind > TN_ATTR_STRING)
      fail(TN_REFUSED, unknown_value(text("kind ", option.kind, " of option \"", option.name, "\"")));
  check_attributes("the options of the plugin", options);
}

void check_manifest(Manifest& manifest) {
  if (manifest.id.empty()) fail(TN_REFUSED, "the plugin has no id");
  check_options(manifest.options);
  for (const Draft& draft : manifest.drafts)
    if (const std::string fault = draft_fault(draft); !fault.empty())
      fail(TN_REFUSED, "it was built with the table \"", draft.id, "\" ", fault);
  mark_unknown(manifest.layers);
  mark_unknown(manifest.updaters);
  mark_unknown(manifest.readers);
  mark_unknown(manifest.kernels);
  mark_unknown(manifest.comms);
  Names layers, updaters, readers, devices, comms;
  for (const LayerDescription& layer : manifest.layers) {
    check_type(manifest, "layer type", layer.type, layers);
    check_layer(layer);
  }
  for (const UpdaterDescription& updater : manifest.updaters) {
    check_type(manifest, "updater type", updater.type, updaters);
    check_attributes("updater type \"" + updater.type + "\"", updater.attributes, kOfUpdaters);
  }
  for (const ReaderDescription& reader : manifest.readers) {
    check_type(manifest, "reader type", reader.type, readers);
    check_attributes("reader type \"" + reader.type + "\"", reader.attributes);
  }
  for (const DeviceDescription& device : manifest.devices) check_type(manifest, "device", device.kind, devices);
  for (const CommDescription& comm : manifest.comms) {
    check_type(manifest, "communicator", comm.type, comms);
    check_attributes("communicator \"" + comm.type + "\"", comm.attributes);
  }
  for (const KernelDescription& kernel : manifest.kernels) {
    const std::string owner = "kernel \"" + kernel.name + "\"";
    if (!is_type_name(kernel.type)) fail(TN_REFUSED, owner, ": malformed layer type \"", kernel.type, "\"");
    if (!is_type_name(kernel.device)) fail(TN_REFUSED, owner, ": malformed device \"", kernel.device, "\"");
    check_chain(owner, kernel);
  }
  for (const ProviderDescription& provider : manifest.providers) {
    const std::string owner = "provider \"" + provider.name + "\"";
    if (provider.name.empty()) fail(TN_REFUSED, "a provider has no name");
    if (!is_type_name(provider.device)) fail(TN_REFUSED, owner, ": malformed device \"", provider.device, "\"");
    if (provider.id.empty()) fail(TN_REFUSED, owner, ": the id of its table is empty");
  }
}

static std::string arithmetic_of(const Manifest& manifest) { return manifest.is_native ? "native" : ""; }

std::string difference(Manifest note, Manifest plugin) {
  const auto type = [](const auto& description) { return description.type; };
  if (!(note.abi == plugin.abi))
    return text("the note has the interface ", note.abi.major, ".", note.abi.built, " (needs ", note.abi.major, ".",
                note.abi.required, "), the code ", plugin.abi.major, ".", plugin.abi.built, " (needs ",
                plugin.abi.major, ".", plugin.abi.required, ")");
  for (const std::string& found : {
           text_difference("id", note.id, plugin.id),
           text_difference("version", note.version, plugin.version),
           text_difference("doc line", note.doc, plugin.doc),
           text_difference("license", note.license, plugin.license),
           text_difference("CPU feature list", note.isa, plugin.isa),
           text_difference("arithmetic", arithmetic_of(note), arithmetic_of(plugin)),
           table_difference("layer type", note.layers, plugin.layers),
           table_difference("reader type", note.readers, plugin.readers),
           draft_difference(note.drafts, plugin.drafts),
           attributes_difference("layer type", note.layers, plugin.layers),
           list_difference("layer type", note.layers, plugin.layers, type),
           attributes_difference("updater type", note.updaters, plugin.updaters),
           list_difference("updater type", note.updaters, plugin.updaters, type),
           attributes_difference("reader type", note.readers, plugin.readers),
           list_difference("reader type", note.readers, plugin.readers, type),
           attributes_difference("communicator", note.comms, plugin.comms),
           list_difference("communicator", note.comms, plugin.comms, type),
           list_difference("device", note.devices, plugin.devices, [](const auto& device) { return device.kind; }),
           list_difference("kernel", note.kernels, plugin.kernels, [](const auto& kernel) { return kernel.name; }),
           list_difference("library", note.libraries, plugin.libraries, [](const auto& need) { return need.name; }),
           list_difference("provider", note.providers, plugin.providers, [](const auto& offer) { return offer.name; }),
           list_difference("option", note.options, plugin.options, [](const auto& option) { return option.name; }),
       })
    if (!found.empty()) return found;
  return "";
}

}  // namespace tenon::host
