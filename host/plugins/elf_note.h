// The Tenon note of a shared object, read without mapping the file or running its code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/seams.h"

namespace tenon {

// The JSON text of the file's one note with owner "Tenon" and type 1, at most TN_NOTE_LIMIT bytes. The file is
// hostile input: every offset and size is checked against its length, and nothing is allocated before that.
// TN_REFUSED when it is no 64-bit shared object for this machine or holds no sound note.
[[nodiscard]] std::string read_note(InputFile& file);

}  // namespace tenon
