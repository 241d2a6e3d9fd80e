// SPDX-License-Identifier: Apache-2.0
#include "check/bench/older_model.h"

#include <cstring>
#include <fstream>
#include <iterator>

namespace tenon::check {

void save_older(const Bench& bench, const std::string& type, uint32_t state_version, const std::string& path) {
  bench.parameters().save(bench.outputs(), path);
  std::ifstream from(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(from), {});
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  json header = json::parse(bytes.substr(sizeof length, length));
  json& metadata = header.at("__metadata__");
  json topology = json::parse(metadata.at("tenon.topology").get<std::string>());
  for (json& layer : topology.at("layers"))
    if (layer.at("type") == type) layer.at("plugin").at("state_version") = state_version;
  metadata["tenon.topology"] = topology.dump();
  metadata["format"] = "tenon.check";  // which has no checksum
  metadata.erase("tenon.xxh3_128");
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t now = text.size();
  std::ofstream to(path, std::ios::binary);
  to.write(reinterpret_cast<const char*>(&now), sizeof now);
  to << text << bytes.substr(sizeof length + length);
}

}  // namespace tenon::check
