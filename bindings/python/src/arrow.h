// Columns of Arrow as Python holds them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "field.h"
#include "form.h"
#include "interpreter.h"

namespace tenon_python {

// A column that was taken; with its end its memory goes.
struct ArrowColumn {
  tenon_arrow::Column column;
};
// The owner of the memory of arrays that were made of a column.
struct ArrowSamples {
  tenon_arrow::Samples samples;
};
// A column that is exported.
struct ArrowField {
  tenon_arrow::FieldRef field;
};

}  // namespace tenon_python
