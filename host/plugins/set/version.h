// Versions of plugins, and intervals of them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace tenon::host {

using namespace core;

// Orders two versions as Semantic Versioning 2.0 does, for any text: parts between dots, numbers before words, numbers
// by value, missing parts as 0, a pre-release ("1.2.0-rc.1") before its release; what follows "+" has no weight.
[[nodiscard]] std::strong_ordering compare_versions(std::string_view a, std::string_view b);

// Bounds between commas, all of which hold: ">=0.1, <0.3". A version alone, or after "=", is the only one.
class VersionInterval {
 public:
  VersionInterval() = default;  // every version
  // Throws TN_BAD_CONFIG with the part that is wrong.
  explicit VersionInterval(const std::string& given);

  [[nodiscard]] bool contains(std::string_view version) const;
  // Whether the text of a plugin's version can stand in an interval.
  [[nodiscard]] static bool is_version(std::string_view text);
  // As it was written; "" for every version.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  struct Bound {
    std::string sign;  // "=", ">=", ">", "<=", "<"
    std::string version;
  };
  std::string text_;
  std::vector<Bound> bounds_;
};

}  // namespace tenon::host
