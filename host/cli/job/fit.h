// Layers whose buffers are statistics of the training data. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "host/cli/job/topology.h"

namespace tenon::cli {

// Returns the job's immutable parameters and the buffers of the layers in its key "fit", which training keeps. Throws
// Failure for a layer that is unknown or has no buffers.
[[nodiscard]] std::vector<std::string> immutable_parameters(const Job& job, Topology& topology,
                                                            const Parameters& parameters);

// Computes these layers for one pass over [reader.train], in its own order, so that their buffers get the values that
// follow; parameters keep theirs. known: the names by data layer of the reader that trains. Returns the number of
// samples, or -1 if a signal interrupted the pass.
int64_t fit(const Host& host, const Job& job, Topology& topology, const Parameters& parameters,
            const std::vector<Names>& known);

}  // namespace tenon::cli
