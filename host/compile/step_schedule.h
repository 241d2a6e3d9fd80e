// The steps of scans over ragged sequences, for one minibatch. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/graph.h"

namespace tenon::host {

using namespace core;

// The memory of the tables of a StepOrder; null: nothing reads the table.
struct StepTableMemory {
  int64_t *row_of_step = nullptr, *step_of_row = nullptr, *sequence_of_step = nullptr, *before = nullptr,
          *last = nullptr, *initial = nullptr;
};

// The memory of the tables of StepRows; `place` of whole sequences alone.
struct StepRowMemory {
  int64_t *offsets = nullptr, *row_of_place = nullptr, *place_of_row = nullptr, *place = nullptr;
};

// Where the elements of each step lie in values of all steps.
class StepSchedule {
 public:
  // Reserves room for as many rows and sequences, so that `make` does not allocate.
  void reserve(int64_t rows, int64_t sequences);
  // Orders the sequences and writes the tables. offsets: [sequences + 1], checked.
  void make(const int64_t* offsets, int64_t sequences, bool reverse, const StepTableMemory& tables);
  // Writes the tables of the whole sequences that steps see. offsets: of these sequences, as many as of the schedule.
  void make_whole(const int64_t* offsets, const StepRowMemory& tables) const;
  // Writes the tables of sub-sequences. offsets: of these, one for each row; row_of_step: of the schedule.
  void make_inner(const int64_t* offsets, const int64_t* row_of_step, const StepRowMemory& tables) const;

  [[nodiscard]] int64_t steps() const { return static_cast<int64_t>(starts_.size()) - 1; }
  // The first element of step t, and the number of sequences that run at it; t is in [0, steps()).
  [[nodiscard]] int64_t start(int64_t t) const { return starts_[static_cast<size_t>(t)]; }
  [[nodiscard]] int64_t running(int64_t t) const { return start(t + 1) - start(t); }
  // All elements: the number of rows.
  [[nodiscard]] int64_t elements() const { return starts_.back(); }

 private:
  std::vector<int64_t> starts_ = {0};
  std::vector<int64_t> sequences_;  // longest first
};

}  // namespace tenon::host
