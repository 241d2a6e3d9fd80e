// The sum of gradients over two processes, without a model: how long the parts of an exchange take.
// SPDX-License-Identifier: Apache-2.0
//   bench_exchange COMM [RANK RANKS ADDRESS]
// One line of JSON from process 0: seconds of a gather of 8 bytes, and of sums of so many MiB.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/system.h"
#include "host/comm/team.h"
#include "host/machine/shards/dense_sum.h"
#include "host/plugins/registry.h"

namespace {

using namespace tenon::host;
using Clock = std::chrono::steady_clock;

// Returns the median of the seconds of a call.
template <typename Work>
double median(int rounds, const Work& work) {
  std::vector<double> seconds;
  for (int round = 0; round < rounds + rounds / 4; ++round) {
    const Clock::time_point began = Clock::now();
    work();
    if (round >= rounds / 4) seconds.push_back(std::chrono::duration<double>(Clock::now() - began).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + rounds / 2, seconds.end());
  return seconds[static_cast<size_t>(rounds / 2)];
}

double gathered(Team& team) {
  std::vector<int64_t> all(static_cast<size_t>(team.processes()));
  return median(2000, [&] { team.gather(std::as_writable_bytes(std::span(all))); });
}

// A model of one value, which is final at once.
double summed(Team& team, uint64_t bytes) {
  const auto processes = static_cast<size_t>(team.processes()), rank = static_cast<size_t>(team.rank());
  DenseSum dense(team, TN_F32, nullptr, {bytes});
  std::vector<float> numbers(bytes / sizeof(float));
  auto* const values = reinterpret_cast<std::byte*>(numbers.data());
  const ShardTree tree(team.processes(), processes);
  const std::vector<TeamNode> nodes = nodes_of_team(tree, processes, team.processes());
  return median(bytes > uint64_t{1} << 20U ? 40 : 400, [&] {
    dense.begin(tree, nodes, {{{rank, rank + 1}, values}}, values);
    dense.finish();
  });
}

void run(int count, char** arguments) {
  Registry registry({TENON_PLUGINS}, tenon::core::system_files());
  JoinOptions join;
  if (count > 4) join.rank = std::atoi(arguments[2]), join.ranks = std::atoi(arguments[3]), join.address = arguments[4];
  Team team(registry.comm(arguments[1]), {}, nullptr, join);
  const double gather = gathered(team);
  std::string text = "{\"gather\": " + std::to_string(gather);
  for (const uint64_t kib : {64, 400, 1024, 16384})
    text += ", \"" + std::to_string(kib) + "\": " + std::to_string(summed(team, kib << 10U));
  if (team.rank() == 0) std::printf("%s}\n", text.c_str());
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: bench_exchange COMM [RANK RANKS ADDRESS]\n");
    return 64;
  }
  try {
    run(count, arguments);
  } catch (const tenon::core::Error& error) {
    std::fprintf(stderr, "bench_exchange: %s\n", error.what());
    return 1;
  }
}
