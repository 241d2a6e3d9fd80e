// Compares the training of a checkpoint with the one that is to continue it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tenon::host {

class Registry;

// Appends a line for each difference of two JSON values: 'reader[1].batch: 8 in the checkpoint, 16 now'. Objects of a
// list that have the member "name" are compared by it. path: that of the values, in the lines.
void compare(const std::string& path, const nlohmann::json& stored, const nlohmann::json& present,
             std::vector<std::string>& differences);

// Gives the layers and updaters of a stored run the attributes that their types got since it was written, with their
// defaults: with these a type does what it did before. Types that are unknown now stay as they are.
void add_defaults(nlohmann::json& run, Registry& registry);

// Throws TN_INVALID listing all differences of two runs, {"topology", "seed", ..., "provider"}. inexact: accepts
// differences below "provider", which may change the rounding of results. hint: the end of the message.
void check_same_run(const std::string& file, const nlohmann::json& stored, const nlohmann::json& present, bool inexact,
                    const std::string& hint = {});

}  // namespace tenon::host
