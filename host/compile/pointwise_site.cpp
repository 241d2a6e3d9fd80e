// SPDX-License-Identifier: Apache-2.0
#include "host/compile/pointwise_site.h"

#include <utility>

namespace tenon::host {

PointwiseSite::PointwiseSite(const Program& program, tn_dtype compute, std::vector<tn_dtype> inputs,
                             std::vector<tn_dtype> outputs, const Dim& rows, const Dim& columns)
    : program_(program.view()), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  site_.size = sizeof site_;
  site_.compute = compute;
  site_.program = &program_;
  site_.extents = program.extents.data();
  site_.inputs = inputs_.data();
  site_.outputs = outputs_.data();
  site_.rows = rows;
  site_.columns = columns;
}

}  // namespace tenon::host
