// tenon plugins list: lists the plugins found, without running them. SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <nlohmann/json.hpp>

#include "host/cli/options.h"
#include "host/cli/table.h"
#include "host/cli/verbs.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

// "layers relu, tanh; devices cpu"
std::string offers(const json& manifest) {
  std::string result;
  for (const char* kind : {"layers", "updaters", "readers", "devices", "kernels"}) {
    std::string names;
    if (manifest.contains(kind))
      for (const json& entry : manifest.at(kind))
        names +=
            (names.empty() ? "" : ", ") + entry.at(std::string(kind) == "devices" ? "kind" : "type").get<std::string>();
    if (!names.empty()) result += (result.empty() ? "" : "; ") + std::string(kind) + " " + names;
  }
  return result;
}

void print(const json& plugins) {
  Table table({"plugin", "version", "offers", "file"});
  size_t refused = 0;
  for (const json& plugin : plugins) {
    if (plugin.at("status") == "refused") {
      ++refused;
      continue;
    }
    const json& manifest = plugin.at("manifest");
    table.row({manifest.value("id", ""), manifest.value("version", ""), offers(manifest),
               plugin.at("file").get<std::string>()});
  }
  table.print(std::cout);
  if (refused > 0) std::cout << "\nrefused:\n";
  for (const json& plugin : plugins)
    if (plugin.at("status") == "refused")
      std::cout << plain("  " + plugin.at("reason").get<std::string>()) << "\n";  // begins with the file
}

}  // namespace

int run_plugins_list(const Arguments& arguments) {
  std::vector<std::string> folders;
  bool as_json = false;
  Options options("plugins list", {},
                  "Lists the plugins that are found, and those that are refused with the reason.\n"
                  "Runs no plugin code.");
  options.list.add_options()("json", boost::program_options::bool_switch(&as_json), "print JSON");
  add_plugins_option(options, folders);
  if (!options.parse(arguments)) return kDone;
  const json plugins = json::parse(make_host(folders, 1).plugins());
  if (as_json)
    std::cout << plugins.dump(2) << "\n";
  else
    print(plugins);
  return kDone;
}

}  // namespace tenon::cli
