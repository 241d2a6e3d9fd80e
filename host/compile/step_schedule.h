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

// Consecutive steps of a schedule, the sequences that they go through, and the elements of these steps.
struct StepRange {
  int64_t first_step = 0, steps = 0;
  int64_t first_sequence = 0, sequences = 0;
  int64_t elements = 0;
};

// Where the elements of each step lie in values of all steps.
class StepSchedule {
 public:
  // Reserves room for as many rows and sequences, so that `make` does not allocate.
  void reserve(int64_t rows, int64_t sequences);
  // Orders the sequences and writes the tables. offsets: [sequences + 1], checked.
  void make(const int64_t* offsets, int64_t sequences, bool reverse, const StepTableMemory& tables);
  // The same for a nested order, whose sequences are the elements of `around`: those of each step of it apart.
  void make_nested(const StepSchedule& around, const int64_t* offsets, bool reverse, const StepTableMemory& tables);
  // Writes the tables of the whole sequences that steps see. offsets: of these sequences, as many as of the schedule.
  void make_whole(const int64_t* offsets, const StepRowMemory& tables) const;
  // Writes the tables of sub-sequences. offsets: of these, one for each row; row_of_step: of the schedule.
  void make_inner(const int64_t* offsets, const int64_t* row_of_step, const StepRowMemory& tables) const;

  [[nodiscard]] int64_t steps() const { return static_cast<int64_t>(starts_.size()) - 1; }
  // The first element of step t, and the number of sequences that run at it; t is in [0, steps()).
  [[nodiscard]] int64_t start(int64_t t) const { return starts_[static_cast<size_t>(t)]; }
  [[nodiscard]] int64_t running(int64_t t) const { return start(t + 1) - start(t); }
  // The first of the states that the step before left to step t, or with which the sequences of step t begin.
  [[nodiscard]] int64_t before(int64_t t) const { return before_[static_cast<size_t>(t)]; }
  // All elements: the number of rows.
  [[nodiscard]] int64_t elements() const { return starts_.back(); }
  [[nodiscard]] StepRange all() const { return {0, steps(), 0, static_cast<int64_t>(sequences_.size()), elements()}; }
  // Of a nested order: the steps within step t of the order around.
  [[nodiscard]] const StepRange& within(int64_t t) const { return within_[static_cast<size_t>(t)]; }

 private:
  void begin(int64_t sequences);
  StepRange add(const int64_t* offsets, int64_t first, int64_t sequences, bool reverse, const StepTableMemory& tables);

  std::vector<int64_t> starts_ = {0}, before_;
  std::vector<int64_t> sequences_;  // longest first; of a nested order for each step around
  std::vector<StepRange> within_;
};

}  // namespace tenon::host
