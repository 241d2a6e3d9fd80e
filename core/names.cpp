// SPDX-License-Identifier: Apache-2.0
#include "core/names.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/nearest.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/utf8.h"
#include "core/attribute.h"
#include "core/error.h"
#include "core/files/model_header.h"
#include "core/shape.h"

namespace tenon::core {

namespace {

using Texts = std::unordered_set<std::string_view>;

// Returns the first 20 of `known`, with a suggestion if one of them all is near `name`.
std::string known_beside(const std::string& name, const std::vector<std::string>& known) {
  constexpr size_t kMost = 20;
  std::string result;
  for (size_t i = 0; i < std::min(known.size(), kMost); ++i) base::append(result, quoted(known[i]));
  if (known.size() > kMost) result += ", ...";
  const std::string near = base::nearest(name, known);
  return near.empty() ? result : result + "; did you mean " + quoted(near) + "?";
}

std::string digest_of(const Names& names) { return text(names.count, " names with SHA-256 ", names.sha256); }

}  // namespace

NamesRef names_of(const std::vector<std::string_view>& texts, tn_status code, const std::string& who) {
  if (texts.empty()) return nullptr;
  auto names = std::make_shared<Names>();
  names->count = static_cast<int64_t>(texts.size());
  base::Sha256 hash;
  uint64_t bytes = 0;
  bool whole = names->count <= kMostNames;
  for (const std::string_view text : texts) {
    hash.update(text.data(), text.size());
    hash.update("\n", 1);
    bytes += text.size();
    whole = whole && bytes <= kMostNameBytes && base::is_utf8(std::string(text));
  }
  names->sha256 = hash.finish();
  if (!whole) return names;
  names->texts.assign(texts.begin(), texts.end());
  Texts seen;
  for (const std::string& text : names->texts)
    if (!seen.insert(text).second) fail(code, who, ": duplicate name ", quoted(text));
  return names;
}

namespace {

// Columns agree if they are the same in the same order.
std::string difference_of_columns(const Names& told, const Names& known) {
  if (told.same(known)) return "";
  const auto columns = [](const Names& of) { return text(of.count, " columns with SHA-256 ", of.sha256); };
  const size_t common = std::min(told.texts.size(), known.texts.size());
  for (size_t i = 0; i < common; ++i)
    if (told.texts[i] != known.texts[i])
      return text("column ", i, " is ", quoted(told.texts[i]), " and is known as ", quoted(known.texts[i]));
  return common == 0 ? text("expected ", columns(known), ", got ", columns(told))
                     : text("expected ", known.count, " columns, got ", told.count);
}

}  // namespace

std::string difference(const Names& told, int64_t limit, const Names& known) {
  if (told.columns != nullptr && known.columns != nullptr)
    if (std::string differs = difference_of_columns(*told.columns, *known.columns); !differs.empty()) return differs;
  if (told.count == 0 || known.count == 0 || told.same(known)) return "";
  if (told.texts.empty() || known.texts.empty()) return text("expected ", digest_of(known), ", got ", digest_of(told));
  const Texts texts(known.texts.begin(), known.texts.end());
  for (const std::string& name : told.texts)
    if (!texts.contains(name))
      return text(quoted(name), " is not among the names that are known: ", known_beside(name, known.texts));
  for (size_t i = 0; i < told.texts.size(); ++i)
    if (told.texts[i] != known.texts[i])
      return text(i, " is ", quoted(told.texts[i]), " and is known as ", quoted(known.texts[i]));
  // `told` is the beginning of `known`. A number without a name in `told` must not have one in `known`.
  if (limit < 0 || limit > told.count)
    return text(told.count, " has no name, and is known as ", quoted(known.texts[told.texts.size()]));
  return "";
}

nlohmann::json to_json(const Names& names, bool whole) {
  if (whole && !names.texts.empty()) return names.texts;
  return {{"count", names.count}, {"sha256", names.sha256}};
}

NamesRef names_from_json(const nlohmann::json& json) try {
  const std::string who = "topology: names";
  if (json.is_array()) {
    std::vector<std::string_view> texts;
    for (const nlohmann::json& text : json) texts.emplace_back(text.get_ref<const std::string&>());
    return names_of(texts, TN_BAD_DATA, who);
  }
  auto names = std::make_shared<Names>();
  if (!json.at("count").is_number_integer() || (names->count = json.at("count").get<int64_t>()) < 1)
    fail(TN_BAD_DATA, who, ": count is ", json.at("count").dump());
  names->sha256 = json.at("sha256").get<std::string>();
  return names;
} catch (const nlohmann::json::exception&) {
  fail(TN_BAD_DATA, "topology: names are neither a list of texts nor {count, sha256}");
}

DataNames names_of_topology(const nlohmann::json& topology) try {
  DataNames result;
  for (const nlohmann::json& layer : topology.at("layers")) {
    if (layer.at("type") != "data") continue;
    auto names = std::make_shared<Names>();
    if (layer.contains("names"))
      if (const NamesRef read = names_from_json(layer.at("names"))) *names = *read;
    if (layer.contains("columns")) names->columns = names_from_json(layer.at("columns"));
    names->dtype = dtype_from_name(layer.at("dtype").get<std::string>());
    names->shape = layer.at("shape").get<std::vector<int64_t>>();
    names->index_limit = layer.at("index_limit").get<int64_t>();
    result[layer.at("name").get<std::string>()] = std::move(names);
  }
  return result;
} catch (const nlohmann::json::exception&) {
  fail(TN_BAD_DATA, "topology: the layers are malformed");
}

}  // namespace tenon::core
