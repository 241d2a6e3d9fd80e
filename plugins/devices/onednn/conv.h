// The table tenon.conv/1 of oneDNN. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device_images.h>

namespace tenon::onednn {

// Its functions get a Library as `device`.
extern const tn_conv_table conv_table;

}  // namespace tenon::onednn
