// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/blocks/cond.h"

#include <utility>
#include <vector>

#include "host/cli/job/scope.h"

namespace tenon::cli {

namespace {

// Reads one [[cond]].
class CondSection {
 public:
  CondSection(const Node& table, const std::string& what, const Job& job) : section_(table, what), job_(job) {}

  // Returns its layers; that which stands for the cond is the last one.
  std::vector<JobLayer> read() {
    cond_->place = section_.place();
    const auto name = section_.string("name");
    if (!name) section_.missing("name");
    cond_->name = *name;
    const auto predicate = section_.string("predicate"), choice = section_.string("choice");
    if (predicate && choice) section_.fail(section_.place(), "has the keys \"predicate\" and \"choice\"");
    if (!predicate && !choice) section_.missing("predicate");
    cond_->over = predicate ? *predicate : *choice;
    inputs_ = section_.table("inputs");
    if (inputs_ == nullptr) section_.missing("inputs");
    if (predicate) {
      for (const char* const branch : {"then", "else"}) read_branch(required(branch), branch);
    } else {
      const Node& branches = required("branch");
      if (!branches.is_list_of_tables()) section_.wrong("branch", branches, "[[cond.branch]] tables");
      for (const Node& branch : *branches.get<Node::List>()) read_branch(branch, std::to_string(cond_->branches));
    }
    section_.finish();
    JobLayer rows;
    rows.place = rows.inputs_place = cond_->place;
    rows.type = "choose_rows";
    rows.name = rows_name();
    rows.inputs = {cond_->over};
    if (choice) rows.attributes.push_back({"cases", static_cast<int64_t>(cond_->branches)});
    rows.cond = cond_;
    layers_.push_back(std::move(rows));
    std::vector<std::string> inputs = {cond_->over, rows_name()};
    inputs.insert(inputs.end(), results_.begin(), results_.end());
    add_part({JobCondPart::Kind::kCond, 0}, cond_->name, std::move(inputs), cond_->place);
    return std::move(layers_);
  }

 private:
  [[nodiscard]] std::string rows_name() const { return cond_->name + ".rows"; }
  const Node& required(const char* key) {
    const Node* const node = section_.find(key);
    if (node == nullptr) section_.missing(key);
    return *node;
  }

  void add_part(JobCondPart part, const std::string& name, std::vector<std::string> inputs, const Place& place) {
    JobLayer layer;
    layer.place = layer.inputs_place = place;
    layer.type = part.kind == JobCondPart::Kind::kInput ? "cond_input" : "cond";
    layer.name = name;
    layer.inputs = std::move(inputs);
    layer.cond = cond_;
    layer.cond_part = part;
    layers_.push_back(std::move(layer));
  }

  // { layer = [...], results = "h" }
  void read_branch(const Node& table, const std::string& name) {
    const std::string whole = cond_->name + "." + name;
    if (!table.is_table()) section_.wrong(name, table, "a table, { layer = [...], results = \"h\" }");
    Section section(table, "cond \"" + cond_->name + "\": branch \"" + name + "\"");
    Scope names(whole + ".", job_);
    const Node* const layers = section.find("layer");
    if (layers != nullptr && !layers->is_list_of_tables()) section.wrong("layer", *layers, "a list of tables");
    if (layers != nullptr) names.take(*layers->get<Node::List>());
    for (const auto& [input, value] : *inputs_->get<Node::Members>()) {
      const auto* const of = value.get<std::string>();
      if (of == nullptr || of->empty()) section_.wrong("inputs." + input, value, "the name of a layer");
      if (!names.take(input))
        section.fail(value.place, "the name \"" + input + "\" of an input is that of a layer of the branch");
      add_part({JobCondPart::Kind::kInput, cond_->branches}, names.own(input), {cond_->over, rows_name(), *of},
               value.place);
    }
    const size_t parts = layers_.size();
    if (layers != nullptr)
      for (const Node& entry : *layers->get<Node::List>()) layers_.push_back(names.layer(entry));
    for (size_t i = parts; i < layers_.size(); ++i) layers_[i].cond = cond_;
    const auto results = section.strings("results");
    if (!results || results->empty()) section.missing("results");
    for (const std::string& result : *results) results_.push_back(names.outside(result));
    if (cond_->branches > 0 && results->size() != cond_->results)
      section.fail(section.place(), "has " + std::to_string(results->size()) + " results; the first branch has " +
                                        std::to_string(cond_->results));
    cond_->results = results->size();
    ++cond_->branches;
    section.finish();
  }

  Section section_;
  const Job& job_;
  std::shared_ptr<JobCond> cond_ = std::make_shared<JobCond>();
  const Node* inputs_ = nullptr;
  std::vector<std::string> results_;  // of all branches, as they are called outside
  std::vector<JobLayer> layers_;
};

}  // namespace

std::vector<BranchTable> branch_tables(Node& cond) {
  const std::string* const text = cond.text("name");
  const std::string name = text == nullptr ? "" : *text;
  std::vector<BranchTable> result;
  for (const char* const key : {"then", "else"})
    if (Node* const branch = cond.find(key); branch != nullptr && branch->is_table())
      result.push_back({branch, name + "." + key});
  if (Node* const branches = cond.find("branch"); branches != nullptr && branches->is_list_of_tables()) {
    size_t number = 0;
    for (Node& branch : *branches->get<Node::List>())
      result.push_back({&branch, name + "." + std::to_string(number++)});
  }
  return result;
}

void read_conds(Section& top, Job& job, std::map<std::string, Place>& names) {
  add_tables<CondSection>(top, "cond", job, names);
}

}  // namespace tenon::cli
