// SPDX-License-Identifier: Apache-2.0
#include "host/compile/pointwise_site.h"

#include <algorithm>

namespace tenon::host {

PointwiseSite::PointwiseSite(const Program& program, std::vector<tn_dtype> inputs, std::vector<tn_dtype> outputs,
                             const Dim& rows, const Dim& columns)
    : program_(program.view()), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  const bool wide = std::find(outputs_.begin(), outputs_.end(), TN_F64) != outputs_.end();
  site_.size = sizeof site_;
  site_.compute = wide ? TN_F64 : TN_F32;
  site_.program = &program_;
  site_.extents = program.extents.data();
  site_.inputs = inputs_.data();
  site_.outputs = outputs_.data();
  site_.rows = rows;
  site_.columns = columns;
}

}  // namespace tenon::host
