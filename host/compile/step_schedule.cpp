// SPDX-License-Identifier: Apache-2.0
#include "host/compile/step_schedule.h"

#include <algorithm>
#include <numeric>

namespace tenon::host {

void StepSchedule::reserve(int64_t rows, int64_t sequences) {
  starts_.reserve(static_cast<size_t>(rows) + 1);
  sequences_.reserve(static_cast<size_t>(sequences));
}

void StepSchedule::make(const int64_t* offsets, int64_t sequences, bool reverse, const StepTableMemory& tables) {
  const auto length = [&](int64_t sequence) { return offsets[sequence + 1] - offsets[sequence]; };
  sequences_.resize(static_cast<size_t>(sequences));
  std::iota(sequences_.begin(), sequences_.end(), 0);
  std::sort(sequences_.begin(), sequences_.end(),
            [&](int64_t a, int64_t b) { return length(a) != length(b) ? length(a) > length(b) : a < b; });
  const auto put = [](int64_t* table, int64_t index, int64_t value) {
    if (table != nullptr) table[index] = value;
  };
  const int64_t rows = offsets[sequences];
  starts_.assign(1, 0);
  int64_t running = sequences;
  for (int64_t t = 0;; ++t) {
    while (running > 0 && length(sequences_[static_cast<size_t>(running) - 1]) <= t) --running;
    if (running == 0) break;
    const int64_t start = starts_.back();
    for (int64_t i = 0; i < running; ++i) {
      const int64_t sequence = sequences_[static_cast<size_t>(i)];
      const int64_t row = reverse ? offsets[sequence + 1] - 1 - t : offsets[sequence] + t;
      put(tables.row_of_step, start + i, row);
      put(tables.step_of_row, row, start + i);
      put(tables.sequence_of_step, start + i, sequence);
      put(tables.before, start + i, t == 0 ? rows + i : starts_[starts_.size() - 2] + i);
      put(tables.last, sequence, start + i);
    }
    starts_.push_back(start + running);
  }
  for (int64_t i = 0; i < sequences; ++i) {
    const int64_t sequence = sequences_[static_cast<size_t>(i)];
    put(tables.initial, sequence, rows + i);
    if (length(sequence) == 0) put(tables.last, sequence, rows + i);
  }
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
