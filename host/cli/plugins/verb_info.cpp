// tenon plugins info: describes a plugin by its manifest, without running it. SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "host/cli/console.h"
#include "host/cli/options.h"
#include "host/cli/table.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

constexpr size_t kWidth = 100;

struct ShownKind {
  const char* list;  // in the manifest
  const char* word;
  const char* name;  // key of a component's name
};
constexpr ShownKind kShownKinds[] = {{"layers", "layer", "type"},
                                     {"updaters", "updater", "type"},
                                     {"readers", "reader", "type"},
                                     {"devices", "device", "kind"},
                                     {"comms", "comm", "type"}};

// Returns the name of a number in the manifest, an enumerator of <tenon/attribute.h> or <tenon/layer.h>.
std::string named(const json& number, std::initializer_list<const char*> names) {
  const int64_t index = number.is_number_integer() ? number.get<int64_t>() : -1;
  return index >= 0 && index < static_cast<int64_t>(names.size()) ? names.begin()[index] : number.dump();
}

std::string type_of(const json& attribute) {
  std::string result = named(attribute.at("kind"), {"", "bool", "int", "float", "text", "ints", "floats", "texts"});
  const auto bound = [&](const char* key, const char* sign) {
    if (attribute.contains(key) && !attribute.at(key).is_null())
      result += std::string(" ") + sign + " " + attribute.at(key).dump();
  };
  bound("minimum", ">=");
  bound("maximum", "<=");
  if (attribute.contains("choices") && !attribute.at("choices").empty())
    for (const json& choice : attribute.at("choices"))
      result += (&choice == &attribute.at("choices").front() ? ": " : " | ") + choice.get<std::string>();
  return result;
}

std::string default_of(const json& attribute) {
  if (attribute.value("required", false)) return "required";
  if (!attribute.contains("initial") || attribute.at("initial").is_null()) return "-";
  return attribute.at("initial").dump();
}

// Prints a line that contains texts of a manifest, which is untrusted.
void print_line(const std::string& text) { std::cout << plain(text) << "\n"; }

void print_list(const json& component, const char* key, const char* word) {
  if (!component.contains(key)) return;
  for (const json& port : component.at(key)) {
    const int64_t flags = port.value("flags", int64_t{0});
    std::string notes;
    constexpr const char* kFlags[] = {"optional", "one or more", "integers", "integers or floats",
                                      "dense or sparse"};  // TN_PORT_*
    for (size_t i = 0; i < std::size(kFlags); ++i)
      if ((flags >> i & 1) != 0) notes += std::string(notes.empty() ? " (" : ", ") + kFlags[i];
    if (!notes.empty()) notes += ")";
    print_line("  " + std::string(word) + " " + port.at("name").get<std::string>() + notes + ": " +
               port.value("doc", ""));
  }
}

// Prints the options of the plugin with the values on this host, which a plugin set may state.
void print_options(const json& plugin) {
  const json& manifest = plugin.at("manifest");
  if (!manifest.contains("options") || manifest.at("options").empty()) return;
  std::cout << "\n";
  Table table({"  option", "type", "default", "value", "meaning"});
  for (const json& option : manifest.at("options")) {
    const std::string name = option.at("name");
    const json value = plugin.at("options").value(name, json());
    table.row({"  " + name, type_of(option), default_of(option), value.is_null() ? "-" : value.dump(),
               option.value("doc", "")});
  }
  table.print(std::cout, output_width());
}

// Prints the traits of a communicator, TN_COMM_*.
void print_traits(const json& comm) {
  constexpr const char* kTraits[] = {"survives a lost rank", "authenticated", "encrypted", "one per process"};
  std::string names;
  for (size_t i = 0; i < std::size(kTraits); ++i)
    if ((comm.value("traits", int64_t{0}) >> i & 1) != 0)
      names += (names.empty() ? "" : ", ") + std::string(kTraits[i]);
  if (!names.empty()) std::cout << "  traits: " << names << "\n";
}

// Returns the line about the host's own attributes of a kind, null if it has none; docs/formats.md describes them.
const char* common_attributes(const ShownKind& kind) {
  const std::string_view word = kind.word;
  if (word == "layer")
    return "  and, as every layer: act, drop_rate, coefficient (of costs), parameter_name, "
           "param.<suffix>.rate_multiplier, "
           "param.<suffix>.decay_multiplier, param.<suffix>.init, param.<suffix>.sparse";
  if (word == "updater") return "  and, as every updater: schedule, clip_norm, clip_value, l1, l2";
  return nullptr;
}

void print_component(const ShownKind& kind, const json& component) {
  std::cout << "\n" << kind.word << " " << component.at(kind.name).get<std::string>();
  if (component.contains("role")) {
    const std::string role = named(component.at("role"), {"", "cost", "metric"});
    if (!role.empty()) std::cout << " (" << role << ")";
  }
  std::cout << "\n  " << wrapped(plain(component.value("doc", "")), kWidth, "  ") << "\n";
  print_list(component, "inputs", "input");
  print_list(component, "outputs", "output");
  if (component.contains("parameters") && !component.at("parameters").empty()) {
    std::cout << "  parameters (of these, as many as it needs):";
    for (const json& suffix : component.at("parameters")) std::cout << " " << suffix.get<std::string>();
    std::cout << "\n";
  }
  if (component.contains("tables") && !component.at("tables").empty()) {
    std::cout << "  tables:";
    for (const json& id : component.at("tables")) std::cout << " " << plain(id.get<std::string>());
    std::cout << "\n";
  }
  if (std::string_view(kind.word) == "comm") print_traits(component);
  if (component.contains("required")) std::cout << "  needs a host of 0." << component.at("required").dump() << "\n";
  const auto print_common = [&] {
    if (const char* common = common_attributes(kind)) std::cout << common << "\n";
  };
  if (!component.contains("attributes") || component.at("attributes").empty()) return print_common();
  Table table({"  attribute", "type", "default", "meaning"});
  for (const json& attribute : component.at("attributes"))
    table.row({"  " + attribute.at("name").get<std::string>(), type_of(attribute), default_of(attribute),
               attribute.value("doc", "")});
  table.print(std::cout, output_width());
  print_common();
}

// Returns why the host cannot use component `index` of its list, "" if it can.
std::string refusal_of(const json& plugin, const char* word, size_t index) {
  for (const json& refused : plugin.at("refused"))
    if (refused.at("kind") == word && refused.at("index") == index) return refused.at("reason");
  return "";
}

void print_refused(const std::string& component, const std::string& reason) {
  std::cout << "\n";
  print_line(component + " is refused: " + reason);
}

void print_kernel(const json& kernel) {
  std::string layers = "layer " + kernel.at("type").get<std::string>();
  if (kernel.contains("fuses") && !kernel.at("fuses").empty()) {
    layers = "layers";
    for (const json& type : kernel.at("fuses")) layers += (layers == "layers" ? " " : " > ") + type.get<std::string>();
  }
  std::cout << "\n";
  print_line("kernel " + kernel.value("name", "") + " for " + layers + " on " + kernel.at("device").get<std::string>() +
             ", score " + std::to_string(kernel.value("score", 0)));
}

// Prints the kernels, of the layer type `only` if it is not empty, and the providers.
void print_kernels(const json& plugin, const std::string& only) {
  const json none = json::array();
  const json& manifest = plugin.at("manifest");
  const json& kernels = manifest.contains("kernels") ? manifest.at("kernels") : none;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (!only.empty() && kernels[i].at("type") != only) continue;
    if (const std::string reason = refusal_of(plugin, "kernel", i); !reason.empty())
      print_refused("kernel " + kernels[i].value("name", ""), reason);
    else
      print_kernel(kernels[i]);
  }
  if (!only.empty() || !manifest.contains("providers")) return;
  for (const json& provider : manifest.at("providers")) {
    std::cout << "\n";
    print_line("provider " + provider.at("name").get<std::string>() + " of " + provider.at("id").get<std::string>() +
               " for device " + provider.at("device").get<std::string>() + ", score " +
               std::to_string(provider.value("score", 0)));
  }
}

void print_components(const ShownKind& kind, const json& plugin, const std::string& only) {
  const json& manifest = plugin.at("manifest");
  if (!manifest.contains(kind.list)) return;
  const json& components = manifest.at(kind.list);
  for (size_t i = 0; i < components.size(); ++i) {
    const std::string name = components[i].at(kind.name);
    if (!only.empty() && name != only) continue;
    if (const std::string reason = refusal_of(plugin, kind.word, i); !reason.empty())
      print_refused(std::string(kind.word) + " " + name, reason);
    else
      print_component(kind, components[i]);
  }
}

void print_plugin(const json& plugin, const std::string& only) {
  const json& manifest = plugin.at("manifest");
  const json& abi = manifest.at("abi");
  print_line(manifest.at("id").get<std::string>() + " " + manifest.value("version", "") + ": " +
             manifest.value("doc", ""));
  print_line("  file " + plugin.at("file").get<std::string>());
  if (plugin.at("status") == "unused") print_line("  not used: " + plugin.at("reason").get<std::string>());
  print_line("  license " + manifest.value("license", "-") + "; interface " + abi.at("major").dump() + "." +
             abi.at("built").dump() + ", needs at least " + abi.at("major").dump() + "." + abi.at("required").dump());
  if (const std::string isa = manifest.value("isa", ""); !isa.empty()) print_line("  needs CPU features " + isa);
  if (manifest.contains("libraries"))
    for (const json& library : manifest.at("libraries"))
      print_line("  needs library " + library.at("name").get<std::string>() + ": " + library.value("hint", ""));
  if (manifest.contains("drafts"))
    for (const json& draft : manifest.at("drafts"))
      print_line("  built with the draft " + draft.at("digest").get<std::string>() + " of the table " +
                 draft.at("id").get<std::string>());
  if (only.empty()) print_options(plugin);
  for (const ShownKind& kind : kShownKinds) print_components(kind, plugin, only);
  print_kernels(plugin, only);
}

// Returns whether `name` is the plugin's id, file name or path. Adds its names to `names`, for suggestions.
bool is_called(const json& plugin, const std::string& name, std::vector<std::string>& names) {
  const std::filesystem::path file = plugin.at("file").get<std::string>();
  names.push_back(file.filename().string());
  if (plugin.at("manifest").is_object() && plugin.at("manifest").contains("id"))
    names.push_back(plugin.at("manifest").at("id").get<std::string>());
  return name == names.back() || name == file.filename().string() || name == file.string();
}

bool offers(const json& plugin, const std::string& name, std::vector<std::string>& names) {
  bool result = false;
  for (const ShownKind& kind : kShownKinds) {
    if (!plugin.at("manifest").is_object() || !plugin.at("manifest").contains(kind.list)) continue;
    for (const json& component : plugin.at("manifest").at(kind.list)) {
      names.push_back(component.at(kind.name).get<std::string>());
      result = result || names.back() == name;
    }
  }
  return result;
}

void show(const json& plugin, const std::string& only, bool as_json) {
  if (as_json) {
    std::cout << plugin.dump(2) << "\n";
  } else if (plugin.at("status") == "refused") {
    throw Failure(kRefused, "the plugin is refused: " + plugin.at("reason").get<std::string>());
  } else {
    print_plugin(plugin, only);
  }
}

bool is_used(const json& plugin) { return plugin.at("status") != "refused" && plugin.at("status") != "unused"; }

// A plugin that is not used is shown only if no other one fits the name: mostly it is another copy of one that is used.
void show_named(const json& plugins, const std::string& name, bool as_json) {
  std::vector<std::string> names;
  struct Fit {
    const json* plugin;
    bool called;
  };
  std::vector<Fit> used, refused;
  for (const json& plugin : plugins) {
    const bool called = is_called(plugin, name, names);
    if (called || offers(plugin, name, names))
      (!is_used(plugin) && !as_json ? refused : used).push_back({&plugin, called});
  }
  const std::vector<Fit>& shown = used.empty() ? refused : used;
  for (const auto& [plugin, called] : shown) {
    if (plugin != shown.front().plugin && !as_json) std::cout << "\n";
    show(*plugin, called ? "" : name, as_json);
  }
  if (!shown.empty()) return;
  const std::string near = base::nearest(name, names);
  throw Failure(kNotFound, "no plugin and no type is called \"" + name + "\"" +
                               (near.empty() ? "; see 'tenon plugins list'" : "; did you mean \"" + near + "\"?"));
}

}  // namespace

int run_plugins_info(const Arguments& arguments) {
  PluginOptions plugins_from;
  bool as_json = false;
  Options options(
      "plugins info", {"NAME..."},
      "Describes plugins, each by id or file name, or the plugin that offers a layer, updater, reader, device or\n"
      "communicator of that name: inputs, attributes, defaults. Runs no plugin code.");
  options.list.add_options()("json", boost::program_options::bool_switch(&as_json),
                             "print JSON: file, status, manifest");
  plugins_from.add_to(options);
  if (!options.parse(arguments)) return kDone;
  const json plugins = json::parse(plugins_from.host().plugins());
  for (const std::string& name : options.given()) {
    if (!as_json && &name != &options.operand(0)) std::cout << "\n";
    show_named(plugins, name, as_json);
  }
  return kDone;
}

}  // namespace tenon::cli
