// tenon plugins list: lists the plugins found, without running them. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "host/cli/console.h"
#include "host/cli/options.h"
#include "host/cli/table.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

struct ListedKind {
  const char* list;  // in the manifest
  const char* word;
  const char* name;  // key of the name that is listed
};
constexpr ListedKind kListedKinds[] = {{"layers", "layer", "type"},      {"updaters", "updater", "type"},
                                       {"readers", "reader", "type"},    {"devices", "device", "kind"},
                                       {"comms", "comm", "type"},        {"kernels", "kernel", "type"},
                                       {"providers", "provider", "name"}};

// Returns whether component `index` of its list is one that the host cannot use.
bool is_refused(const json& plugin, const ListedKind& kind, size_t index) {
  for (const json& refused : plugin.at("refused"))
    if (refused.at("kind") == kind.word && refused.at("index") == index) return true;
  return false;
}

// "layers relu, tanh; devices cpu"
std::string offers(const json& plugin) {
  const json& manifest = plugin.at("manifest");
  std::string result;
  for (const ListedKind& kind : kListedKinds) {
    if (!manifest.contains(kind.list)) continue;
    const json& components = manifest.at(kind.list);
    std::string names;
    for (size_t i = 0; i < components.size(); ++i)
      if (!is_refused(plugin, kind, i)) base::append(names, components[i].at(kind.name).get<std::string>());
    if (!names.empty()) base::append(result, std::string(kind.list) + " " + names, "; ");
  }
  return result;
}

// Returns a line for each plugin in whose place another of its id is used.
std::vector<std::string> unused(const json& plugins) {
  std::vector<std::string> result;
  for (const json& plugin : plugins)
    if (plugin.at("status") == "unused") result.push_back(plugin.at("reason"));  // begins with the file
  return result;
}

// Returns a line for each plugin that is refused, and for each refused component of the others.
std::vector<std::string> refusals(const json& plugins) {
  std::vector<std::string> result;
  for (const json& plugin : plugins) {
    if (plugin.at("status") == "refused") {
      result.push_back(plugin.at("reason"));  // begins with the file
      continue;
    }
    if (plugin.at("status") == "unused") continue;
    for (const json& component : plugin.at("refused"))
      result.push_back(plugin.at("file").get<std::string>() + ": " + component.at("kind").get<std::string>() + " \"" +
                       component.at("name").get<std::string>() + "\": " + component.at("reason").get<std::string>());
  }
  return result;
}

// Returns the files of the plugins whose bytes the plugin set does not name.
std::vector<std::string> admitted_by_id(const json& plugins) {
  std::vector<std::string> result;
  for (const json& plugin : plugins)
    if (plugin.at("admitted_by") == "id" && plugin.at("status") != "unused") result.push_back(plugin.at("file"));
  return result;
}

void print(const json& plugins) {
  Table table({"plugin", "version", "offers", "file"});
  for (const json& plugin : plugins) {
    if (plugin.at("status") == "refused" || plugin.at("status") == "unused") continue;
    const json& manifest = plugin.at("manifest");
    table.row({manifest.value("id", ""), manifest.value("version", ""), offers(plugin),
               plugin.at("file").get<std::string>()});
  }
  const size_t width = output_width();
  table.print(std::cout, width);
  const auto print_lines = [width](const char* heading, const std::vector<std::string>& lines) {
    constexpr size_t kIndent = 4, kLeast = 16;
    if (!lines.empty()) std::cout << "\n" << heading << ":\n";
    for (const std::string& line : lines)
      std::cout << "  "
                << (width == 0 ? plain(line)
                               : wrapped(plain(line), std::max(width, kIndent + kLeast) - kIndent, "    "))
                << "\n";
  };
  print_lines("admitted by their ids alone, without sha256 or signed_by", admitted_by_id(plugins));
  print_lines("unused", unused(plugins));
  print_lines("refused", refusals(plugins));
}

}  // namespace

int run_plugins_list(const Arguments& arguments) {
  PluginOptions plugins_from;
  bool as_json = false;
  Options options("plugins list", {},
                  "Lists the plugins that are found, those in whose place a newer one is used, and the plugins and\n"
                  "components that are refused, with reasons.\n"
                  "Runs no plugin code.");
  options.list.add_options()("json", boost::program_options::bool_switch(&as_json), "print JSON");
  plugins_from.add_to(options);
  if (!options.parse(arguments)) return kDone;
  const json plugins = json::parse(plugins_from.host().plugins());
  if (as_json)
    std::cout << plugins.dump(2) << "\n";
  else
    print(plugins);
  return kDone;
}

}  // namespace tenon::cli
