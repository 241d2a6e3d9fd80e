// Columns of text. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

// A table printed in aligned columns.
class Table {
 public:
  // A heading that begins with '>' aligns its column to the right.
  explicit Table(std::vector<std::string> headings);
  void row(std::vector<std::string> cells);
  // width: that of the terminal, for which cells of the widest left columns are broken; 0: unlimited.
  void print(std::ostream& out, size_t width = 0) const;

 private:
  [[nodiscard]] std::vector<size_t> widths(size_t width) const;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

// Breaks text at spaces, and longer words anywhere, into lines of at most `width` characters, at least 1. Each line but
// the first begins with `indent`.
[[nodiscard]] std::string wrapped(const std::string& text, size_t width, const std::string& indent);

// Returns a list of names as the text of a cell, "-" for one that is left out: "a, -, b".
[[nodiscard]] std::string names_in(const nlohmann::json& names, std::string_view between = ", ");

}  // namespace tenon::cli
