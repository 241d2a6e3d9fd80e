// SPDX-License-Identifier: Apache-2.0
#include "host/compile/step_schedule.h"

#include <algorithm>
#include <numeric>

namespace tenon::host {

void StepSchedule::reserve(int64_t rows, int64_t sequences) {
  starts_.reserve(static_cast<size_t>(rows) + 1);
  before_.reserve(static_cast<size_t>(rows));
  sequences_.reserve(static_cast<size_t>(sequences));
  within_.reserve(static_cast<size_t>(sequences));  // a step has a sequence at least
}

void StepSchedule::begin(int64_t sequences) {
  starts_.assign(1, 0);
  before_.clear();
  within_.clear();
  sequences_.resize(static_cast<size_t>(sequences));
  std::iota(sequences_.begin(), sequences_.end(), 0);
}

void StepSchedule::make(const int64_t* offsets, int64_t sequences, bool reverse, const StepTableMemory& tables) {
  begin(sequences);
  static_cast<void>(add(offsets, 0, sequences, reverse, tables));
}

void StepSchedule::make_nested(const StepSchedule& around, const int64_t* offsets, bool reverse,
                               const StepTableMemory& tables) {
  begin(around.elements());
  for (int64_t t = 0; t < around.steps(); ++t)
    within_.push_back(add(offsets, around.start(t), around.running(t), reverse, tables));
}

// Orders the sequences from number `first` on, and adds their steps.
StepRange StepSchedule::add(const int64_t* offsets, int64_t first, int64_t sequences, bool reverse,
                            const StepTableMemory& tables) {
  const auto length = [&](int64_t sequence) { return offsets[sequence + 1] - offsets[sequence]; };
  int64_t* const sorted = sequences_.data() + first;
  std::sort(sorted, sorted + sequences,
            [&](int64_t a, int64_t b) { return length(a) != length(b) ? length(a) > length(b) : a < b; });
  const auto put = [](int64_t* table, int64_t index, int64_t value) {
    if (table != nullptr) table[index] = value;
  };
  const int64_t first_step = steps(), first_element = elements();
  const int64_t initial = offsets[sequences_.size()] + first;  // the state with which the longest sequence begins
  int64_t running = sequences;
  for (int64_t t = 0;; ++t) {
    while (running > 0 && length(sorted[running - 1]) <= t) --running;
    if (running == 0) break;
    const int64_t start = starts_.back(), before = t == 0 ? initial : starts_[starts_.size() - 2];
    for (int64_t i = 0; i < running; ++i) {
      const int64_t row = reverse ? offsets[sorted[i] + 1] - 1 - t : offsets[sorted[i]] + t;
      put(tables.row_of_step, start + i, row);
      put(tables.step_of_row, row, start + i);
      put(tables.sequence_of_step, start + i, sorted[i]);
      put(tables.before, start + i, before + i);
      put(tables.last, sorted[i], start + i);
    }
    starts_.push_back(start + running);
    before_.push_back(before);
  }
  for (int64_t i = 0; i < sequences; ++i) {
    put(tables.initial, sorted[i], initial + i);
    if (length(sorted[i]) == 0) put(tables.last, sorted[i], initial + i);
  }
  return {first_step, steps() - first_step, first, sequences, elements() - first_element};
}

void StepSchedule::make_whole(const int64_t* offsets, const StepRowMemory& tables) const {
  int64_t next = 0;
  for (const int64_t sequence : sequences_)
    for (int64_t row = offsets[sequence]; row < offsets[sequence + 1]; ++row, ++next) {
      tables.row_of_place[next] = row;
      tables.place_of_row[row] = next;
    }
  int64_t end = 0;
  tables.offsets[0] = 0;
  for (int64_t t = 0; t < steps(); ++t) {
    const int64_t begin = end;
    for (int64_t i = 0; i < running(t); ++i) {
      const int64_t sequence = sequences_[static_cast<size_t>(i)];
      end += offsets[sequence + 1] - offsets[sequence];
      tables.offsets[start(t) + i + 1] = end;
    }
    std::iota(tables.place + begin, tables.place + end, 0);
  }
}

void StepSchedule::make_inner(const int64_t* offsets, const int64_t* row_of_step, const StepRowMemory& tables) const {
  int64_t next = 0;
  tables.offsets[0] = 0;
  for (int64_t element = 0; element < elements(); ++element) {
    const int64_t sequence = row_of_step[element];
    for (int64_t row = offsets[sequence]; row < offsets[sequence + 1]; ++row, ++next) {
      tables.row_of_place[next] = row;
      tables.place_of_row[row] = next;
    }
    tables.offsets[element + 1] = next;
  }
}

}  // namespace tenon::host
