// SPDX-License-Identifier: Apache-2.0
#include "host/cli/bench/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/text.h"
#include "host/cli/bench/probe.h"
#include "host/cli/bench/quiet.h"
#include "host/cli/cli.h"
#include "host/cli/console.h"
#include "host/cli/table.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

// Four digits at most: "0.3172", "31.72", "3172".
std::string figure(double number) {
  char text[32];
  const int digits = number >= 1000 ? 0 : number >= 100 ? 1 : number >= 10 ? 2 : number >= 1 ? 3 : 4;
  (void)std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

std::string in_ms(double seconds) { return figure(1e3 * seconds); }

std::string percent(double part, double whole) {
  return whole > 0 ? std::to_string(std::lround(100 * part / whole)) + " %" : "-";
}

// No step is faster than the machine. A share above this, with room for a noisy clock, is the fault of the probe.
constexpr double kMostReached = 1.02;

// Other numbers of threads are faster or slower by at least this part of a step.
constexpr double kClearly = 0.03;

std::string counted_threads(int threads) { return std::to_string(threads) + (threads == 1 ? " thread" : " threads"); }

std::string rate(double amount, double seconds) {
  return amount > 0 && seconds > 0 ? figure(1e-9 * amount / seconds) : "-";
}

json quantiles(const std::vector<double>& times) {
  return {{"median", quantile(times, 0.5)}, {"p10", quantile(times, 0.1)}, {"p90", quantile(times, 0.9)}};
}

}  // namespace

int64_t working_set(const json& plan) {
  const json& bytes = plan.at("bytes");
  return std::clamp<int64_t>(bytes.at("machine").get<int64_t>() + bytes.at("parameters").get<int64_t>(), 1 << 20,
                             256 << 20);
}

BenchReport::BenchReport(int threads, StepTimes plain, const StepTimes& timed, const Limits& limits, OtherThreads other)
    : threads_(threads),
      plain_(std::move(plain)),
      limits_(limits),
      other_(std::move(other)),
      parts_(parts_of(timed, limits)),
      step_(quantile(plain_.steps, 0.5)) {
  for (const Part& part : parts_) limit_ += part.limit;
  if (limit_ > kMostReached * step_)
    throw Failure(kSystem, "the probe of this machine gave less than the job reached (" + percent(limit_, step_) +
                               "): other programs disturb it; run it again without them");
}

json BenchReport::object() const {
  json parts = json::array();
  for (const Part& part : parts_)
    parts.push_back({{"phase", part.phase},
                     {"layers", part.layers},
                     {"kernel", part.kernel},
                     {"calls", part.calls},
                     {"seconds", part.seconds},
                     {"operations", part.operations},
                     {"bytes", part.bytes},
                     {"limit", part.limit}});
  const std::vector<std::string> disturbed = disturbances(plain_);
  json other;
  if (other_.threads > 0) other = {{"threads", other_.threads}, {"step", quantiles(other_.steps)}};
  return {{"threads", threads_},
          {"best_threads", best_threads()},
          {"other_threads", other},
          {"batch", plain_.batch},
          {"steps", plain_.steps.size()},
          {"samples_per_second", samples_per_second()},
          {"step", quantiles(plain_.steps)},
          {"reading", quantiles(plain_.reading)},
          {"machine",
           {{"operations", limits_.operations},
            {"bandwidth", limits_.bandwidth},
            {"bytes", working_set(plain_.plan)},
            {"round_trip", limits_.round_trip}}},
          {"limit", limit_},
          {"reached", disturbed.empty() ? json(limit_ / step_) : json()},
          {"disturbed", disturbed},
          {"parts", parts}};
}

void BenchReport::print(std::ostream& to, const std::string& job, size_t width) const {
  to << plain(job) << ": minibatches of at most " << plain_.batch << " samples, " << counted_threads(threads_) << ", "
     << plain_.steps.size() << " steps\n\n";
  Table summary({"", ">ms", ">10 % below", ">90 % below", ""});
  const auto times = [&](const std::string& name, const std::vector<double>& of, const std::string& more) {
    summary.row({name, in_ms(quantile(of, 0.5)), in_ms(quantile(of, 0.1)), in_ms(quantile(of, 0.9)), more});
  };
  times("step", plain_.steps, figure(samples_per_second()) + " samples/s, reading included");
  times("reading", plain_.reading, "wait for the reader between two steps");
  if (other_.threads > 0) times(counted_threads(other_.threads), other_.steps, beside_other());
  const std::vector<std::string> disturbed = disturbances(plain_);
  std::string reached = percent(limit_, step_) + " reached";
  if (!disturbed.empty()) reached = "not quiet: " + base::joined(disturbed, {}, " and ");
  summary.row({"limit", in_ms(limit_), "", "", reached + "; " + of_machine()});
  summary.print(to);
  to << "\n";
  const double whole = timed_step();
  Table table({"phase", "layers", "kernel", ">calls", ">ms", ">share", ">GFLOP/s", ">GB/s", ">of limit"});
  for (const Part& part : parts_)
    table.row({part.phase, part.layers, part.kernel, std::to_string(part.calls), in_ms(part.seconds),
               percent(part.seconds, whole), rate(part.operations, part.seconds), rate(part.bytes, part.seconds),
               percent(part.limit, part.seconds)});
  table.print(to, width);
  to << "\n\"update\" has the copies of feeds too. The times of parts come from a run that times each call: "
     << in_ms(whole) << " ms a step.\n";
}

std::string BenchReport::of_machine() const {
  std::string text = "this machine: " + figure(1e-9 * limits_.operations) + " GFLOP/s, " +
                     figure(1e-9 * limits_.bandwidth) + " GB/s over " +
                     shown_bytes(static_cast<uint64_t>(working_set(plain_.plan)));
  if (limits_.round_trip > 0)
    text += ", cores " + std::to_string(std::lround(1e9 * limits_.round_trip)) + " ns apart (" +
            (limits_.round_trip < kNearSeconds ? "near" : "far") + ")";
  return text;
}

std::string BenchReport::beside_other() const {
  if (best_threads() == other_.threads) return "faster: --threads " + std::to_string(other_.threads);
  return quantile(other_.steps, 0.5) > (1 + kClearly) * step_ ? "slower" : "as fast";
}

int BenchReport::best_threads() const {
  return other_.threads > 0 && quantile(other_.steps, 0.5) < (1 - kClearly) * step_ ? other_.threads : threads_;
}

double BenchReport::timed_step() const {
  double sum = 0;
  for (const Part& part : parts_) sum += part.seconds;
  return sum;
}

double BenchReport::samples_per_second() const {
  const double mean = static_cast<double>(plain_.samples) / static_cast<double>(plain_.steps.size());
  return mean / (step_ + quantile(plain_.reading, 0.5));
}

}  // namespace tenon::cli
