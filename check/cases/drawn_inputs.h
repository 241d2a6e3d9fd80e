// Plausible inputs for the ports of a layer type. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <cstdint>
#include <vector>

#include "check/cases/layer_case.h"

namespace tenon::check {

struct Port {
  uint32_t flags;  // TN_PORT_*
  [[nodiscard]] bool is(uint32_t flag) const { return (flags & flag) != 0; }
};

// The ports of a manifest that are connected: all required ones, `variadic` values of a variadic port; with `optional`
// the optional ones.
[[nodiscard]] std::vector<Port> ports_of(const json& inputs, bool optional, size_t variadic);

// The shapes that a port may have beside an input of the shape `base`, the likeliest first.
[[nodiscard]] std::vector<std::vector<int64_t>> shapes_beside(const std::vector<int64_t>& base, bool integers);

// How the inputs are stored.
enum class Storage { kDense, kSequences, kFirstSequences, kLastSequences, kNested, kSparse };

// Appends all lists of inputs for these ports over one base shape; integers are below `below`.
void add_inputs(const std::vector<Port>& ports, const std::vector<int64_t>& base, Storage storage, int64_t below,
                std::vector<std::vector<InputSpec>>& to);

}  // namespace tenon::check
