// SPDX-License-Identifier: Apache-2.0
#include "host/training/team/table_parts.h"

#include <algorithm>
#include <cstdio>
#include <span>
#include <system_error>

#include "base/text.h"
#include "core/error.h"
#include "core/folder.h"
#include "host/machine/tables/table_owners.h"
#include "host/training/checkpoint_file.h"

namespace tenon::host {

namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".safetensors";

// Returns what the names of the folders of a checkpoint begin with: "checkpoint-2-40.parts".
std::string beginning_of(const std::string& name) { return fs::path(name).replace_extension(".parts").string(); }

bool is_part_name(const std::string& name) {
  int process = 0, processes = 0;
  // NOLINTNEXTLINE(cert-err34-c): three digits fit
  return std::sscanf(name.c_str(), "%3d-of-%3d.safetensors", &process, &processes) == 2 &&
         name == part_name(process, processes);
}

// Removes a folder that has parts alone, with these.
void remove_folder(const fs::path& folder) {
  std::error_code ignored;
  for (const std::string& name : names_in(folder, ignored))
    if (is_part_name(name)) fs::remove(folder / name, ignored);
  fs::remove(folder, ignored);
}

// Whether a name is that of a folder of parts; sets the beginning of it that names the checkpoint.
bool is_folder_name(const std::string& name, std::string& checkpoint) {
  constexpr std::string_view kParts = ".parts";
  const size_t at = name.rfind(kParts);
  if (at == std::string::npos || at == 0) return false;
  const std::string number = name.substr(at + kParts.size());
  checkpoint = name.substr(0, at);
  return number.empty() ||
         (number.size() > 1 && number[0] == '-' && number.find_first_not_of("0123456789", 1) == std::string::npos);
}

template <typename Chosen>
void remove_folders(const fs::path& folder, const Chosen& chosen) {
  std::error_code ignored;
  for (const std::string& name : names_in(folder, ignored))
    if (std::string checkpoint; is_folder_name(name, checkpoint) && chosen(name, checkpoint))
      remove_folder(folder / name);
}

}  // namespace

TableParts::TableParts(Team* team, const ParameterSet& set, fs::path folder)
    : team_(team), agreement_(team), set_(set), folder_(std::move(folder)) {}

std::string TableParts::make(const std::string& beginning) const {
  std::string name;
  agreement_.together([&] {
    if (agreement_.leads()) name = make_new_folder(folder_, beginning);
  });
  name.resize(agreement_.of_leader(uint64_t{name.size()}));
  team_->broadcast(std::as_writable_bytes(std::span(name)));
  agreement_.together([&] {
    std::error_code failure;
    if (!fs::is_directory(folder_ / name, failure))
      fail(TN_INVALID, SubjectName{folder_.string()}, "it does not see the folder ", (folder_ / name).string(),
           ", which process 0 has made: checkpoints of tables need a folder that all processes share");
  });
  return name;
}

void TableParts::require_shared() const {
  const std::string name = make("shared.parts");
  if (agreement_.leads()) remove_folder(folder_ / name);
}

std::vector<ModelPart> TableParts::write(FileSystem& files, const std::string& name,
                                         const std::vector<Updater::StateValues>& states) const {
  const std::string folder = make(beginning_of(name));
  const int64_t owners = team_->servers() == 0 ? team_->processes() : team_->servers();
  const int64_t first = team_->processes() - owners;
  const auto file = [&](int64_t process) { return folder + '/' + part_name(process - first, owners); };
  constexpr size_t kDigits = 32;  // of a checksum
  std::string checksum(kDigits, '0');
  agreement_.together([&] {
    if (team_->rank() >= first) checksum = write_checkpoint_part(files, folder_ / file(team_->rank()), set_, states);
  });
  const std::vector<std::string> checksums = agreement_.texts_of_all(checksum);
  std::vector<ModelPart> parts;
  for (int64_t process = first; process < team_->processes(); ++process)
    parts.push_back({file(process), owned_blocks(team_, process), checksums[static_cast<size_t>(process)]});
  return parts;
}

void TableParts::remove(const fs::path& folder, const std::string& name, const std::vector<ModelPart>& kept) {
  const std::string checkpoint = fs::path(name).stem().string();
  const std::string stays = kept.empty() ? "" : fs::path(kept.front().file).parent_path().string();
  remove_folders(folder,
                 [&](const std::string& each, const std::string& its) { return its == checkpoint && each != stays; });
}

void TableParts::remove_leftovers(const fs::path& folder) {
  remove_folders(folder, [&](const std::string&, const std::string& checkpoint) {
    std::error_code unknown;
    return !fs::exists(folder / (checkpoint + kEnding), unknown);
  });
}

}  // namespace tenon::host
