// Whether something disturbed a measurement. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "host/cli/bench/measure.h"

namespace tenon::cli {

// Returns the seconds that the processors worked, or that the host of a virtual machine took them, since the system
// began; 0 if the text is not that of /proc/stat.
[[nodiscard]] double busy_seconds(std::istream& stat);

// Watches this machine from its construction on.
class Watch {
 public:
  Watch();
  // Returns which part of all processors others than this process took; 0 where the system does not say.
  [[nodiscard]] double share_of_others() const;

 private:
  double busy_, own_, began_;
};

// Returns what a measurement suffered from, in words: none if it can be trusted. Steps differ by their data; what
// counts are the medians of the four quarters of the measurement.
[[nodiscard]] std::vector<std::string> disturbances(const StepTimes& times);

}  // namespace tenon::cli
