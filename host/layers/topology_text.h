// Topologies as texts for people. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/topology.h"
#include "host/plugins/registry.h"

namespace tenon::host {

using namespace core;

// Returns a topology as a program: blocks with their operators, one a line, inputs first. A block inside is that of the
// steps of a scan, or of one branch, and stands before the operator whose results leave it. The global block begins
// with the parameters. tn_topology_print documents the form. names: of symbolic dimensions.
[[nodiscard]] std::string text_of(const Topology& topology, Registry& registry, const SymbolNames& names);

}  // namespace tenon::host
