// A path, followed one name at a time as the system follows it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <system_error>

namespace tenon::core {

// A name on the way, with what is there; a link is not followed yet.
struct PathStep {
  const std::filesystem::path& folder;  // in which the name is searched, without links; "." at the first relative name
  const std::filesystem::path& entry;   // the folder and the name
  const struct stat& around;            // of the folder
  const struct stat& status;            // of the entry
  bool last;                            // whether no name is left, but for those of the entry itself if it is a link

  [[nodiscard]] bool is_link() const { return S_ISLNK(status.st_mode); }
};

// Visits each name of a path, those of the links on the way included, in the order in which the system looks them up.
// Returns the path without links, relative if `path` and all links are; ".." may be in it. If a name cannot be looked
// up, `error` says why, and the result is the part of the path before it. A link whose target is absolute starts anew.
std::filesystem::path walk_path(const std::filesystem::path& path, const std::function<void(const PathStep&)>& visit,
                                std::error_code& error);

}  // namespace tenon::core
