// SPDX-License-Identifier: Apache-2.0
#include "host/cli/bench/measure.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "host/cli/job/fit.h"
#include "host/cli/job/topology.h"
#include "host/cli/planning.h"
#include "host/cli/training.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

constexpr size_t kWarmUp = 3;  // steps that allocate, plan again for longer sequences, and fill caches
constexpr size_t kLeast = 5;   // steps that count

// Takes the events of a training and ends it.
class Recorder {
 public:
  Recorder(const JobReader& reader, double seconds, const SecondsClock& clock)
      : reader_(reader), seconds_(seconds), clock_(clock) {}

  void take(Event& event) {
    switch (event.kind()) {
      case TN_BEGIN_ITERATION:
        step_began_ = clock_();
        if (ended_ > 0 && steps_ > kWarmUp) times.reading.push_back(step_began_ - ended_);
        break;
      case TN_END_ITERATION: {
        ended_ = clock_();
        if (steps_++ >= kWarmUp) {
          times.steps.push_back(ended_ - step_began_);
          times.samples += event.samples();
        }
        if (times.steps.size() >= kLeast && ended_ - began_ >= seconds_) {
          times.plan = json::parse(event.machine().plan());
          event.stop();
        }
        if (steps_ == kWarmUp) {
          times.warm = json::parse(event.machine().plan());
          began_ = ended_;
        }
        break;
      }
      case TN_END_PASS:
        require_samples(reader_, event.samples());
        ended_ = 0;  // what comes before the next step is the begin of a pass
        break;
      default:
        break;
    }
  }

  StepTimes times;

 private:
  const JobReader& reader_;
  const double seconds_;
  const SecondsClock& clock_;
  size_t steps_ = 0;
  double began_ = 0, step_began_ = 0, ended_ = 0;
};

// Reads and writes parameters and states, and reads gradients, as the last update did.
double bytes_of_update(const TrainOptions& options, uint64_t parameter_bytes) {
  double bytes = 0;
  const auto add = [&](const Updater& updater) {
    const json described = json::parse(updater.describe(options.parameters));
    const double written = described.at("last_update").at("bytes_written").get<double>();
    const double states = described.at("state_bytes").get<double>(), all = static_cast<double>(parameter_bytes);
    const double of_gradient = all + states == 0 ? 0 : all / (all + states);  // has the size of its parameter
    bytes += written * (2 + of_gradient);
  };
  add(options.updater);
  for (const UpdaterGroup& group : options.groups) add(group.updater);
  return bytes;
}

}  // namespace

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

StepTimes measure_steps(const Host& host, const Job& job, double seconds, const SecondsClock& clock) {
  const JobReader& reader = reader_of(job, "train");
  const OpenReader open = open_reader(host, job, reader, false);
  Topology topology(host, job, reader, open);
  TrainOptions options = training_of(host, job, open, topology);
  require_samples(reader, open.samples);
  options.parameters = host.parameters(topology.layers(topology.outputs()), static_cast<uint64_t>(job.seed));
  options.immutable_parameters = immutable_parameters(job, topology, options.parameters);
  options.passes = std::numeric_limits<int32_t>::max();
  Recorder recorder(reader, seconds, clock);
  options.handler = [&](Event& event) { recorder.take(event); };
  topology.placed([&] { train(options); });
  StepTimes times = std::move(recorder.times);
  times.batch = open.batch;
  times.update_bytes = bytes_of_update(options, times.plan.at("bytes").at("parameters").get<uint64_t>());
  return times;
}

namespace {

// What the calls of a training measured between two plans; of a machine that was planned anew, since the second began.
class MeasuredCalls {
 public:
  explicit MeasuredCalls(const StepTimes& timed)
      : calls_(timed.plan.at("calls")),
        warm_(timed.warm.at("calls")),
        replaced_(warm_.size() != calls_.size() || runs(calls_.front()) <= runs(warm_.front())) {
    for (size_t i = 0; i < calls_.size(); ++i)
      if (!calls_[i].contains("loop")) steps_ = std::max(steps_, of(i, "runs"));
  }
  [[nodiscard]] const json& calls() const { return calls_; }
  // Of all steps.
  [[nodiscard]] double of(size_t call, const char* key) const {
    const double all = calls_[call].at("measured").at(key).get<double>();
    return replaced_ ? all : all - warm_[call].at("measured").at(key).get<double>();
  }
  [[nodiscard]] double per_step(size_t call, const char* key) const { return of(call, key) / std::max(1.0, steps_); }

 private:
  static int64_t runs(const json& call) { return call.at("measured").at("runs").get<int64_t>(); }
  const json &calls_, &warm_;
  bool replaced_ = false;
  double steps_ = 0;
};

}  // namespace

std::vector<Part> parts_of(const StepTimes& timed, const Limits& limits) {
  const MeasuredCalls measured(timed);
  std::map<std::array<std::string, 3>, Part> parts;
  double in_calls = 0;
  for (size_t i = 0; i < measured.calls().size(); ++i) {
    const json& call = measured.calls()[i];
    const std::string phase = call.at("phase"), layers = joined(call.at("layers")), kernel = call.at("kernel");
    Part& part = parts[{phase, layers, kernel}];
    part.phase = phase;
    part.layers = layers;
    part.kernel = kernel;
    ++part.calls;
    const double operations = measured.per_step(i, "operations"), bytes = measured.per_step(i, "bytes");
    part.seconds += measured.per_step(i, "seconds");
    part.operations += operations;
    part.bytes += bytes;
    part.limit += std::max(operations / limits.operations, bytes / limits.bandwidth);
    in_calls += measured.per_step(i, "seconds");
  }
  std::vector<Part> result;
  for (auto& [key, part] : parts) result.push_back(std::move(part));
  const double step =
      std::accumulate(timed.steps.begin(), timed.steps.end(), 0.0) / static_cast<double>(timed.steps.size());
  result.push_back({"update", "-", "-", 1, std::max(0.0, step - in_calls), 0, timed.update_bytes,
                    timed.update_bytes / limits.bandwidth});
  std::stable_sort(result.begin(), result.end(), [](const Part& a, const Part& b) { return a.seconds > b.seconds; });
  return result;
}

double quantile(std::vector<double> numbers, double share) {
  if (numbers.empty()) return 0;
  const auto place = static_cast<size_t>(std::lround(share * static_cast<double>(numbers.size() - 1)));
  std::nth_element(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(place), numbers.end());
  return numbers[place];
}

}  // namespace tenon::cli
