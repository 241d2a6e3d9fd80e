// SPDX-License-Identifier: Apache-2.0
#include "cluster/pods.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cluster/members.h"
#include "cluster/objects.h"

namespace tenon::cluster {

PodState state_of(const json& pod) {
  const json& metadata = member_of(pod, "metadata");
  const json& status = member_of(pod, "status");
  PodState state;
  state.name = text_of(metadata, "name");
  state.role = text_of(metadata, "labels", kRole);
  state.index = text_of(metadata, "labels", "batch.kubernetes.io/job-completion-index");
  state.phase = text_of(status, "phase");
  state.is_leaving = !text_of(metadata, "deletionTimestamp").empty();
  for (const json& condition : list_of(status, "conditions"))
    if (text_of(condition, "type") == "PodScheduled" && text_of(condition, "status") == "False") {
      state.waits = text_of(condition, "reason");
      state.message = text_of(condition, "message");
    }
  for (const json& container : list_of(status, "containerStatuses")) {
    const json& now = member_of(container, "state");
    state.is_ready = state.is_ready || member_of(now, "running").is_object();
    if (const json& waiting = member_of(now, "waiting"); waiting.is_object()) {
      state.waits = text_of(waiting, "reason");
      state.message = text_of(waiting, "message");
    }
    const json& end = member_of(now, "terminated");
    if (!end.is_object()) continue;
    const std::string reason = text_of(end, "reason");
    state.exit = static_cast<int>(number_of(end, "exitCode", 1));
    if (reason != "Error" && reason != "Completed") state.message = reason + ": " + text_of(end, "message");
  }
  return state;
}

bool is_hopeless(const PodState& pod) {
  // The scheduler waits for a claim; nobody will make it.
  if (pod.waits == "Unschedulable" && pod.message.find("persistentvolumeclaim \"") != std::string::npos &&
      pod.message.find("not found") != std::string::npos)
    return true;
  constexpr std::array<std::string_view, 5> kHopeless = {"ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
                                                         "CreateContainerConfigError", "CreateContainerError"};
  return std::find(kHopeless.begin(), kHopeless.end(), pod.waits) != kHopeless.end();
}

Endurance::Verdict Endurance::look(const PodState& pod, Clock::time_point now) {
  constexpr std::chrono::minutes kMost(10);  // as long as the launcher waits for an agent
  const std::string place = pod.role + " " + pod.index;
  if (pod.is_ready) {
    run_.insert(place);
    since_.erase(place);
  }
  if (!is_hopeless(pod) || pod.is_leaving) return Verdict::kGood;
  if (!run_.contains(place)) return Verdict::kEnds;
  return now - since_.try_emplace(place, now).first->second > kMost ? Verdict::kEnds : Verdict::kWaits;
}

}  // namespace tenon::cluster
