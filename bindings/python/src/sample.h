// Samples of Python readers. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core.h"

namespace tenon_python {

[[nodiscard]] tenon::Schema schema_from(const std::vector<nb::dict>& slots);

// Fills `sample` from a Python value: a dict by slot, a tuple or list in the order of the schema, or, of one slot, its
// value. Throws an error that names `number`, the slot, the type of the value and the slot's.
void fill(tenon::Sample& sample, const tenon::Schema& schema, nb::handle value, int64_t number);

}  // namespace tenon_python
