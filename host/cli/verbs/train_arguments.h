// The command line of `tenon train`, for the verb and for the program that starts it several times.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/not_copied.h"
#include "host/cli/options.h"

namespace tenon::cli {

constexpr int64_t kMostProcesses = 1024;
constexpr int64_t kMostServers = 256;  // blocks of the rows of a table

// The options of a training by several processes (docs/launching.md).
struct LaunchArguments {
  int64_t processes = JobOptions::kNotGiven;  // on this machine, besides servers
  int64_t servers = 0;                        // the last processes, which own the rows of tables and do not train
  std::string nodes;                          // "node0,node1:2": machines, and the processes of each
  std::string comm;                           // the communicator; empty: the default
  std::string address;                        // "HOST" or "HOST:PORT" of process 0; empty: the first node, a free port
  double stall = 0;                           // seconds without a step; 0: follows from the steps so far
  double silence = 1.5;                       // seconds
  int64_t restarts = 20;

  [[nodiscard]] bool is_wanted() const { return processes != JobOptions::kNotGiven || !nodes.empty(); }
  void add_to(Options& options);
  // in_cluster: whether pods take the place of --processes. Throws Failure(kUsage).
  void check(const Options& options, bool in_cluster) const;
};

// The options of a training in a cluster of Kubernetes (docs/kubernetes.md).
struct ClusterArguments {
  bool is_wanted = false;
  std::string context;  // of the kubeconfig; empty: the current one
  std::string image, space;
  std::vector<std::string> claims, host_paths, labels;
  std::vector<std::string> pull_secrets, node_selectors, tolerations;
  std::string memory;  // of a process, such as "2Gi"; empty: by the plan
  bool detach = false;
  std::string dry_run;          // "jobs" or "jobset"; empty: none is wanted
  std::string output = "yaml";  // of dry_run

  void add_to(Options& options);
  // Throws Failure(kUsage).
  void check(const Options& options) const;
};

struct TrainArguments {
  JobOptions common;
  std::string save;
  bool no_save = false;
  int64_t test_every = -1;  // -1: as the job says
  bool resume = false, resume_inexact = false;
  std::string resume_from;
  std::vector<std::string> resume_with;  // names of tn_checkpoint_options.resume_with
  std::string run;                       // the folder of the record; empty: none is kept
  int64_t run_every = 0;                 // updates between digests; 0: chosen
  LaunchArguments launch;
  ClusterArguments cluster;

  [[nodiscard]] bool resumes() const {
    return resume || resume_inexact || !resume_from.empty() || !resume_with.empty();
  }
};

class TrainCommand : base::NotCopied {
 public:
  // verb: in the help and in messages.
  explicit TrainCommand(const std::string& verb = "train");

  // Returns false if --help was given and printed. Throws Failure(kUsage).
  bool parse(const Arguments& words);
  [[nodiscard]] Job load() const { return arguments.common.load(options, options.operand(0)); }

  TrainArguments arguments;
  Options options;

 private:
  void add_saving();
  void add_resuming();

  std::vector<std::string> changes_;  // of --resume-with
};

}  // namespace tenon::cli
