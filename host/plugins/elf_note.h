// The Tenon note of a shared object, and how it was linked, read without mapping the file or running its code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/system.h"

namespace tenon::host {

using namespace core;

// Returns the JSON text of the file's one note with owner "Tenon" and type 1, at most TN_NOTE_LIMIT bytes. The file is
// untrusted input: every offset and size is checked against its length before anything is allocated. TN_REFUSED if it
// is not a 64-bit shared object for this machine or holds no valid note.
[[nodiscard]] std::string read_note(InputFile& file);

// Throws TN_REFUSED if the file has exception tables but does not need libgcc_s.so.1. Such a plugin has an unwinder of
// its own, which does not find the host's handlers: an exception that leaves the plugin ends the process. Reads the
// file as read_note does; accepts a file without section headers.
void check_unwinder(InputFile& file);

// What the system's loader reads of a shared object to find the libraries that it loads with it.
struct Links {
  std::string soname;               // "" if it has none
  std::vector<std::string> needed;  // names of libraries; of those that DT_FILTER and DT_AUXILIARY name, too
  // Folders of DT_RUNPATH, or without that of DT_RPATH, as they are written: "$ORIGIN/../lib"; "": the working folder.
  std::vector<std::string> search;
  bool inherited = false;  // whether they are of DT_RPATH: the libraries of its libraries are searched there, too
};
// Reads the file as read_note does. TN_REFUSED if a text lies outside of the mapped segments or is too long.
[[nodiscard]] Links read_links(InputFile& file);

}  // namespace tenon::host
