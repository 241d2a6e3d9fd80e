// The record of a training: one file of JSON in a folder (docs/rerun.md, docs/record.schema.json).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace tenon::record {

constexpr int kRecordFormat = 1;
constexpr const char* kRecordFile = "record.json";

// kOther: the record of another training, or of one that cannot be repeated. kDiffers: this training gives other
// values.
enum class Fault { kMissing, kIo, kBadData, kOther, kDiffers };

// What the program or the library lends to its records.
struct Surroundings {
  std::string version;                                                            // of it
  std::function<void(Fault, const std::string& message)> refuse;                  // throws its own exception
  std::function<void(const std::string& path, const std::string& text)> replace;  // writes a file, whole at any time
};

// Returns the path of the record in a folder.
[[nodiscard]] std::string record_path(const std::string& folder);
// Refuses a file that cannot be read, is not a record, or is of a newer format, by its name.
[[nodiscard]] nlohmann::json read_record(const Surroundings& surroundings, const std::string& folder);
void write_record(const Surroundings& surroundings, const std::string& folder, const nlohmann::json& record);
// Refuses records whose training cannot be repeated.
void require_repeatable(const Surroundings& surroundings, const nlohmann::json& record, const std::string& folder);

// Returns {bytes, sha256, block_bytes, blocks}: SHA-256 of all bytes, and XXH3 with 128 bits of each block, so many
// that a change is located. Refuses a file that cannot be read, as `path`.
[[nodiscard]] nlohmann::json digest_of_file(const Surroundings& surroundings, const std::string& file,
                                            const std::string& path);

}  // namespace tenon::record
