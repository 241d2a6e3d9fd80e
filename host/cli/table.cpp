// SPDX-License-Identifier: Apache-2.0
#include "host/cli/table.h"

#include <algorithm>
#include <ostream>
#include <sstream>

#include "base/text.h"
#include "host/cli/cli.h"

namespace tenon::cli {

Table::Table(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    right_.push_back(heading.rfind('>', 0) == 0);
    if (right_.back()) heading.erase(0, 1);
  }
  rows_.push_back(std::move(headings));
}

void Table::row(std::vector<std::string> cells) {
  cells.resize(right_.size());
  for (std::string& cell : cells) cell = plain(cell);
  rows_.push_back(std::move(cells));
}

// Returns the widths of the columns.
std::vector<size_t> Table::widths(size_t width) const {
  constexpr size_t kLeast = 16;  // of a broken column
  std::vector<size_t> result(right_.size());
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i) result[i] = std::max(result[i], row[i].size());
  size_t widest = result.size(), sum = 2 * (result.size() - 1);
  for (size_t i = 0; i < result.size(); ++i) {
    sum += result[i];
    if (!right_[i] && (widest == result.size() || result[i] > result[widest])) widest = i;
  }
  if (width > 0 && sum > width && widest < result.size())
    result[widest] = std::min(result[widest], std::max(kLeast, result[widest] - std::min(sum - width, result[widest])));
  return result;
}

void Table::print(std::ostream& out, size_t width) const {
  const std::vector<size_t> widths = this->widths(width);
  for (const auto& row : rows_) {
    std::vector<std::istringstream> left;  // the lines of each cell
    for (size_t i = 0; i < row.size(); ++i)
      left.emplace_back(row[i].size() > widths[i] ? wrapped(row[i], widths[i], "") : row[i]);
    for (bool first = true, more = true; first || more; first = false) {
      more = false;
      std::string line;
      for (size_t i = 0; i < row.size(); ++i) {
        std::string cell;
        std::getline(left[i], cell);
        more = more || left[i].peek() != std::istringstream::traits_type::eof();
        const std::string space(widths[i] - std::min(widths[i], cell.size()), ' ');
        line += (i == 0 ? "" : "  ") + (right_[i] ? space + cell : cell + space);
      }
      out << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
    }
  }
}

std::string wrapped(const std::string& text, size_t width, const std::string& indent) {
  std::istringstream words(text);
  std::string result, line, word;
  while (words >> word) {
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      result += line + "\n" + indent;
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return result + line;
}

std::string names_in(const nlohmann::json& names, std::string_view between) {
  const auto shown = [](const nlohmann::json& each) {
    const auto name = each.get<std::string>();
    return name.empty() ? "-" : name;
  };
  return base::joined(names, shown, between);
}

}  // namespace tenon::cli
