// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/component.h"

#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "host/cli/cli.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

// Returns the names of a type's attributes, host attributes included.
std::vector<std::string> attributes_of(const Host& host, const JobComponent& wanted) {
  const json described = json::parse(host.describe_type(wanted.kind, wanted.type.type));
  std::vector<std::string> result = described.value("host_attributes", std::vector<std::string>());
  for (const json& attribute : described.at("attributes")) result.push_back(attribute.at("name").get<std::string>());
  return result;
}

}  // namespace

void rethrow_at(const Error& error, const Host& host, const JobComponent& wanted) {
  const bool own = error.component() == wanted.component;
  const std::string message = (own && wanted.named ? "" : wanted.section + ": ") + error.what();
  const auto place = own ? wanted.type.places.find(error.subject()) : wanted.type.places.end();
  if (place == wanted.type.places.end()) throw Failure(exit_code(error.code()), wanted.type.place + ": " + message);
  const std::string key = base::nearest(place->first, wanted.keys);
  if (!key.empty() && base::nearest(place->first, attributes_of(host, wanted)).empty())
    throw Failure(kBadConfig, place->second + ": " + wanted.section + ": unknown key \"" + place->first +
                                  "\"; did you mean \"" + key + "\"?");
  throw Failure(exit_code(error.code()), place->second + ": " + message);
}

}  // namespace tenon::cli
