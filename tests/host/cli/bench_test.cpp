// The verb bench: the figures of times that a clock of the test and plans of the test state. The times of this machine
// are not tested. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "host/cli/bench/probe.h"
#include "host/cli/bench/quiet.h"
#include "host/cli/bench/report.h"
#include "tests/host/cli/calls.h"

namespace tenon_tests {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;

using BenchTest = CallTest;

TEST_F(BenchTest, AccountsForTheStep) {
  const Outcome outcome = run("bench job.toml --seconds 0.2 --threads 1 --json");
  ASSERT_EQ(outcome.exit, 0) << outcome.error;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("threads"), 1);
  EXPECT_EQ(result.at("batch"), 8);
  EXPECT_GE(result.at("steps").get<int64_t>(), 5);
  EXPECT_GT(result.at("machine").at("operations").get<double>(), 0);
  EXPECT_GT(result.at("machine").at("bandwidth").get<double>(), 0);
  EXPECT_EQ(result.at("machine").at("round_trip"), 0);  // one core
  EXPECT_TRUE(result.at("disturbed").is_array());
  const json& other = result.at("other_threads");
  if (!other.is_null()) {  // of a machine with several cores
    EXPECT_GT(other.at("threads"), 1);
    EXPECT_GT(other.at("step").at("median").get<double>(), 0);
  }
  double limit = 0, products = 0;
  bool updates = false;
  for (const json& part : result.at("parts")) {
    EXPECT_GE(part.at("seconds").get<double>(), 0);
    limit += part.at("limit").get<double>();
    if (part.at("layers").get<std::string>().find("score") == 0) products += part.at("operations").get<double>();
    updates = updates || part.at("phase") == "update";
  }
  EXPECT_TRUE(updates);
  EXPECT_NEAR(result.at("limit").get<double>(), limit, 1e-12);
  EXPECT_GE(products, 7 * 3 * 2 * 8 * 3);  // minibatches of 7.5 samples on average: three products of 8 x 3
  EXPECT_FALSE(std::filesystem::exists(path("model.safetensors")));
}

TEST_F(BenchTest, PrintsATable) {
  const Outcome outcome = run("bench job.toml --seconds 0.1 --threads 2");
  ASSERT_EQ(outcome.exit, 0) << outcome.error;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("job.toml: minibatches of at most 8 samples"),
                                 ContainsRegex(" % reached; |not quiet: "), HasSubstr("backward"),
                                 HasSubstr("samples/s"), ContainsRegex("\n1 thread .*(faster|slower|as fast)")));
}

TEST_F(BenchTest, NeedsATraining) {
  EXPECT_THAT(run("bench job.toml --seconds 0").error, HasSubstr("--seconds: expected a number above 0"));
  write("job.toml", "outputs = [\"prediction\"]\n" + job());
  const Outcome outcome = run("bench job.toml --seconds 0.1");
  EXPECT_EQ(outcome.exit, 78);
  EXPECT_THAT(outcome.error, HasSubstr("training needs a cost among the outputs; add the layer \"cost\" to them"));
  EXPECT_EQ(outcome.out, "");
}

// ---- steps by the clock of the test

// Stands at the begin and at the end of each step.
struct Script {
  std::vector<double> steps, waits;  // a wait is before its step
  size_t reads = 0;
  double time = 100;

  double operator()() {
    const std::vector<double>& of = reads % 2 == 0 ? waits : steps;
    return time += of.at(reads++ / 2);
  }
};

TEST_F(BenchTest, StepsAndWaitsAreThoseOfTheClock) {
  const Job job = load_job("job.toml", {});
  HostOptions options;
  options.plugin_paths = {plugin_folder()};
  const Host host(options);
  Script script;
  for (size_t i = 0; i < 40; ++i) {  // numbers without rounding
    script.steps.push_back(static_cast<double>(i % 5 + 1) / 8);
    script.waits.push_back(static_cast<double>(i % 3 + 1) / 64);
  }
  for (const double seconds : {0.0, 3.0, 9.5}) {
    Script clock = script;
    const StepTimes times = measure_steps(host, job, seconds, std::ref(clock));
    // 60 samples are 7 minibatches of 8 and one of 4. Three steps come before; five are the least.
    std::vector<double> steps, waits;
    int64_t samples = 0;
    double passed = 0;
    for (size_t i = 3; steps.size() < 5 || passed < seconds; ++i) {
      steps.push_back(script.steps[i]);
      if (i > 3 && i % 8 != 0) waits.push_back(script.waits[i]);  // a pass begins with every eighth
      samples += i % 8 == 7 ? 4 : 8;
      passed += script.steps[i] + script.waits[i];
    }
    EXPECT_EQ(times.steps, steps) << seconds;
    EXPECT_EQ(times.reading, waits) << seconds;
    EXPECT_EQ(times.samples, samples) << seconds;
    EXPECT_EQ(times.batch, 8);
    EXPECT_EQ(clock.reads, 2 * (steps.size() + 3));
    // Adam reads and writes parameters and their two moments, and reads gradients: 16 x 8, 8, 8 x 3 and 3 numbers, each
    // from the begin of a line of 16 on.
    EXPECT_EQ(times.update_bytes, (128 + 16 + 32 + 3) * sizeof(float) * (2 * 3 + 1));
  }
}

// ---- figures

// A call of a plan that ran this often and took as much.
json call(const std::string& phase, const json& layers, const std::string& kernel, int runs, double seconds,
          double operations, double bytes) {
  return {{"phase", phase},
          {"layers", layers},
          {"kernel", kernel},
          {"measured", {{"runs", runs}, {"seconds", seconds}, {"operations", operations}, {"bytes", bytes}}}};
}

// Ten steps after three, of which the calls have done `steps`.
json calls_after(int steps) {
  json result = {call("forward", {"a", "b"}, "gemm", steps, 0.002 * steps, 4e6 * steps, 1e5 * steps),
                 call("backward", {"b"}, "sum", 4 * steps, 0.0015 * steps, 0, 1e6 * steps),
                 call("forward", {"a", "b"}, "gemm", steps, 0.001 * steps, 1e6 * steps, 4e6 * steps)};
  result[1]["loop"] = 0;  // runs four times in a step
  return result;
}

StepTimes times_of_calls() {
  StepTimes timed;
  timed.steps = {0.005, 0.007, 0.006};
  timed.warm = {{"calls", calls_after(3)}};
  timed.plan = {{"calls", calls_after(13)}};
  timed.update_bytes = 2e6;
  return timed;
}

StepTimes times_of_steps() {
  StepTimes plain;
  plain.steps = {0.005, 0.004, 0.009, 0.0045, 0.006, 0.004, 0.0055, 0.006, 0.005, 0.005};
  plain.reading = {0.002, 0.001, 0.0005, 0.001, 0.001};
  plain.samples = 60;
  plain.batch = 8;
  plain.plan = {{"bytes", {{"machine", 3 << 20}, {"parameters", 1 << 20}}}};
  return plain;
}

constexpr Limits kLimits = {4e9, 2e9};

TEST(BenchParts, AreTheCallsOfAStepAndTheUpdate) {
  StepTimes timed = times_of_calls();
  const auto expect = [&](double update) {
    std::vector<Part> parts = parts_of(timed, kLimits);
    ASSERT_EQ(parts.size(), 3U);
    const bool update_last = update < 0.0015;
    EXPECT_EQ(parts[0].phase + " " + parts[0].layers + " " + parts[0].kernel, "forward a + b gemm");
    EXPECT_EQ(parts[1].phase, update_last ? "backward" : "update");
    if (!update_last) std::swap(parts[1], parts[2]);
    const std::vector<std::vector<double>> wanted = {
        {2, 0.003, 5e6, 4.1e6, 0.001 + 0.002}, {1, 0.0015, 0, 1e6, 0.0005}, {1, update, 0, 2e6, 0.001}};
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Part& part = parts[i];
      EXPECT_THAT((std::vector<double>{static_cast<double>(part.calls), 1e3 * part.seconds, 1e-6 * part.operations,
                                       1e-6 * part.bytes, 1e3 * part.limit}),
                  Pointwise(DoubleNear(1e-9), std::vector<double>{wanted[i][0], 1e3 * wanted[i][1], 1e-6 * wanted[i][2],
                                                                  1e-6 * wanted[i][3], 1e3 * wanted[i][4]}))
          << part.phase;
    }
  };
  expect(0.0015 + 1e-12);  // a mean step of 6 ms
  timed.steps = {0.0065};
  expect(0.002);
  timed.steps = {0.004};  // a noisy clock: the calls took longer than the step
  expect(0);
  // A machine that was planned anew has counted from then on: with as many runs, fewer, or other calls.
  timed.steps = {0.0055};
  for (const int steps : {13, 20}) {
    timed.warm = {{"calls", calls_after(steps)}};
    expect(0.001);
  }
  timed.warm["calls"] = json::array({calls_after(1)[0]});
  expect(0.001);
}

TEST(BenchReport, HasTheFiguresOfTheTimes) {
  const json made = BenchReport(2, times_of_steps(), times_of_calls(), kLimits).object();
  const auto near = [&](const json& number, double wanted) {
    EXPECT_NEAR(number.get<double>(), wanted, 1e-9 * wanted) << made.dump(1);
  };
  EXPECT_EQ(made.at("threads"), 2);
  EXPECT_EQ(made.at("batch"), 8);
  EXPECT_EQ(made.at("steps"), 10);
  near(made.at("samples_per_second"), 1000);  // 6 samples in a median step of 5 ms and a median wait of 1 ms
  near(made.at("step").at("median"), 0.005);
  near(made.at("step").at("p10"), 0.004);
  near(made.at("step").at("p90"), 0.006);
  near(made.at("reading").at("median"), 0.001);
  near(made.at("reading").at("p10"), 0.0005);
  near(made.at("reading").at("p90"), 0.002);
  near(made.at("machine").at("operations"), 4e9);
  near(made.at("machine").at("bandwidth"), 2e9);
  EXPECT_EQ(made.at("machine").at("bytes"), 4 << 20);
  near(made.at("limit"), 0.0045);
  near(made.at("reached"), 0.9);
  ASSERT_EQ(made.at("parts").size(), 3U);
  near(made.at("parts")[0].at("limit"), 0.003);
  near(made.at("parts")[0].at("operations"), 5e6);
}

TEST(BenchReport, PrintsTheFigures) {
  std::ostringstream out;
  StepTimes timed = times_of_calls();
  timed.steps = {0.0065};
  BenchReport(2, times_of_steps(), timed, kLimits).print(out, "my.toml", 200);
  const std::vector<std::string> lines = lines_of(out.str());
  ASSERT_EQ(lines.size(), 13U) << out.str();
  EXPECT_EQ(lines[0], "my.toml: minibatches of at most 8 samples, 2 threads, 10 steps");
  EXPECT_THAT(lines[2], ContainsRegex("^ *ms +10 % below +90 % below"));
  EXPECT_THAT(lines[3], ContainsRegex("^step +5.000 +4.000 +6.000 +1000 samples/s, reading included"));
  EXPECT_THAT(lines[4], ContainsRegex("^reading +1.000 +0.5000 +2.000 +wait"));
  EXPECT_THAT(lines[5], ContainsRegex("^limit +4.500 +90 % reached; this machine: 4.000 GFLOP/s, 2.000 GB/s over 4"));
  EXPECT_THAT(lines[7], ContainsRegex("calls +ms +share +GFLOP/s +GB/s +of limit"));
  EXPECT_THAT(lines[8], ContainsRegex("^forward +a \\+ b +gemm +2 +3.000 +46 % +1.667 +1.367 +100 %"));
  EXPECT_THAT(lines[9], ContainsRegex("^update +- +- +1 +2.000 +31 % +- +1.000 +50 %"));
  EXPECT_THAT(lines[10], ContainsRegex("^backward +b +sum +1 +1.500 +23 % +- +0.6667 +33 %"));
  EXPECT_THAT(lines[12], HasSubstr("a run that times each call: 6.500 ms a step."));
  StepTimes one = times_of_steps();
  one.steps = {12.5};
  one.reading.clear();
  std::ostringstream alone;
  BenchReport(1, one, timed, {4e11, 2e11}).print(alone, "my.toml", 200);
  EXPECT_THAT(alone.str(), AllOf(HasSubstr(" samples, 1 thread, 1 steps\n"),
                                 ContainsRegex("step +12500 +12500 +12500 +"
                                               "4.800 samples/s"),
                                 HasSubstr("0 % reached; this machine: 400.0 GFLOP/s, 200.0 GB/s")));
}

TEST(BenchReport, SaysWhichNumberOfThreadsIsBetter) {
  const auto with = [](double step) {
    const BenchReport report(4, times_of_steps(), times_of_calls(), {4e9, 2e9, 9e-8}, {1, {step, step, step}});
    std::ostringstream out;
    report.print(out, "my.toml", 200);
    return std::pair(lines_of(out.str())[5], report.object().at("best_threads").get<int>());
  };
  EXPECT_THAT(with(0.0040).first, ContainsRegex("^1 thread +4.000 +4.000 +4.000 +faster: --threads 1$"));
  EXPECT_EQ(with(0.0040).second, 1);
  for (const double step : {0.0049, 0.0051}) {
    EXPECT_THAT(with(step).first, HasSubstr(" as fast"));
    EXPECT_EQ(with(step).second, 4);
  }
  EXPECT_THAT(with(0.0052).first, HasSubstr(" slower"));
  const json alone = BenchReport(1, times_of_steps(), times_of_calls(), kLimits).object();
  EXPECT_EQ(alone.at("best_threads"), 1);
  EXPECT_TRUE(alone.at("other_threads").is_null());
}

TEST(BenchReport, SaysHowFarTheCoresAre) {
  const auto with = [](double seconds) {
    std::ostringstream out;
    BenchReport(2, times_of_steps(), times_of_calls(), {4e9, 2e9, seconds}).print(out, "my.toml", 200);
    return out.str();
  };
  EXPECT_THAT(with(9.24e-8), HasSubstr(" over 4.0 MiB, cores 92 ns apart (near)\n"));
  EXPECT_THAT(with(4e-7), HasSubstr("cores 400 ns apart (far)"));
  EXPECT_THAT(with(0), testing::Not(HasSubstr("cores")));
}

TEST(BenchProbe, MeasuresTheWayBetweenCores) {
  EXPECT_EQ(round_trip_seconds(1), 0);
  const double began = monotonic_seconds(), seconds = round_trip_seconds(2);
  EXPECT_LT(monotonic_seconds() - began, 60);              // however busy the machine is
  EXPECT_TRUE(seconds == 0 || seconds > 1e-9) << seconds;  // light goes 30 cm in it
}

TEST(BenchQuiet, OthersTakeWhatThisProcessDoesNot) {
  std::istringstream stat("cpu  100 10 20 9999 999 1 2 40 7 7\ncpu0 1 2\n");
  EXPECT_DOUBLE_EQ(busy_seconds(stat), 173.0 / static_cast<double>(sysconf(_SC_CLK_TCK)));
  std::istringstream wrong("intr 1 2 3 4 5 6 7 8"), none("cpu 1 2");
  EXPECT_EQ(busy_seconds(wrong), 0);
  EXPECT_EQ(busy_seconds(none), 0);
  const Watch watch;
  const double share = watch.share_of_others();
  EXPECT_GE(share, 0);
  EXPECT_LE(share, 1);
}

TEST(BenchQuiet, NamesWhatDisturbed) {
  StepTimes times;
  times.others = 0.05;
  for (int quarter = 0; quarter < 4; ++quarter)  // steps differ by their data
    for (int i = 0; i < 10; ++i) times.steps.push_back((i % 2 == 0 ? 1 : 3) * (quarter == 2 ? 1.1 : 1));
  EXPECT_THAT(disturbances(times), ElementsAre());
  times.others = 0.123;
  for (size_t i = 20; i < 30; ++i) times.steps[i] *= 1.1;
  EXPECT_THAT(disturbances(times), ElementsAre("others took 12 % of the processors",
                                               "a quarter of the steps took 21 % longer than another"));
  times.steps.pop_back();  // too few
  EXPECT_THAT(disturbances(times), ElementsAre("others took 12 % of the processors"));
}

TEST(BenchReport, AShareOfTheLimitNeedsAQuietMachine) {
  StepTimes plain = times_of_steps();
  plain.others = 0.2;
  const BenchReport report(1, plain, times_of_calls(), kLimits);
  std::ostringstream out;
  report.print(out, "my.toml", 200);
  EXPECT_THAT(out.str(), HasSubstr(" not quiet: others took 20 % of the processors; this machine: 4"));
  EXPECT_THAT(out.str(), testing::Not(HasSubstr("reached")));
  EXPECT_TRUE(report.object().at("reached").is_null());
  EXPECT_EQ(report.object().at("disturbed"), json::array({"others took 20 % of the processors"}));
}

TEST(BenchReport, RefusesLimitsThatTheJobExceeds) {
  const auto with = [](double factor) {  // of the time of a step to that of the limit
    StepTimes plain = times_of_steps();
    plain.steps = {0.0045 / factor};
    return BenchReport(1, plain, times_of_calls(), kLimits).object().at("reached").get<double>();
  };
  EXPECT_NEAR(with(1.0199), 1.0199, 1e-9);
  try {
    (void)with(1.0201);
    ADD_FAILURE() << "nothing was refused";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit(), kSystem);
    EXPECT_THAT(failure.what(), HasSubstr("gave less than the job reached (102 %): other programs disturb it"));
  }
}

TEST(BenchReport, AStepGoesThroughAtLeastOneAndAtMost256Mebibytes) {
  const auto of = [](int64_t machine, int64_t parameters) {
    return working_set({{"bytes", {{"machine", machine}, {"parameters", parameters}}}});
  };
  EXPECT_EQ(of(10, 20), 1 << 20);
  EXPECT_EQ(of(3 << 20, 2 << 20), 5 << 20);
  EXPECT_EQ(of(int64_t{200} << 20, int64_t{200} << 20), 256 << 20);
}

TEST(BenchQuantile, IsAnElementOfTheSortedNumbers) {
  const std::vector<double> numbers = {5, 1, 4, 2, 3};
  std::vector<double> found;
  for (const double share : {0.0, 0.1, 0.13, 0.5, 0.87, 0.9, 1.0}) found.push_back(quantile(numbers, share));
  EXPECT_THAT(found, ElementsAre(1, 1, 2, 3, 4, 5, 5));
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(quantile({7}, 0.9), 7);
}

}  // namespace
}  // namespace tenon_tests
