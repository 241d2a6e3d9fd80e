// SPDX-License-Identifier: Apache-2.0
#include "host/cli/bench/quiet.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <fstream>
#include <numeric>

namespace tenon::cli {

namespace {

constexpr double kMostOfOthers = 0.05;   // as benchmarks/run has it
constexpr double kMostDifference = 0.1;  // between the medians of quarters
constexpr size_t kLeastSteps = 40;       // of which the quarters tell something

double machine_seconds() {
  std::ifstream stat("/proc/stat");
  return busy_seconds(stat);
}

double process_seconds() {
  timespec spent{};
  return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent) == 0
             ? static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec)
             : 0;
}

std::string percent(double share) { return std::to_string(std::lround(100 * share)) + " %"; }

}  // namespace

double busy_seconds(std::istream& stat) {
  std::string name;
  std::array<double, 8> ticks{};  // user, nice, system, idle, iowait, irq, softirq, steal
  stat >> name;
  for (double& number : ticks) stat >> number;
  if (!stat || name != "cpu") return 0;
  return (std::accumulate(ticks.begin(), ticks.end(), 0.0) - ticks[3] - ticks[4]) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

Watch::Watch() : busy_(machine_seconds()), own_(process_seconds()), began_(monotonic_seconds()) {}

double Watch::share_of_others() const {
  const double counter_steps = 5 / static_cast<double>(sysconf(_SC_CLK_TCK));  // so few tell nothing
  const double others = machine_seconds() - busy_ - (process_seconds() - own_) - counter_steps;
  const double all = (monotonic_seconds() - began_) * static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  return all > 0 ? std::max(0.0, others / all) : 0;
}

std::vector<std::string> disturbances(const StepTimes& times) {
  std::vector<std::string> result;
  if (times.others > kMostOfOthers) result.push_back("others took " + percent(times.others) + " of the processors");
  if (times.steps.size() < kLeastSteps) return result;
  std::array<double, 4> medians{};
  for (size_t i = 0; i < 4; ++i)
    medians[i] = quantile({times.steps.begin() + static_cast<std::ptrdiff_t>(times.steps.size() * i / 4),
                           times.steps.begin() + static_cast<std::ptrdiff_t>(times.steps.size() * (i + 1) / 4)},
                          0.5);
  const auto [least, most] = std::minmax_element(medians.begin(), medians.end());
  if (*most > (1 + kMostDifference) * *least)
    result.push_back("a quarter of the steps took " + percent(*most / *least - 1) + " longer than another");
  return result;
}

}  // namespace tenon::cli
