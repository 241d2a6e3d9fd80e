// What the API says of pods, in words. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cluster/yaml.h"

namespace tenon::cluster {

struct PodState {
  std::string name, role, phase;  // phase: "Pending", "Running", "Succeeded", "Failed"
  std::string index;              // of its Job
  std::optional<int> exit;        // of its process, if that has ended
  bool is_ready = false;          // its process runs
  bool is_leaving = false;        // it is being deleted
  std::string waits;              // why its process does not run: "Unschedulable", "ImagePullBackOff"; empty: it does
  std::string message;            // to it
};

[[nodiscard]] PodState state_of(const json& pod);
// Whether a pod will wait for ever: for an image that is not there, for a claim that is not.
[[nodiscard]] bool is_hopeless(const PodState& pod);

}  // namespace tenon::cluster
