// Which convolutions the provider takes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "layout.h"

namespace tenon::onednn {

// Returns whether oneDNN is faster than the device cpu by itself. It follows from the processor's class and the shape
// of one sample, so a sample's bits do not depend on the samples beside it.
[[nodiscard]] bool is_faster(const Problem& problem);

}  // namespace tenon::onednn
