// tenon bench: the times of a job's steps and layers, beside what the machine can do.
// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <utility>

#include "base/usable_cores.h"
#include "host/cli/bench/measure.h"
#include "host/cli/bench/probe.h"
#include "host/cli/bench/quiet.h"
#include "host/cli/bench/report.h"
#include "host/cli/console.h"
#include "host/cli/late_refusals.h"
#include "host/cli/options.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

namespace {

struct BenchArguments {
  JobOptions common;
  double seconds = 3;
  bool as_json = false;
};

// Measures the job with one thread if `threads` are more, else with as many as there are cores.
OtherThreads measured_otherwise(const BenchArguments& arguments, Job job, int threads) {
  OtherThreads other;
  const int count = threads > 1 ? 1 : base::usable_cores().count;
  if (count == threads) return other;
  job.threads = other.threads = count;
  other.steps = measure_steps(arguments.common.host(job), job, arguments.seconds, monotonic_seconds).steps;
  return other;
}

// Measures the job, then what the machine can do.
BenchReport measured(const BenchArguments& given, const Job& job) {
  const Host host = given.common.host(job);
  const LateRefusals refusals(host);
  const int threads = host.count().threads;
  const Watch watch;
  StepTimes plain = measure_steps(host, job, given.seconds, monotonic_seconds);
  plain.others = watch.share_of_others();
  refusals.warn();
  const StepTimes timed = measure_steps(given.common.host(job, true), job, given.seconds, monotonic_seconds);
  const Limits limits = {job.compute == TN_BF16 ? peak_bf16_operations(threads) : peak_operations(threads),
                         peak_bandwidth(threads, working_set(plain.plan)), round_trip_seconds(threads)};
  return {threads, std::move(plain), timed, limits, measured_otherwise(given, job, threads)};
}

}  // namespace

int run_bench(const Arguments& arguments) {
  BenchArguments given;
  Options options(
      "bench", {"JOB.toml"},
      "Trains the job for a few seconds and shows how long a step takes, which layers take the time, and\n"
      "how near each is to what this machine can do. Nothing is saved. The limit of a part is the time of\n"
      "its operations at the peak of fused multiply-adds, or of its bytes at the bandwidth of memory,\n"
      "whichever is longer; both are measured in the same run. Steps are also timed with one thread, or with all\n"
      "cores if the job has one thread. Stop other programs first.");
  namespace po = boost::program_options;
  const auto positive = [&options](double seconds) {
    if (!(seconds > 0 && seconds <= 3600)) options.fail("--seconds: expected a number above 0, at most 3600");
  };
  options.list.add_options()("seconds", po::value(&given.seconds)->value_name("S")->notifier(positive),
                             "how long each of the three runs is to last (3)")(
      "json", po::bool_switch(&given.as_json), "print JSON, as docs/benchmarks.md describes it");
  given.common.add_to(options);
  if (!options.parse(arguments)) return kDone;
  const Job job = given.common.load(options, options.operand(0));
  const BenchReport report = measured(given, job);
  if (given.as_json)
    std::cout << report.object().dump(2) << "\n";
  else
    report.print(std::cout, job.path, output_width());
  return kDone;
}

}  // namespace tenon::cli
