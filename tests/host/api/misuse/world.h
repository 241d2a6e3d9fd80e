// A small host in which every call of the public API has valid arguments. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlpack/dlpack.h>
#include <tenon/plugin.h>
#include <tenon/tenon.h>
#include <tenon/tenon_cond.h>
#include <tenon/tenon_dlpack.h>
#include <tenon/tenon_generate.h>
#include <tenon/tenon_lease.h>
#include <tenon/tenon_machine.h>
#include <tenon/tenon_predictor.h>
#include <tenon/tenon_scan.h>
#include <tenon/tenon_team.h>
#include <tenon/tenon_topology.h>
#include <tenon/tenon_updater.h>

#include <string>
#include <vector>

#include "tests/support/loop_plugin.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

// word -> embedding "table" -> fc "score" -> cross_entropy "cost" with the truth `label`; trained for two passes of
// eight samples in minibatches of four. `machine` holds the gradients of one more minibatch. Beside it x -> fc "slope".
struct World {
  World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() { tn_host_release(host); }

  // Everything that a call may have changed: what the model answers, gradients, the updater, positions.
  [[nodiscard]] std::string state() const;
  void forward(tn_machine on) const;
  void backward(tn_machine on) const;
  void backward_from_ones() const;  // of `given`

  // Objects of each kind that are as good as those below, and their release.
  void make(tn_layer& made) const;
  void make(tn_parameters& made) const;
  void make(tn_machine& made) const;
  void make(tn_updater& made) const;
  void make(tn_reader& made) const;
  void make(tn_predictor& made) const;
  void make(tn_lease& made) const;
  void make(tn_metrics& made) const;
  void make(tn_scan& made) const;       // over `rows`
  void make(tn_cond& made) const;       // over `slope`
  void make(tn_generator& made) const;  // of `next`
  void make(tn_team& made) const;       // of one process
  // Of a team that joins none of before.
  [[nodiscard]] uint32_t new_epoch() const { return ++epoch_; }
  void release(tn_layer made) const;
  void release(tn_parameters made) const;
  void release(tn_machine made) const;
  void release(tn_updater made) const;
  void release(tn_reader made) const;
  void release(tn_predictor made) const;
  void release(tn_lease made) const;
  void release(tn_metrics made) const;
  void release(tn_scan made) const;
  void release(tn_cond made) const;
  void release(tn_generator made) const;
  void release(tn_team made) const;
  [[nodiscard]] std::vector<tn_layer> rows_of_branches() const;  // by `slope`
  [[nodiscard]] tn_layer row_of(tn_scan scan) const;             // an input
  [[nodiscard]] tn_layer memory_of(tn_scan scan) const;          // a new one, of the shape of the input
  template <typename Handle>
  [[nodiscard]] Handle make() const {
    Handle made = {};
    make(made);
    return made;
  }

  TemporaryFolder folder;
  tn_host* host = nullptr;
  tn_layer word = {}, score = {}, cost = {}, slope = {}, rows = {};
  tn_layer next = {};            // scores of the ids of a data layer "ids"
  tn_parameters of_next = {};    // those of `next`
  std::vector<tn_feed> prompts;  // of "ids": one
  tn_parameters parameters = {};
  tn_parameters declared = {};  // without values
  tn_machine machine = {};
  tn_machine fresh = {};      // for training, without a forward
  tn_machine inference = {};  // without backward
  tn_machine planned = {};    // on `declared`
  tn_machine given = {};      // of `slope`, with given gradients and those of data layers; after a forward
  tn_updater updater = {};
  tn_updater_group group = {};  // another updater for "score"
  tn_reader reader = {};        // minibatches
  tn_reader samples = {};       // the same, not yet batched
  tn_reader started = {};       // samples, one of them read
  tn_reader sequences = {};     // samples with a TN_RAGGED slot "words"
  tn_reader images = {};        // samples with a slot "image"
  tn_reader csv_reader = {};    // of a CSV file with the column "x"
  std::string model;            // a model file
  std::string bytes_of_model;   // the same
  std::string new_model;        // a path without a file
  std::string set;              // a plugin set that admits every plugin
  std::string new_folder;
  std::string updater_file;
  std::string topology;  // JSON
  std::vector<tn_feed> feeds;
  tn_array weight = {};                  // a value of "score.weight"
  tn_array ones = {};                    // a gradient of `slope`
  std::vector<tn_named_value> csv = {};  // attributes of a reader "csv"

 private:
  [[nodiscard]] tn_machine machine_for(uint32_t training, tn_parameters of) const;
  void make_model();
  void make_readers();
  void train();
  void make_feeds();
  void make_slope();
  void make_next();

  float ones_[4] = {1, 1, 1, 1};
  int64_t words_[4] = {0, 1, 2, 1}, labels_[4] = {0, 1, 0, 1}, ends_[2] = {0, 1};
  LoopWorld loop_{1};
  LoopPlugin loop_plugin_{loop_};
  mutable uint32_t epoch_ = 0;
  std::string csv_;
  const char *files_[1] = {nullptr}, *columns_[1] = {"x: f32"}, *names_[1] = {"score"};
};

// Functions of an application that do their work.
void write_nothing(void* user, const char* text, size_t length);
int32_t take_outputs(void* user, const tn_array* outputs, uint32_t count);
int32_t take_part(void* user, int64_t first, const tn_array* outputs, uint32_t count);
void take_predictions(void* user, const tn_array* outputs, uint32_t count);
void take_metrics(void* user, const tn_metrics_values* values);
void take_names(void* user, const tn_names* const* names, uint32_t count);
tn_status update_nothing(void* user, const tn_rule_step* step, tn_error* error);
void take_attribute(void* user, const tn_named_value* attribute);
tn_status read_at(void* user, const int64_t* indices, int64_t count, tn_array* values, tn_error* error);
tn_status keep_values(void* user, const tn_array* inputs, uint32_t inputs_count, int64_t samples, tn_array* outputs,
                      uint32_t outputs_count, tn_error* error);
void* allocate(void* self, uint64_t bytes, uint64_t alignment);
void release_memory(void* self, void* memory, uint64_t bytes);
const std::vector<const tn_slot*>& slots();  // of `samples`
const tn_names& names_of_words();            // of the data layer and slot "word"
tn_named_value integer(const char* name, int64_t value);
// Damaged values.
tn_named_value without(const char* name, int32_t kind);  // of a null pointer
const tn_names& names_without_texts();
const tn_names& names_without_size();
const tn_plugin& no_plugin();  // of zeros

}  // namespace tenon_tests
