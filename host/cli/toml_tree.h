// TOML read strictly: sections that know which keys they were asked for, and places for messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "host/cli/job.h"
#include "host/cli/toml.h"

namespace tenon::cli {

// Throws Failure(kBadConfig) with file and line where the text is no TOML.
[[nodiscard]] toml::table parse_toml(std::string_view text, const std::string& path);
// Applies one `--set path=value`; see docs/formats.md.
void apply_set(toml::table& job, const std::string& argument);

[[nodiscard]] Place place_of(const toml::node& node);
// "an integer", "a list" ...
[[nodiscard]] std::string kind_of(const toml::node& node);

// One table of the file. Each getter marks its key as known.
class Section {
 public:
  // what: "" for the top level, else how messages call it: "[updater]".
  Section(const toml::table& table, std::string what, Place place)
      : table_(table), what_(std::move(what)), place_(std::move(place)) {}

  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] const toml::node* find(const std::string& key);
  // Each gives nothing (false, for has) where the key is absent.
  [[nodiscard]] std::optional<std::string> string(const std::string& key);
  [[nodiscard]] std::optional<int64_t> integer(const std::string& key, int64_t minimum, int64_t maximum);
  [[nodiscard]] std::optional<double> number(const std::string& key);
  [[nodiscard]] std::optional<bool> boolean(const std::string& key);
  // A list of texts, or one text. None may be empty.
  [[nodiscard]] std::optional<std::vector<std::string>> strings(const std::string& key);
  [[nodiscard]] const toml::table* table(const std::string& key);

  [[noreturn]] void missing(const std::string& key) const;
  // Refuses every key that nobody asked for.
  void finish() const;
  // Takes every key that nobody asked for as an attribute; tables give dotted names.
  void take_attributes(JobType& to) const;

  // Throws Failure(kBadConfig) in the words "<place>: <what>: <message>".
  [[noreturn]] void fail(const Place& place, const std::string& message) const;
  [[noreturn]] void wrong(const std::string& key, const toml::node& node, const std::string& expected) const;

 private:
  // Refuses a text with a NUL in it.
  void check_text(const std::string& key, const toml::node& node, const std::string& text) const;
  [[nodiscard]] std::vector<std::string> known() const { return {asked_.begin(), asked_.end()}; }

  const toml::table& table_;
  std::string what_;
  Place place_;
  std::set<std::string> asked_;
};

}  // namespace tenon::cli
