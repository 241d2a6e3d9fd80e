// Windows over images: checks and shapes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

namespace tenon::core {

// Throws TN_INVALID, naming `what` and the number at fault, if a number of the window is out of its range, if the
// window is larger than the images, or if the elements of the images or of the places of a sample are too many.
void check_window(const char* what, const tn_window& window);

// Returns constant dimensions of these sizes.
[[nodiscard]] Shape space_of(const int64_t* sizes, int32_t rank);

// Returns the places of a window along each dimension.
[[nodiscard]] Shape places_of(const tn_window& window);

// Returns the last dimension of `spec`, the channels, which must be floats [first, space..., channels] with constant
// sizes but for the first; TN_INVALID naming `what` and both shapes if it is not. first: its name, for the message.
int64_t channels_of(const char* what, const Spec& spec, const Shape& space, const char* first = "samples");

// Returns [first, space..., last].
[[nodiscard]] Shape around(const Dim& first, const Shape& space, int64_t last);

}  // namespace tenon::core
