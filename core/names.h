// What the integers of a data layer stand for: classes, categories, words. Two lists are compared by name, so that data
// whose classes were found in another order is never taken for something else. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/base.h>

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

// A longer list is known by its count and digest alone, here and in model files.
constexpr int64_t kMostNames = 65'536;
constexpr uint64_t kMostNameBytes = uint64_t{1} << 20;
// The same for all lists of a model file together.
constexpr uint64_t kMostModelNameBytes = uint64_t{8} << 20;

struct Names {
  int64_t count = 0;               // at least 1
  std::string sha256;              // of the texts, each with a line end behind it, as in a file of them
  std::vector<std::string> texts;  // by number; empty where they were too long or no UTF-8

  [[nodiscard]] bool same(const Names& other) const { return count == other.count && sha256 == other.sha256; }
};
using NamesRef = std::shared_ptr<const Names>;      // null: no names
using DataNames = std::map<std::string, NamesRef>;  // by data layer; none is null

// Null for no texts. A text that is there twice is a failure with `code` that `who` begins.
[[nodiscard]] NamesRef names_of(const std::vector<std::string_view>& texts, tn_status code, const std::string& who);

// Where values below `limit` (-1: any) called `told` cannot go to somebody who knows them as `known`, and why: every
// name must have the number that it has there. "" where they can.
[[nodiscard]] std::string difference(const Names& told, int64_t limit, const Names& known);

// As a model file has them: the list, or {count, sha256}. from_json throws TN_BAD_DATA.
[[nodiscard]] nlohmann::json to_json(const Names& names, bool whole);
[[nodiscard]] NamesRef names_from_json(const nlohmann::json& json);
// Those of all data layers in the JSON of a topology.
[[nodiscard]] DataNames names_of_topology(const nlohmann::json& topology);

}  // namespace tenon
