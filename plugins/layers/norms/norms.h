// The layers of the other files, and what layers share. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.hpp>
#include <vector>

namespace tenon::norms {

// Records (x - mean) / sqrt(variance + epsilon) with mean and variance (divided by the number of columns) of each row,
// times scale plus shift where operands has them: x [rows, columns], whose first `leading` dimensions are rows; scale
// and shift [columns].
tn::Tensor normalised_rows(double epsilon, tn::Builder& body, const std::vector<tn::Tensor>& operands, int32_t leading);

void add_batch_norm(tn::Plugin& plugin);
void add_group_norms(tn::Plugin& plugin);
void add_standardize(tn::Plugin& plugin);
void add_lengths(tn::Plugin& plugin);

}  // namespace tenon::norms
