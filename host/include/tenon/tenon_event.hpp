// Tenon's C++ API: the events of trainings, and their cancelling. Include <tenon/tenon.hpp>.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_EVENT_HPP
#define TENON_TENON_EVENT_HPP

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tenon/tenon_base.hpp>
#include <tenon/tenon_model.hpp>
#include <utility>
#include <vector>

namespace tenon {
inline namespace v0 {

// The best measurement so far of a training with TrainOptions::best.
struct BestMeasurement {
  double value = 0;
  int64_t pass = 0, batch = 0;  // passes, and minibatches of the next one, that were done
};

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
  // TN_BEGIN_TRAINING of a resume with CheckpointOptions::resume_with: what differs, one difference in each line.
  [[nodiscard]] std::string changes() const {
    return TN_HAS(event_, tn_event, changes) && event_->changes != nullptr ? event_->changes : "";
  }
  // Empty before the first measurement, and without TrainOptions::best.
  [[nodiscard]] std::optional<BestMeasurement> best() const {
    if (!TN_HAS(event_, tn_event, best_batch) || event_->best_pass < 0) return std::nullopt;
    return BestMeasurement{event_->best, event_->best_pass, event_->best_batch};
  }
  // In the bounded mode, minibatches of lost trainers so far: those that others have computed again, and of these the
  // ones of which some servers had applied the gradients before.
  [[nodiscard]] uint64_t repeated() const { return TN_HAS(event_, tn_event, repeated) ? event_->repeated : 0; }
  [[nodiscard]] uint64_t torn() const { return TN_HAS(event_, tn_event, torn) ? event_->torn : 0; }
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
// Its exceptions end the call and are rethrown.
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

}  // namespace v0
}  // namespace tenon
#endif
