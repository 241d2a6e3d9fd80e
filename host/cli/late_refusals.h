// Plugins that a host refuses when it loads their code, for a machine that does without them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <tenon/tenon.hpp>

namespace tenon::cli {

class LateRefusals {
 public:
  // host: lives as long as this.
  explicit LateRefusals(const Host& host);
  // Prints those since this was made.
  void warn() const;

 private:
  const Host& host_;
  std::set<std::string> files_;  // refused before
};

}  // namespace tenon::cli
