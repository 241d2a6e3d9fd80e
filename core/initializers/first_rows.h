// First values of the rows of a table that one process owns. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/layer.h>

#include <cstdint>
#include <vector>

#include "core/philox.h"
#include "core/table_rows.h"

namespace tenon::core {

// Draws each row when somebody first asks for it: a training on a table of many gigabytes begins at once, and takes no
// memory for rows that nobody reads.
class FirstRows {
 public:
  // shape: of the whole table. rows: [blocks.rows(shape[0]), row], borrowed.
  FirstRows(const tn_initializer& initializer, const Philox& philox, std::vector<int64_t> shape,
            const TableBlocks& blocks, float* rows);

  void draw(int64_t place) {
    if (missing_ > 0 && !drawn_[static_cast<size_t>(place)]) draw_row(place);
  }
  void draw_all();
  // After somebody has written all rows.
  void drop() { missing_ = 0; }

 private:
  void draw_row(int64_t place);

  tn_initializer initializer_;
  Philox philox_;
  std::vector<int64_t> shape_;
  TableBlocks blocks_;
  float* rows_;
  uint64_t width_ = 1;       // elements of a row
  std::vector<bool> drawn_;  // by place
  int64_t missing_;          // rows
};

}  // namespace tenon::core
