// The kinds of schedules, as tables. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>

#include "host/training/updater_attributes.h"

namespace tenon::host {

// The factor of the learning rate at step t, which counts from 1.
using Rule = std::function<double(double t)>;

struct ScheduleKind {
  const char* name;
  std::array<const char*, 6> keys;          // that `make` reads; null: none
  Rule (*make)(UpdaterAttributes& reader);  // the factor at step u > 0 after the warm-up
  bool has_parts = false;                   // one of the keys lists names below which there are schedules
};

// Those that end at a number and stay there, and those that decay for ever.
[[nodiscard]] std::span<const ScheduleKind> decays();
// Those that rise and fall.
[[nodiscard]] std::span<const ScheduleKind> cycles();
// Those made of several others.
[[nodiscard]] std::span<const ScheduleKind> compositions();

// Reads the schedule that is `part` of a composition.
[[nodiscard]] Rule read_part(UpdaterAttributes part);

}  // namespace tenon::host
