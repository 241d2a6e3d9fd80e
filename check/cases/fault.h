// How a check ends early. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace tenon::check {

// Ends a check with a fault of the component, or leaves it out for a reason.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
class Skip : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tenon::check
