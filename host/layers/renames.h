// Names in job and model files that were changed. Files of earlier versions keep the old names and are read by this
// table; whatever is written has the new ones. SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon::host {

struct Rename {
  const char* before;
  const char* now;
};

// Keys of the host attributes param.<suffix>.<key>.
inline constexpr Rename kParameterKeyRenames[] = {{"learning_rate", "rate_multiplier"}, {"decay", "decay_multiplier"}};

}  // namespace tenon::host
