// --set path=value: one key of the job, overridden from the command line. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "host/cli/cli.h"
#include "host/cli/job/toml_tree.h"
#include "host/cli/suggest.h"

namespace tenon::cli {

namespace {

bool is_word(const std::string& text) {
  const auto fits = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == '/';
  };
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(), fits);
}

// One --set argument.
class Override {
 public:
  explicit Override(std::string argument) : argument_(std::move(argument)), table_(parse()) {
    toml::table* table = &table_;
    while (true) {
      if (table->size() != 1) fail("expected one key and one value");
      const auto entry = table->begin();
      path_.emplace_back(entry->first.str());
      if (path_.back().empty()) fail("a part of the key is empty");
      nodes_.push_back(&entry->second);
      toml::table* inner = nodes_.back()->as_table();
      if (inner == nullptr || inner->is_inline()) break;  // an inline table is a value
      table = inner;
    }
  }

  void apply(toml::table& job) {
    size_t depth = 0;
    toml::table* target = section(job, depth);
    for (; depth + 1 < path_.size() && target->get(path_[depth]) != nullptr; ++depth) {
      toml::table* inner = target->get(path_[depth])->as_table();
      if (inner == nullptr) fail("\"" + joined(depth + 1) + "\" is not a table");
      target = inner;
    }
    // Moved, not copied: a copy loses its place in the source.
    nodes_[depth]->visit([&](auto& value) { target->insert_or_assign(path_[depth], std::move(value)); });
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw Failure(kUsage, "--set " + argument_ + ": " + message);
  }

  [[nodiscard]] std::string joined(size_t parts) const {
    std::string result;
    for (size_t i = 0; i < parts; ++i) result += (i == 0 ? "" : ".") + path_[i];
    return result;
  }

  // Parses KEY=VALUE as TOML; a bare word counts as a text, because most shells remove quotes.
  [[nodiscard]] toml::table parse() const {
    const size_t equals = argument_.find('=');
    if (equals == std::string::npos || equals == 0) fail("expected key=value");
    if (argument_.find('\n') < equals) fail("expected key=value");
    const std::string place = "--set " + argument_;
    try {
      return parse_toml(argument_, place);
    } catch (const Failure& failure) {
      if (!is_word(argument_.substr(equals + 1))) throw Failure(kUsage, failure.what());
    }
    try {
      return parse_toml(argument_.substr(0, equals + 1) + "'" + argument_.substr(equals + 1) + "'", place);
    } catch (const Failure& failure) {
      throw Failure(kUsage, failure.what());
    }
  }

  // Returns the table that holds the first part after the section's name; sets `depth` to the index of that part.
  toml::table* section(toml::table& job, size_t& depth) const {
    if (path_[0] == "layer") {
      depth = 2;
      return layer(job);
    }
    if (path_[0] == "updater_group") fail("updater groups cannot be changed by --set; change the job");
    const bool may_be_new = path_[0] == "checkpoint" || path_[0] == "early_stop" || path_[0] == "average";
    if (may_be_new && !job.contains(path_[0])) return &job;
    const size_t length = path_[0] == "reader" ? 2 : 1;
    if (path_[0] == "reader" && path_.size() < 3) fail("expected reader.<name>.<key>=value");
    toml::table* table = &job;
    if (path_.size() == 1) return table;
    for (; depth < length; ++depth) {
      toml::node* next = table->get(path_[depth]);
      if (next == nullptr || !next->is_table()) {
        std::vector<std::string> known;
        for (const auto& [key, node] : *table)
          if (node.is_table() || key == "layer") known.emplace_back(key.str());
        fail("the job has no table \"" + joined(depth + 1) + "\"" + suggestion(path_[depth], known));
      }
      table = next->as_table();
    }
    return table;
  }

  toml::table* layer(toml::table& job) const {
    if (path_.size() < 3) fail("expected layer.<name>.<key>=value");
    std::vector<std::string> known;
    if (toml::array* layers = job["layer"].as_array()) {
      for (toml::node& node : *layers) {
        toml::table* table = node.as_table();
        if (table == nullptr) continue;
        const auto name = (*table)["name"].value_exact<std::string>();
        if (!name) continue;
        if (*name == path_[1]) return table;
        known.push_back(*name);
      }
    }
    fail("the job has no layer \"" + path_[1] + "\"" + suggestion(path_[1], known));
  }

  std::string argument_;
  toml::table table_;
  std::vector<std::string> path_;
  std::vector<toml::node*> nodes_;  // the node of each part of the path
};

}  // namespace

void apply_set(toml::table& job, const std::string& argument) { Override(argument).apply(job); }

}  // namespace tenon::cli
