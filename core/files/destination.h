// The file that a save replaces: links are followed, but not those that another user may have planted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace tenon::core {

// Whether another user may have put an entry into a folder where everybody may: the folder is sticky and writable by
// all, and the entry belongs neither to `user` nor to the owner of the folder. This is the rule by which Linux refuses
// to follow links, and to open files and FIFOs, where fs.protected_symlinks, protected_regular and protected_fifos ask
// for it.
[[nodiscard]] bool may_be_planted(const struct stat& entry, const struct stat& folder, uid_t user);

// Returns the path to replace so that the file `path` gets new contents: the target of a link to an existing file, else
// the name itself. Throws TN_INVALID if the path names no file, TN_IO if it leads through a link that another user may
// have planted, or to a file that another user may have: then the target would be the choice of this user. user: whose
// own entries are trusted.
[[nodiscard]] std::filesystem::path destination(const std::filesystem::path& path, uid_t user = ::geteuid());

}  // namespace tenon::core
