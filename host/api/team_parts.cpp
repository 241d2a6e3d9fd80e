// SPDX-License-Identifier: Apache-2.0
#include "host/api/team_parts.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/processor.h"
#include "base/xxh3.h"

namespace tenon::host {

namespace {

std::string digest_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> part(size_t{1} << 20);
  base::Xxh3 hash;
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())), file.gcount() > 0)
    hash.update(part.data(), static_cast<uint64_t>(file.gcount()));
  return hash.finish();
}

}  // namespace

std::map<std::string, std::string> team_parts(const Registry& registry) {
  std::map<std::string, std::string> parts = {{"kind of processor", base::processor_text()}};
  for (const nlohmann::json& plugin : registry.list())
    if (plugin["status"] == "loaded")
      parts["plugin " + plugin["manifest"].value("id", "")] = digest_of_file(plugin["file"].get<std::string>());
  return parts;
}

}  // namespace tenon::host
