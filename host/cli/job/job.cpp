// Reads job files. SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/job.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>

#include "host/cli/cli.h"
#include "host/cli/job/blocks/cond.h"
#include "host/cli/job/blocks/expand.h"
#include "host/cli/job/blocks/scan.h"
#include "host/cli/job/include.h"
#include "host/cli/job/reader_metadata.h"
#include "host/cli/job/reader_section.h"
#include "host/cli/job/toml_tree.h"
#include "host/cli/job/training_keys.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostKept = 1'000'000;  // checkpoints

// [generate]: how texts are generated with the model of a job. docs/generation.md describes it.
void read_generation(Section& top, Job& job) {
  const Node* table = top.table("generate");
  if (table == nullptr) return;
  Section section(*table, "[generate]");
  JobGeneration result;
  result.place = section.place();
  const auto scores = section.string("scores");
  result.ids = section.string("ids").value_or("");
  result.reader = section.string("reader").value_or("");
  result.from_logits = section.boolean("from_logits").value_or(false);
  result.begin = section.string("begin").value_or("");
  result.end = section.string("end").value_or("");
  result.spaces = section.boolean("spaces").value_or(result.spaces);
  result.method = section.string("method").value_or(result.method);
  result.max_length = section.integer("max_length", 1, INT64_MAX).value_or(result.max_length);
  result.results = section.integer("results", 1, INT64_MAX).value_or(result.results);
  result.beam_size = section.integer("beam_size", 1, INT64_MAX).value_or(result.beam_size);
  result.length_penalty = section.number("length_penalty").value_or(result.length_penalty);
  result.temperature = section.number("temperature").value_or(result.temperature);
  result.top_k = section.integer("top_k", 0, INT64_MAX).value_or(result.top_k);
  result.top_p = section.number("top_p").value_or(result.top_p);
  section.finish();
  if (!scores) section.missing("scores");
  result.scores = *scores;
  job.generation = std::move(result);
}

// names: the names that are taken, and where; those of the layers are added.
std::vector<JobLayer> layers_of(Section& top, std::map<std::string, Place>& names) {
  std::vector<JobLayer> result;
  const Node* node = top.find("layer");
  if (node == nullptr) {
    top.finish();  // reports a misspelt key first
    top.missing("layer");
  }
  if (!node->is_list_of_tables()) top.wrong("layer", *node, "[[layer]] tables");
  for (const Node& entry : *node->get<Node::List>()) {
    JobLayer layer = layer_of(entry);
    const auto [other, added] = names.emplace(layer.name, layer.place);
    if (!added) top.fail(layer.place, "layer \"" + layer.name + "\": the name is taken; see " + other->second);
    result.push_back(std::move(layer));
  }
  return result;
}

void read_updater(Section& top, Job& job) {
  const Node* table = top.table("updater");
  if (table == nullptr) return;
  Section section(*table, "[updater]");
  JobType updater = type_of(section);
  section.take_attributes(updater);
  job.updater = std::move(updater);
}

void read_updater_groups(Section& top, Job& job) {
  const Node* node = top.find("updater_group");
  if (node == nullptr) return;
  if (!node->is_list_of_tables()) top.wrong("updater_group", *node, "[[updater_group]] tables");
  for (const Node& table : *node->get<Node::List>()) {
    Section section(table, group_name(job.updater_groups.size()));
    JobUpdaterGroup group;
    const auto parameters = section.strings("parameters");
    if (!parameters) section.missing("parameters");
    group.parameters = *parameters;
    if (group.parameters.empty()) section.wrong("parameters", *section.find("parameters"), "at least one name");
    static_cast<JobType&>(group) = type_of(section);
    section.take_attributes(group);
    job.updater_groups.push_back(std::move(group));
  }
}

std::string relative_to(const std::string& directory, const std::string& path) {
  return fs::path(path).is_absolute() ? path : (fs::path(directory) / path).lexically_normal().string();
}

// The least number of seconds that may be asked for: writing more often would leave no time to train.
constexpr double kLeastSeconds = 0.1;

void check_mode(Section& section, const std::optional<std::string>& mode) {
  if (mode && *mode != "min" && *mode != "max") section.wrong("mode", *section.find("mode"), "\"min\" or \"max\"");
}

[[noreturn]] void fail_without_mode(const Section& section, const char* key, const std::string& metric) {
  section.fail(section.place(), std::string("key \"") + key + "\": metric \"" + metric +
                                    "\" needs key \"mode\": \"min\" or \"max\" is the best value");
}

void read_checkpoint(Section& top, Job& job) {
  const Node* table = top.table("checkpoint");
  if (table == nullptr) return;
  Section section(*table, "[checkpoint]");
  CheckpointOptions result;
  const auto folder = section.string("folder");
  const auto batches = section.integer("every_batches", 1, INT64_MAX);
  const auto passes = section.integer("every_passes", 1, INT64_MAX);
  const auto seconds = section.number("every_seconds");
  result.keep = static_cast<uint32_t>(section.integer("keep", 1, kMostKept).value_or(result.keep));
  result.best = section.string("best").value_or("");
  const auto mode = section.string("mode");
  section.finish();
  if (!folder) section.missing("folder");
  if (seconds && !(*seconds >= kLeastSeconds && std::isfinite(*seconds)))
    section.wrong("every_seconds", *section.find("every_seconds"), "a number of at least 0.1");
  check_mode(section, mode);
  if (mode && result.best.empty()) section.fail(section.place(), "key \"mode\" needs key \"best\", which is missing");
  if (!result.best.empty() && result.best != "cost" && !mode) fail_without_mode(section, "best", result.best);
  result.folder = relative_to(job.directory, *folder);
  result.every_batches = batches.value_or(0);
  result.every_passes = passes.value_or(batches || seconds ? 0 : 1);
  result.every_seconds = seconds.value_or(0);
  result.best_is_highest = mode == "max";
  job.checkpoint = std::move(result);
}

void read_early_stop(Section& top, Job& job) {
  const Node* table = top.table("early_stop");
  if (table == nullptr) return;
  Section section(*table, "[early_stop]");
  EarlyStopOptions result;
  result.metric = section.string("metric").value_or(result.metric);
  const auto mode = section.string("mode");
  const auto patience = section.integer("patience", 1, INT64_MAX);
  const auto delta = section.number("min_delta");
  section.finish();
  check_mode(section, mode);
  if (!mode && result.metric != "cost") fail_without_mode(section, "metric", result.metric);
  if (!patience) section.missing("patience");
  if (delta && !(*delta >= 0 && std::isfinite(*delta)))
    section.wrong("min_delta", *section.find("min_delta"), "a number of at least 0");
  result.best_is_highest = mode == "max";
  result.patience = *patience;
  result.min_delta = delta.value_or(0);
  job.early_stop = std::move(result);
}

// Without a key of its own it watches what [early_stop] does.
void read_save_best(Section& top, Job& job) {
  const Node* table = top.table("save_best");
  if (table == nullptr) return;
  Section section(*table, "[save_best]");
  const auto metric = section.string("metric");
  const auto mode = section.string("mode");
  section.finish();
  check_mode(section, mode);
  BestOptions result;
  if (!metric && !mode && job.early_stop) {
    result.metric = job.early_stop->metric;
    result.best_is_highest = job.early_stop->best_is_highest;
  } else {
    result.metric = metric.value_or(result.metric);
    if (!mode && result.metric != "cost") fail_without_mode(section, "metric", result.metric);
    result.best_is_highest = mode == "max";
  }
  job.save_best = std::move(result);
}

void read_average(Section& top, Job& job) {
  const Node* table = top.table("average");
  if (table == nullptr) return;
  Section section(*table, "[average]");
  AverageOptions result;
  const auto decay = section.number("decay");
  const auto window = section.integer("window", 1, INT64_MAX);
  result.begin = section.integer("begin", 0, INT64_MAX).value_or(0);
  if (const auto save = section.string("save")) job.average_save = relative_to(job.directory, *save);
  section.finish();
  if (decay && !(*decay > 0 && *decay <= 1)) section.wrong("decay", *section.find("decay"), "a number in (0, 1]");
  if (decay && window) section.fail(section.place(), "keys \"decay\" and \"window\" exclude each other");
  if (!decay && !window) section.fail(section.place(), "key \"decay\" or \"window\" is missing");
  result.decay = decay.value_or(1);
  result.window = window.value_or(0);
  job.average = std::move(result);
}

// Reads a member of `vectors` in [init]: a path, or a table.
JobVectors read_vectors(Section& init, const std::string& directory, const std::string& name, const Node& node) {
  const auto* file = node.get<std::string>();
  if (!node.is_table() && (file == nullptr || file->empty()))
    init.wrong("vectors." + name, node, "the path of a file, or a table");
  if (!node.is_table()) return {name, relative_to(directory, *file), ""};
  Section section(node, "[init.vectors." + name + "]");
  const auto path = section.string("file"), words = section.string("words");
  section.finish();
  if (!path) section.missing("file");
  return {name, relative_to(directory, *path), words ? relative_to(directory, *words) : ""};
}

// Reads the keys of the table [init].
JobInit read_init_table(const Node& node, const std::string& directory) {
  JobInit result;
  Section section(node, "[init]");
  const auto file = section.string("file");
  if (file) result.file = relative_to(directory, *file);
  if (const auto layout = section.string("layout")) {
    result.layout = *layout;
    if (*layout != "tenon" && *layout != "pytorch" && *layout != "keras")
      section.wrong("layout", *section.find("layout"), "\"tenon\", \"pytorch\" or \"keras\"");
  }
  result.skip = section.strings("skip").value_or(std::vector<std::string>());
  if (const Node* renames = section.table("rename")) {
    for (const auto& [from, to] : *renames->get<Node::Members>()) {
      const auto* target = to.get<std::string>();
      if (target == nullptr) section.wrong("rename." + from, to, "a name of the job");
      if (std::count(from.begin(), from.end(), '*') != std::count(target->begin(), target->end(), '*'))
        section.wrong("rename." + from, to, "as many * as the name of the file has");
      result.rename.emplace_back(from, *target);
    }
  }
  if (const Node* vectors = section.table("vectors"))
    for (const auto& [name, value] : *vectors->get<Node::Members>())
      result.vectors.push_back(read_vectors(section, directory, name, value));
  section.finish();
  if (!file && result.vectors.empty()) section.missing("file");
  for (const char* key : {"layout", "rename", "skip"})
    if (const Node* value = section.find(key); value != nullptr && !file)
      section.fail(value->place, "key \"" + std::string(key) + "\" is about key \"file\", which is missing");
  return result;
}

// Reads the key "init": a path, or a table.
void read_init(Section& top, Job& job) {
  const Node* node = top.find("init");
  if (node == nullptr) return;
  JobInit init;
  if (node->is_table())
    init = read_init_table(*node, job.directory);
  else
    init.file = relative_to(job.directory, *top.string("init"));
  init.place = node->place;
  job.init = std::move(init);
}

// Returns the type that the key "compute" names.
tn_dtype read_compute(Section& top) {
  const std::map<std::string, tn_dtype> known = {{"float32", TN_F32}, {"bf16", TN_BF16}, {"tf32", TN_TF32}};
  const Node* const node = top.find("compute");
  if (node == nullptr) return TN_F32;
  const auto found = known.find(top.string("compute").value_or(""));
  if (found == known.end()) top.wrong("compute", *node, "\"float32\", \"bf16\" or \"tf32\"");
  return found->second;
}

// Returns TN_ARITHMETIC_* that the key "arithmetic" names.
uint32_t read_arithmetic(Section& top) {
  const Node* const node = top.find("arithmetic");
  if (node == nullptr) return TN_ARITHMETIC_DEFAULT;
  const std::string name = top.string("arithmetic").value_or("");
  if (name == "portable-0") return TN_ARITHMETIC_PORTABLE;
  if (name != "native") top.wrong("arithmetic", *node, "\"portable-0\" or \"native\"");
  return TN_ARITHMETIC_NATIVE;
}

// Reads the keys that say where and in which type a model is computed.
void read_machine(Section& top, Job& job) {
  job.device = top.string("device").value_or("");
  if (const auto devices = top.strings("devices")) {
    const Place& place = top.find("devices")->place;
    if (devices->empty()) top.fail(place, "key \"devices\": the list is empty");
    if (!job.device.empty()) top.fail(place, "key \"devices\": the job has the key \"device\", too");
    job.devices = *devices;
  }
  job.shards = static_cast<uint32_t>(top.integer("shards", 1, 65536).value_or(0));
  job.compute = read_compute(top);
  job.arithmetic = read_arithmetic(top);
}

// Reads the keys whose values are names of layers, parameters and readers.
void read_names(Section& top, Job& job) {
  if (const auto outputs = top.strings("outputs")) {
    job.outputs = *outputs;
    job.outputs_place = top.find("outputs")->place;
    if (job.outputs.empty()) top.fail(job.outputs_place, "key \"outputs\": the list is empty");
  }
  if (const auto frozen = top.strings("immutable_parameters")) {
    job.immutable_parameters = *frozen;
    job.immutable_place = top.find("immutable_parameters")->place;
  }
  job.tables = top.strings("tables").value_or(std::vector<std::string>());
  if (const auto fit = top.strings("fit")) {
    job.fit = *fit;
    job.fit_place = top.find("fit")->place;
  }
}

}  // namespace

Job parse_job(std::string_view text, const std::string& path, const std::vector<std::string>& sets,
              const std::vector<JobFile>* included) {
  Job job;
  Node tree = parse_with_includes(text, path, &job.files, included);
  std::vector<std::string> later;  // for layers of blocks
  for (const std::string& argument : sets) {
    if (names_unknown_layer(tree, argument))
      later.push_back(argument);
    else
      apply_set(tree, argument);
  }
  job.blocks = expand_blocks(tree);
  for (const std::string& argument : later) apply_set(tree, argument);
  job.path = path;
  job.directory = fs::path(path).parent_path().string();
  if (job.directory.empty()) job.directory = ".";
  Section top(tree, "");
  read_training_keys(top, &job.training);
  const auto test_every = top.integer("test_every", 1, INT64_MAX);
  job.seed = top.integer("seed", 0, INT64_MAX).value_or(0);
  job.threads = top.integer("threads", 0, kMostThreads).value_or(0);
  read_machine(top, job);
  for (const std::string& folder : top.strings("plugin_folders").value_or(std::vector<std::string>()))
    job.plugin_folders.push_back(relative_to(job.directory, folder));
  if (const auto save = top.string("save")) job.save = relative_to(job.directory, *save);
  read_names(top, job);
  read_readers(top, job);
  read_updater(top, job);
  read_updater_groups(top, job);
  read_checkpoint(top, job);
  read_early_stop(top, job);
  read_save_best(top, job);
  read_average(top, job);
  // Early stopping and the choice of the best watch the test data, if there are any.
  job.test_every = test_every.value_or((job.early_stop || job.save_best) && job.test ? 1 : 0);
  read_init(top, job);
  read_generation(top, job);
  std::map<std::string, Place> taken;
  for (const auto& [name, block] : job.blocks) taken.emplace(name, block.place);
  job.layers = layers_of(top, taken);
  read_scans(top, job, taken);
  read_conds(top, job, taken);
  top.finish();
  return job;
}

Job parse_job_of_model(std::string_view reader, const std::string& path, const std::vector<std::string>& sets) {
  Node tree;
  Node::Members readers;
  readers.emplace("test", reader_table(reader, path));
  tree.value = Node::Members();
  tree.get<Node::Members>()->emplace("reader", Node{std::move(readers), path});
  for (const std::string& argument : sets) apply_set(tree, argument);
  Job job;
  job.path = path;
  job.directory = fs::path(path).parent_path().string();
  if (job.directory.empty()) job.directory = ".";
  Section top(tree, "");
  read_machine(top, job);
  read_readers(top, job);
  top.finish();
  return job;
}

Job load_job(const std::string& path, const std::vector<std::string>& sets) {
  return parse_job(read_job_file(path, path), path, sets);
}

}  // namespace tenon::cli
