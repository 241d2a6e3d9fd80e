// SPDX-License-Identifier: Apache-2.0
#include "host/cli/late_refusals.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "host/cli/cli.h"

namespace tenon::cli {

LateRefusals::LateRefusals(const Host& host) : host_(host) {
  for (const nlohmann::json& plugin : nlohmann::json::parse(host.plugins()))
    if (plugin.at("status") == "refused") files_.insert(plugin.at("file").get<std::string>());
}

void LateRefusals::warn() const {
  for (const nlohmann::json& plugin : nlohmann::json::parse(host_.plugins()))
    if (plugin.at("status") == "refused" && !files_.contains(plugin.at("file").get<std::string>()))
      std::cerr << "warning: " << shortened(plain(plugin.at("reason").get<std::string>())) << std::endl;
}

}  // namespace tenon::cli
