// The files that an attribute names. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <tenon/reader.hpp>
#include <vector>

namespace tenon::files {

// Returns the paths of `names`, relative to the folder of relative attributes. "-" is standard input, of at most
// most_input bytes. A name that begins with "~/" lies in the home folder. A name with *, ? or [ in it, of no file that
// exists, is a pattern: it stands for the files that fit it, in the order of their bytes. Throws TN_NOT_FOUND on a
// pattern without files.
[[nodiscard]] std::vector<std::string> paths_of(const std::vector<std::string>& names, uint64_t most_input,
                                                const tn::ReaderOpen& open);

}  // namespace tenon::files
