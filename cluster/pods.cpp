// SPDX-License-Identifier: Apache-2.0
#include "cluster/pods.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cluster/objects.h"

namespace tenon::cluster {

PodState state_of(const json& pod) {
  const json metadata = pod.value("metadata", json::object()), status = pod.value("status", json::object());
  const json labels = metadata.value("labels", json::object());
  PodState state;
  state.name = metadata.value("name", "");
  state.role = labels.value(kRole, "");
  state.index = labels.value("batch.kubernetes.io/job-completion-index", "0");
  state.phase = status.value("phase", "");
  state.is_leaving = metadata.contains("deletionTimestamp");
  for (const json& condition : status.value("conditions", json::array()))
    if (condition.value("type", "") == "PodScheduled" && condition.value("status", "") == "False") {
      state.waits = condition.value("reason", "");
      state.message = condition.value("message", "");
    }
  for (const json& container : status.value("containerStatuses", json::array())) {
    const json now = container.value("state", json::object());
    state.is_ready = state.is_ready || now.contains("running");
    if (now.contains("waiting")) {
      state.waits = now["waiting"].value("reason", "");
      state.message = now["waiting"].value("message", "");
    }
    if (!now.contains("terminated")) continue;
    const json& end = now["terminated"];
    const std::string reason = end.value("reason", "");
    state.exit = end.value("exitCode", 1);
    if (reason != "Error" && reason != "Completed") state.message = reason + ": " + end.value("message", "");
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

}  // namespace tenon::cluster
