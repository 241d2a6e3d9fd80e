// The public C API: training, testing, inference, and tokens that end them from another thread.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <iterator>
#include <memory>

#include "host/api/api.h"
#include "host/api/held_team.h"
#include "host/api/lent_machine.h"
#include "host/api/rule_updater.h"
#include "host/api/team_parts.h"
#include "host/api/training_call.h"
#include "host/api/training_record.h"
#include "host/training/averages.h"
#include "host/training/best_values.h"
#include "host/training/bounded/bounded_mode.h"
#include "host/training/checkpoints.h"
#include "host/training/team/agreement.h"
#include "host/training/training_loop.h"
#include "host/training/validation.h"

namespace api = tenon::host::api;
using namespace tenon::host;

namespace {

// Tests and inferences of their own ignore the team.
tn_train_options alone(tn_train_options options) {
  options.team = {};
  return options;
}

// Calls `call` with a handle of the machine of a training, which is stale afterwards, so that no thread meets the
// machine while it computes.
template <typename Call>
void lend_machine(Host& host, TrainingCall& run, Machine::Lending lending, const Call& call) {
  const auto handle = host.machines.add<tn_machine>(run.machine);
  api::while_lent(
      *run.machine, run.machine_use, lending, [&] { call(handle); }, [&] { host.machines.take(handle); });
}

// The updaters of a training. Each is marked as used by the call while a pointer to it lives.
class UpdatersInUse {
 public:
  UpdatersInUse(Host& host, TrainingCall& run) : host_(host), run_(run) {}

  // Returns one pointer however often the updater is asked for.
  std::shared_ptr<Updater> at(tn_updater updater) {
    const std::shared_ptr<HeldUpdater> held = host_.updaters.at(updater);
    std::shared_ptr<Updater>& known = known_[held.get()];
    if (known == nullptr) {
      const auto used = std::make_shared<Used>(held);
      if (auto* const rule = dynamic_cast<RuleUpdater*>(held->updater.get()))
        rule->set_lend([&host = host_, &run = run_](const std::function<void(tn_machine)>& call) {
          lend_machine(host, run, Machine::Lending::kUpdating, call);
        });
      known = {used, used->held->updater.get()};
    }
    return known;
  }

 private:
  struct Used : tenon::base::NotCopied {
    explicit Used(std::shared_ptr<HeldUpdater> of) : held(std::move(of)), use(held->mark, "updater") {}
    ~Used() {
      if (auto* const rule = dynamic_cast<RuleUpdater*>(held->updater.get())) rule->set_lend({});
    }
    std::shared_ptr<HeldUpdater> held;
    Use use;
  };

  Host& host_;
  TrainingCall& run_;
  std::map<const HeldUpdater*, std::shared_ptr<Updater>> known_;
};

UpdaterGroups updaters_of(Host& host, const tn_train_options& options, TrainingCall& run) {
  if (options.groups_count > 0) api::required(options.groups, "options.groups");
  UpdatersInUse updaters(host, run);
  std::vector<UpdaterGroups::Group> groups;
  for (uint32_t i = 0; i < options.groups_count; ++i) {
    const tn_updater_group& group = options.groups[i];
    if (group.reserved != 0)
      fail(TN_UNSUPPORTED, SubjectName{"options.groups"}, "options.groups[", i, "].reserved is not 0");
    api::naming("options.groups", i, [&] {
      groups.push_back(
          {updaters.at(group.updater), api::strings(group.parameters, group.parameters_count, "parameters")});
    });
  }
  return {run.machine->machine->step(), updaters.at(options.updater), groups};
}

// Returns what must be equal in a training that continues another one, besides the topology.
nlohmann::json resume_description(const tn_train_options& options, const TrainingCall& run, const HeldReader& held,
                                  const UpdaterGroups& updaters, const Averages* averages) {
  using nlohmann::json;
  json names = json::array(), calls = json::array();
  for (const LayerOutput& output : run.outputs) names.push_back(output_name(output));
  const json plan = run.machine->machine->describe();
  for (const json& call : plan["calls"])
    calls.push_back(
        {{"phase", call["phase"]}, {"layers", call["layers"]}, {"call", call["call"]}, {"kernel", call["kernel"]}});
  const Device& device = *run.machine->machine->device();
  json reader = api::describe(*held.reader);
  reader["steps"] = held.steps;
  json result = {{"seed", options.seed},
                 {"outputs", names},
                 {"immutable_parameters", api::strings(options.immutable_parameters, options.immutable_parameters_count,
                                                       "options.immutable_parameters")},
                 {"feeding", run.request->slot_map},
                 {"updater", updaters.describe()},
                 {"reader", reader},
                 {"provider",
                  {{"device", device.kind()},
                   {"plugin", {{"id", device.origin().plugin}, {"version", device.origin().version}}},
                   {"calls", calls}}}};
  // Only where they are set: checkpoints of versions without them must stay equal.
  if (const size_t shards = run.machine->machine->shards(); shards > 1) result["provider"]["shards"] = shards;
  if (options.compute != TN_COMPUTE && options.compute != TN_F32)
    result["provider"]["compute"] = run.machine->machine->compute_name();
  if (run.bounded != nullptr) result["provider"]["mode"] = "bounded";
  if (options.pass_batches != 0) result["pass_batches"] = options.pass_batches;
  if (averages != nullptr) result["average"] = averages->describe();
  return result;
}

// Returns what a training that is recorded is made of. The plan's calls differ between processors that give equal bits.
nlohmann::json recorded_description(const tn_train_options& options, const TrainingCall& run,
                                    const UpdaterGroups& updaters, const Averages* averages) {
  nlohmann::json result = resume_description(options, run, *run.reader, updaters, averages);
  result.erase("provider");
  result["topology"] = Topology::trace(run.outputs).to_json();
  result["passes"] = options.passes;
  return result;
}

CheckpointOptions checkpoint_options(const tn_checkpoint_options& arguments) {
  CheckpointOptions options;
  options.folder = api::string(arguments.folder, "options.checkpoint.folder");
  options.every_batches = arguments.every_batches;
  options.every_passes = arguments.every_passes;
  options.every_seconds = arguments.every_seconds;
  if (arguments.keep != 0) options.keep = arguments.keep;
  if (arguments.best != nullptr) options.best = arguments.best;
  options.best_is_highest = arguments.best_is_highest != 0;
  constexpr Start kStarts[] = {Start::kFresh, Start::kResume, Start::kResumeInexactly, Start::kResumeOrFresh,
                               Start::kResumeInexactlyOrFresh};
  if (arguments.start >= std::size(kStarts))
    fail(TN_INVALID, SubjectName{"start"}, "options.checkpoint.start is ", arguments.start, "; expected TN_START_*");
  options.start = kStarts[arguments.start];
  if (arguments.from != nullptr) options.from = arguments.from;
  options.resume_with =
      api::strings(arguments.resume_with, arguments.resume_with_count, "options.checkpoint.resume_with");
  return options;
}

// The checkpoints of one call of tn_train, and what they borrow.
struct Saving {
  // measured: the values among which `best` must be.
  Saving(Host& host, const tn_train_options& arguments, const TrainingCall& run, const UpdaterGroups& updaters,
         Averages* averages, BestValues* best, const TestResult& measured)
      : options(checked(*arguments.checkpoint, measured)),
        topology(stored(host, run)),
        description(resume_description(arguments, run, *run.reader, updaters, averages)),
        checkpoints({*host.files, *host.clock, *run.machine->machine, run.request->deciding(), updaters,
                     run.request->reader, averages, best, arguments.test != nullptr, topology, host.registry,
                     run.team == nullptr || run.team->team->rank() == 0,
                     run.team == nullptr ? 0 : run.team->team->world().epoch(), description},
                    checkpoint_options(options)) {}

  // Checks before a resume, which changes the parameters.
  static tn_checkpoint_options checked(const tn_checkpoint_options& arguments, const TestResult& measured) {
    const tn_checkpoint_options options = api::sized(&arguments, "options.checkpoint");
    if (options.best != nullptr && *options.best != '\0') require_value(options.best, measured, "checkpoint", "best");
    return options;
  }

  // Returns the topology of the outputs that the application wants stored, and of those that are trained.
  [[nodiscard]] Topology stored(Host& host, const TrainingCall& run) const {
    std::vector<LayerOutput> outputs =
        api::outputs(host, options.outputs, options.outputs_count, "options.checkpoint.outputs");
    for (const LayerOutput& trained : run.outputs)
      if (std::none_of(outputs.begin(), outputs.end(), [&](const LayerOutput& other) {
            return other.layer == trained.layer && other.output == trained.output;
          }))
        outputs.push_back(trained);
    return Topology::trace(std::move(outputs));
  }

  const tn_checkpoint_options options;
  const Topology topology;
  const nlohmann::json description;
  Checkpoints checkpoints;
};

// What a training does besides training, as far as the options ask for it.
class Parts : tenon::base::NotCopied {
 public:
  Parts(Host& host, const tn_train_options& arguments, const TrainingCall& run, const UpdaterGroups& updaters) {
    if (arguments.average != nullptr) add_averages(host, arguments, run);
    if (arguments.test != nullptr) add_tests(host, arguments);
    const TestResult measured =
        tests_ ? tests_->nothing() : ResultSums(*run.machine->machine, host.registry).measured();
    if (arguments.early_stop != nullptr) add_early_stop(arguments, measured);
    if (arguments.best != nullptr) add_best(host, arguments, run, measured);
    if (arguments.checkpoint != nullptr) add_saving(host, arguments, run, updaters, measured);
  }

  [[nodiscard]] TrainingParts get() {
    return {saving_ ? &saving_->checkpoints : nullptr, pointer(tests_), pointer(early_stop_), pointer(averages_),
            averaged_ ? &averaged_->gate : nullptr,    pointer(best_)};
  }

 private:
  template <typename Part>
  static Part* pointer(std::optional<Part>& part) {
    return part ? &*part : nullptr;
  }
  void add_averages(Host& host, const tn_train_options& arguments, const TrainingCall& run) {
    const tn_average_options options = api::sized(arguments.average, "options.average");
    if (options.parameters.generation == 0)
      fail(TN_MISUSE, SubjectName{"options.average.parameters"}, "options.average.parameters is not set");
    AverageOptions wanted;
    if (options.decay != 0) wanted.decay = options.decay;
    wanted.window = options.window;
    wanted.begin = options.begin;
    averaged_ = host.parameters.at(options.parameters);
    averages_.emplace(run.parameters->set, averaged_->set, wanted, *host.pool.parallel());
    training_.emplace(averaged_->gate);
  }
  void add_tests(Host& host, const tn_train_options& arguments) {
    const tn_test_options options = api::sized(arguments.test, "options.test");
    if (options.batches < 0)
      fail(TN_INVALID, SubjectName{"batches"}, "test: batches is ", options.batches, "; expected at least 0");
    tn_train_options tested = arguments;
    if (options.outputs != nullptr) {
      tested.outputs = options.outputs;
      tested.outputs_count = options.outputs_count;
    }
    tested.reader = options.reader;
    tested.feeding = options.feeding;
    tested.feeding_count = options.feeding_count;
    tested.pass_batches = options.batches;
    if (arguments.average != nullptr) tested.parameters = arguments.average->parameters;
    try {
      test_run_ = prepare(host, tested, Purpose::kTest, "options.test");
    } catch (const Error& error) {
      throw error.with_context("test");
    }
    tests_.emplace(*test_run_.request, TestSchedule{options.every_passes, options.every_batches});
  }
  void add_early_stop(const tn_train_options& arguments, const TestResult& measured) {
    const tn_early_stop_options options = api::sized(arguments.early_stop, "options.early_stop");
    early_stop_.emplace(EarlyStopOptions{api::string(options.metric, "options.early_stop.metric"),
                                         options.best_is_highest != 0, options.patience, options.min_delta},
                        arguments.test != nullptr);
    early_stop_->check(measured);
  }

  void add_best(Host& host, const tn_train_options& arguments, const TrainingCall& run, const TestResult& measured) {
    const tn_best_options options = api::sized(arguments.best, "options.best");
    std::vector<BestValues::Copy> copies;
    const auto add = [&](const std::shared_ptr<HeldParameters>& source, tn_parameters set, const char* member) {
      const std::shared_ptr<HeldParameters>& target = best_sets_.emplace_back(host.parameters.at(set));
      if (source == nullptr)
        fail(TN_INVALID, SubjectName{member}, "best: averages is set; the training has no averages");
      if (!target->set->has_values())
        fail(TN_MISUSE, SubjectName{member}, member, " have no values: they were only declared");
      copies.push_back({source->set, &source->gate, target->set, &target->gate});
    };
    constexpr const char* kParameters = "options.best.parameters";
    if (options.parameters.generation == 0) fail(TN_MISUSE, SubjectName{kParameters}, kParameters, " is not set");
    add(run.parameters, options.parameters, kParameters);
    if (options.averages.generation != 0) add(averaged_, options.averages, "options.best.averages");
    const bool stated = options.metric != nullptr && *options.metric != '\0';
    best_.emplace(BestOptions{stated ? options.metric : "cost", options.best_is_highest != 0},
                  arguments.test != nullptr, std::move(copies));
    best_->check(measured);
    for (const auto& held : best_sets_) best_trainings_.push_back(std::make_unique<SetTraining>(held->gate));
  }

  // A resume replaces the values of the set, of its averages and of the best ones.
  void add_saving(Host& host, const tn_train_options& arguments, const TrainingCall& run, const UpdaterGroups& updaters,
                  const TestResult& measured) {
    const SetWrite write(run.parameters->gate);
    std::optional<SetWrite> write_averages;
    if (averaged_) write_averages.emplace(averaged_->gate);
    saving_.emplace(host, arguments, run, updaters, pointer(averages_), pointer(best_), measured);
  }

  std::shared_ptr<HeldParameters> averaged_;  // null: no averages
  std::optional<SetTraining> training_;       // of that set
  std::optional<Averages> averages_;
  TrainingCall test_run_;
  std::optional<Tests> tests_;
  std::optional<EarlyStop> early_stop_;
  std::vector<std::shared_ptr<HeldParameters>> best_sets_;
  std::vector<std::unique_ptr<SetTraining>> best_trainings_;  // of those
  std::optional<BestValues> best_;
  std::optional<Saving> saving_;
};

// Calls the application's handler and takes over what it has set.
void tell(Host& host, TrainingCall& run, const tn_train_options& options, Event& event) {
  const std::vector<tn_metric> metrics = table_of(event.metrics);
  tn_event told = {};
  told.size = sizeof told;
  told.kind = static_cast<int32_t>(event.kind);
  told.pass = event.pass;
  told.batch = event.batch;
  told.samples = event.samples;
  told.cost = event.cost;
  told.metrics = metrics.data();
  told.metrics_count = static_cast<uint32_t>(metrics.size());
  told.seconds = event.seconds;
  told.learning_rate = event.learning_rate;
  told.scheduled_rate = event.scheduled_rate;
  told.checkpoint = event.checkpoint.empty() ? nullptr : event.checkpoint.c_str();
  told.skipped = static_cast<uint32_t>(event.skipped);
  told.reason = static_cast<uint32_t>(event.reason);
  const std::vector<tn_metric> costs = table_of(event.costs);
  told.costs = costs.data();
  told.costs_count = static_cast<uint32_t>(costs.size());
  told.changes = event.changes.empty() ? nullptr : event.changes.c_str();
  told.repeated = event.repeated;
  told.torn = event.torn;
  told.best_pass = -1;
  if (event.best) {
    told.best = event.best->value;
    told.best_pass = event.best->pass;
    told.best_batch = event.best->batch;
  }
  lend_machine(host, run, Machine::Lending::kReading, [&](tn_machine machine) {
    told.machine = machine;
    options.handler(options.user, &told);
  });
  event.learning_rate = told.learning_rate;
  event.stop = told.stop != 0;
}

}  // namespace

tn_status tn_train(tn_host* host, const tn_train_options* options, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const tn_train_options arguments = api::sized(options, "options");
    if (arguments.updater.generation == 0)
      fail(TN_MISUSE, SubjectName{"options.updater"}, "options.updater is not set");
    TrainingCall run = prepare(owner, arguments, Purpose::kTraining);
    const UpdaterGroups updaters = updaters_of(owner, arguments, run);
    if (run.bounded != nullptr)
      run.bounded->add_parts(team_parts(owner.registry));
    else if (Team* const team = run.machine->machine->team())
      Agreement(team).require_equal_parts(team_parts(owner.registry));
    EventHandler handler;
    if (arguments.handler != nullptr) handler = [&](Event& event) { tell(owner, run, arguments, event); };
    const std::unique_ptr<TrainingRecord> record = training_record(owner, arguments, run);
    if (run.bounded != nullptr && run.bounded->core() == nullptr) return train(*run.request, updaters, handler);
    Parts parts(owner, arguments, run, updaters);
    if (record == nullptr) return train(*run.request, updaters, handler, parts.get());
    record->begin(recorded_description(arguments, run, updaters, parts.get().averages));
    train(
        *run.request, updaters,
        [&](Event& event) {
          record->tell(event);
          if (handler) handler(event);
        },
        parts.get());
    record->end();
  });
}

tn_status tn_test(tn_host* host, const tn_train_options* options, tn_test_result* result, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const tn_train_options arguments = api::sized(options, "options");
    api::sized(result, "result");
    const TrainingCall run = prepare(owner, alone(arguments), Purpose::kTest);
    TestResult tested = test(*run.request);
    const std::vector<tn_metric>& metrics = owner.lend(std::move(tested.metrics), Lent::kMetrics);
    const std::vector<tn_metric>& costs = owner.lend(std::move(tested.costs), Lent::kCosts);
    tn_test_result made = {};
    made.cost = tested.cost;
    made.samples = tested.samples;
    made.seconds = tested.seconds;
    made.metrics = metrics.data();
    made.metrics_count = static_cast<uint32_t>(metrics.size());
    made.costs = costs.data();
    made.costs_count = static_cast<uint32_t>(costs.size());
    api::give(result, "result", made);
  });
}

tn_status tn_test_measure(tn_host* host, const tn_train_options* options, tn_metrics_sink sink, void* user,
                          tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const tn_train_options arguments = api::sized(options, "options");
    api::required(sink, "sink");
    const TrainingCall run = prepare(owner, alone(arguments), Purpose::kTest);
    api::give_measured(test(*run.request), sink, user);
  });
}

tn_status tn_infer(tn_host* host, const tn_train_options* options,
                   int32_t (*sink)(void* user, const tn_array* outputs, uint32_t outputs_count), void* user,
                   tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const tn_train_options arguments = api::sized(options, "options");
    api::required(sink, "sink");
    const TrainingCall run = prepare(owner, alone(arguments), Purpose::kInference);
    infer(*run.request, [&](const Machine& machine) {
      std::vector<tn_array> arrays;
      for (const LayerOutput& output : run.outputs) arrays.push_back(api::array(machine.output(output)));
      return sink(user, arrays.data(), static_cast<uint32_t>(arrays.size())) == 0;
    });
  });
}

tn_status tn_cancel_create(tn_cancel** cancel, tn_error* error) {
  return api::guarded(error, [&] {
    tn_cancel*& to = api::required(cancel, "cancel");
    to = std::make_unique<tn_cancel>().release();
  });
}

void tn_cancel_request(tn_cancel* cancel) {
  if (cancel != nullptr) cancel->requested->store(true, std::memory_order_relaxed);
}

void tn_cancel_reset(tn_cancel* cancel) {
  if (cancel != nullptr) cancel->requested->store(false, std::memory_order_relaxed);
}

int32_t tn_cancel_is_requested(const tn_cancel* cancel) {
  return cancel != nullptr && cancel->requested->load(std::memory_order_relaxed) ? 1 : 0;
}

void tn_cancel_release(tn_cancel* cancel) { delete cancel; }
