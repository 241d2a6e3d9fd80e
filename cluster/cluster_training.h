// A training in a cluster, from the laptop's side. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/api.h"
#include "cluster/exec.h"
#include "cluster/log.h"
#include "cluster/pods.h"
#include "cluster/request.h"
#include "cluster/results.h"
#include "launch/events.h"

namespace tenon::cluster {

// Who is told what.
struct Audience {
  bool quiet = false;   // remarks are left out
  bool events = false;  // lines of JSON are for programs: on standard output
};

// Ends by Ctrl-C, SIGTERM and SIGHUP: what it has created is removed then.
class ClusterTraining : base::NotCopied {
 public:
  ClusterTraining(const cli::ClusterArguments& cluster, Audience audience, Training training);

  // Returns the exit code of the training. Throws cli::Failure.
  int run();

 private:
  struct Interrupted {};

  void poll();
  void tell(const std::string& text) const;
  void print(const std::string& line) const;
  void choose_kind();
  void create();
  // Waits for the end of the training. Returns its exit code.
  int follow();
  void look_at_pods();
  void look_at_launcher(const PodState& pod);
  void tell_changes(const PodState& pod);
  void tell_of(const PodState& pod, const std::string& text);
  // Throws cli::Failure if a pod cannot begin, and no hope is left.
  void look_at_wait(const PodState& pod);
  void tell_last_words(const PodState& pod);
  // Says why the pods that are awaited do not come. Throws cli::Failure if they never will.
  void look_at_events();
  // Returns the exit code of a training that has ended without results.
  [[nodiscard]] std::optional<int> ending();
  void fetch();
  void compare_image();
  void finish_log();
  void remove() noexcept;
  void remove_all();

  const Audience audience_;
  Training training_;
  const launch::Signals signals_;
  int signal_ = 0;
  bool may_end_ = true;  // by a signal
  Api api_;
  std::vector<std::string> created_;         // paths
  std::map<std::string, std::string> told_;  // of pods
  Endurance endurance_;
  std::set<std::string> events_;  // that were told
  std::optional<PodState> launcher_;
  std::unique_ptr<Log> log_;
  std::unique_ptr<Exec> exec_;
  std::optional<Results> results_;
  Clock::time_point began_, looked_, exec_again_;
  bool is_compared_ = false;  // the image with this machine
  int refusals_ = 0;          // of exec, one after the other
  std::string lost_why_;      // why results could not be fetched, as it was told
  std::optional<int> exit_;   // of the launcher's pod that has ended last, else of the first other one that has failed
};

}  // namespace tenon::cluster
