// The factor of the learning rate at each step. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/training/schedule/rule.h"

namespace tenon::host {

// A function of the step alone, so that a training continues at any step. With w = warm_up the factor is t / w at the
// steps t <= w, and then that of the kind (decays.cpp, cycles.cpp, compositions.cpp) at u = t - w.
class Schedule {
 public:
  // Moves the attributes schedule.<key> out of `attributes`: `type` is the kind, "constant" if it is missing, the
  // others are keys of this kind. TN_INVALID names the attribute; for a key of another kind it lists those of this one.
  static Schedule take(Values& attributes);
  // The names of the attributes of all kinds, for suggestions.
  static std::vector<std::string> names();

  [[nodiscard]] double factor(uint64_t step) const { return rule_(static_cast<double>(step)); }

 private:
  Rule rule_ = [](double /*t*/) { return 1.0; };
};

}  // namespace tenon::host
