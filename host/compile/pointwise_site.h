// The call of a pointwise program, as steps and updates prepare it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <vector>

#include "core/program.h"
#include "core/shape.h"

namespace tenon {

// A tn_pointwise_site and what it points to; borrows the program. Fixed in place.
class PointwiseSite {
 public:
  // Types of the program's inputs and outputs. Floats are computed in float64 where an output is, else in float32.
  PointwiseSite(const Program& program, std::vector<tn_dtype> inputs, std::vector<tn_dtype> outputs, const Dim& rows,
                const Dim& columns);
  PointwiseSite(const PointwiseSite&) = delete;
  PointwiseSite& operator=(const PointwiseSite&) = delete;
  [[nodiscard]] const tn_pointwise_site* get() const { return &site_; }

 private:
  tn_program program_;
  std::vector<tn_dtype> inputs_, outputs_;
  tn_pointwise_site site_ = {};
};

}  // namespace tenon
