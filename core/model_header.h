// The JSON header of a safetensors file: a bounded parser and a writer. Used by model_file.cpp alone; the format is
// specified in docs/model-file.md. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/model_file.h"

namespace tenon {

struct ModelHeader {
  std::map<std::string, std::string> metadata;  // all of it
  std::vector<ModelTensor> tensors;             // in the order of their data
};

// Parses and checks the header against the `data_bytes` that follow it in the file. Errors are TN_BAD_DATA and begin
// with `file`. The memory that it takes is at most a fixed multiple of the header's length.
[[nodiscard]] ModelHeader parse_model_header(const std::string& json, uint64_t data_bytes, const std::string& file);

// Canonical JSON: no white space, keys sorted by their UTF-8 bytes, strings escaped as in RFC 8785. Throws TN_INVALID
// for metadata that is not valid UTF-8.
[[nodiscard]] std::string canonical_json(const ModelHeader& header);

// In quotes, escaped and cut to a bearable length: for messages about names that come from a file.
[[nodiscard]] std::string quoted(const std::string& name);

}  // namespace tenon
