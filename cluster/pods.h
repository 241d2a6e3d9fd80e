// What the API says of pods, in words. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "cluster/yaml.h"
#include "launch/events.h"

namespace tenon::cluster {

using launch::Clock;

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

// How long pods that cannot begin are endured. Where none has run before, a mistake is the reason; but a pod in the
// place of one that has run may wait for a registry that is away, and the training with it.
class Endurance {
 public:
  enum class Verdict { kGood, kWaits, kEnds };

  // Takes note of a pod, and returns whether the training must end for it.
  Verdict look(const PodState& pod, Clock::time_point now);

 private:
  std::set<std::string> run_;                       // places, by role and number, of which a pod has run
  std::map<std::string, Clock::time_point> since_;  // when one of these was first found waiting
};

}  // namespace tenon::cluster
