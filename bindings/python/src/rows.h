// Arrays as readers. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core.h"
#include "sample.h"

namespace tenon_python {

// A reader of the samples of arrays, one for each slot: rows of dense arrays, sequences, or sparse vectors. The arrays
// are not copied; the lock of the interpreter is not needed to read.
[[nodiscard]] Reader open_rows(const tenon::Host& host, const std::vector<nb::dict>& options,
                               const std::vector<Values*>& columns);

}  // namespace tenon_python
