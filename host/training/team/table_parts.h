// The folders of checkpoints in which each process of a team writes the rows of tables that it owns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/files/model_parts.h"
#include "core/parameter_set.h"
#include "core/system.h"
#include "host/training/team/agreement.h"
#include "host/training/updater.h"

namespace tenon::host {

using namespace core;

// The parts of the checkpoint NAME.safetensors lie in the folder NAME.parts beside it, or in NAME.parts-1 and so on if
// there is one. A file in it says that it is incomplete, until the checkpoint that names the parts is there. Process 0
// makes and removes folders.
class TableParts : base::NotCopied {
 public:
  // Borrows all but the path. team: null: this process owns all rows. folder: of the checkpoints.
  TableParts(FileSystem& files, Team* team, const ParameterSet& set, std::filesystem::path folder);

  // Throws TN_INVALID naming a process that does not see the folder of process 0. Collective.
  void require_shared() const;
  // Writes the part of this process, and returns those of all. files: to write with. states: of the checkpoint.
  // Collective; if one process fails, nothing is left, and all throw its error.
  [[nodiscard]] std::vector<ModelPart> write(FileSystem& files, const std::string& name,
                                             const std::vector<Updater::StateValues>& states) const;
  // Process 0, when the checkpoint that names them is there.
  void complete(const std::vector<ModelPart>& parts) const;

 private:
  // Makes a folder whose name begins with `name`, the same for all processes, and returns its name. Collective.
  [[nodiscard]] std::string make(const std::string& name) const;

  FileSystem& files_;
  Team* team_;
  const Agreement agreement_;
  const ParameterSet& set_;
  const std::filesystem::path folder_;
};

// Returns the parts that a checkpoint names; none if it is not there, or cannot be read.
[[nodiscard]] std::vector<ModelPart> parts_of_checkpoint(FileSystem& files, const std::filesystem::path& checkpoint);
// Removes the parts of a checkpoint that is not there any more, and their folder if nothing else is in it. Ignores
// failures.
void remove_parts(const std::filesystem::path& folder, const std::vector<ModelPart>& parts);
// Removes the folders that were never completed, when nobody else writes checkpoints into the folder.
void remove_incomplete_parts(FileSystem& files, const std::filesystem::path& folder);

}  // namespace tenon::host
