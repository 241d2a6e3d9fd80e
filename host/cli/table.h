// Columns of text. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace tenon::cli {

class Table {
 public:
  // A heading that begins with '>' sets its column to the right.
  explicit Table(std::vector<std::string> headings);
  void row(std::vector<std::string> cells);
  void print(std::ostream& out) const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

// Breaks text at spaces into lines of at most `width` characters, each after the first begun with `indent`.
[[nodiscard]] std::string wrapped(const std::string& text, size_t width, const std::string& indent);

}  // namespace tenon::cli
