// What the programs of the benchmarks share: clock, files for the peers, the line that benchmarks/run reads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace bench {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The arguments of every program: THREADS FOLDER [MODE [DEVICE [CALLS]]]. FOLDER receives what the peers start from.
struct Arguments {
  int threads;
  std::string folder;
  std::string mode;
  std::string device;  // empty: cpu
  int calls = 0;       // so many are counted by benchmarks/gate, of a small model, in place of a measurement

  // The size of a model, and that for the gate.
  [[nodiscard]] int64_t size(int64_t full, int64_t small) const { return calls > 0 ? small : full; }
};

// The line that benchmarks/run reads; what does not apply is 0 and is left out.
struct Result {
  double seconds = 0;     // for one step, or for what the workload counts
  double loss = 0;        // after the same steps on every side
  double flops = 0;       // operations that one step needs, for the share of the machine's limit
  double bf16_flops = 0;  // those of products of bfloat16
  double bytes = 0;       // bytes that one step must move
  double p99 = 0;         // seconds, where single calls are timed
};

inline void print(const Result& result) {
  std::printf("{\"seconds\": %.9g", result.seconds);
  const auto add = [](const char* name, double value) {
    if (value != 0) std::printf(", \"%s\": %.9g", name, value);
  };
  add("loss", result.loss);
  add("flops", result.flops);
  add("bf16_flops", result.bf16_flops);
  add("bytes", result.bytes);
  add("p99", result.p99);
  std::printf("}\n");
}

// main() of a program: `body` measures and returns a Result.
template <typename Body>
int run(int argc, char** argv, const Body& body) {
  if (argc < 3 || argc > 6) {
    std::fprintf(stderr, "usage: %s THREADS FOLDER [MODE [DEVICE [CALLS]]]\n", argv[0]);
    return 64;
  }
  try {
    print(body(Arguments{std::atoi(argv[1]), argv[2], argc > 3 ? argv[3] : "", argc > 4 ? argv[4] : "",
                         argc > 5 ? std::atoi(argv[5]) : 0}));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}

// A host with the built-in plugins, without the checks of a debug host.
inline tenon::Host host(int threads) { return tenon::Host(tenon::HostOptions{threads, {}, nullptr, {}, TN_CHECK_OFF}); }

inline tenon::Layer data(const tenon::Host& host, const std::string& name, tn_dtype dtype,
                         std::vector<int64_t> shape = {}) {
  tenon::DataOptions options;
  options.name = name;
  options.dtype = dtype;
  options.shape = std::move(shape);
  return host.data(options);
}

inline tenon::Machine machine(const tenon::Host& host, const tenon::Parameters& parameters,
                              const tenon::Layers& outputs, int64_t samples, bool training,
                              const std::string& device = "", tn_dtype compute = TN_F32) {
  tenon::MachineOptions options;
  options.compute = compute;
  options.device = device;
  options.max_samples = samples;
  options.training = training;
  return host.machine(parameters, outputs, options);
}

// A file for the peers, written by the first round alone.
inline void write(const std::string& folder, const std::string& name, const void* data, size_t bytes) {
  const std::string path = folder + "/" + name;
  if (std::filesystem::exists(path)) return;
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  if (!file.flush()) throw tenon::Error(TN_IO, "cannot write " + path);
}
template <typename T>
void write(const std::string& folder, const std::string& name, const std::vector<T>& values) {
  write(folder, name, values.data(), values.size() * sizeof(T));
}
// Parameters as they are before the first step.
inline void write(const std::string& folder, const tenon::Parameters& parameters,
                  const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const tenon::Array values = parameters.get(name);
    write(folder, name, values.data, static_cast<size_t>(values.count()) * sizeof(float));
  }
}

// Numbers between -1 and 1, the same in every run.
inline std::vector<float> numbers(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}
template <typename T>
std::vector<T> integers(size_t count, uint32_t below, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(random() % below);
  return values;
}

constexpr double kWarmUpSeconds = 0.25, kMeasuredSeconds = 0.5;  // at least, on other devices than cpu

// Seconds for one call of `step`: the mean over `count` calls.
template <typename Step>
double mean_seconds(int count, const Step& step) {
  const double began = now();
  for (int i = 0; i < count; ++i) step();
  return (now() - began) / count;
}

// Seconds for one call: the mean over as many calls, a power of two, as take `least` seconds.
template <typename Step>
double long_mean_seconds(double least, const Step& step) {
  for (int count = 1;; count *= 2) {
    const double seconds = mean_seconds(count, step);
    if (seconds * count >= least) return seconds;
  }
}

// What benchmarks/gate counts the instructions of: a function that it knows by this name.
extern "C" [[gnu::noinline, gnu::used]] inline void tenon_counted(void (*calls)(void*), void* data) {
  calls(data);
  asm volatile("");  // no jump in place of the call, which would leave this function
}

// Counts calls after as many that fill caches and allocate.
template <typename Step>
Result count_calls(const Arguments& arguments, Step step) {
  auto calls = [&] {
    for (int i = 0; i < arguments.calls; ++i) step();
  };
  calls();
  tenon_counted([](void* data) { (*static_cast<decltype(calls)*>(data))(); }, &calls);
  return {};
}

// The cost after a few steps, which all sides compare (after many, rounding alone drives them apart), and then the
// seconds of a step. On other devices than cpu a time takes the place of the numbers of steps: GPUs differ in speed by
// orders, and raise their clock under load. An update waits for the device, so the clock is read after its work.
template <typename Step>
Result steps(const Arguments& arguments, const tenon::Machine& machine, int compared, int warm_up, int count,
             const Step& step) {
  if (arguments.calls > 0) return count_calls(arguments, step);
  Result result;
  mean_seconds(compared, step);
  result.loss = machine.cost();
  if (arguments.device.empty()) {
    mean_seconds(warm_up, step);
    result.seconds = mean_seconds(count, step);
  } else {
    long_mean_seconds(kWarmUpSeconds, step);
    result.seconds = long_mean_seconds(kMeasuredSeconds, step);
  }
  return result;
}

// Median and 99th percentile of the seconds of single calls.
template <typename Step>
Result single_calls(int count, const Step& step) {
  std::vector<double> times(static_cast<size_t>(count));
  for (double& time : times) {
    const double began = now();
    step();
    time = now() - began;
  }
  std::sort(times.begin(), times.end());
  Result result;
  result.seconds = times[times.size() / 2];
  result.p99 = times[times.size() * 99 / 100];
  return result;
}

}  // namespace bench
