// SPDX-License-Identifier: Apache-2.0
#include "launch/watch.h"

#include <algorithm>
#include <tuple>

#include "process/control.h"

namespace tenon::launch {

namespace {

constexpr size_t kSteps = 100;  // whose slowest counts
constexpr int kTimesSlower = 10;
constexpr std::chrono::seconds kLeastPatience(30);

}  // namespace

std::string Progress::text() const {
  std::string result = "step " + std::to_string(step);
  if (!phase.empty()) result += ", phase " + phase;
  if (!call.empty()) result += ", " + call;
  return result;
}

void Watch::begin(Clock::time_point now) {
  for (State& state : states_) state.heard = state.moved = state.placed = now;
}

void Watch::begin(size_t process, Clock::time_point now) {
  states_[process] = {};
  states_[process].heard = states_[process].moved = states_[process].placed = now;
}

void Watch::beat(size_t process, const Progress& progress, Clock::time_point now) {
  State& state = states_[process];
  state.heard = now;
  if (state.progress.call.empty()) state.progress.call = progress.call;  // that becomes known is no move
  if (state.spoke && progress == state.progress) return;
  if (state.spoke && progress.step != state.progress.step && state.progress.phase == process::kTrainPhase) {
    state.steps.push_back(now - state.placed);
    if (state.steps.size() > kSteps) state.steps.pop_front();
  }
  const auto place = [](const Progress& each) { return std::tie(each.step, each.phase); };
  if (!state.spoke || place(progress) != place(state.progress)) state.placed = now;
  state.spoke = true;
  state.progress = progress;
  state.moved = now;
}

void Watch::forgive(Clock::duration time) {
  for (State& state : states_) {
    state.heard += time;
    state.moved += time;
    state.placed += time;
  }
}

Progress Watch::progress(size_t process) const {
  Progress result = states_[process].progress;
  const bool both = states_[process].watched && states_[0].watched && states_[0].spoke;
  if (result.phase == process::kTrainPhase && both) result.phase = states_[0].progress.phase;
  return result;
}

bool Watch::have_joined() const {
  return std::all_of(states_.begin(), states_.end(),
                     [](const State& state) { return state.spoke && state.progress.phase != process::kStartPhase; });
}

std::vector<size_t> Watch::waiting_for(size_t process) const {
  std::vector<size_t> result;
  for (size_t i = 0; i < states_.size(); ++i)
    if (states_[i].watched && states_[i].progress.waits_for == static_cast<int64_t>(process)) result.push_back(i);
  return result;
}

bool Watch::waits_for_a_running_one(size_t process) const {
  size_t last = process;
  for (size_t turn = 0; turn < states_.size(); ++turn) {
    const auto next = static_cast<size_t>(states_[last].progress.waits_for);  // -1: the largest number
    if (next >= states_.size() || !states_[next].watched) return last != process;
    last = next;
  }
  return false;  // a circle
}

Clock::duration Watch::patience(size_t process) const {
  const State& state = states_[process];
  if (!state.spoke || this->progress(process).phase != process::kTrainPhase)
    return std::max(options_.start, options_.stall);
  if (options_.stall > Clock::duration::zero()) return options_.stall;
  if (state.steps.empty()) return options_.start;  // the first one may read, compile and fill caches
  return std::max<Clock::duration>(kLeastPatience,
                                   kTimesSlower * *std::max_element(state.steps.begin(), state.steps.end()));
}

std::optional<Fault> Watch::fault(Clock::time_point now) const {
  for (size_t i = 0; i < states_.size(); ++i)
    if (states_[i].watched && states_[i].spoke && now - states_[i].heard > options_.silence)
      return Fault{i, false, now - states_[i].heard};
  std::optional<Fault> stuck;
  for (size_t i = 0; i < states_.size(); ++i) {
    const State& state = states_[i];
    if (!state.watched || now - state.moved <= patience(i) || waits_for_a_running_one(i)) continue;
    if (!stuck || state.progress.step < states_[stuck->process].progress.step)
      stuck = Fault{i, true, now - state.moved};
  }
  return stuck;
}

}  // namespace tenon::launch
