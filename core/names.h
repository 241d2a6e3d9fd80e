// What data has in common with the data that a model was trained with: the names of integers, such as classes, and of
// columns, type and shape. SPDX-License-Identifier: Apache-2.0
//
// Lists are compared name by name, so that data whose classes or columns are in another order is refused.
#pragma once

#include <tenon/base.h>

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::core {

// Of a longer list only count and digest are kept, in memory and in model files.
constexpr int64_t kMostNames = 65'536;
constexpr uint64_t kMostNameBytes = uint64_t{1} << 20;
// The limit of all lists of a model file together.
constexpr uint64_t kMostModelNameBytes = uint64_t{8} << 20;

struct Names;
using NamesRef = std::shared_ptr<const Names>;  // null: no names

struct Names {
  int64_t count = 0;                // 0: the values have no names
  std::string sha256;               // of the texts, each followed by a newline, as in a text file
  std::vector<std::string> texts;   // by number; empty if beyond the limits or not UTF-8
  NamesRef columns = {};            // of a sample, along its last dimension; null: unknown
  tn_dtype dtype = 0;               // of the data layer or slot; 0: unknown
  std::vector<int64_t> shape = {};  // likewise
  int64_t index_limit = -1;         // likewise

  [[nodiscard]] bool same(const Names& other) const { return count == other.count && sha256 == other.sha256; }
};
using DataNames = std::map<std::string, NamesRef>;  // by data layer; none is null

// Returns the names `texts`; null if there are none. Throws an Error with `code` whose message begins with `who` for a
// duplicate name in a list within the limits.
[[nodiscard]] NamesRef names_of(const std::vector<std::string_view>& texts, tn_status code, const std::string& who);

// Compares `told`, the names of data, with `known`, the names that its receiver has. Returns a text about the first
// difference, or "" if every name has the same number in both. `told` may lack the last names of `known` if the values
// of the data lie below `limit` (-1: no limit) and every number below it has a name in `told`. Lists that one of the
// two lacks are not compared, nor are types and shapes, which feeding checks.
[[nodiscard]] std::string difference(const Names& told, int64_t limit, const Names& known);

// The JSON form in model files: the list if `whole` and kept, else {count, sha256}. names_from_json throws TN_BAD_DATA.
[[nodiscard]] nlohmann::json to_json(const Names& names, bool whole);
[[nodiscard]] NamesRef names_from_json(const nlohmann::json& json);
// Returns the names of all data layers in the JSON of a topology.
[[nodiscard]] DataNames names_of_topology(const nlohmann::json& topology);

}  // namespace tenon::core
