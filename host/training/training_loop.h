// The loops over a reader: train, test, infer. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/system.h"
#include "host/machine/machine.h"
#include "host/machine/set_gate.h"
#include "host/readers/reader.h"
#include "host/training/checkpoint_record.h"
#include "host/training/data/feeder.h"
#include "host/training/loop_options.h"
#include "host/training/updater_groups.h"

namespace tenon::host {

using namespace core;

enum class EventKind {
  kBeginTraining,
  kEndTraining,
  kBeginPass,
  kEndPass,
  kBeginIteration,
  kEndIteration,
  kCheckpoint,
  kTest
};

// Why a training ended, in the order of TN_REASON_*.
enum class Reason { kNone, kPasses, kHandler, kCancel, kEarly };

// The best measurement so far (best_values.h).
struct BestPlace {
  double value = 0;
  int64_t pass = 0, batch = 0;  // passes, and minibatches of the next one, that were done
};

struct MetricValue {
  std::string name;  // "accuracy", or "<layer>.accuracy" if two metrics use that name
  double value = 0;
};

// Legal order: BeginTraining (BeginPass (BeginIteration EndIteration)* EndPass)* EndTraining; a stopped training may
// end inside a pass, without its EndPass. EndPass when the reader ends a pass, or after pass_batches. Checkpoint comes
// after EndIteration, EndPass or Test, or before EndTraining. Test comes after EndIteration or EndPass, or after
// BeginTraining if the training that is resumed ended before it could test. A resumed training begins with the pass,
// and in it the minibatch, where the checkpoint was written.
struct Event {
  EventKind kind = EventKind::kBeginTraining;
  int64_t pass = 0, batch = 0, samples = 0;
  double cost = 0;  // mean over samples: of the minibatch, or of the pass so far
  std::vector<MetricValue> metrics;
  std::vector<MetricValue> costs;  // each of two or more costs; else empty
  uint64_t skipped = 0;            // steps of the training so far, by updaters
  double seconds = 0;              // since the pass began; Test: that it took
  double learning_rate = 0;        // before the schedule; may be changed by the handler
  double scheduled_rate = 0;       // after the schedule: of the last update, else of the first
  bool stop = false;               // may be set by the handler
  std::string checkpoint;          // Checkpoint: the file written; BeginTraining: the one resumed from; else empty
  Reason reason = Reason::kNone;   // EndTraining: why
  std::string changes;             // BeginTraining: what differs from the checkpoint, a line each; else empty
  std::optional<BestPlace> best;   // of the measurements before this event; empty without BestValues
  uint64_t repeated = 0;           // bounded mode: minibatches of lost trainers that others have computed
  uint64_t torn = 0;               // of these, the ones of which some servers had gradients before
};
using EventHandler = std::function<void(Event&)>;

// Cost and metrics of a test, or of a pass of a training.
struct TestResult {
  double cost = 0;
  int64_t samples = 0;
  double seconds = 0;
  std::vector<MetricValue> metrics;
  std::vector<MetricValue> costs;  // each of two or more costs; else empty
};

// Cost and metrics, summed over minibatches.
class ResultSums {
 public:
  ResultSums(const Machine& machine, Registry& registry);
  void clear();
  // Adds the machine's last minibatch.
  void add(const Machine& machine);
  // Adds the minibatches of other sums. Throws TN_INVALID if these are of other metrics, or of another number of costs;
  // changes nothing then.
  void add(const ResultSums& other);
  [[nodiscard]] int64_t samples() const { return samples_; }
  [[nodiscard]] double cost() const { return mean(cost_sum_); }  // 0 without samples
  [[nodiscard]] PassSums sums() const;
  // Throws TN_BAD_DATA if the sums are of other metrics; changes nothing then.
  void set(const PassSums& sums);
  [[nodiscard]] TestResult measured() const;

 private:
  struct Metric {
    LayerRef layer;
    const LayerType* type = nullptr;
    std::vector<double> state;
  };
  std::vector<Metric> metrics_;
  [[nodiscard]] std::vector<MetricValue> metrics() const;
  // Each of two or more costs, under a name that is not one of `metrics`.
  [[nodiscard]] std::vector<MetricValue> costs(const std::vector<MetricValue>& metrics) const;
  [[nodiscard]] double mean(double sum) const { return samples_ == 0 ? 0 : sum / static_cast<double>(samples_); }

  double cost_sum_ = 0;
  std::vector<std::string> cost_names_;  // of two or more costs; else empty
  std::vector<double> cost_sums_;        // of these
  bool costs_known_ = true;              // whether the sums are those of all samples
  int64_t samples_ = 0;
};

class BoundedMode;

// The arguments of a loop.
struct LoopInputs {
  Machine& machine;
  Registry& registry;
  Reader& reader;  // of minibatches
  SampleBlock& minibatch;
  std::map<std::string, std::string> slot_map;  // see Feeder
  Clock& clock;
  SetGate& gate;  // of the machine's set
  LoopOptions options = {};
  // Set by other threads: end the loop. null: nothing does.
  const std::atomic<bool>* cancel = nullptr;
  const std::atomic<bool>* ending = nullptr;  // of the host
  Team* team = nullptr;                       // gets the steps of a training; null: there is none
  // Gets the place of the reader for its users, while a minibatch is read ahead; null: nobody asks.
  std::optional<ReaderPlace>* place = nullptr;
  BoundedMode* bounded = nullptr;  // of a training; null: the exact mode

  // The team with which this process decides; null: it decides alone.
  [[nodiscard]] Team* deciding() const;
  [[nodiscard]] bool is_cancelled() const { return is_set(cancel) || is_set(ending); }

 private:
  static bool is_set(const std::atomic<bool>* flag) { return flag != nullptr && flag->load(std::memory_order_relaxed); }
};

class Averages;
class BestValues;
class Checkpoints;
class EarlyStop;
class Tests;

// What a training does besides training. All are borrowed; null: not done.
struct TrainingParts {
  Checkpoints* checkpoints = nullptr;
  Tests* tests = nullptr;
  EarlyStop* early_stop = nullptr;
  Averages* averages = nullptr;
  SetGate* averages_gate = nullptr;  // of the set of the averages; with averages
  BestValues* best = nullptr;
};

// Trains until the passes of the options are done, counting those before a resume, or until the handler, a cancel or
// early stopping ends it.
void train(const LoopInputs& inputs, const UpdaterGroups& updater, const EventHandler& handler,
           const TrainingParts& parts = {});

// Throws TN_CANCELLED if it is cancelled, like infer.
TestResult test(const LoopInputs& inputs);

// Runs one pass; calls `sink` with the machine after each minibatch. `sink` returns false to end early.
void infer(const LoopInputs& inputs, const std::function<bool(const Machine&)>& sink);

}  // namespace tenon::host
