// In place of cuDNN where its headers are absent. SPDX-License-Identifier: Apache-2.0
#include "dnn.h"

namespace tenon::cuda {

std::shared_ptr<Dnn> open_dnn(const Context& /*context*/, int /*capability*/, std::string* why) {
  *why = "the plugin was built without the headers of cuDNN";
  return nullptr;
}

void put_dnn_before(Device& /*device*/, const tn_conv& /*conv*/, tn_prepared* /*prepared*/) {}

}  // namespace tenon::cuda
