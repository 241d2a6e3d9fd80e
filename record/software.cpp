// SPDX-License-Identifier: Apache-2.0
#include "record/software.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

namespace tenon::record {

namespace fs = std::filesystem;
using nlohmann::json;

json software(const Surroundings& surroundings, const std::string& version, const std::string& file) {
  return {{"version", version},
          {"sha256", file.empty() ? "" : digest_of_file(surroundings, file, file).at("sha256").get<std::string>()}};
}

std::string file_of(const void* function) {
  Dl_info symbol = {};
  return dladdr(function, &symbol) != 0 && symbol.dli_fname != nullptr ? symbol.dli_fname : "";
}

void add_loaded_plugins(const Surroundings& surroundings, const json& plugins, json& list) {
  for (const json& plugin : plugins) {
    if (plugin.at("status") != "loaded") continue;
    const auto& manifest = plugin.at("manifest");
    const std::string id = manifest.value("id", ""), file = plugin.at("file");
    if (std::any_of(list.begin(), list.end(), [&](const json& other) { return other.at("id") == id; })) continue;
    list.push_back(software(surroundings, manifest.value("version", ""), file));
    list.back()["id"] = id;
    list.back()["file"] = fs::path(file).filename().string();
  }
}

}  // namespace tenon::record
