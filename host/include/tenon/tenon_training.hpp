// Tenon's C++ API: training, testing, inference. Include <tenon/tenon.hpp>. SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_TRAINING_HPP
#define TENON_TENON_TRAINING_HPP

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tenon/tenon_base.hpp>
#include <tenon/tenon_model.hpp>
#include <tenon/tenon_reader.hpp>
#include <utility>
#include <vector>

namespace tenon {
inline namespace v0 {

// The argument of a handler, valid during the handler; set_learning_rate and stop change the training.
class Event {
 public:
  // host: that of the training; null: the event has no machine.
  explicit Event(tn_event* event, detail::HostRef host = nullptr)
      : event_(event),
        metrics_(detail::metrics_from(event->metrics, event->metrics_count)),
        costs_(detail::costs_from(*event)),
        host_(std::move(host)) {}

  [[nodiscard]] int kind() const { return event_->kind; }  // TN_END_PASS and so on
  [[nodiscard]] int64_t pass() const { return event_->pass; }
  [[nodiscard]] int64_t batch() const { return event_->batch; }
  [[nodiscard]] int64_t samples() const { return event_->samples; }
  [[nodiscard]] double cost() const { return event_->cost; }
  [[nodiscard]] const std::vector<Metric>& metrics() const { return metrics_; }
  // Each of two or more costs by name, as in tn_machine_costs; else empty.
  [[nodiscard]] const std::vector<Metric>& costs() const { return costs_; }
  [[nodiscard]] double seconds() const { return event_->seconds; }
  // learning_rate: before the schedule; scheduled_rate: after it, the rate of the last update.
  [[nodiscard]] double learning_rate() const { return event_->learning_rate; }
  [[nodiscard]] double scheduled_rate() const { return event_->scheduled_rate; }
  // Steps so far that the updaters skipped, since gradients were not finite; see TN_BF16.
  [[nodiscard]] uint32_t skipped() const { return event_->skipped; }
  // TN_CHECKPOINT: the file written; TN_BEGIN_TRAINING: the one resumed from; else empty.
  [[nodiscard]] std::string checkpoint() const { return event_->checkpoint == nullptr ? "" : event_->checkpoint; }
  // TN_END_TRAINING: TN_REASON_*.
  [[nodiscard]] uint32_t reason() const { return event_->reason; }
  // The machine that trains, for reading, as tn_event documents it; stale after the handler.
  [[nodiscard]] Machine machine() const {
    Machine machine(host_);
    machine.borrow(event_->machine);
    return machine;
  }
  void set_learning_rate(double rate) const { event_->learning_rate = rate; }
  // Ends the training after this event.
  void stop() const { event_->stop = 1; }

 private:
  tn_event* event_;
  std::vector<Metric> metrics_, costs_;
  detail::HostRef host_;
};
using EventHandler = std::function<void(Event&)>;

// Ends a training, test or inference from any thread, as tn_cancel documents it. Copies share one token, which lives as
// long as any of them. An object made by the default constructor has none.
class Cancel {
 public:
  Cancel() = default;
  static Cancel make() {
    Cancel result;
    tn_cancel* made = nullptr;
    detail::checked([&](tn_error* error) { return tn_cancel_create(&made, error); });
    result.token_.reset(made, tn_cancel_release);
    return result;
  }
  // Never wait. A signal handler may call tn_cancel_request(get()).
  void request() const { tn_cancel_request(token_.get()); }
  void reset() const { tn_cancel_reset(token_.get()); }
  [[nodiscard]] bool is_requested() const { return tn_cancel_is_requested(token_.get()) != 0; }
  [[nodiscard]] tn_cancel* get() const { return token_.get(); }

 private:
  std::shared_ptr<tn_cancel> token_;
};

// A test within a training, as tn_test_options documents it.
struct TestOptions {
  Reader reader;   // of minibatches
  Layers outputs;  // empty: those of the training
  std::vector<std::pair<std::string, std::string>> feeding;
  int64_t every_passes = 0;  // both 0: after each pass
  int64_t every_batches = 0;
  int64_t batches = 0;  // at most so many minibatches; 0: a whole pass
};

// As tn_early_stop_options documents it.
struct EarlyStopOptions {
  std::string metric = "cost";
  bool best_is_highest = false;
  int64_t patience = 1;
  double min_delta = 0;
};

// As tn_average_options documents it.
struct AverageOptions {
  Parameters parameters;  // receive the averages
  double decay = 1;
  int64_t window = 0;  // 0: exponential
  int64_t begin = 0;
};

// Checkpoints of a training, as tn_checkpoint_options documents them.
struct CheckpointOptions {
  std::string folder;
  int64_t every_batches = 0;  // 0: not by minibatches; likewise below
  int64_t every_passes = 0;
  double every_seconds = 0;
  uint32_t keep = 3;
  std::string best;  // "cost" or a metric; empty: none
  bool best_is_highest = false;
  uint32_t start = TN_START_FRESH;
  std::string from;  // the checkpoint to resume from; empty: the newest in the folder
  Layers outputs;    // stored in addition to those that are trained
};

// An updater for a group of parameters, as tn_updater_group.
struct UpdaterGroup {
  Updater updater;
  std::vector<std::string> parameters;  // a name includes everything below it
};

struct TrainOptions {
  Layers outputs;  // costs, metrics, and any other layers to compute
  Parameters parameters;
  Updater updater;                                           // train only
  Reader reader;                                             // of minibatches
  std::vector<std::pair<std::string, std::string>> feeding;  // {slot, data layer} of different names
  int64_t passes = 1;                                        // train only
  uint64_t seed = 0;                                         // of random numbers inside the model
  EventHandler handler;                                      // its exceptions end the call and are rethrown
  std::string device;                                        // empty: cpu
  std::vector<std::string> immutable_parameters;             // train only; a name includes everything below it
  std::optional<CheckpointOptions> checkpoint = {};          // train only
  int64_t pass_batches = 0;                                  // minibatches of a pass; 0: the passes of the reader
  Cancel cancel = {};                                        // ends the call
  std::optional<TestOptions> test = {};                      // train only
  std::optional<EarlyStopOptions> early_stop = {};           // train only
  std::optional<AverageOptions> average = {};                // train only
  std::vector<UpdaterGroup> groups = {};                     // train only; `updater` has all other parameters
  std::vector<std::string> devices = {};                     // in place of `device`: each computes a shard
  tn_dtype compute = TN_F32;                                 // as in tn_machine_options: TN_F32, TN_BF16, ...
};

// The slots of a reader, as the data layers that they feed: for host.data, as they are or with another name or scale.
[[nodiscard]] inline std::vector<DataOptions> slots(const Reader& reader) {
  uint32_t count = 0;
  detail::checked(
      [&](tn_error* error) { return tn_reader_slots_count(reader.host(), reader.handle(), &count, error); });
  std::vector<DataOptions> result(count);
  for (uint32_t i = 0; i < count; ++i) {
    tn_data_options slot = {};
    slot.size = sizeof slot;
    detail::checked([&](tn_error* error) { return tn_reader_slot(reader.host(), reader.handle(), i, &slot, error); });
    result[i].name = slot.name;
    result[i].dtype = slot.dtype;
    result[i].shape.assign(slot.shape, slot.shape + slot.rank);
    result[i].index_limit = slot.index_limit;
    result[i].storage = slot.storage;
    result[i].levels = slot.levels;
  }
  return result;
}

// Whether the slots of a reader mean what the model was trained with, as tn_reader_check documents.
inline void check_reader(const Reader& reader, const Parameters& parameters) {
  detail::checked(
      [&](tn_error* error) { return tn_reader_check(reader.host(), reader.handle(), parameters.handle(), error); });
}

// The next minibatch of a reader as feeds for data layers named as its slots, borrowed until the next call on the
// reader; empty at the end of a pass. Feeds have no names of integers or columns: see check_reader.
[[nodiscard]] inline std::vector<Feed> next_feeds(const Reader& reader) {
  const std::vector<DataOptions> named = slots(reader);
  const std::vector<Array> arrays = reader.next();
  std::vector<Feed> feeds;
  for (size_t i = 0; i < arrays.size(); ++i) feeds.push_back({named[i].name, arrays[i]});
  return feeds;
}

struct TestResult {
  double cost = 0;
  int64_t samples = 0;
  double seconds = 0;
  std::vector<Metric> metrics;
  std::vector<Metric> costs = {};  // each of two or more, as in tn_machine_costs; else empty
};

namespace detail {

// tn_train_options over TrainOptions, which it borrows; carries exceptions of the handler around C.
class Run {
 public:
  explicit Run(const TrainOptions& options)
      : handler_(options.handler),
        host_(options.parameters.host_ref()),
        outputs_(handles(options.outputs)),
        feeding_(feeding_of(options.feeding, "options.feeding")) {
    options_.size = sizeof options_;
    options_.outputs = outputs_.data();
    options_.outputs_count = count_of(outputs_.size());
    options_.parameters = options.parameters.handle();
    options_.updater = options.updater.handle();
    options_.reader = options.reader.handle();
    options_.feeding = feeding_.data();
    options_.feeding_count = count_of(feeding_.size());
    options_.passes = options.passes;
    options_.seed = options.seed;
    immutable_ = c_texts(options.immutable_parameters, "options.immutable_parameters");
    options_.immutable_parameters = immutable_.data();
    options_.immutable_parameters_count = count_of(immutable_.size());
    options_.device = options.device.empty() ? nullptr : c_text(options.device, "options.device");
    devices_ = c_texts(options.devices, "options.devices");
    options_.devices = devices_.data();
    options_.devices_count = count_of(devices_.size());
    options_.compute = options.compute;
    options_.user = this;
    options_.pass_batches = options.pass_batches;
    options_.cancel = options.cancel.get();
    if (options.checkpoint) set_checkpoint(*options.checkpoint);
    if (options.test) set_test(*options.test);
    if (options.early_stop) set_early_stop(*options.early_stop);
    if (options.average) set_average(*options.average);
    set_groups(options.groups);
    if (handler_) options_.handler = [](void* user, tn_event* event) { static_cast<Run*>(user)->handle(event); };
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  [[nodiscard]] const tn_train_options* get() const { return &options_; }
  // Called after the C function: rethrows an exception of the handler.
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }
  // Runs `work` and stores its exception; false if it threw.
  template <typename Work>
  bool keep(Work work) {
    try {
      work();
      return true;
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
      return false;
    }
  }

 private:
  static std::vector<tn_feeding> feeding_of(const std::vector<std::pair<std::string, std::string>>& given,
                                            const char* what) {
    std::vector<tn_feeding> result;
    for (const auto& [slot, layer] : given) result.push_back({c_text(slot, what), c_text(layer, what)});
    return result;
  }
  void set_test(const TestOptions& options) {
    tested_ = handles(options.outputs);
    test_feeding_ = feeding_of(options.feeding, "options.test.feeding");
    test_.size = sizeof test_;
    test_.outputs = tested_.empty() ? nullptr : tested_.data();
    test_.outputs_count = count_of(tested_.size());
    test_.reader = options.reader.handle();
    test_.feeding = test_feeding_.data();
    test_.feeding_count = count_of(test_feeding_.size());
    test_.every_passes = options.every_passes;
    test_.every_batches = options.every_batches;
    test_.batches = options.batches;
    options_.test = &test_;
  }
  void set_early_stop(const EarlyStopOptions& options) {
    early_stop_.size = sizeof early_stop_;
    early_stop_.metric = c_text(options.metric, "options.early_stop.metric");
    early_stop_.best_is_highest = options.best_is_highest ? 1 : 0;
    early_stop_.patience = options.patience;
    early_stop_.min_delta = options.min_delta;
    options_.early_stop = &early_stop_;
  }
  void set_average(const AverageOptions& options) {
    average_.size = sizeof average_;
    average_.parameters = options.parameters.handle();
    average_.decay = options.decay;
    average_.window = options.window;
    average_.begin = options.begin;
    options_.average = &average_;
  }
  void set_groups(const std::vector<UpdaterGroup>& groups) {
    group_names_.resize(groups.size());
    for (size_t i = 0; i < groups.size(); ++i) {
      for (const std::string& name : groups[i].parameters) group_names_[i].push_back(c_text(name, "options.groups"));
      groups_.push_back({groups[i].updater.handle(), group_names_[i].data(), count_of(group_names_[i].size()), 0});
    }
    options_.groups = groups_.data();
    options_.groups_count = count_of(groups_.size());
  }
  void set_checkpoint(const CheckpointOptions& options) {
    checkpoint_.size = sizeof checkpoint_;
    checkpoint_.keep = options.keep;
    checkpoint_.folder = c_text(options.folder, "options.checkpoint.folder");
    checkpoint_.every_batches = options.every_batches;
    checkpoint_.every_passes = options.every_passes;
    checkpoint_.every_seconds = options.every_seconds;
    checkpoint_.best = options.best.empty() ? nullptr : c_text(options.best, "options.checkpoint.best");
    checkpoint_.best_is_highest = options.best_is_highest ? 1 : 0;
    checkpoint_.start = options.start;
    checkpoint_.from = options.from.empty() ? nullptr : c_text(options.from, "options.checkpoint.from");
    stored_ = handles(options.outputs);
    checkpoint_.outputs = stored_.data();
    checkpoint_.outputs_count = count_of(stored_.size());
    options_.checkpoint = &checkpoint_;
  }
  void handle(tn_event* event) {
    if (failure_) return;
    const bool sound = keep([&] {
      Event wrapped(event, host_);
      handler_(wrapped);
    });
    if (!sound) event->stop = 1;
  }

  const EventHandler& handler_;
  HostRef host_;
  std::vector<tn_layer> outputs_, stored_, tested_;
  tn_checkpoint_options checkpoint_ = {};
  tn_test_options test_ = {};
  tn_early_stop_options early_stop_ = {};
  tn_average_options average_ = {};
  std::vector<tn_feeding> feeding_, test_feeding_;
  std::vector<const char*> immutable_, devices_;
  std::vector<std::vector<const char*>> group_names_;
  std::vector<tn_updater_group> groups_;
  tn_train_options options_ = {};
  std::exception_ptr failure_;
};

}  // namespace detail

inline void train(const TrainOptions& options) {
  detail::Run run(options);
  detail::checked(*options.parameters.host_ref(), [&](tn_error* error) {
    const tn_status status = tn_train(options.parameters.host(), run.get(), error);
    run.rethrow();
    return status;
  });
}

inline TestResult test(const TrainOptions& options) {
  detail::Run run(options);
  tn_test_result result = {};
  result.size = sizeof result;
  detail::checked(*options.parameters.host_ref(), [&](tn_error* error) {
    const tn_status status = tn_test(options.parameters.host(), run.get(), &result, error);
    run.rethrow();
    return status;
  });
  return {result.cost, result.samples, result.seconds, detail::metrics_from(result.metrics, result.metrics_count),
          detail::costs_from(result)};
}

// `sink` receives the outputs of each minibatch, borrowed during the call; it returns false to end the pass early.
inline void infer(const TrainOptions& options, const std::function<bool(const std::vector<Array>&)>& sink) {
  struct Target {
    detail::Run run;
    const std::function<bool(const std::vector<Array>&)>& sink;
  } target{detail::Run(options), sink};
  const auto receive = [](void* user, const tn_array* outputs, uint32_t count) -> int32_t {
    auto& to = *static_cast<Target*>(user);
    bool more = false;
    to.run.keep([&] {
      std::vector<Array> arrays;
      for (uint32_t i = 0; i < count; ++i) arrays.push_back(detail::array_from(outputs[i]));
      more = to.sink(arrays);
    });
    return more ? 0 : 1;
  };
  detail::checked(*options.parameters.host_ref(), [&](tn_error* error) {
    const tn_status status = tn_infer(options.parameters.host(), target.run.get(), receive, &target, error);
    target.run.rethrow();
    return status;
  });
}

}  // namespace v0
}  // namespace tenon
#endif
