// How the data of a training was read, as model files keep it (docs/model-file.md). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "host/cli/job/job.h"

namespace tenon::cli {

inline constexpr const char* kReaderMetadata = "tenon.reader";  // the key of the text

// Returns the table of a reader as TOML, without what says where the data is, divides or orders it, or is written.
[[nodiscard]] std::string reader_metadata(const JobReader& reader);
// Returns the table from the text of the model file at `path`. Throws Failure: kBadConfig if it is not TOML, kBadData
// if it has a key that reader_metadata leaves out, such as that of a file to write.
[[nodiscard]] Node reader_table(std::string_view text, const std::string& path);

}  // namespace tenon::cli
