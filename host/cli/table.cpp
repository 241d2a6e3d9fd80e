// SPDX-License-Identifier: Apache-2.0
#include "host/cli/table.h"

#include <algorithm>
#include <numeric>
#include <ostream>
#include <sstream>

#include "base/text.h"
#include "host/cli/cli.h"

namespace tenon::cli {

namespace {

// The columns that a text takes: its characters, of which UTF-8 has several bytes for some.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xc0) != 0x80; }));
}

}  // namespace

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
  constexpr size_t kLeast = 8;  // of a broken column
  std::vector<size_t> result(right_.size());
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i) result[i] = std::max(result[i], width_of(row[i]));
  const size_t sum = std::accumulate(result.begin(), result.end(), 2 * (result.size() - 1));
  for (size_t over = width == 0 || sum <= width ? 0 : sum - width; over > 0; --over) {
    size_t* widest = nullptr;
    for (size_t i = 0; i < result.size(); ++i)
      if (!right_[i] && (widest == nullptr || result[i] > *widest)) widest = &result[i];
    if (widest == nullptr || *widest <= kLeast) break;
    --*widest;
  }
  return result;
}

void Table::print(std::ostream& out, size_t width) const {
  const std::vector<size_t> widths = this->widths(width);
  for (const auto& row : rows_) {
    std::vector<std::istringstream> left;  // the lines of each cell
    for (size_t i = 0; i < row.size(); ++i)
      left.emplace_back(width_of(row[i]) > widths[i] ? wrapped(row[i], widths[i], "") : row[i]);
    for (bool first = true, more = true; first || more; first = false) {
      more = false;
      std::string line;
      for (size_t i = 0; i < row.size(); ++i) {
        std::string cell;
        std::getline(left[i], cell);
        more = more || left[i].peek() != std::istringstream::traits_type::eof();
        const std::string space(widths[i] - std::min(widths[i], width_of(cell)), ' ');
        line += (i == 0 ? "" : "  ") + (right_[i] ? space + cell : cell + space);
      }
      out << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
    }
  }
}

namespace {

// Returns the bytes of a word of more than `width` bytes that a line of its own takes: to the last '/', if there is
// one, and no part of a character.
size_t first_part(const std::string& word, size_t width) {
  const size_t slash = word.rfind('/', width - 1);
  if (slash != std::string::npos && slash > 0) return slash + 1;
  size_t bytes = width;
  while (bytes > 1 && (static_cast<unsigned char>(word[bytes]) & 0xC0U) == 0x80U) --bytes;
  return bytes;
}

}  // namespace

std::string wrapped(const std::string& text, size_t width, const std::string& indent) {
  std::istringstream words(text);
  std::string result, line, word;
  const auto end_line = [&] {
    result += line + "\n" + indent;
    line.clear();
  };
  while (words >> word) {
    if (!line.empty() && line.size() + 1 + word.size() > width) end_line();
    for (; word.size() > width; end_line()) {
      line = word.substr(0, first_part(word, width));
      word.erase(0, line.size());
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
