// SPDX-License-Identifier: Apache-2.0
#include "tests/host/api/misuse/world.h"

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "tests/support/paths.h"

namespace tenon_tests {

namespace {

// Makes a call; throws if it fails.
template <typename... Parameters, typename... Arguments>
void must(tn_status (*call)(Parameters...), Arguments... arguments) {
  tn_error error = {};
  error.size = sizeof error;
  if (call(arguments..., &error) != TN_OK) throw std::runtime_error(error.message);
}

void append(void* user, const char* text, size_t length) { static_cast<std::string*>(user)->append(text, length); }

std::string bytes(const tn_array& array) {
  int64_t elements = 1;
  for (int32_t axis = 0; axis < array.rank; ++axis) elements *= array.shape[axis];
  const auto* data = static_cast<const char*>(array.data);
  return {data, data + elements * (array.dtype == TN_F32 ? 4 : 8)};
}

tn_layer make_layer(tn_host* host, const char* type, const char* name, const std::vector<tn_layer>& inputs,
                    const std::vector<tn_named_value>& attributes) {
  tn_layer_options options = {};
  options.size = sizeof options;
  options.type = type;
  options.name = name;
  options.inputs = inputs.data();
  options.inputs_count = static_cast<uint32_t>(inputs.size());
  options.attributes = attributes.data();
  options.attributes_count = static_cast<uint32_t>(attributes.size());
  tn_layer made = {};
  must(&tn_layer_create, host, &options, &made);
  return made;
}

tn_layer make_data(tn_host* host, const char* name, int64_t limit) {
  tn_data_options options = {};
  options.size = sizeof options;
  options.dtype = TN_I64;
  options.name = name;
  options.index_limit = limit;
  tn_layer made = {};
  must(&tn_data_create, host, &options, &made);
  return made;
}

tn_slot integers(const char* name, int64_t limit, int32_t storage) {
  return {sizeof(tn_slot), TN_I64, name, storage, 0, nullptr, limit, storage == TN_RAGGED ? 1U : 0U, 0, nullptr};
}

tn_reader make_source(tn_host* host, const std::vector<const tn_slot*>& slots,
                      decltype(tn_source_options::read_at) read) {
  tn_source_options options = {};
  options.size = sizeof options;
  options.slots = slots.data();
  options.slots_count = static_cast<uint32_t>(slots.size());
  options.samples = 8;
  options.read_at = read;
  tn_reader made = {};
  must(&tn_reader_create_from, host, &options, &made);
  return made;
}

tn_reader in_minibatches(tn_host* host, tn_reader of) {
  tn_reader made = {};
  must(&tn_reader_batch, host, of, 4, 0, &made);
  return made;
}

// One word for each sample.
tn_status read_sequences(void*, const int64_t* indices, int64_t count, tn_array* values, tn_error*) {
  static thread_local std::vector<int64_t> words, offsets;
  words.assign(indices, indices + count);
  offsets.clear();
  for (int64_t i = 0; i <= count; ++i) offsets.push_back(i);
  values[0].shape[0] = count;
  values[0].data = words.data();
  values[0].offsets[0] = offsets.data();
  return TN_OK;
}

// An image of 2 x 2 integers for each sample.
tn_status read_images(void*, const int64_t*, int64_t count, tn_array* values, tn_error*) {
  static thread_local std::vector<int64_t> pixels;
  pixels.assign(static_cast<size_t>(4 * count), 1);
  values[0].data = pixels.data();
  return TN_OK;
}

}  // namespace

void write_nothing(void*, const char*, size_t) {}
int32_t take_outputs(void*, const tn_array*, uint32_t) { return 0; }
int32_t take_part(void*, int64_t, const tn_array*, uint32_t) { return 0; }
void take_predictions(void*, const tn_array*, uint32_t) {}
void take_metrics(void*, const tn_metrics_values*) {}
void take_names(void*, const tn_names* const*, uint32_t) {}
tn_status update_nothing(void*, const tn_rule_step*, tn_error*) { return TN_OK; }
void take_attribute(void*, const tn_named_value*) {}

tn_status read_at(void*, const int64_t* indices, int64_t count, tn_array* values, tn_error*) {
  static thread_local std::vector<int64_t> words, labels;
  words.assign(indices, indices + count);
  labels.clear();
  for (int64_t& word : words) {
    word %= 3;
    labels.push_back(word % 2);
  }
  values[0].data = words.data();
  values[1].data = labels.data();
  return TN_OK;
}

tn_status keep_values(void*, const tn_array* inputs, uint32_t, int64_t, tn_array* outputs, uint32_t outputs_count,
                      tn_error*) {
  for (uint32_t i = 0; i < outputs_count; ++i) outputs[i].data = inputs[i].data;
  return TN_OK;
}

void* allocate(void*, uint64_t bytes, uint64_t alignment) {
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void release_memory(void*, void* memory, uint64_t) { std::free(memory); }

const std::vector<const tn_slot*>& slots() {
  static const tn_slot word = integers("word", 3, TN_DENSE), label = integers("label", 2, TN_DENSE);
  static const std::vector<const tn_slot*> both = {&word, &label};
  return both;
}

static tn_names names_of(uint32_t size, int64_t count, const tn_text* texts) {
  tn_names names = {};
  names.size = size;
  names.slot = "word";
  names.count = count;
  names.texts = texts;
  return names;
}

const tn_names& names_of_words() {
  static const tn_text texts[] = {{"a", 1}, {"b", 1}, {"c", 1}};
  static const tn_names names = names_of(sizeof(tn_names), 3, texts);
  return names;
}

tn_named_value integer(const char* name, int64_t value) {
  tn_named_value made = {name, {TN_ATTR_INT, 1, {}}};
  made.value.as.i = value;
  return made;
}

tn_named_value without(const char* name, int32_t kind) { return {name, {kind, 1, {}}}; }

const tn_names& names_without_texts() {
  static const tn_names names = names_of(sizeof(tn_names), 3, nullptr);
  return names;
}

const tn_names& names_without_size() {
  static const tn_names names = names_of(0, 0, nullptr);
  return names;
}

const tn_plugin& no_plugin() {
  static const tn_plugin zeros = {};
  return zeros;
}

World::World() {
  const std::string plugins = plugin_folder();
  const char* const paths[] = {plugins.c_str()};
  tn_host_options options = {};
  options.size = sizeof options;
  options.threads = 1;
  options.plugin_paths = paths;
  options.plugin_paths_count = 1;
  must(&tn_host_create, &options, &host);
  must(&tn_host_add_plugin, host, loop_plugin_.get());
  model = folder.file("model.safetensors");
  new_model = folder.file("new.safetensors");
  set = folder.file("set.toml");
  std::ofstream(set) << "mode = \"dev\"\n";
  new_folder = folder.file("checkpoints");
  updater_file = folder.file("updater.safetensors");
  make_model();
  make_readers();
  train();
  make_feeds();
  make(machine);
  fresh = machine_for(1, parameters);
  inference = machine_for(0, parameters);
  planned = machine_for(1, declared);
  forward(inference);
  make_slope();
  make_next();
}

void World::make_model() {
  word = make_data(host, "word", 3);
  const tn_layer label = make_data(host, "label", 2);
  const tn_layer table = make_layer(host, "embedding", "table", {word}, {integer("vocabulary", 3), integer("size", 3)});
  score = make_layer(host, "fc", "score", {table}, {integer("size", 2)});
  tn_named_value logits = integer("from_logits", 1);
  logits.value.kind = TN_ATTR_BOOL;
  cost = make_layer(host, "cross_entropy", "cost", {score, label}, {logits});
  must(&tn_parameters_declare, host, &cost, 1, &declared);
  make(parameters);
  make(updater);
  make(group.updater);
  group.parameters = names_;
  group.parameters_count = 1;
}

void World::make_readers() {
  static const tn_slot words = integers("words", 8, TN_RAGGED);
  sequences = make_source(host, {&words}, &read_sequences);
  static const int64_t square[] = {2, 2};
  static const tn_slot image = {sizeof(tn_slot), TN_I64, "image", TN_DENSE, 2, square, -1, 0, 0, nullptr};
  images = make_source(host, {&image}, &read_images);
  samples = make_source(host, slots(), &read_at);
  started = make_source(host, slots(), &read_at);
  tn_array sample[2];
  must(&tn_reader_next, host, started, sample, 2);
  make(reader);
  csv_ = folder.file("data.csv");
  std::ofstream(csv_) << "x\n1\n2\n";
  files_[0] = csv_.c_str();
  for (const auto& [name, texts] : {std::pair{"files", files_}, std::pair{"columns", columns_}}) {
    csv.push_back({name, {TN_ATTR_STRINGS, 1, {}}});
    csv.back().value.as.strings = texts;
  }
  tn_reader_options table_options = {};
  table_options.size = sizeof table_options;
  table_options.type = "csv";
  table_options.attributes = csv.data();
  table_options.attributes_count = static_cast<uint32_t>(csv.size());
  must(&tn_reader_create, host, &table_options, &csv_reader);
}

void World::train() {
  tn_train_options training = {};
  training.size = sizeof training;
  training.outputs = &cost;
  training.outputs_count = 1;
  training.parameters = parameters;
  training.updater = updater;
  training.reader = reader;
  training.passes = 2;
  must(&tn_train, host, &training);
  must(&tn_model_save, host, parameters, &cost, 1, model.c_str());
  std::ifstream file(model, std::ios::binary);
  bytes_of_model.assign(std::istreambuf_iterator<char>(file), {});
  must(&tn_updater_save, host, updater, parameters, nullptr, 0, updater_file.c_str());
  must(&tn_topology_write, host, &cost, 1, &append, &topology);
}

void World::make_feeds() {
  const auto feed = [&](const char* name, int64_t* data) {
    tn_feed made = {};
    made.name = name;
    made.values.dtype = TN_I64;
    made.values.rank = 1;
    made.values.shape[0] = 4;
    made.values.data = data;
    feeds.push_back(made);
  };
  feed("word", words_);
  feed("label", labels_);
  must(&tn_parameters_get, host, parameters, "score.weight", &weight);
}

void World::make_next() {
  tn_data_options data = {};
  data.size = sizeof data;
  data.dtype = TN_I64;
  data.name = "ids";
  data.index_limit = 3;
  data.storage = TN_RAGGED;
  tn_layer ids = {};
  must(&tn_data_create, host, &data, &ids);
  const tn_layer vectors =
      make_layer(host, "embedding", "vectors", {ids}, {integer("vocabulary", 3), integer("size", 2)});
  next = make_layer(host, "softmax", "next", {make_layer(host, "fc", "logits", {vectors}, {integer("size", 3)})}, {});
  must(&tn_parameters_create, host, &next, 1, 1, &of_next);
  tn_array prompt = {};
  prompt.dtype = TN_I64;
  prompt.rank = 1;
  prompt.shape[0] = 1;
  prompt.data = words_ + 1;
  prompt.storage = TN_RAGGED;
  prompt.levels = 1;
  prompt.offsets[0] = ends_;
  prompt.samples = 1;
  prompts = {{"ids", prompt}};
}

void World::make_slope() {
  const int64_t width = 1;
  tn_data_options data = {};
  data.size = sizeof data;
  data.dtype = TN_F32;
  data.name = "x";
  data.shape = &width;
  data.rank = 1;
  data.index_limit = -1;
  tn_layer x = {};
  must(&tn_data_create, host, &data, &x);
  data.name = "rows";
  data.storage = TN_RAGGED;
  must(&tn_data_create, host, &data, &rows);
  slope = make_layer(host, "fc", "slope", {x}, {integer("size", 1)});
  tn_parameters of = {};
  must(&tn_parameters_create, host, &slope, 1, 1, &of);
  tn_machine_options options = {};
  options.size = sizeof options;
  options.max_samples = 4;
  options.training = 1;
  options.flags = TN_MACHINE_DATA_GRADIENTS | TN_MACHINE_GIVEN_GRADIENTS;
  must(&tn_machine_create, host, of, &slope, 1, &options, &given);
  ones.dtype = TN_F32;
  ones.rank = 2;
  ones.shape[0] = 4;
  ones.shape[1] = 1;
  ones.data = ones_;
  const tn_feed feed = {"x", ones};
  must(&tn_machine_forward, host, given, &feed, 1);
}

std::string World::state() const {
  const auto output = [&](tn_machine of) {
    tn_array values = {};
    must(&tn_machine_output, host, of, cost, &values);
    return bytes(values);
  };
  std::string all = output(machine);
  forward(inference);
  all += output(inference);
  for (const char* parameter : {"table.weight", "score.weight"}) {
    tn_array values = {};
    must(&tn_machine_gradient, host, machine, parameter, &values);
    all += bytes(values);
  }
  must(&tn_updater_describe, host, updater, parameters, &append, &all);
  tn_array moments = {};
  must(&tn_updater_get_state, host, updater, parameters, "m", "score.weight", &moments);
  all += bytes(moments);
  uint64_t steps = 0, updates = 0;
  must(&tn_updater_steps, host, updater, parameters, &steps);
  must(&tn_updater_skipped, host, updater, parameters, &updates);
  all += std::to_string(updates) + ",";
  must(&tn_parameters_updates, host, parameters, &updates);
  all += std::to_string(steps) + "," + std::to_string(updates) + " ";
  for (const tn_reader each : {reader, samples, started, sequences, images}) {
    int64_t pass = 0, position = 0;
    must(&tn_reader_position, host, each, &pass, &position);
    all += std::to_string(pass) + ":" + std::to_string(position) + " ";
  }
  const tn_names* const* names = nullptr;
  uint32_t count = 0;
  must(&tn_parameters_names, host, parameters, &names, &count);
  return all + std::to_string(count);
}

void World::forward(tn_machine on) const {
  must(&tn_machine_forward, host, on, feeds.data(), static_cast<uint32_t>(feeds.size()));
}
void World::backward(tn_machine on) const { must(&tn_machine_backward, host, on); }
void World::backward_from_ones() const { must(&tn_machine_backward_from, host, given, &slope, &ones, 1); }

tn_machine World::machine_for(uint32_t training, tn_parameters of) const {
  tn_machine_options options = {};
  options.size = sizeof options;
  options.max_samples = 4;
  options.training = training;
  tn_machine made = {};
  must(&tn_machine_create, host, of, &cost, 1, &options, &made);
  return made;
}

void World::make(tn_layer& made) const { must(&tn_layer_output, host, score, 0, &made); }
void World::make(tn_parameters& made) const { must(&tn_parameters_create, host, &cost, 1, 1, &made); }
void World::make(tn_machine& made) const {
  made = machine_for(1, parameters);
  forward(made);
  backward(made);
}
void World::make(tn_updater& made) const { must(&tn_updater_create, host, "adam", nullptr, 0, &made); }
void World::make(tn_reader& made) const { made = in_minibatches(host, make_source(host, slots(), &read_at)); }
void World::make(tn_predictor& made) const {
  tn_predictor_options options = {};
  options.size = sizeof options;
  options.max_samples = 4;
  must(&tn_predictor_create, host, parameters, &cost, 1, &options, &made);
}
void World::make(tn_lease& made) const {
  tn_array values = {};
  must(&tn_parameters_lease, host, parameters, "score.weight", TN_LEASE_READ, &made, &values);
}
void World::make(tn_metrics& made) const { must(&tn_metrics_create, host, machine, &made); }

void World::make(tn_scan& made) const {
  tn_scan_options options = {};
  options.size = sizeof options;
  options.over = rows;
  must(&tn_scan_begin, host, &options, &made);
}

std::vector<tn_layer> World::rows_of_branches() const {
  tn_layer_options options = {};
  options.size = sizeof options;
  options.type = "choose_rows";
  options.inputs = &slope;
  options.inputs_count = 1;
  tn_layer chosen = {};
  must(&tn_layer_create, host, &options, &chosen);
  std::vector<tn_layer> made(2);
  for (uint32_t i = 0; i < 2; ++i) must(&tn_layer_output, host, chosen, i, &made[i]);
  return made;
}
void World::make(tn_cond& made) const {
  const std::vector<tn_layer> rows_of = rows_of_branches();
  tn_cond_options options = {};
  options.size = sizeof options;
  options.rows = rows_of.data();
  options.rows_count = 2;
  options.over = slope;
  must(&tn_cond_begin, host, &options, &made);
}
void World::make(tn_generator& made) const {
  tn_generator_options options = {};
  options.size = sizeof options;
  options.scores = next;
  options.ids = "ids";
  must(&tn_generator_create, host, of_next, &options, &made);
}

void World::make(tn_team& made) const {
  tn_team_options options = {};
  options.size = sizeof options;
  options.comm = "loop";
  options.processes = 1;
  options.epoch = new_epoch();
  options.deadline_seconds = 30;
  must(&tn_team_join, host, &options, &made);
}

tn_layer World::row_of(tn_scan scan) const {
  tn_layer made = {};
  must(&tn_scan_input, host, scan, rows, nullptr, &made);
  return made;
}
tn_layer World::memory_of(tn_scan scan) const {
  const int64_t width = 1;
  tn_scan_memory_options options = {};
  options.size = sizeof options;
  options.rank = 1;
  options.shape = &width;
  tn_layer made = {};
  must(&tn_scan_memory, host, scan, &options, &made);
  return made;
}

void World::release(tn_layer made) const { must(&tn_layer_release, host, made); }
void World::release(tn_parameters made) const { must(&tn_parameters_release, host, made); }
void World::release(tn_machine made) const { must(&tn_machine_release, host, made); }
void World::release(tn_updater made) const { must(&tn_updater_release, host, made); }
void World::release(tn_reader made) const { must(&tn_reader_release, host, made); }
void World::release(tn_predictor made) const { must(&tn_predictor_release, host, made); }
void World::release(tn_lease made) const { must(&tn_lease_release, host, made); }
void World::release(tn_metrics made) const { must(&tn_metrics_release, host, made); }
void World::release(tn_scan made) const { must(&tn_scan_release, host, made); }
void World::release(tn_cond made) const { must(&tn_cond_release, host, made); }
void World::release(tn_generator made) const { must(&tn_generator_release, host, made); }
void World::release(tn_team made) const { must(&tn_team_leave, host, made); }

}  // namespace tenon_tests
