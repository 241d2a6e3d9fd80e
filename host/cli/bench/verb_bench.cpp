// tenon bench: the times of a job's steps and layers, beside what the machine can do.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "host/cli/bench/measure.h"
#include "host/cli/bench/probe.h"
#include "host/cli/console.h"
#include "host/cli/options.h"
#include "host/cli/table.h"
#include "host/cli/verbs.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

struct BenchArguments {
  JobOptions common;
  double seconds = 3;
  bool as_json = false;
};

// Four digits at most: "0.3172", "31.72", "3172".
std::string figure(double number) {
  char text[32];
  const int digits = number >= 1000 ? 0 : number >= 100 ? 1 : number >= 10 ? 2 : number >= 1 ? 3 : 4;
  (void)std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

std::string in_ms(double seconds) { return figure(1e3 * seconds); }

std::string percent(double part, double whole) {
  return whole > 0 ? std::to_string(static_cast<int64_t>(100 * part / whole + 0.5)) + " %" : "-";
}

// No step is faster than the machine. A share above this, with room for a noisy clock, is the fault of the probe.
constexpr double kMostReached = 1.02;

class Bench {
 public:
  Bench(const BenchArguments& given, const Job& job) {
    const Host host = given.common.host(job);
    threads_ = host.count().threads;
    plain_ = measure_steps(host, job, given.seconds);
    timed_ = measure_steps(given.common.host(job, true), job, given.seconds);
    limits_ = limits_of(job.compute == TN_BF16);
    parts_ = parts_of(timed_, limits_);
    for (const Part& part : parts_) limit_ += part.limit;
    step_ = quantile(plain_.steps, 0.5);
    if (limit_ > kMostReached * step_)
      throw Failure(kSystem, "the probe of this machine gave less than the job reached (" + percent(limit_, step_) +
                                 "): other programs disturb it; run it again without them");
  }

  [[nodiscard]] json object() const {
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
    return {
        {"threads", threads_},
        {"batch", plain_.batch},
        {"steps", plain_.steps.size()},
        {"samples_per_second", samples_per_second()},
        {"step", quantiles(plain_.steps)},
        {"reading", quantiles(plain_.reading)},
        {"machine", {{"operations", limits_.operations}, {"bandwidth", limits_.bandwidth}, {"bytes", working_set()}}},
        {"limit", limit_},
        {"reached", limit_ / step_},
        {"parts", parts}};
  }

  void print(const std::string& job) const {
    std::cout << plain(job) << ": minibatches of at most " << plain_.batch << " samples, " << threads_
              << (threads_ == 1 ? " thread, " : " threads, ") << plain_.steps.size() << " steps\n\n";
    Table summary({"", ">ms", ">10 % below", ">90 % below", ""});
    const auto times = [&](const char* name, const std::vector<double>& of, const std::string& more) {
      summary.row({name, in_ms(quantile(of, 0.5)), in_ms(quantile(of, 0.1)), in_ms(quantile(of, 0.9)), more});
    };
    times("step", plain_.steps, figure(samples_per_second()) + " samples/s, reading included");
    times("reading", plain_.reading, "wait for the reader between two steps");
    summary.row({"limit", in_ms(limit_), "", "",
                 percent(limit_, step_) + " reached; this machine: " + figure(1e-9 * limits_.operations) +
                     " GFLOP/s, " + figure(1e-9 * limits_.bandwidth) + " GB/s over " +
                     shown_bytes(static_cast<uint64_t>(working_set()))});
    summary.print(std::cout);
    std::cout << "\n";
    const double whole = timed_step();
    Table table({"phase", "layers", "kernel", ">calls", ">ms", ">share", ">GFLOP/s", ">GB/s", ">of limit"});
    for (const Part& part : parts_)
      table.row({part.phase, part.layers, part.kernel, std::to_string(part.calls), in_ms(part.seconds),
                 percent(part.seconds, whole), rate(part.operations, part.seconds), rate(part.bytes, part.seconds),
                 percent(part.limit, part.seconds)});
    table.print(std::cout, output_width());
    std::cout << "\n\"update\" has the copies of feeds too. The times of parts come from a run that times each call: "
              << in_ms(whole) << " ms a step.\n";
  }

 private:
  [[nodiscard]] Limits limits_of(bool bf16) const {
    return {bf16 ? peak_bf16_operations(threads_) : peak_operations(threads_), peak_bandwidth(threads_, working_set())};
  }
  static std::string rate(double amount, double seconds) {
    return amount > 0 && seconds > 0 ? figure(1e-9 * amount / seconds) : "-";
  }
  static json quantiles(const std::vector<double>& times) {
    return {{"median", quantile(times, 0.5)}, {"p10", quantile(times, 0.1)}, {"p90", quantile(times, 0.9)}};
  }
  [[nodiscard]] double timed_step() const {
    double sum = 0;
    for (const Part& part : parts_) sum += part.seconds;
    return sum;
  }
  [[nodiscard]] double samples_per_second() const {
    const double mean = static_cast<double>(plain_.samples) / static_cast<double>(plain_.steps.size());
    return mean / (step_ + quantile(plain_.reading, 0.5));
  }
  // The bytes that a step goes through: parameters, their states, and the memory of the machine.
  [[nodiscard]] int64_t working_set() const {
    const json& bytes = plain_.plan.at("bytes");
    return std::clamp<int64_t>(bytes.at("machine").get<int64_t>() + bytes.at("parameters").get<int64_t>(), 1 << 20,
                               256 << 20);
  }

  int threads_ = 1;
  StepTimes plain_, timed_;
  Limits limits_;
  std::vector<Part> parts_;
  double limit_ = 0, step_ = 0;
};

}  // namespace

int run_bench(const Arguments& arguments) {
  BenchArguments given;
  Options options("bench", {"JOB.toml"},
                  "Trains the job for a few seconds and shows how long a step takes, which layers take the time, and\n"
                  "how near each is to what this machine can do. Nothing is saved. The limit of a part is the time of\n"
                  "its operations at the peak of fused multiply-adds, or of its bytes at the bandwidth of memory,\n"
                  "whichever is longer; both are measured in the same run. Stop other programs first.");
  namespace po = boost::program_options;
  const auto positive = [&options](double seconds) {
    if (!(seconds > 0 && seconds <= 3600)) options.fail("--seconds: expected a number above 0, at most 3600");
  };
  options.list.add_options()("seconds", po::value(&given.seconds)->value_name("S")->notifier(positive),
                             "how long each of the two runs is to last (3)")(
      "json", po::bool_switch(&given.as_json), "print JSON, as docs/benchmarks.md describes it");
  given.common.add_to(options);
  if (!options.parse(arguments)) return kDone;
  const Job job = given.common.load(options, options.operand(0));
  const Bench bench(given, job);
  if (given.as_json)
    std::cout << bench.object().dump(2) << "\n";
  else
    bench.print(job.path);
  return kDone;
}

}  // namespace tenon::cli
