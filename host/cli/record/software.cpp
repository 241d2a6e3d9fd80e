// SPDX-License-Identifier: Apache-2.0
#include "host/cli/record/software.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "host/cli/cli.h"
#include "host/cli/external.h"
#include "host/cli/record/data.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json part(const std::string& version, const std::string& file) {
  return {{"version", version}, {"sha256", file.empty() ? "" : digest_of_file(file, file).at("sha256")}};
}

// Returns the path of libtenon, or of the program that it is part of.
std::string library_file() {
  Dl_info symbol = {};
  return dladdr(reinterpret_cast<const void*>(&tn_version), &symbol) != 0 && symbol.dli_fname != nullptr
             ? symbol.dli_fname
             : "";
}

// Returns the path of the program `tenon`: this one, or that which runs it.
std::string program_file() {
  const fs::path own = this_program();
  std::error_code unknown;
  const fs::path beside = own.parent_path() / "tenon";
  return fs::exists(beside, unknown) ? beside.string() : own.string();
}

}  // namespace

json software() {
  return {{"program", part(TENON_VERSION, program_file())}, {"library", part(tn_version(), library_file())}};
}

void add_loaded_plugins(const Host& host, json& list) {
  for (const json& plugin : json::parse(host.plugins())) {
    if (plugin.at("status") != "loaded") continue;
    const auto& manifest = plugin.at("manifest");
    const std::string id = manifest.value("id", ""), file = plugin.at("file");
    if (std::any_of(list.begin(), list.end(), [&](const json& other) { return other.at("id") == id; })) continue;
    list.push_back(part(manifest.value("version", ""), file));
    list.back()["id"] = id;
    list.back()["file"] = fs::path(file).filename().string();
  }
}

}  // namespace tenon::cli
