// The columns of the files of the reader "csv". SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "csv.h"
#include "number.h"

namespace tenon::csv {

// Returns the fields of the first line of a file; without a header they are as many columns.
std::vector<std::string> Csv::header_of(size_t file) {
  std::vector<std::string> found;
  lines_.for_each_of(file, [&](const files::Line& line) {
    if (is_empty(line)) return true;
    check_line_end(line);
    parsing(line, [&] { found = parser_.split(line.text, 0); });
    if (header_) check_header(line, found);
    return false;
  });
  if (found.empty() && header_) throw tn::Failure(TN_BAD_DATA, lines_.path(file), "empty; expected a header");
  return found;
}

std::vector<std::string> Csv::names_of(size_t file, const tn::ReaderOpen& open) {
  std::vector<std::string> names = header_of(file);
  const std::string hint = names.size() == 1 ? hint_of_delimiter(names[0]) : std::string();
  for (size_t i = 0; i < names.size(); ++i)
    if (!header_ || names[i].empty()) names[i] = "c" + std::to_string(i);
  if (!open.attributes().has("names")) return names;
  std::vector<std::string> given = open.attributes().texts("names");
  if (header_) throw tn::Failure(TN_INVALID, "names", "the files have a header; set header = false");
  if (!names.empty() && given.size() > names.size() && lacks_labels(given, names.size(), open))
    given.resize(names.size());
  if (!names.empty() && given.size() != names.size())
    throw tn::Failure(TN_INVALID, "names",
                      "expected " + std::to_string(names.size()) + " names, one for each column, got " +
                          std::to_string(given.size()) + (hint.empty() ? "" : "; " + hint));
  for (const std::string& name : given)
    if (const char* const fault = files::name_fault(name))
      throw tn::Failure(TN_INVALID, "names", files::quoted(name) + " " + fault);
  return given;
}

// Whether files of `count` columns lack the last ones of these names, and with them the slots that are not needed, such
// as the tags of sentences. If only some of those are among the last, the names may be those of other columns.
bool Csv::lacks_labels(const std::vector<std::string>& names, size_t count, const tn::ReaderOpen& open) {
  const tn::Attributes attributes = open.attributes();
  if (!attributes.has("columns")) return false;
  const std::vector<SlotColumns> slots = slot_columns(attributes.texts("columns"), names, open, true);
  const auto fits = [&](const SlotColumns& slot) {
    const bool needed = open.needed(slot.name);
    return std::all_of(slot.columns.begin(), slot.columns.end(),
                       [&](size_t column) { return (column < count) == needed; });
  };
  const auto needed = [&](const SlotColumns& slot) { return open.needed(slot.name); };
  return std::all_of(slots.begin(), slots.end(), fits) && !std::all_of(slots.begin(), slots.end(), needed);
}

// Finds the columns of all files, those of the first file first, and their order in each file.
void Csv::find_columns(const tn::ReaderOpen& open) {
  for (size_t file = 0; file < lines_.files(); ++file) {
    const bool like_first = !header_ && !parser_.columns.empty();  // a record with other fields is damaged
    const std::vector<std::string> names = like_first ? header_of(file) : names_of(file, open);
    if (like_first || names.empty()) {
      layout_of_.push_back(0);
      continue;
    }
    std::unordered_set<std::string_view> seen;
    for (const std::string& name : names) {
      files::check_cancel(open.cancel(), lines_.path(file));
      if (!seen.insert(name).second)
        throw tn::Failure(header_ ? TN_BAD_DATA : TN_INVALID, header_ ? lines_.path(file) : "names",
                          "two columns are named " + files::quoted(name));
    }
    add_layout(names);
  }
  if (parser_.columns.empty()) throw tn::Failure(TN_BAD_DATA, lines_.path(0), "empty; its columns are unknown");
  if (header_) find_trailing_fields();
}

// Adds a column without a name to the files whose records end with a delimiter, unlike their header.
void Csv::find_trailing_fields() {
  const size_t column = parser_.columns.size();
  for (size_t file = 0; file < lines_.files(); ++file) {
    std::vector<size_t> layout = parser_.layouts[layout_of_[file]];
    bool header = true, trails = false;
    lines_.for_each_of(file, [&](const files::Line& line) {
      if (line.text.empty() || std::exchange(header, false)) return true;
      try {
        const std::vector<std::string> fields = parser_.split(line.text, 0);
        trails = fields.size() == layout.size() + 1 && fields.back().empty();
      } catch (const BadRecord&) {  // which is refused when it is read
      }
      return false;
    });
    if (!trails) continue;
    parser_.columns.resize(column + 1);
    parser_.columns.back().trailing = true;
    layout.push_back(column);
    use_layout(file, std::move(layout));
  }
}

void Csv::use_layout(size_t file, std::vector<size_t> layout) {
  const auto at = std::find(parser_.layouts.begin(), parser_.layouts.end(), layout);
  layout_of_.resize(std::max(layout_of_.size(), file + 1));
  layout_of_[file] = static_cast<size_t>(at - parser_.layouts.begin());
  if (at == parser_.layouts.end()) parser_.layouts.push_back(std::move(layout));
}

void Csv::add_layout(const std::vector<std::string>& names) {
  std::unordered_map<std::string, size_t> numbers;
  for (size_t i = 0; i < parser_.columns.size(); ++i) numbers.emplace(parser_.columns[i].name, i);
  std::vector<size_t> layout;
  for (const std::string& name : names) {
    const auto known = numbers.find(name);
    layout.push_back(known == numbers.end() ? parser_.columns.size() : known->second);
    if (known == numbers.end()) parser_.columns.emplace_back().name = name;
  }
  if (first_columns_ == 0) first_columns_ = parser_.columns.size();
  use_layout(layout_of_.size(), std::move(layout));
}

// Each file must have the columns that are used; if slots take all columns, none beside those of the first file.
void Csv::check_layouts(bool all) const {
  for (size_t file = 0; file < lines_.files(); ++file) {
    std::vector<uint8_t> has(parser_.columns.size());
    for (const size_t column : parser_.layouts[layout_of_[file]]) has[column] = 1;
    for (size_t i = 0; i < has.size(); ++i) {
      const bool extra = all && i >= first_columns_ && has[i] != 0 && !parser_.columns[i].trailing;
      if (!extra && (parser_.columns[i].slot < 0 || has[i] != 0)) continue;
      throw tn::Failure(TN_BAD_DATA, lines_.path(file),
                        "its header differs from that of " + lines_.path(0) + ": it has " + (extra ? "the" : "no") +
                            " column " + files::quoted(parser_.columns[i].name));
    }
  }
}

// Checks the first line: if lines end with "\r" alone, as on old Macs, the whole file would be one line.
void Csv::check_line_end(const files::Line& line) {
  bool quoted = false;
  for (size_t i = 0; i + 1 < line.text.size(); ++i) {
    quoted = quoted != (line.text[i] == '"');
    if (line.text[i] == '\r' && !quoted)
      throw lines_.failure(line,
                           "a carriage return with text behind it: lines must end with \"\\n\" or \"\\r\\n\", not "
                           "with \"\\r\" alone");
  }
}

void Csv::warn(const tn::ReaderOpen& open, const std::string& message) const {
  const tn_services& services = *open.get()->services;
  const auto* const log = static_cast<const tn_log*>(services.extension(services.self, TN_LOG));
  constexpr int32_t kWarning = 2;
  if (log != nullptr && open.shard().number == 0)
    log->write(log->self, kWarning, (lines_.path(0) + ": " + message).c_str());
}

// Warns of a header that is a record, and of one whose fields another delimiter separates.
void Csv::check_names(const tn::ReaderOpen& open) {
  if (!header_) return;
  const auto is_number = [&](const Column& column) {
    std::string room;
    const std::string_view digits = parser_.form().plain(column.name, room);
    double value = 0;
    const char* const end = digits.data() + digits.size();
    return !digits.empty() && files::read_float(digits.data(), end, &value) == end;
  };
  const std::vector<Column>& columns = parser_.columns;
  std::vector<std::string> names;
  for (size_t i = 0; i < first_columns_; ++i) names.push_back(columns[i].name);
  if (std::all_of(columns.begin(), columns.begin() + static_cast<ptrdiff_t>(first_columns_), is_number))
    warn(open, "line 1 names the columns, but its fields are numbers: " + files::listed(names) +
                   "; if it is a record, set header = false");
  if (first_columns_ != 1) return;
  header_hint_ = hint_of_delimiter(names[0]);
  if (header_hint_.empty()) header_hint_ = hint_of_title(names[0]);
  if (!header_hint_.empty()) warn(open, "has one column; " + header_hint_);
}

// How to skip a header of one field if it is a comment or a title: the line behind it has several. "" if it has not.
std::string Csv::hint_of_title(const std::string& field) {
  size_t count = 0;
  bool header = true;
  lines_.for_each_of(0, [&](const files::Line& line) {
    if (is_empty(line) || std::exchange(header, false)) return true;
    try {
      count = parser_.split(line.text, 0).size();
    } catch (const BadRecord&) {  // which is refused when it is read
    }
    return false;
  });
  if (count < 2) return "";
  const std::string fields = "the line behind it has " + std::to_string(count) + " fields: ";
  const bool comment = field[0] == '#' || field[0] == '%';
  return fields + (comment ? std::string("comment = \"") + field[0] + "\" leaves out lines that begin so"
                           : "skip_lines = 1 skips a title");
}

// The delimiter that makes several fields of the only one of a first line; "" if there is none.
std::string Csv::hint_of_delimiter(const std::string& field) const {
  for (const std::string other : {"::", ";", ",", "\t", "|"}) {
    size_t count = 0;
    for (size_t at = 0; (at = field.find(other, at)) != std::string::npos; at += other.size()) ++count;
    if (other[0] == parser_.delimiter() || count == 0) continue;
    return "delimiter = \"" + (other == "\t" ? "\\t" : other) + "\" makes " + std::to_string(count + 1) +
           " columns of the " + (header_ ? "header " : "first line ") + files::quoted(field);
  }
  return "";
}

// Refuses names that cannot be names of slots, which hosts read as C strings and write as JSON, or of files.
void Csv::check_header(const files::Line& line, const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i)
    if (const char* const fault = files::name_fault(names[i]))
      throw lines_.failure(
          line, "column " + std::to_string(i + 1) + ": its name " + files::quoted(names[i]) + " " + fault +
                    (files::is_utf8(names[i]) ? "" : files::kOtherEncoding) +
                    (names[i].find('\t') == std::string::npos ? "" : "; delimiter = \"\\t\" separates fields at tabs"));
}

}  // namespace tenon::csv
