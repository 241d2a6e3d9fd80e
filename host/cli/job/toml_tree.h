// The TOML of job files: the strict reader with the program's own failures, and sections whose other keys are
// attributes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "host/cli/job/job.h"
#include "host/toml/section.h"

namespace tenon::cli {

// Returns a Failure(kBadConfig).
[[nodiscard]] std::exception_ptr mistake(const std::string& message);

// Throws Failure(kBadConfig) with file and line if the text is not TOML.
[[nodiscard]] Node parse_toml(std::string_view text, const std::string& path);
// Applies one `--set path=value`; see docs/formats.md.
void apply_set(Node& job, const std::string& argument);
// Whether the argument names a layer that is not in the job.
[[nodiscard]] bool names_unknown_layer(const Node& job, const std::string& argument);

// One table of a job.
class Section : public toml_file::Section {
 public:
  Section(const Node& table, std::string what) : toml_file::Section(table, std::move(what), mistake) {}

  // Adds every key that was not read to `to` as an attribute; keys of tables get dotted names.
  void take_attributes(JobType& to) const;
};

// Reads the key "type" of a section, without attributes.
[[nodiscard]] JobType type_of(Section& section);
// Reads the table of a layer.
[[nodiscard]] JobLayer layer_of(const Node& table);

}  // namespace tenon::cli
