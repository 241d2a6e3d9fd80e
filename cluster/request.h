// What `tenon train --cluster` asks of a cluster. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cluster/objects.h"
#include "host/cli/verbs/train_arguments.h"

namespace tenon::cluster {

struct Training {
  Plan plan;
  std::optional<std::string> save, average_save;  // where the results go on this machine
  std::string credentials;  // a file with a certificate and a key, or a token, instead of the kubeconfig's; empty: none
};

// Takes what the options say of pods into a plan. name: a path or text from which the name follows. memory: bytes
// without --memory. Throws cli::Failure(kUsage).
void set_pods(const cli::ClusterArguments& cluster, const std::string& name, int64_t memory,
              const cli::Options& options, Plan& plan);
// Checks that files lie beneath a folder and fit into a ConfigMap. Throws cli::Failure(kBadConfig). what: the first one
void check_files(const std::vector<cli::JobFile>& files, const std::string& what);

// Reads the job and the options. Throws cli::Failure naming the key or option: for paths that only this machine has,
// plugins that the image would have to have, and so on.
[[nodiscard]] Training training_of(const cli::TrainCommand& command);

// Returns the bytes of "2Gi", "500M", "1000"; empty if the text is none.
[[nodiscard]] std::optional<int64_t> bytes_of(const std::string& text);

}  // namespace tenon::cluster
