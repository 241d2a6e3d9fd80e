// Which nodes of a cluster run the pods of a training, and how these get their image.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cluster/yaml.h"
#include "host/cli/options.h"
#include "host/cli/verbs/train_arguments.h"

namespace tenon::cluster {

struct Scheduling {
  std::vector<std::string> pull_secrets;        // names of Secrets
  std::map<std::string, std::string> selector;  // labels that a node has to have
  std::vector<json> tolerations;                // as the API has them
};

// Returns what --pull-secret, --node-selector and --toleration say. Throws Failure(kUsage).
[[nodiscard]] Scheduling scheduling_of(const cli::ClusterArguments& cluster, const cli::Options& options);

// Returns the key and the value of "KEY=VALUE". Throws Failure(kUsage) naming the option if they can be no label.
[[nodiscard]] std::pair<std::string, std::string> label_of(const std::string& text, const std::string& option,
                                                           const cli::Options& options);

}  // namespace tenon::cluster
