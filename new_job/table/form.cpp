// SPDX-License-Identifier: Apache-2.0
#include "new_job/table/form.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "fields.h"
#include "number.h"

namespace tenon::new_job {

namespace {

constexpr size_t kMostRecords = 1000, kMostBytes = 1 << 20;  // of what the form is found from

// Returns the first records, each with padding behind it.
std::vector<std::string> first_records(files::Lines& lines) {
  std::vector<std::string> records;
  size_t bytes = 0;
  lines.for_each_of(0, [&](const files::Line& line) {
    if (line.text.empty()) return true;
    records.emplace_back(line.text).append(files::kPadding, '\0');
    bytes += line.text.size();
    return records.size() < kMostRecords && bytes < kMostBytes;
  });
  return records;
}

std::string_view without_padding(const std::string& record) { return {record.data(), record.size() - files::kPadding}; }

using Records = std::vector<std::vector<std::string>>;

// Returns the fields of the records, without malformed ones.
Records split_all(const std::vector<std::string>& texts, const Form& form) {
  Splitter splitter(form);
  Records records;
  std::vector<std::string> fields;
  for (const std::string& text : texts)
    if (splitter.split(without_padding(text), fields) == nullptr) records.push_back(fields);
  return records;
}

// Returns the delimiter that cuts nearly all records into as many fields as the first one, of several the one with the
// most fields.
char delimiter_of(const std::vector<std::string>& texts) {
  char best = ',';
  size_t most = 1;
  for (const char delimiter : {',', ';', '\t', '|'}) {
    Form form;
    form.delimiter = delimiter;
    const Records records = split_all(texts, form);
    if (records.empty()) continue;
    const size_t fields = records[0].size();
    const auto alike = std::count_if(records.begin(), records.end(), [&](const std::vector<std::string>& record) {
      return record.size() == fields || record.size() == fields + 1;
    });
    if (fields <= most || static_cast<size_t>(alike) * 10 < texts.size() * 9) continue;
    best = delimiter;
    most = fields;
  }
  return best;
}

// Whether the fields count from 0 or 1, as libraries name columns that have no names.
bool counts(const std::vector<std::string>& fields) {
  for (const size_t first : {0, 1}) {
    size_t next = first;
    for (const std::string& field : fields) next += field == std::to_string(next) ? 1 : 0;
    if (next - first + 1 >= fields.size() && fields.size() > 2) return true;  // one may be the target's
  }
  return false;
}

bool is_header(const Records& records, const std::string& target) {
  const std::vector<std::string>& first = records[0];
  if (!target.empty() && std::find(first.begin(), first.end(), target) != first.end()) return true;
  std::string room;
  double value = 0;
  const auto is_value = [&](const std::string& field) { return is_number(field, {}, room, &value); };
  if (std::none_of(first.begin(), first.end(), is_value)) return true;
  return counts(first) && records.size() > 1 && records[1] != first;
}

// Chooses the form in which most columns are numbers; of equal ones that of programs.
void find_number_form(const Records& records, Form& form) {
  size_t most = 0;
  const std::vector<std::pair<char, std::string>> forms = {{'.', ""}, {',', ""}, {'.', ","}, {',', "."}, {'.', " "}};
  for (const auto& [decimal, thousands] : forms) {
    if (decimal == form.delimiter || thousands == std::string(1, form.delimiter)) continue;
    const csv::NumberForm numbers(decimal, thousands);
    std::vector<size_t> values(form.names.size()), texts(form.names.size());
    std::string room;
    double value = 0;
    for (size_t i = form.header ? 1 : 0; i < records.size(); ++i)
      for (size_t k = 0; k < std::min(records[i].size(), values.size()); ++k)
        if (!records[i][k].empty()) ++(is_number(records[i][k], numbers, room, &value) ? values : texts)[k];
    size_t columns = 0;
    for (size_t k = 0; k < values.size(); ++k) columns += values[k] > 10 * texts[k] ? 1 : 0;
    if (columns <= most) continue;
    most = columns;
    form.decimal = decimal;
    form.thousands = thousands;
  }
}

}  // namespace

const char* Splitter::split(std::string_view record, std::vector<std::string>& fields) {
  csv::Fields from(record, delimiter_, true);
  for (size_t count = 0;; ++count) {
    const char* why = nullptr;
    const std::string_view field = from.take(quote_room_, &why);
    if (why != nullptr) return why;
    if (fields.size() <= count) fields.emplace_back();
    fields[count] = encoding_.utf8(csv::trimmed(field, delimiter_), text_room_);
    if (from.done()) {
      fields.resize(count + 1);
      return nullptr;
    }
    from.pass();
  }
}

bool is_number(std::string_view text, const csv::NumberForm& form, std::string& room, double* value) {
  const std::string_view digits = form.plain(text, room);
  const char* const end = digits.data() + digits.size();
  return !digits.empty() && files::read_float(digits.data(), end, value) == end && std::isfinite(*value);
}

files::Lines open_lines(const std::vector<std::string>& paths) {
  files::LineRules rules;
  rules.quote = '"';
  rules.most_bytes = uint64_t{1} << 24;
  files::SourceLimits limits;
  limits.most_inflated = uint64_t{1} << 36;
  return {paths, limits, rules};
}

Form form_of(files::Lines& lines, const std::string& target) {
  const std::vector<std::string> texts = first_records(lines);
  if (texts.empty()) throw tn::Failure(TN_BAD_DATA, lines.path(0), "is empty; expected records of fields");
  Form form;
  form.delimiter = delimiter_of(texts);
  form.latin1 = !std::all_of(texts.begin(), texts.end(), files::is_utf8);
  const Records records = split_all(texts, form);
  if (records.empty())
    throw tn::Failure(TN_BAD_DATA, lines.path(0), "no record of its beginning is sound: is it a table?");
  form.header = is_header(records, target);
  form.names = records[0];
  for (size_t i = 0; i < form.names.size(); ++i)
    if (!form.header || form.names[i].empty()) form.names[i] = "c" + std::to_string(i);
  find_number_form(records, form);
  return form;
}

}  // namespace tenon::new_job
