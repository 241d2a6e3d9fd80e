// SPDX-License-Identifier: Apache-2.0
#include "host/cli/training.h"

#include <algorithm>

#include "host/cli/cli.h"
#include "host/cli/job/updater.h"

namespace tenon::cli {

namespace {

// Returns the end of a message: where a cost could come from.
std::string missing_cost(const Job& job, const Topology& topology) {
  for (const JobLayer& layer : job.layers)
    if (topology.role(layer.name) == Role::kCost) return "; add the layer \"" + layer.name + "\" to them";
  return "; no layer of the job is a cost, such as one of type cross_entropy or square_error";
}

}  // namespace

TrainOptions training_of(const Host& host, const Job& job, const OpenReader& train, Topology& topology) {
  const std::vector<std::string> trained = topology.trained();
  if (std::all_of(trained.begin(), trained.end(),
                  [&](const std::string& name) { return topology.role(name) == Role::kMetric; }))
    throw Failure(kBadConfig, job.path + ": training needs a cost among the outputs" + missing_cost(job, topology));
  TrainOptions options = job.training;
  options.outputs = topology.layers(trained);
  options.updater = make_updater(host, job);
  options.groups = make_updater_groups(host, job);
  options.reader = train.reader;
  options.feeding = train.feeding;
  options.seed = static_cast<uint64_t>(job.seed);
  set_devices(job, &options);
  return options;
}

}  // namespace tenon::cli
