// Tenon's C++ API: training, testing, inference. Include <tenon/tenon.hpp>. SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_TRAINING_HPP
#define TENON_TENON_TRAINING_HPP

#include <cstdint>
#include <functional>
#include <string>
#include <tenon/tenon_base.hpp>
#include <tenon/tenon_event.hpp>
#include <tenon/tenon_model.hpp>
#include <tenon/tenon_option_lists.hpp>
#include <tenon/tenon_reader.hpp>
#include <tenon/tenon_training_options.hpp>
#include <vector>

namespace tenon {
inline namespace v0 {

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
class Run : public CallbackFailure {
 public:
  explicit Run(const TrainOptions& options) : handler_(options.handler), host_(options.parameters.host_ref()) {
    fill(options_, options, lists_);
    options_.user = this;
    if (handler_) options_.handler = [](void* user, tn_event* event) { static_cast<Run*>(user)->handle(event); };
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  [[nodiscard]] const tn_train_options* get() const { return &options_; }

 private:
  void handle(tn_event* event) {
    const bool sound = keep([&] {
      Event wrapped(event, host_);
      handler_(wrapped);
    });
    if (!sound) event->stop = 1;
  }

  const EventHandler& handler_;
  HostRef host_;
  OptionLists lists_;
  tn_train_options options_ = {};
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
    return to.run.keep([&] { return to.sink(detail::arrays_from(outputs, count)); }) ? 0 : 1;
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
