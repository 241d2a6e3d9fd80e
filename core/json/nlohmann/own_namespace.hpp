// The inline namespace in nlohmann that holds Tenon's JSON, by the macros that the library has for that (since 3.11,
// "NLOHMANN_JSON_NAMESPACE"); nlohmann::json names it as before. SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef INCLUDE_NLOHMANN_JSON_FWD_HPP_
#error "nlohmann's own JSON is in this source already"
#endif
#define NLOHMANN_JSON_NAMESPACE nlohmann::of_tenon
#define NLOHMANN_JSON_NAMESPACE_BEGIN \
  namespace nlohmann {                \
  inline namespace of_tenon {
#define NLOHMANN_JSON_NAMESPACE_END \
  }                                 \
  }
