// SPDX-License-Identifier: Apache-2.0
#include "host/training/team/table_parts.h"

#include <algorithm>
#include <span>
#include <system_error>

#include "core/error.h"
#include "core/files/folder_files.h"
#include "core/files/model_file.h"
#include "core/folder.h"
#include "host/machine/tables/table_owners.h"
#include "host/training/checkpoint_file.h"

namespace tenon::host {

namespace {

namespace fs = std::filesystem;

constexpr const char* kIncomplete = "incomplete";  // the file in a folder of parts that no checkpoint names yet

fs::path folder_of(const std::vector<ModelPart>& parts) { return fs::path(parts.front().file).parent_path(); }

// Removes what a training has written into a folder of parts that was never completed.
void remove_folder(FileSystem& files, const fs::path& folder) {
  std::error_code ignored;
  if (auto* const owner = dynamic_cast<FolderFiles*>(&files)) {
    try {
      owner->remove_leftovers(folder);
    } catch (const Error&) {  // what is left does no harm
    }
  }
  for (const std::string& name : names_in(folder, ignored))
    if (is_part_name(name)) fs::remove(folder / name, ignored);
  fs::remove(folder / kIncomplete, ignored);
  fs::remove(folder, ignored);
}

// Returns the checkpoint whose parts a folder of this name has; empty: none.
std::string checkpoint_of(const std::string& folder) {
  const size_t at = folder.rfind(kPartsEnding);
  return at == std::string::npos || at == 0 ? "" : folder.substr(0, at) + kModelEnding;
}

}  // namespace

TableParts::TableParts(FileSystem& files, Team* team, const ParameterSet& set, fs::path folder)
    : files_(files), team_(team), agreement_(team), set_(set), folder_(std::move(folder)) {}

std::string TableParts::make(const std::string& name) const {
  std::string folder;
  agreement_.together([&] {
    if (!agreement_.leads()) return;
    folder = make_new_folder(folder_, name);
    files_.replace(folder_ / folder / kIncomplete)->commit();
  });
  if (team_ == nullptr) return folder;
  folder.resize(agreement_.of_leader(uint64_t{folder.size()}));
  team_->broadcast(std::as_writable_bytes(std::span(folder)));
  agreement_.together([&] {
    std::error_code failure;
    if (!fs::is_directory(folder_ / folder, failure))
      fail(TN_INVALID, SubjectName{folder_.string()}, "it does not see the folder ", (folder_ / folder).string(),
           ", which process 0 has made: checkpoints of tables need a folder that all processes share");
  });
  return folder;
}

void TableParts::require_shared() const {
  const std::string name = make(parts_folder("shared"));
  if (agreement_.leads()) remove_folder(files_, folder_ / name);
}

std::vector<ModelPart> TableParts::write(FileSystem& files, const std::string& name,
                                         const std::vector<Updater::StateValues>& states) const {
  const std::string folder = make(parts_folder(name));
  const int64_t rank = team_ == nullptr ? 0 : team_->rank();
  const int64_t processes = team_ == nullptr ? 1 : team_->processes();
  const int64_t owners = owners_of(team_), first = processes - owners;
  const auto file = [&](int64_t process) { return folder + '/' + part_name(process - first, owners); };
  constexpr size_t kDigits = 32;  // of a checksum
  std::string checksum(kDigits, '0');
  try {
    agreement_.together([&] {
      if (rank >= first) checksum = write_checkpoint_part(files, folder_ / file(rank), set_, states);
    });
  } catch (const Error&) {
    if (agreement_.leads()) remove_folder(files_, folder_ / folder);
    throw;
  }
  const std::vector<std::string> checksums = agreement_.texts_of_all(checksum);
  std::vector<ModelPart> parts;
  for (int64_t process = first; process < processes; ++process)
    parts.push_back({file(process), owned_blocks(team_, process), checksums[static_cast<size_t>(process)]});
  return parts;
}

void TableParts::complete(const std::vector<ModelPart>& parts) const {
  std::error_code ignored;
  fs::remove(folder_ / folder_of(parts) / kIncomplete, ignored);
}

std::vector<ModelPart> parts_of_checkpoint(FileSystem& files, const fs::path& checkpoint) {
  std::error_code unknown;
  if (!fs::exists(checkpoint, unknown)) return {};
  try {
    return parts_of_model(files, checkpoint);
  } catch (const Error&) {
    return {};
  }
}

void remove_parts(const fs::path& folder, const std::vector<ModelPart>& parts) {
  if (parts.empty()) return;
  std::error_code ignored;
  for (const ModelPart& part : parts) fs::remove(folder / part.file, ignored);
  const fs::path own = folder_of(parts);
  if (own.empty()) return;
  fs::remove(folder / own / kIncomplete, ignored);
  fs::remove(folder / own, ignored);
}

void remove_incomplete_parts(FileSystem& files, const fs::path& folder) {
  std::error_code unknown;
  for (const std::string& name : names_in(folder, unknown)) {
    const std::string checkpoint = checkpoint_of(name);
    if (checkpoint.empty() || !fs::exists(folder / name / kIncomplete, unknown)) continue;
    const bool exists = fs::exists(folder / checkpoint, unknown);
    if (unknown) continue;
    const std::vector<ModelPart> parts =
        exists ? parts_of_checkpoint(files, folder / checkpoint) : std::vector<ModelPart>();
    if (!parts.empty() && folder_of(parts) == name)  // killed between the two
      fs::remove(folder / name / kIncomplete, unknown);
    else
      remove_folder(files, folder / name);
  }
}

}  // namespace tenon::host
