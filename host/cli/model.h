// The model file that a verb works with. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "host/cli/cli.h"
#include "host/cli/console.h"
#include "host/cli/job/job.h"
#include "host/cli/job/topology.h"

namespace tenon::cli {

// given: the path of --model, or empty: the path to which the job saves.
[[nodiscard]] std::string model_path(const Job& job, const std::string& given);

// Returns the data layers that these outputs are computed from.
[[nodiscard]] std::vector<std::string> data_layers_of(const Topology& topology,
                                                      const std::vector<std::string>& outputs);

// Returns the arguments for running these outputs of `topology` with the model at `path`. Opens the reader here, into
// the `open` that the topology was made with, so that it numbers names like the model. Warns of the first layer in the
// file that differs from the topology's layer of the same name: the parameters may fit both, but mean something else.
[[nodiscard]] TrainOptions run_of_model(const Host& host, const Job& job, const JobReader& reader,
                                        const std::string& path, const std::vector<std::string>& outputs,
                                        OpenReader& open, Topology& topology, Console& console);

// Calls `work`, which uses parameters of the file at `path` with the layers of the job. If these do not fit each other,
// the failure names the file.
template <typename Work>
auto with_model(const std::string& path, Work work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.component() != "parameters") throw;
    throw Failure(exit_code(error.code()), path + " does not fit the job: " + error.what());
  }
}

}  // namespace tenon::cli
