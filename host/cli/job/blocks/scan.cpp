// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/blocks/scan.h"

#include <utility>
#include <vector>

#include "host/cli/job/scope.h"

namespace tenon::cli {

namespace {

// Reads one [[scan]].
class ScanSection {
 public:
  ScanSection(const Node& table, const std::string& what, const Job& job)
      : section_(table, what), names_((table.text("name") == nullptr ? "" : *table.text("name")) + ".", job) {}

  // Returns its layers; that which stands for the scan is the last one.
  std::vector<JobLayer> read() {
    scan_->place = section_.place();
    const auto name = section_.string("name");
    if (!name) section_.missing("name");
    scan_->name = *name;
    scan_->reverse = section_.boolean("reverse").value_or(false);
    const Node* const layers = section_.find("layer");
    if (layers != nullptr && !layers->is_list_of_tables()) section_.wrong("layer", *layers, "[[scan.layer]] tables");
    if (layers != nullptr) names_.take(*layers->get<Node::List>());
    read_inputs();
    const Node* const memories = section_.find("memories");
    if (memories != nullptr && !memories->is_list_of_tables())
      section_.wrong("memories", *memories, "tables, { name = \"h\", shape = 8, next = \"z\" }");
    if (memories != nullptr) names_.take(*memories->get<Node::List>());
    if (memories != nullptr)
      for (const Node& entry : *memories->get<Node::List>()) read_memory(entry);
    if (layers != nullptr)
      for (const Node& entry : *layers->get<Node::List>()) read_layer(entry);
    read_results();
    section_.finish();
    return std::move(layers_);
  }

 private:
  JobLayer& part(JobScanPart::Kind kind, const std::string& name, std::vector<std::string> inputs, const Node& from) {
    static constexpr const char* kTypes[] = {"scan_input", "scan_memory", "scan"};
    JobLayer layer;
    layer.place = from.place;
    layer.inputs_place = from.place;
    layer.type = kTypes[static_cast<size_t>(kind)];
    layer.name = name;
    layer.inputs = std::move(inputs);
    layer.scan = scan_;
    layer.part.emplace();
    layer.part->kind = kind;
    layers_.push_back(std::move(layer));
    return layers_.back();
  }

  // inputs = { x = "words" }: the name inside, and the sequences.
  void read_inputs() {
    const Node* const table = section_.table("inputs");
    if (table == nullptr) section_.missing("inputs");
    for (const auto& [name, value] : *table->get<Node::Members>()) {
      const auto* const sequences = value.get<std::string>();
      if (sequences == nullptr || sequences->empty()) section_.wrong("inputs." + name, value, "the name of a layer");
      if (!names_.take(name)) section_.fail(value.place, "the name \"" + name + "\" is that of a layer of the scan");
      if (scan_->over.empty()) scan_->over = *sequences;
      part(JobScanPart::Kind::kInput, names_.own(name), {*sequences, scan_->over}, value);
    }
    if (scan_->over.empty()) section_.wrong("inputs", *table, "at least one input, { x = \"words\" }");
  }

  void read_memory(const Node& table) {
    const std::string* const given = table.text("name");
    Section section(table, "scan \"" + scan_->name + "\": memory" + (given == nullptr ? "" : " \"" + *given + "\""));
    const auto name = section.string("name");
    if (!name) section.missing("name");
    const auto next = section.string("next");
    if (!next) section.missing("next");
    JobScanPart made;
    const Node* const shape = section.find("shape");
    if (shape != nullptr) {
      if (const auto* one = shape->get<int64_t>()) made.shape = {*one};
      const auto* const list = shape->get<Node::List>();
      const auto extents = list == nullptr ? std::nullopt : toml_file::all<int64_t>(*list);
      if (extents) made.shape = *extents;
      if (!extents && !shape->get<int64_t>()) section.wrong("shape", *shape, "an integer, or a list of them");
    }
    std::string initial;
    if (const Node* const start = section.find("initial")) {
      const auto number = toml_file::number_of(*start);
      if (number)
        made.value = *number;
      else if (const auto* layer = start->get<std::string>())
        initial = *layer;
      else
        section.wrong("initial", *start, "a number, or the name of a layer");
    }
    made.carry = section.boolean("carry").value_or(false);
    if (made.carry && !initial.empty())
      section.fail(section.place(), "has the keys \"carry\" and \"initial\"; carried memories begin with zeros");
    section.finish();
    if (initial.empty() && shape == nullptr) section.missing("shape");
    // The memory before is an input so that memories are made in this order, which is that of their last values.
    std::vector<std::string> inputs = {initial, scan_->over};
    if (!memories_.empty()) inputs.push_back(memories_.back().first);
    JobLayer& layer = part(JobScanPart::Kind::kMemory, names_.own(*name), std::move(inputs), table);
    made.kind = JobScanPart::Kind::kMemory;
    layer.part = std::move(made);
    memories_.emplace_back(layer.name, names_.outside(*next));
  }

  void read_layer(const Node& table) {
    JobLayer layer = names_.layer(table);
    layer.scan = scan_;
    layers_.push_back(std::move(layer));
  }

  void read_results() {
    const auto results = section_.strings("results").value_or(std::vector<std::string>());
    std::vector<std::string> inputs = {scan_->over};
    for (const std::string& result : results) inputs.push_back(names_.outside(result));
    for (const auto& [memory, next] : memories_) inputs.insert(inputs.end(), {memory, next});
    scan_->results = results.size();
    const Node* const node = section_.find("results");
    JobLayer& layer = part(JobScanPart::Kind::kScan, scan_->name, std::move(inputs), *section_.find("name"));
    layer.place = scan_->place;
    layer.inputs_place = node == nullptr ? scan_->place : node->place;
  }

  Section section_;
  Scope names_;
  std::shared_ptr<JobScan> scan_ = std::make_shared<JobScan>();
  std::vector<std::pair<std::string, std::string>> memories_;  // and what is left in each
  std::vector<JobLayer> layers_;
};

}  // namespace

void read_scans(Section& top, Job& job, std::map<std::string, Place>& names) {
  add_tables<ScanSection>(top, "scan", job, names);
}

}  // namespace tenon::cli
