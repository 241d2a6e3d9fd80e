// Adam alone over 100 million parameters as 1, 100 or 10,000 tensors. One run, one line of JSON; benchmarks/compare
// runs it beside the peer. The limit is a loop that moves the same bytes. SPDX-License-Identifier: Apache-2.0
//
//   bench_adam THREADS FOLDER TENSORS     FOLDER is not used
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <tenon/tenon.hpp>

#include "../limits.h"

namespace {

constexpr int64_t kParameters = 100'000'000;
constexpr int kRounds = 5;

}  // namespace

// Each tensor is the weight of a layer without bias that maps one number to many.
int main(int argc, char** argv) try {
  if (argc != 4) return std::fprintf(stderr, "usage: bench_adam THREADS FOLDER TENSORS\n"), 64;
  const int threads = std::atoi(argv[1]);
  const int64_t tensors = std::atoll(argv[3]), length = kParameters / tensors;
  const tenon::Host host(tenon::HostOptions{threads, {}, nullptr, {}, TN_CHECK_OFF});
  tenon::DataOptions one;
  one.name = "one";
  one.dtype = TN_F32;
  one.shape = {1};
  const tenon::Layer data = host.data(one);
  tenon::Layers costs;
  for (int64_t i = 0; i < tensors; ++i) {
    const tenon::Layer x = host.layer("fc", {data}, {{"size", length}, {"bias", false}}, "x" + std::to_string(i));
    costs.push_back(host.layer("square_error", {x, x}, {}, "cost" + std::to_string(i)));
  }
  tenon::MachineOptions options;
  options.max_samples = 1;
  options.training = true;
  const tenon::Machine machine = host.machine(host.parameters(costs, 1), costs, options);
  const tenon::Updater updater = host.updater("adam");
  const float value = 1;
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    machine.forward({{"one", {TN_F32, {1, 1}, &value}}});
    machine.backward();
    const double began = bench::now();
    updater.update(machine);
    best = std::min(best, bench::now() - began);
  }
  std::vector<std::vector<float>> arrays(4, std::vector<float>(kParameters));
  const double limit = bench::stream_seconds(threads, kParameters, arrays);
  std::printf("{\"unit\": \"ms\", \"value\": %.3f, \"limit\": %.3f}\n", 1e3 * best, 1e3 * limit);
  return 0;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "bench_adam: %s\n", error.what());
  return 1;
}
