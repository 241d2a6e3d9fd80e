// --set path=value: one key of the job, overridden from the command line. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>

#include "base/nearest.h"
#include "host/cli/cli.h"
#include "host/cli/job/toml_tree.h"

namespace tenon::cli {

namespace {

bool is_plain_value(const std::string& text) {
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
    const Node* table = &table_;
    do {  // an inline table is a value
      const auto& members = *table->get<Node::Members>();
      if (members.size() != 1) fail("expected one key and one value");
      const auto& [key, value] = *members.begin();
      if (key.empty()) fail("a part of the key is empty");
      path_.push_back(key);
      nodes_.push_back(table = &value);
    } while (table->is_table() && !table->is_inline);
  }

  void apply(Node& job) const {
    size_t depth = 0;
    Node* target = section(job, depth);
    for (; depth + 1 < path_.size() && target->find(path_[depth]) != nullptr; ++depth) {
      target = target->find(path_[depth]);
      if (!target->is_table()) fail("\"" + joined(depth + 1) + "\" is not a table");
    }
    target->get<Node::Members>()->insert_or_assign(path_[depth], *nodes_[depth]);
  }

  // Whether it is for a layer that the job lacks.
  [[nodiscard]] bool lacks_layer(const Node& job) const {
    std::vector<std::string> known;
    return path_[0] == "layer" && path_.size() > 2 && layer(job, known) == nullptr;
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
  [[nodiscard]] Node parse() const {
    const size_t equals = argument_.find('=');
    if (equals == std::string::npos || equals == 0) fail("expected key=value");
    if (argument_.find('\n') < equals) fail("expected key=value");
    const std::string place = "--set " + argument_;
    try {
      return parse_toml(argument_, place);
    } catch (const Failure& failure) {
      if (!is_plain_value(argument_.substr(equals + 1))) throw Failure(kUsage, failure.what());
    }
    try {
      return parse_toml(argument_.substr(0, equals + 1) + "'" + argument_.substr(equals + 1) + "'", place);
    } catch (const Failure& failure) {
      throw Failure(kUsage, failure.what());
    }
  }

  // Returns the table that holds the first part after the section's name; sets `depth` to the index of that part.
  Node* section(Node& job, size_t& depth) const {
    if (path_[0] == "layer") {
      depth = 2;
      if (path_.size() < 3) fail("expected layer.<name>.<key>=value");
      std::vector<std::string> known;
      if (const Node* const found = layer(job, known)) return const_cast<Node*>(found);
      fail("the job has no layer \"" + path_[1] + "\"" + base::suggestion(path_[1], known));
    }
    if (path_[0] == "updater_group") fail("updater groups cannot be changed by --set; change the job");
    constexpr std::array kMayBeNew = {"checkpoint", "early_stop", "average", "save_best"};
    const bool may_be_new = std::find(kMayBeNew.begin(), kMayBeNew.end(), path_[0]) != kMayBeNew.end();
    if (may_be_new && job.find(path_[0]) == nullptr) return &job;
    const size_t length = path_[0] == "reader" ? 2 : 1;
    if (path_[0] == "reader" && path_.size() < 3) fail("expected reader.<name>.<key>=value");
    Node* table = &job;
    if (path_.size() == 1) return table;
    if (path_[0] == "reader" && path_[1] == "test") begin_test(job);
    for (; depth < length; ++depth) {
      Node* const next = table->find(path_[depth]);
      if (next == nullptr || !next->is_table()) {
        std::vector<std::string> known;
        for (const auto& [key, node] : *table->get<Node::Members>())
          if (node.is_table() || key == "layer") known.push_back(key);
        fail("the job has no table \"" + joined(depth + 1) + "\"" + base::suggestion(path_[depth], known));
      }
      table = next;
    }
    return table;
  }

  // Gives a job without [reader.test] one that reads like [reader.train], without what divides and orders its samples.
  void begin_test(Node& job) const {
    Node* const readers = job.find("reader");
    const Node* const train = readers == nullptr ? nullptr : readers->find("train");
    if (train == nullptr || !train->is_table() || readers->find("test") != nullptr) return;
    Node test = *train;
    auto& members = *test.get<Node::Members>();
    for (const char* key : {"hold_out", "first_n", "shard", "shards", "shuffle", "drop_last", "bucket"})
      members.erase(key);
    if (path_[2] == "held_out") members.clear();  // it is the data of [reader.train]
    readers->get<Node::Members>()->insert_or_assign("test", std::move(test));
  }

  // Returns the layer that the path names; null, and the names of all others, if there is none.
  [[nodiscard]] const Node* layer(const Node& job, std::vector<std::string>& known) const {
    const Node* const layers = job.find("layer");
    const auto* list = layers == nullptr ? nullptr : layers->get<Node::List>();
    if (list == nullptr) return nullptr;
    for (const Node& table : *list) {
      const std::string* const name = table.text("name");
      if (name == nullptr) continue;
      if (*name == path_[1]) return &table;
      known.push_back(*name);
    }
    return nullptr;
  }

  std::string argument_;
  Node table_;
  std::vector<std::string> path_;
  std::vector<const Node*> nodes_;  // the node of each part of the path
};

}  // namespace

void apply_set(Node& job, const std::string& argument) { Override(argument).apply(job); }

bool names_unknown_layer(const Node& job, const std::string& argument) { return Override(argument).lacks_layer(job); }

}  // namespace tenon::cli
