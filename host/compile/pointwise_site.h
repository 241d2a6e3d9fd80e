// Describes a pointwise program to a device, for steps and updates. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <vector>

#include "base/not_copied.h"
#include "core/program.h"
#include "core/shape.h"

namespace tenon::host {

using namespace core;

// A tn_pointwise_site with the arrays that it points to. Borrows the program. Not movable: the site points into this
// object.
class PointwiseSite : base::NotCopied {
 public:
  // compute: the type of floats, TN_F32 or TN_F64. inputs, outputs: element types of the program's operands.
  PointwiseSite(const Program& program, tn_dtype compute, std::vector<tn_dtype> inputs, std::vector<tn_dtype> outputs,
                const Dim& rows, const Dim& columns);
  [[nodiscard]] const tn_pointwise_site* get() const { return &site_; }

 private:
  tn_program program_;
  std::vector<tn_dtype> inputs_, outputs_;
  tn_pointwise_site site_ = {};
};

}  // namespace tenon::host
