// The training that a job describes, for the verbs that train. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/cli/job/topology.h"

namespace tenon::cli {

// Returns what every training of the job has, but for the parameters: outputs, updaters, reader, feeding, seed and
// device. Throws Failure(kBadConfig) if there is no cost among the outputs. train: [reader.train], opened, from which
// `topology` was made.
[[nodiscard]] TrainOptions training_of(const Host& host, const Job& job, const OpenReader& train, Topology& topology);

}  // namespace tenon::cli
