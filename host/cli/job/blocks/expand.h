// Blocks of layers: [[block]] defines one, a layer of type "block" uses it. docs/formats.md describes both.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "host/cli/job/job.h"
#include "host/toml/node.h"

namespace tenon::cli {

// Replaces each layer of type "block" in `job` by the layers of its block, and removes the blocks. Returns what the
// names of the replaced layers stand for. Throws Failure(kBadConfig) with the places of the layer and of the block. The
// result is bounded, and known to be so before any of it is made.
std::map<std::string, JobBlock> expand_blocks(Node& job);

}  // namespace tenon::cli
