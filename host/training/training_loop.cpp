// SPDX-License-Identifier: Apache-2.0
#include "host/training/training_loop.h"

#include <algorithm>
#include <utility>

#include "base/not_copied.h"
#include "core/attribute.h"
#include "core/error.h"
#include "host/training/averages.h"
#include "host/training/best_values.h"
#include "host/training/bounded/bounded_mode.h"
#include "host/training/bounded/bounded_rounds.h"
#include "host/training/checkpoints.h"
#include "host/training/data/data_digest.h"
#include "host/training/team/agreement.h"
#include "host/training/team/minibatches.h"
#include "host/training/validation.h"

namespace tenon::host {

Team* LoopInputs::deciding() const { return bounded == nullptr ? machine.team() : bounded->core(); }

namespace {

// Calls `step`, whose errors then begin with the place of the minibatch, counted from 1. pass: -1 in a run of one pass.
template <typename Step>
void at_minibatch(int64_t pass, int64_t batch, const Step& step) {
  try {
    step();
  } catch (const Error& error) {
    throw error.with_context(text(pass < 0 ? "" : text("pass ", pass + 1, ", "), "batch ", batch + 1));
  }
}

// One training run, with the state that events report.
class Training final : public BoundedTrainer::Observer {
 public:
  Training(const LoopInputs& inputs, const UpdaterGroups& updater, const EventHandler& handler,
           const TrainingParts& parts)
      : inputs_(inputs),
        updater_(updater),
        handler_(handler),
        checkpoints_(parts.checkpoints),
        tests_(parts.tests),
        early_stop_(parts.early_stop),
        averages_(parts.averages),
        averages_gate_(parts.averages_gate),
        best_(parts.best),
        agreement_(inputs.deciding()),
        feeder_(inputs.machine, inputs.reader.slots(), inputs.slot_map),
        minibatches_(inputs, feeder_,
                     {resumed() != nullptr, inputs.options.pass_batches > 0,
                      parts.checkpoints != nullptr && agreement_.leads(), !updater.calls_application()}),
        pass_sums_(inputs.machine, inputs.registry),
        batch_sums_(inputs.machine, inputs.registry) {
    feeder_.check_names(*inputs.machine.set());
    if (inputs.bounded != nullptr) rounds_.emplace(inputs, updater, feeder_, *this);
    pass_began_ = inputs_.clock.now();  // NOLINT(cppcoreguidelines-prefer-member-initializer): after the set-up
    if (const LoopState* from = resumed()) {
      pass_ = from->place.pass;
      batch_ = from->place.batch;
      amid_ = batch_ > 0;
      pass_sums_.set(from->sums);
      inputs_.machine.set_carried(from->carried);
      pass_began_ -= from->seconds;
      data_ = from->data;
      if (tests_ != nullptr) tests_->set(from->tests);
      if (early_stop_ != nullptr) early_stop_->set(from->early_stop);
    }
    if (averages_ != nullptr && resumed() == nullptr) begin_averages();
    reach(pass_, batch_);
  }
  ~Training() override {
    if (inputs_.team != nullptr) inputs_.team->set_step(-1);
  }

  void run() {
    try {
      train();
    } catch (...) {
      // The other trainers wait for what does not come.
      if (rounds_ && !rounds_->has_ended()) inputs_.bounded->all().world().abandon();
      throw;
    }
  }

 private:
  void train() {
    const int64_t passes = inputs_.options.passes;
    agree();
    bool going = send(EventKind::kBeginTraining, nullptr, checkpoints_ == nullptr ? "" : checkpoints_->resumed_from());
    going = going && go_on();
    for (; going && pass_ < passes; ++pass_) going = run_pass();
    pass_ = std::max<int64_t>(pass_ - 1, 0);
    if (checkpoints_ != nullptr) save();
    if (place_.pass >= passes) reason_ = Reason::kPasses;
    if (rounds_) rounds_->end(nullptr);
    send(EventKind::kEndTraining, &pass_sums_);
  }

  [[nodiscard]] const LoopState* resumed() const { return checkpoints_ == nullptr ? nullptr : checkpoints_->resumed(); }

  bool run_pass() {
    const bool amid = std::exchange(amid_, false);
    if (!amid) {
      pass_sums_.clear();
      inputs_.machine.reset_carried();
      pass_began_ = inputs_.clock.now();
      batch_ = 0;
    }
    bool going = send(EventKind::kBeginPass, amid ? &pass_sums_ : nullptr);
    if (rounds_) return going && run_rounds();
    for (; going; ++batch_) {
      if (inputs_.options.pass_batches > 0 && batch_ >= inputs_.options.pass_batches) return end_pass();
      if (read() == 0) {
        if (inputs_.options.pass_batches > 0) fail(TN_BAD_DATA, "a pass of the reader has no samples");
        return end_pass();
      }
      going = run_iteration() && go_on();
      if (going && checkpoints_ != nullptr && is_due_after_batch()) going = save();
    }
    return false;
  }

  // Runs the rounds of a pass of the bounded mode: each ends where a test or a checkpoint is due.
  bool run_rounds() {
    begin_data();
    if (batch_ == 0) {
      const SetWrite write(inputs_.gate);
      feeder_.keep_names(*inputs_.machine.set());
    }
    for (;;) {
      const int64_t first = batch_;
      run_round(std::min(tests_ == nullptr ? INT64_MAX : tests_->batches_left(),
                         checkpoints_ == nullptr ? INT64_MAX : checkpoints_->batches_left()));
      bool is_save_due = false;
      for (int64_t i = first; i < batch_; ++i) {
        if (tests_ != nullptr) tests_->count_batch();
        is_save_due = (checkpoints_ != nullptr && checkpoints_->is_due_after_batch()) || is_save_due;
      }
      is_save_due = is_save_due || (checkpoints_ != nullptr && checkpoints_->is_overdue());
      reach(pass_, batch_);
      if (round_.pass_has_ended != 0) return end_pass();
      bool going = settle() && go_on();
      if (going && agreement_.of_leader(is_save_due)) going = save();
      if (!going) return false;
    }
  }

  // most: minibatches.
  void run_round(int64_t most) {
    const int64_t first = batch_;
    has_computed_ = false;
    try {
      round_ = rounds_->run(first, most > INT64_MAX - first ? INT64_MAX : first + most);
    } catch (const Error& error) {
      try {
        rounds_->end(&error);
      } catch (const Error&) {  // the first failure is the one to report
      }
      throw;
    }
    batch_ = round_.next;
    pass_sums_.add(rounds_->results());
  }

  // Notes the first minibatch of a pass of the reader, which any trainer may read.
  void begin_data() {
    Reader& reader = inputs_.reader;
    if (checkpoints_ == nullptr || batch_ > 0) return;
    agreement_.together([&] {
      if (!agreement_.leads()) return;
      data_.pass = reader.pass();
      data_.xxh3 = digest_again(reader, data_, inputs_.machine.set()->allocator()).value_or("");
      reader.seek(data_.pass, 0);
    });
  }

  // Of minibatches of this process in the bounded mode: one that has begun is computed.
  void begin(const BoundedTask& task) override {
    batch_ = task.minibatch;
    bounded_rate_ = task.scheduled_rate;
    has_computed_ = true;
    if (has_handler()) tell(EventKind::kBeginIteration, {}, {});
  }
  void end(const BoundedTask& /*task*/) override {
    batch_sums_.clear();
    batch_sums_.add(inputs_.machine);
    if (has_handler()) tell(EventKind::kEndIteration, batch_sums_.measured(), {});
  }
  [[nodiscard]] bool drains() override {
    return !is_open() || (has_computed_ && checkpoints_ != nullptr && checkpoints_->is_overdue());
  }
  [[nodiscard]] double learning_rate() const override { return updater_.learning_rate(); }
  [[nodiscard]] bool is_open() const { return reason_ == Reason::kNone && !inputs_.is_cancelled(); }

  // Reads the next minibatch. If the reader fails, writes a checkpoint of the minibatches before.
  int64_t read() {
    inputs_.machine.drop_outputs();
    try {
      const int64_t samples = minibatches_.next();
      // The first one of a pass of the reader. Only checkpoints need the digest, which process 0 writes.
      const ReaderPlace place = minibatches_.place();
      if (checkpoints_ != nullptr && agreement_.leads() && samples > 0 && place.position == samples)
        data_ = {place.pass, digest_of(inputs_.minibatch)};
      return samples;
    } catch (const Error&) {
      try {
        if (checkpoints_ != nullptr) save();
      } catch (const Error&) {  // the first failure is the one to report
      }
      throw;
    }
  }

  bool end_pass() {
    reach(pass_ + 1, 0);
    if (tests_ != nullptr) tests_->count_pass(pass_ + 1);
    bool going = send(EventKind::kEndPass, &pass_sums_);
    if (tests_ == nullptr && (checkpoints_ != nullptr || early_stop_ != nullptr || best_ != nullptr))
      judge(pass_sums_.measured());
    going = going && go_on();
    return going && (checkpoints_ == nullptr || !checkpoints_->is_due_after_pass(pass_ + 1) || save());
  }

  // Makes the test that is due. Returns false if the training is to end.
  bool go_on() {
    if (tests_ != nullptr && tests_->is_due()) {
      const std::optional<TestResult> result = tests_->run();
      if (!result) return is_going();
      send(EventKind::kTest, *result);
      judge(*result);
    }
    if (reason_ == Reason::kNone && early_stop_ != nullptr && early_stop_->is_over()) reason_ = Reason::kEarly;
    return is_going();
  }

  // Takes a measurement of the parameters: of a test, or without tests of a pass.
  void judge(const TestResult& measured) {
    if (early_stop_ != nullptr) early_stop_->take(measured);
    if (best_ != nullptr) best_->take(measured, place_);
    if (checkpoints_ == nullptr) return;
    if (rounds_) rounds_->share_states();
    checkpoints_->keep_best(measured, state());
  }

  // Notes the place between the minibatches that are done and the next one.
  void reach(int64_t pass, int64_t batch) {
    const ReaderPlace place = minibatches_.place();
    place_ = {pass, batch, place.pass, place.position};
    if (inputs_.team != nullptr) inputs_.team->set_step(static_cast<int64_t>(inputs_.machine.set()->updates()));
  }
  [[nodiscard]] LoopState state() const {
    return {place_,
            inputs_.clock.now() - pass_began_,
            pass_sums_.sums(),
            inputs_.machine.carried(),
            tests_ == nullptr ? TestState{} : tests_->state(),
            early_stop_ == nullptr ? EarlyStopState{} : early_stop_->state(),
            data_};
  }
  // Writes a checkpoint of the place reached, unless there is one. Returns false if the handler asks to stop.
  bool save() {
    if (rounds_) rounds_->share_states();
    const std::string written = checkpoints_->write(state());
    return written.empty() || send(EventKind::kCheckpoint, nullptr, written);
  }

  void begin_averages() {
    const SetWrite write(*averages_gate_);
    averages_->begin();
  }

  void update_averages() {
    const SetWrite write(*averages_gate_);
    averages_->update();
    if (batch_ == 0) averages_->take_names();
  }

  bool run_iteration() {
    if (!send(EventKind::kBeginIteration, nullptr)) return false;
    if (batch_ + 1 != inputs_.options.pass_batches) minibatches_.look_ahead();
    at_minibatch(pass_, batch_, [this] {
      std::optional<SetWrite> step(inputs_.gate);
      minibatches_.forward_backward();
      if (updater_.calls_application()) {
        step.reset();
        updater_.prepare(inputs_.machine.step());
        step.emplace(inputs_.gate);
      }
      updater_.update(inputs_.machine.step());
      inputs_.machine.step().commit(all_);
      if (batch_ == 0) feeder_.keep_names(*inputs_.machine.set());
      if (averages_ != nullptr) update_averages();
    });
    if (is_verification_due()) agreement_.require_equal_values(*inputs_.machine.set());
    if (tests_ != nullptr) tests_->count_batch();
    batch_sums_.clear();
    batch_sums_.add(inputs_.machine);
    pass_sums_.add(inputs_.machine);
    reach(pass_, batch_ + 1);
    return send(EventKind::kEndIteration, &batch_sums_);
  }

  // The processes of a team must train alike, from the same place, values and data.
  void agree() {
    if (agreement_.is_alone()) return;
    const ParameterSet& set = *inputs_.machine.set();
    const Reader& reader = inputs_.reader;
    const bool parts[] = {tests_ != nullptr, early_stop_ != nullptr,  averages_ != nullptr,
                          best_ != nullptr,  checkpoints_ != nullptr, updater_.calls_application()};
    std::string training =
        text(set.updates(), ' ', pass_, ' ', batch_, ' ', inputs_.options.passes, ' ', inputs_.options.pass_batches,
             ' ', inputs_.machine.shards(), ' ', inputs_.deciding()->servers());
    for (const bool part : parts) training += part ? '+' : '-';
    training += updater_.describe().dump() + inputs_.machine.describe()["calls"].dump();
    agreement_.require_equal(text(pass_, ' ', batch_), "another checkpoint to resume from, or none,");
    agreement_.require_equal(training, "another job, or another place in it,");
    agreement_.require_equal(text(reader.pass(), ' ', reader.position(), ' ', reader.batch(), ' ', reader.size()),
                             "other data");
    agreement_.require_equal(digest_of(set), "other values of parameters");  // of another start, not a fault
  }

  [[nodiscard]] bool is_verification_due() const {
    const int64_t every = inputs_.options.verify_every;
    return every > 0 && inputs_.machine.set()->updates() % static_cast<uint64_t>(every) == 0;
  }

  [[nodiscard]] bool is_due_after_batch() {
    const bool due = checkpoints_->is_due_after_batch();
    return checkpoints_->is_timed() ? agreement_.of_leader(due) : due;
  }

  // Calls the handler. Returns false if the training is to end: the handler asks to stop, or it is cancelled.
  bool send(EventKind kind, const ResultSums* sums, const std::string& checkpoint = {}) {
    if (!has_handler()) return settle();
    if (sums == nullptr) return send(kind, TestResult(), checkpoint);
    return send(kind, sums->measured(), checkpoint);
  }
  bool send(EventKind kind, const TestResult& result, const std::string& checkpoint = {}) {
    if (has_handler()) tell(kind, result, checkpoint);
    return settle();
  }
  [[nodiscard]] bool has_handler() const { return handler_ && agreement_.leads(); }

  // What process 0 has decided after an event.
  struct Verdict {
    Reason reason;
    bool has_written;  // the handler, parameters
    double learning_rate;
  };
  bool settle() {
    if (agreement_.is_alone()) return is_going();
    if (reason_ == Reason::kNone && inputs_.is_cancelled()) reason_ = Reason::kCancel;
    const Verdict verdict =
        agreement_.of_leader(Verdict{reason_, std::exchange(has_written_, false), updater_.learning_rate()});
    reason_ = verdict.reason;
    if (verdict.has_written) minibatches_.recall_rows();
    if (verdict.learning_rate != updater_.learning_rate()) updater_.set_learning_rate(verdict.learning_rate);
    return is_going();
  }
  // In a team a cancel counts at the next event.
  [[nodiscard]] bool is_going() {
    if (agreement_.is_alone() && reason_ == Reason::kNone && inputs_.is_cancelled()) reason_ = Reason::kCancel;
    return reason_ == Reason::kNone;
  }

  // Calls the handler and applies what it sets.
  void tell(EventKind kind, const TestResult& result, const std::string& checkpoint) {
    Event event;
    event.kind = kind;
    event.checkpoint = checkpoint;
    if (kind == EventKind::kEndTraining) event.reason = reason_;
    if (kind == EventKind::kBeginTraining && checkpoints_ != nullptr) event.changes = checkpoints_->changes();
    if (best_ != nullptr) event.best = best_->best();
    event.pass = pass_;
    event.batch = batch_;
    event.learning_rate = updater_.learning_rate();
    event.scheduled_rate = bounded_rate_.value_or(updater_.scheduled_rate(inputs_.machine.set()));
    event.repeated = static_cast<uint64_t>(round_.repeated);
    event.torn = static_cast<uint64_t>(round_.torn);
    event.skipped = updater_.skipped(inputs_.machine.set());
    event.seconds = kind == EventKind::kTest ? result.seconds : inputs_.clock.now() - pass_began_;
    event.samples = result.samples;
    event.cost = result.cost;
    event.metrics = result.metrics;
    event.costs = result.costs;
    const std::optional<uint64_t> version = inputs_.gate.version();
    handler_(event);
    has_written_ = inputs_.gate.version() != version;
    if (has_written_ && rounds_)
      fail(TN_UNSUPPORTED, SubjectName{"handler"},
           "a handler has written parameters, which servers have in the bounded mode; train in the exact mode, without "
           "staleness");
    if (event.learning_rate != updater_.learning_rate()) updater_.set_learning_rate(event.learning_rate);
    if (event.stop && reason_ == Reason::kNone) reason_ = Reason::kHandler;
  }

  const LoopInputs& inputs_;
  const UpdaterGroups& updater_;
  const EventHandler& handler_;
  Checkpoints* const checkpoints_;  // these six: null if it has none
  Tests* const tests_;
  EarlyStop* const early_stop_;
  Averages* const averages_;
  SetGate* const averages_gate_;
  BestValues* const best_;
  const Agreement agreement_;
  Feeder feeder_;
  Minibatches minibatches_;
  ResultSums pass_sums_, batch_sums_;
  const UsedNames all_;
  int64_t pass_ = 0, batch_ = 0;
  bool amid_ = false;  // resumed in the middle of a pass, which has not gone on yet
  double pass_began_ = 0;
  TrainingPlace place_;
  DataDigest data_;
  Reason reason_ = Reason::kNone;
  std::optional<BoundedRounds> rounds_;  // of the bounded mode
  BoundedServer::Round round_;           // the last one
  std::optional<double> bounded_rate_;   // of the minibatch of this process, by the schedule
  bool has_computed_ = false;            // a minibatch, in this round
  bool has_written_ = false;             // whether the last handler has written parameters
};

// Calls `each` after the forward of every minibatch of one pass, until it returns false. Throws TN_CANCELLED if it is
// cancelled.
template <typename Each>
void one_pass(const LoopInputs& inputs, Each&& each) {
  Feeder feeder(inputs.machine, inputs.reader.slots(), inputs.slot_map);
  {
    const SetRead read(inputs.gate);
    feeder.check_names(*inputs.machine.set());
  }
  inputs.machine.reset_carried();
  Minibatches minibatches(inputs, feeder);
  for (int64_t batch = 0; inputs.options.pass_batches == 0 || batch < inputs.options.pass_batches; ++batch) {
    if (inputs.machine.team() == nullptr && inputs.is_cancelled())
      fail(TN_CANCELLED, "cancelled after ", batch, " minibatches");
    if (minibatches.next() == 0) return;
    at_minibatch(-1, batch, [&] { minibatches.forward(inputs.gate); });
    if (!each()) return;
  }
}

}  // namespace

void train(const LoopInputs& inputs, const UpdaterGroups& updater, const EventHandler& handler,
           const TrainingParts& parts) {
  if (inputs.bounded != nullptr) prepare_bounded(inputs, updater, parts.averages != nullptr);
  if (inputs.bounded != nullptr && inputs.bounded->core() == nullptr) return train_bounded(inputs, updater);
  Training(inputs, updater, handler, parts).run();
}

TestResult test(const LoopInputs& inputs) {
  ResultSums result(inputs.machine, inputs.registry);
  const double began = inputs.clock.now();
  one_pass(inputs, [&] {
    result.add(inputs.machine);
    return true;
  });
  TestResult measured = result.measured();
  measured.seconds = inputs.clock.now() - began;
  return measured;
}

void infer(const LoopInputs& inputs, const std::function<bool(const Machine&)>& sink) {
  one_pass(inputs, [&] { return sink(inputs.machine); });
}

}  // namespace tenon::host
