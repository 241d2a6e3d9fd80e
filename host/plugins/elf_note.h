// The Tenon note of a shared object, and how it was linked, read without mapping the file or running its code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

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

}  // namespace tenon::host
