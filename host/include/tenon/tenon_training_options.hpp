// Tenon's C++ API: the options of trainings. Include <tenon/tenon.hpp>. Written by
// host/api/spec/generate_options.py. SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_TRAINING_OPTIONS_HPP
#define TENON_TENON_TRAINING_OPTIONS_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <tenon/tenon_event.hpp>
#include <tenon/tenon_model.hpp>
#include <tenon/tenon_option_lists.hpp>
#include <tenon/tenon_reader.hpp>
#include <tenon/tenon_team.hpp>
#include <utility>
#include <vector>

namespace tenon {
inline namespace v0 {

// As tn_test_options documents it.
struct TestOptions {
  // Of minibatches; another one than the training's; must seek to start a pass.
  Reader reader;
  // Costs and metrics; empty: the outputs of the training.
  Layers outputs = {};
  // As in tn_train_options.
  std::vector<std::pair<std::string, std::string>> feeding = {};
  // A test after each pass whose number is a multiple; 0: not by passes.
  int64_t every_passes = 0;
  // A test after so many minibatches since the last one; 0: not by minibatches.
  int64_t every_batches = 0;
  // At most so many minibatches in a test; 0: a whole pass.
  int64_t batches = 0;
};

// As tn_early_stop_options documents it.
struct EarlyStopOptions {
  // "cost", one of several costs (tn_machine_costs), or a metric.
  std::string metric = "cost";
  // 0: the lowest value is the best.
  bool best_is_highest = false;
  // The training ends after so many measurements in a row without improvement; at least 1.
  int64_t patience = 1;
  // At least 0: a value improves if it is better than the best by more than this.
  double min_delta = 0;
};

// As tn_checkpoint_options documents it.
struct CheckpointOptions {
  // Created if only it is missing.
  std::string folder;
  // 0: not by minibatches.
  int64_t every_batches = 0;
  // 0: not by passes.
  int64_t every_passes = 0;
  // 0: not by seconds.
  double every_seconds = 0;
  // The newest checkpoints that stay; 0: 3.
  uint32_t keep = 3;
  // "cost", one of several costs by its name in tn_machine_costs, or a metric: after each pass whose value is the best
  // so far, best.safetensors is written; empty: off.
  std::string best;
  // 0: the lowest value is the best.
  bool best_is_highest = false;
  // TN_START_*: anew, or a resume.
  uint32_t start = TN_START_FRESH;
  // The checkpoint to resume from; empty: the newest in the folder.
  std::string from;
  // Outputs that the checkpoints store in addition to those that are trained, so that they are models with these.
  Layers outputs = {};
  // What may differ from the checkpoint of a resume (docs/checkpoints.md); empty: nothing.
  std::vector<std::string> resume_with = {};
};

// As tn_average_options documents it.
struct AverageOptions {
  // The set that receives the averages after every update: made by tn_parameters_create from the same outputs, and
  // another one than that of the training.
  Parameters parameters;
  // In (0, 1]; 0: 1.
  double decay = 1;
  // 0: exponential.
  int64_t window = 0;
  // The updates of the training before the first that counts; until then the averages are w.
  int64_t begin = 0;
};

// As tn_best_options documents it.
struct BestOptions {
  // Receives the values of tn_train_options.parameters at the best measurement.
  Parameters parameters;
  // Receives those of tn_average_options.parameters; {0, 0} or empty: they are not kept.
  Parameters averages;
  // "cost", one of several costs (tn_machine_costs), or a metric; empty: "cost".
  std::string metric = "cost";
  // 0: the lowest value is the best.
  bool best_is_highest = false;
};

// As tn_updater_group documents it.
struct UpdaterGroup {
  Updater updater;
  // At least one; a name includes everything below it ("D": "D", "D.weight").
  std::vector<std::string> parameters = {};
};

// As tn_train_options documents it.
struct TrainOptions {
  // Costs, metrics, and any other layers to compute.
  Layers outputs = {};
  Parameters parameters;
  // Train only.
  Updater updater;
  // Of minibatches.
  Reader reader;
  // Slots and the data layers that they feed, where the names differ.
  std::vector<std::pair<std::string, std::string>> feeding = {};
  // Train only. Passes over the data, those before a resume included.
  int64_t passes = 1;
  // Of random numbers inside the model, as in tn_machine_options.
  uint64_t seed = 0;
  // Receives the events; empty: nothing does.
  EventHandler handler;
  // Empty: "cpu"; as in tn_machine_options.
  std::string device;
  // Train only. Parameters that keep their values, as in tn_machine_options; a name includes everything below it.
  std::vector<std::string> immutable_parameters = {};
  // Train only. Empty: no checkpoints.
  std::optional<CheckpointOptions> checkpoint = {};
  // Minibatches of a pass; 0: a pass of the training is one of the reader.
  int64_t pass_batches = 0;
  // Ends the call from another thread; empty: nothing does.
  Cancel cancel;
  // Train only. Empty: no tests while it trains.
  std::optional<TestOptions> test = {};
  // Train only. Empty: it does not end early.
  std::optional<EarlyStopOptions> early_stop = {};
  // Train only. Empty: no averages of the parameters.
  std::optional<AverageOptions> average = {};
  // Train only. Updaters for groups of parameters.
  std::vector<UpdaterGroup> groups = {};
  // In place of `device`, as in tn_machine_options; tests of a training, too, run on all of them.
  std::vector<std::string> devices = {};
  // As in tn_machine_options.
  tn_dtype compute = TN_F32;
  // Train only. Empty: the values of the best measurement are not kept.
  std::optional<BestOptions> best = {};
  // As in tn_machine_options; of tests, too.
  uint32_t shards = 0;
  // Train only. With a team: steps between comparisons of the parameters and buffers of its processes; 0: before the
  // first step alone.
  int64_t verify_every = 0;
  // Train only. 0: the exact mode.
  int64_t staleness = 0;
  // Train only. The processes that train together, each with this call and equal arguments; null: this process trains
  // alone.
  Team team;
  // Train only. A folder, in which a record of the training is written as docs/rerun.md says, with digests of the
  // samples and the parameters; empty: none.
  std::string run;
  // Train only. Updates between two digests of `run`; 0: chosen so that about a thousand are kept.
  int64_t run_every = 0;
  // Train only. The folder of such a record, with which the training is compared while it runs; empty: none.
  std::string rerun;
};

namespace detail {

// Each fills a struct of C, which borrows from `from` and `lists`.
inline void fill(tn_test_options& to, const TestOptions& from, [[maybe_unused]] OptionLists& lists) {
  to.size = sizeof to;
  lists.set(to.outputs, to.outputs_count, handles(from.outputs));
  to.reader = from.reader.handle();
  lists.set(to.feeding, to.feeding_count, c_feeding(from.feeding, "options.test.feeding"));
  to.every_passes = from.every_passes;
  to.every_batches = from.every_batches;
  to.batches = from.batches;
}
inline void fill(tn_early_stop_options& to, const EarlyStopOptions& from, [[maybe_unused]] OptionLists& lists) {
  to.size = sizeof to;
  to.best_is_highest = from.best_is_highest ? 1 : 0;
  to.metric = c_text(from.metric, "options.early_stop.metric");
  to.patience = from.patience;
  to.min_delta = from.min_delta;
}
inline void fill(tn_checkpoint_options& to, const CheckpointOptions& from, [[maybe_unused]] OptionLists& lists) {
  to.size = sizeof to;
  to.keep = from.keep;
  to.folder = c_text(from.folder, "options.checkpoint.folder");
  to.every_batches = from.every_batches;
  to.every_passes = from.every_passes;
  to.every_seconds = from.every_seconds;
  to.best = from.best.empty() ? nullptr : c_text(from.best, "options.checkpoint.best");
  to.best_is_highest = from.best_is_highest ? 1 : 0;
  to.start = from.start;
  to.from = from.from.empty() ? nullptr : c_text(from.from, "options.checkpoint.from");
  lists.set(to.outputs, to.outputs_count, handles(from.outputs));
  lists.set(to.resume_with, to.resume_with_count, c_texts(from.resume_with, "options.checkpoint.resume_with"));
}
inline void fill(tn_average_options& to, const AverageOptions& from, [[maybe_unused]] OptionLists& lists) {
  to.size = sizeof to;
  to.parameters = from.parameters.handle();
  to.decay = from.decay;
  to.window = from.window;
  to.begin = from.begin;
}
inline void fill(tn_best_options& to, const BestOptions& from, [[maybe_unused]] OptionLists& lists) {
  to.size = sizeof to;
  to.best_is_highest = from.best_is_highest ? 1 : 0;
  to.parameters = from.parameters.handle();
  to.averages = from.averages.handle();
  to.metric = c_text(from.metric, "options.best.metric");
}
inline void fill(tn_updater_group& to, const UpdaterGroup& from, [[maybe_unused]] OptionLists& lists) {
  to.updater = from.updater.handle();
  lists.set(to.parameters, to.parameters_count, c_texts(from.parameters, "options.groups.parameters"));
}
inline void fill(tn_train_options& to, const TrainOptions& from, [[maybe_unused]] OptionLists& lists) {
  to.size = sizeof to;
  lists.set(to.outputs, to.outputs_count, handles(from.outputs));
  to.parameters = from.parameters.handle();
  to.updater = from.updater.handle();
  to.reader = from.reader.handle();
  lists.set(to.feeding, to.feeding_count, c_feeding(from.feeding, "options.feeding"));
  to.passes = from.passes;
  to.seed = from.seed;
  to.device = from.device.empty() ? nullptr : c_text(from.device, "options.device");
  lists.set(to.immutable_parameters, to.immutable_parameters_count,
            c_texts(from.immutable_parameters, "options.immutable_parameters"));
  lists.set(to.checkpoint, from.checkpoint);
  to.pass_batches = from.pass_batches;
  to.cancel = from.cancel.get();
  lists.set(to.test, from.test);
  lists.set(to.early_stop, from.early_stop);
  lists.set(to.average, from.average);
  lists.set_each(to.groups, to.groups_count, from.groups);
  lists.set(to.devices, to.devices_count, c_texts(from.devices, "options.devices"));
  to.compute = from.compute;
  lists.set(to.best, from.best);
  to.shards = from.shards;
  to.team = from.team.handle();
  to.verify_every = from.verify_every;
  to.staleness = from.staleness;
  to.run = from.run.empty() ? nullptr : c_text(from.run, "options.run");
  to.run_every = from.run_every;
  to.rerun = from.rerun.empty() ? nullptr : c_text(from.rerun, "options.rerun");
}

}  // namespace detail
}  // namespace v0
}  // namespace tenon
#endif
