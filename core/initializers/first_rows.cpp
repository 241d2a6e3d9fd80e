// SPDX-License-Identifier: Apache-2.0
#include "core/initializers/first_rows.h"

#include <utility>

#include "core/initializers/initializers.h"

namespace tenon::core {

FirstRows::FirstRows(const tn_initializer& initializer, const Philox& philox, std::vector<int64_t> shape,
                     const TableBlocks& blocks, float* rows)
    : initializer_(initializer),
      philox_(philox),
      shape_(std::move(shape)),
      blocks_(blocks),
      rows_(rows),
      drawn_(static_cast<size_t>(blocks.rows(shape_[0]))),
      missing_(static_cast<int64_t>(drawn_.size())) {
  for (size_t i = 1; i < shape_.size(); ++i) width_ *= static_cast<uint64_t>(shape_[i]);
}

void FirstRows::draw_row(int64_t place) {
  const auto row = static_cast<uint64_t>(blocks_.row(place)), rows = static_cast<uint64_t>(shape_[0]);
  draw_first_values(initializer_, philox_, shape_, {row * width_, width_, rows * width_},
                    rows_ + static_cast<uint64_t>(place) * width_);
  drawn_[static_cast<size_t>(place)] = true;
  --missing_;
}

void FirstRows::draw_all() {
  for (int64_t place = 0; missing_ > 0; ++place) draw(place);
}

}  // namespace tenon::core
