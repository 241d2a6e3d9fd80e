// Strict reading of TOML: sections record the keys that were read, and messages name places.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "host/cli/job/job.h"
#include "host/cli/job/node.h"

namespace tenon::cli {

// Throws Failure(kBadConfig) with file and line if the text is not TOML.
[[nodiscard]] Node parse_toml(std::string_view text, const std::string& path);
// Applies one `--set path=value`; see docs/formats.md.
void apply_set(Node& job, const std::string& argument);
// Whether the argument names a layer that is not in the job.
[[nodiscard]] bool names_unknown_layer(const Node& job, const std::string& argument);

// For messages: "the integer 5", "a list" ...
[[nodiscard]] std::string kind_of(const Node& node);

// One table of the file. Each getter marks its key as known.
class Section {
 public:
  // what: the section's name in messages, "" for the top level: "[updater]".
  Section(const Node& table, std::string what) : table_(table), what_(std::move(what)) {}

  [[nodiscard]] const Place& place() const { return table_.place; }
  [[nodiscard]] const Node* find(const std::string& key);
  // Each returns nothing (find and table: null) if the key is absent.
  [[nodiscard]] std::optional<std::string> string(const std::string& key);
  [[nodiscard]] std::optional<int64_t> integer(const std::string& key, int64_t minimum, int64_t maximum);
  [[nodiscard]] std::optional<double> number(const std::string& key);
  [[nodiscard]] std::optional<bool> boolean(const std::string& key);
  // A list of texts, or one text. gaps: texts may be empty.
  [[nodiscard]] std::optional<std::vector<std::string>> strings(const std::string& key, bool gaps = false);
  [[nodiscard]] const Node* table(const std::string& key);

  [[noreturn]] void missing(const std::string& key) const;
  // Refuses every key that was not read.
  void finish() const;
  // Adds every key that was not read to `to` as an attribute; keys of tables get dotted names.
  void take_attributes(JobType& to) const;

  // Throws Failure(kBadConfig) with the text "<place>: <what>: <message>".
  [[noreturn]] void fail(const Place& place, const std::string& message) const;
  [[noreturn]] void wrong(const std::string& key, const Node& node, const std::string& expected) const;

 private:
  // Refuses a text with a NUL in it.
  void check_text(const std::string& key, const Node& node, const std::string& text) const;
  [[nodiscard]] std::vector<std::string> known() const { return {asked_.begin(), asked_.end()}; }

  const Node& table_;
  std::string what_;
  std::set<std::string> asked_;
};

}  // namespace tenon::cli
