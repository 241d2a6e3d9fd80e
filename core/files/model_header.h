// The JSON header of a safetensors file: a bounded parser and a writer. Used by model_file.cpp alone; the format is
// specified in docs/model-file.md. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/files/model_file.h"

namespace tenon::core {

constexpr size_t kMaxModelTensors = 262'144;

struct ModelHeader {
  std::map<std::string, std::string> metadata;  // topology and checksum included
  std::vector<ModelTensor> tensors;             // in the order of their data
};

// Parses and checks the header against the `data_bytes` that follow it in the file. Errors are TN_BAD_DATA and begin
// with `file`. Memory use is at most a fixed multiple of the header's length.
[[nodiscard]] ModelHeader parse_model_header(const std::string& json, uint64_t data_bytes, const std::string& file);

// Returns canonical JSON: without white space, keys sorted by their UTF-8 bytes, strings escaped as in RFC 8785. Throws
// TN_INVALID if metadata is not valid UTF-8.
[[nodiscard]] std::string canonical_json(const ModelHeader& header);

// Returns `name` in quotes, escaped and cut after 200 bytes, for messages about names from a file.
[[nodiscard]] std::string quoted(const std::string& name);

}  // namespace tenon::core
