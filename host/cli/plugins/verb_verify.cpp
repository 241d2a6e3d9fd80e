// tenon plugins verify: checks the files of a plugin set, or signatures. SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "host/cli/console.h"
#include "host/cli/options.h"
#include "host/cli/table.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

bool is_library(const std::string& file) {
  char begin[4] = {};
  return std::ifstream(file, std::ios::binary).read(begin, sizeof begin) && std::memcmp(begin, "\177ELF", 4) == 0;
}

int verify_set(const std::string& set, bool as_json) {
  const json found = json::parse(verify_plugin_set(set));
  size_t refused = 0, files = 0;
  for (const json& file : found) {
    refused += file.at("status") == "ok" ? 0 : 1;
    files += file.at("file").get<std::string>().empty() ? 0 : 1;
  }
  if (as_json) {
    std::cout << found.dump(2) << "\n";
  } else {
    Table table({"plugin", "version", "status", "file"});
    for (const json& file : found)
      if (!file.at("file").get<std::string>().empty())
        table.row({file.at("id").get<std::string>(), file.at("version").get<std::string>(),
                   file.at("status").get<std::string>(), file.at("file").get<std::string>()});
    table.print(std::cout, output_width());
    if (refused > 0) std::cout << "\nrefused:\n";
    for (const json& file : found)
      if (file.at("status") != "ok") std::cout << plain("  " + file.at("reason").get<std::string>()) << "\n";
    for (const json& file : found)
      if (const auto warning = file.at("warning").get<std::string>(); !warning.empty())
        std::cerr << "warning: " << plain(warning) << "\n";
  }
  if (refused == 0) return kDone;
  throw Failure(kRefused, set + ": " + std::to_string(refused) + " of " + std::to_string(files) +
                              (files == 1 ? " file is refused" : " files are refused"));
}

}  // namespace

int run_plugins_verify(const Arguments& arguments) {
  std::string key;
  bool as_json = false;
  Options options("plugins verify", {"FILE..."},
                  "Checks the files that a plugin set (FILE.toml) names, or with --public the signature of plugins\n"
                  "and sets. Runs no plugin code. Exit code 77 if a file is not as it should be.");
  options.list.add_options()("public", boost::program_options::value(&key)->value_name("NAME.pub"),
                             "check that the files are signed with this key")(
      "json", boost::program_options::bool_switch(&as_json),
      "print JSON: id, file, version, sha256, status, reason, warning");
  if (!options.parse(arguments)) return kDone;
  if (!key.empty() && as_json) options.fail("--public and --json exclude each other");
  for (const std::string& file : options.given()) {
    if (key.empty()) {
      if (is_library(file)) options.fail(file + " is a plugin, not a plugin set; --public checks its signature");
      verify_set(file, as_json);
      continue;
    }
    verify_plugin(file, key);
    std::cout << plain(file + ": signed with " + key) << "\n";
  }
  return kDone;
}

}  // namespace tenon::cli
