// The record of a training: one file of JSON in a folder, which `tenon train --run` writes and `tenon rerun` reads.
// docs/rerun.md describes it, host/cli/record/schema.json its members. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tenon::cli {

constexpr int kRecordFormat = 1;
constexpr const char* kRecordFile = "record.json";

// Returns the path of the record in a folder.
[[nodiscard]] std::string record_path(const std::string& folder);
// Throws Failure naming the file: kNotFound or kIo if it cannot be read, kBadData if it is not a record or of a newer
// format.
[[nodiscard]] nlohmann::json read_record(const std::string& folder);
// Writes the record, which is whole at any time. Throws Error as tn_file_replace.
void write_record(const std::string& folder, const nlohmann::json& record);

}  // namespace tenon::cli
