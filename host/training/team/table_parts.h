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
// there is one: those of a file stay until another one has replaced it. Process 0 makes and removes folders.
class TableParts : base::NotCopied {
 public:
  // Borrows everything but the path. folder: of the checkpoints.
  TableParts(Team* team, const ParameterSet& set, std::filesystem::path folder);

  // Throws TN_INVALID naming a process that does not see the folder of process 0. Collective.
  void require_shared() const;
  // Writes the part of this process, and returns those of all. states: of the checkpoint. Collective; if one process
  // fails, all throw its error.
  [[nodiscard]] std::vector<ModelPart> write(FileSystem& files, const std::string& name,
                                             const std::vector<Updater::StateValues>& states) const;
  // Process 0: ignoring failures, removes the folders of a checkpoint but that of `kept`.
  static void remove(const std::filesystem::path& folder, const std::string& name,
                     const std::vector<ModelPart>& kept = {});
  // Removes the folders of checkpoints that were never completed.
  static void remove_leftovers(const std::filesystem::path& folder);

 private:
  // Makes a folder whose name begins with `beginning`, the same for all processes, and returns its name. Collective.
  [[nodiscard]] std::string make(const std::string& beginning) const;

  Team* team_;
  const Agreement agreement_;
  const ParameterSet& set_;
  const std::filesystem::path folder_;
};

}  // namespace tenon::host
