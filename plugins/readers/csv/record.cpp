// Parses the records of CSV files. SPDX-License-Identifier: Apache-2.0
#include "record.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "number.h"

namespace tenon::csv {

namespace {

template <typename T, typename From>
void store_as(From value, uint8_t* to) {
  const auto stored = static_cast<T>(value);
  std::memcpy(to, &stored, sizeof stored);
}

void store_integer(int64_t value, tn_dtype dtype, uint8_t* to) {
  switch (tn_dtype_bytes(dtype)) {  // signed and unsigned have the same bits
    case 1:
      return store_as<uint8_t>(value, to);
    case 2:
      return store_as<uint16_t>(value, to);
    case 4:
      return store_as<uint32_t>(value, to);
    default:
      return store_as<int64_t>(value, to);
  }
}

[[noreturn]] void fail(const Column& column, const std::string& why) {
  throw BadRecord{"column " + files::quoted(column.name) + ": " + why};
}

// Throws for a text that does not fit the column's type; says so if the type was inferred.
[[noreturn]] void fail_text(const Column& column, std::string_view text, const std::string& why) {
  if (column.sampled == 0) fail(column, why);
  fail(column, why + "; its type was inferred from the first " + std::to_string(column.sampled) +
                   " records: " + column.advice(text));
}

}  // namespace

void Column::set_type(const Type& resolved) {
  type = resolved;
  if (type.kind != Kind::kInteger) return;
  const int64_t top = std::numeric_limits<int64_t>::max() >> (64 - tn_dtype_bits(type.dtype));  // of a signed type
  const bool is_signed = tn_dtype_code(type.dtype) == tn_dtype_code(TN_I8);
  low = is_signed ? -top - 1 : 0;
  high = is_signed ? top : 2 * top + 1;
  if (type.limit >= 0) low = 0, high = std::min(high, type.limit - 1);
}

std::string Column::advice(std::string_view text) const {
  const std::string_view digits = files::without_plus(text);
  const char* const end = digits.data() + digits.size();
  double value = 0;
  const bool number = files::read_float(digits.data(), end, &value) == end && std::isfinite(value);
  const char* const fitting = std::isfinite(static_cast<float>(value)) || !number ? "f32" : "f64";
  constexpr size_t kMost = 200;  // of a name: the type behind it must be seen
  const auto declared = [&](const char* as) { return files::quoted(entry + ": " + as, kMost); };
  std::string result = "declare it as " + declared(fitting);
  if (number) return result;
  result += ", with missing_texts = [" + files::quoted(text) + "] where that means missing";
  return joined ? result : result + ", or as " + declared("category");
}

bool MissingRules::is_missing(std::string_view text) const {
  return text.empty() || std::find(texts.begin(), texts.end(), text) != texts.end();
}

std::vector<std::string> RecordParser::split(std::string_view text, size_t count) {
  std::vector<std::string> texts;
  Fields fields(text, delimiter_);
  while (true) {
    const char* why = nullptr;
    const std::string_view field = fields.take(room_, &why);
    if (why != nullptr) throw BadRecord{"field " + std::to_string(texts.size() + 1) + ": " + why};
    texts.emplace_back(trimmed(field, delimiter_));
    if (fields.done()) break;
    fields.pass();
  }
  if (count != 0 && texts.size() != count) fail_count(text, count);
  return texts;
}

void RecordParser::fail_count(std::string_view text, size_t expected) {
  throw BadRecord{"expected " + std::to_string(expected) + " fields, got " + std::to_string(split(text, 0).size())};
}

bool RecordParser::lacks_value(std::string_view text) {
  Fields fields(text, delimiter_);
  bool lacks = false;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i != 0 && fields.done()) return false;
    if (i != 0) fields.pass();
    const char* why = nullptr;
    const std::string_view field = fields.take(room_, &why);
    if (why != nullptr) return false;
    lacks = lacks || (columns[i].slot >= 0 && missing_.is_missing(trimmed(field, delimiter_)));
  }
  return lacks && fields.done();
}

void RecordParser::prepare() {
  runs_.clear();
  for (size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    const bool goes_on =
        i != 0 && column.slot == columns[i - 1].slot &&
        (column.slot < 0 || column.offset == columns[i - 1].offset + tn_dtype_bytes(column.type.dtype));
    if (goes_on)
      ++runs_.back().count;
    else
      runs_.push_back({i, 1, column.slot < 0 ? &RecordParser::parse_others : loop_of(column.type)});
  }
}

auto RecordParser::loop_of(const Type& type) -> decltype(Run::parse) {
  if (type.kind == Kind::kFloat && type.dtype == TN_F32) return &RecordParser::parse_floats<float>;
  if (type.kind == Kind::kFloat) return &RecordParser::parse_floats<double>;
  if (type.kind != Kind::kInteger) return &RecordParser::parse_others;
  switch (tn_dtype_bytes(type.dtype)) {  // signed and unsigned have the same bits
    case 1:
      return &RecordParser::parse_integers<uint8_t>;
    case 2:
      return &RecordParser::parse_integers<uint16_t>;
    case 4:
      return &RecordParser::parse_integers<uint32_t>;
    default:
      return &RecordParser::parse_integers<int64_t>;
  }
}

void RecordParser::parse(std::string_view text, uint8_t* const* slots) {
  Fields fields(text, delimiter_);
  for (const Run& run : runs_) {
    const Column& column = columns[run.first];
    (this->*run.parse)(run, fields, column.slot < 0 ? nullptr : slots[column.slot] + column.offset);
  }
  if (!fields.done()) fail_count(text, columns.size());
}

// Moves from the end of the field before to the beginning of that of column number `column`.
void RecordParser::begin_field(size_t column, Fields& fields) {
  if (column == 0) return;
  if (fields.done()) fail_count(fields.record(), columns.size());
  fields.pass();
}

// The loops of the runs parse numbers that reach from delimiter to delimiter, as most do, and leave others to
// parse_slowly. to: the first of the run.
template <typename T>
void RecordParser::parse_floats(const Run& run, Fields& fields, uint8_t* to) {
  for (size_t i = run.first; i < run.first + run.count; ++i, to += sizeof(T)) {
    begin_field(i, fields);
    const char* const stop = fields.stop();
    T value = 0;
    if (files::read_short_float(fields.at(), stop, &value) ||
        (files::read_float(fields.at(), stop, &value) == stop && std::isfinite(value))) {
      std::memcpy(to, &value, sizeof value);
      fields.move(stop);
    } else {
      parse_slowly(columns[i], fields, to);
    }
  }
}

template <typename T>
void RecordParser::parse_integers(const Run& run, Fields& fields, uint8_t* to) {
  const int64_t low = columns[run.first].low, high = columns[run.first].high;
  for (size_t i = run.first; i < run.first + run.count; ++i, to += sizeof(T)) {
    begin_field(i, fields);
    const char* const stop = fields.stop();
    int64_t value = 0;
    if (files::read_short_integer(fields.at(), stop, &value) && value >= low && value <= high) {
      store_as<T>(value, to);
      fields.move(stop);
    } else {
      parse_slowly(columns[i], fields, to);
    }
  }
}

void RecordParser::parse_others(const Run& run, Fields& fields, uint8_t* to) {
  for (size_t i = run.first; i < run.first + run.count; ++i) {
    begin_field(i, fields);
    parse_slowly(columns[i], fields, to);
  }
}

// Parses all other fields: quotes, spaces, plus signs, missing values, categories, and damage. to: null to skip the
// field.
void RecordParser::parse_slowly(const Column& column, Fields& fields, uint8_t* to) {
  const char* why = nullptr;
  std::string_view text = fields.take(room_, &why);
  if (why != nullptr) fail(column, why);
  if (to == nullptr) return;
  text = trimmed(text, delimiter_);
  if (missing_.is_missing(text)) {
    if (missing_.policy != Missing::kValue)
      fail(column, "the value is missing; missing = \"value\" or \"skip\" says what to do with it");
    if (column.type.limit >= 0) fail(column, "the value is missing, and missing_value fills no column with a limit");
    return put_missing(column, to);
  }
  if (column.type.kind == Kind::kCategory) {
    int32_t number = vocabularies[column.vocabulary].find(text);
    if (number < 0) number = column.unknown;
    if (number < 0) fail(column, files::quoted(text) + " is not in the vocabulary");
    return store_integer(number, TN_I32, to);
  }
  const std::string_view digits = files::without_plus(text);
  const char* const end = digits.data() + digits.size();
  if (column.type.kind == Kind::kFloat) {
    double value = 0;
    if (files::read_float(digits.data(), end, &value) != end)
      fail_text(column, text, "expected a number, got " + files::quoted(text));
    const bool narrow = column.type.dtype == TN_F32;
    if (!std::isfinite(value) || (narrow && !std::isfinite(static_cast<float>(value))))
      fail_text(column, text, files::quoted(text) + " is not a finite number of its type");
    float single = 0;
    if (!narrow) return store_as<double>(value, to);
    files::read_float(digits.data(), end, &single);  // from the text, so that it is rounded once
    return store_as<float>(single, to);
  }
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument)
    fail_text(column, text, "expected a whole number, got " + files::quoted(text));
  if (error != std::errc() || value < column.low || value > column.high)
    fail_text(column, text,
              "expected a whole number from " + std::to_string(column.low) + " to " + std::to_string(column.high) +
                  ", got " + files::quoted(text));
  store_integer(value, column.type.dtype, to);
}

void RecordParser::put_missing(const Column& column, uint8_t* to) const {
  if (column.type.kind == Kind::kCategory) return store_integer(column.absent, TN_I32, to);
  if (column.type.kind == Kind::kInteger)
    return store_integer(static_cast<int64_t>(missing_.value), column.type.dtype, to);
  if (column.type.dtype == TN_F32) return store_as<float>(missing_.value, to);
  store_as<double>(missing_.value, to);
}

void RecordParser::check_missing_value() const {
  for (const Column& column : columns) {
    if (column.slot < 0 || column.type.kind != Kind::kInteger || column.type.limit >= 0) continue;
    constexpr double kExact = 9007199254740992;  // 2^53: whole numbers up to it are exact doubles
    if (!(std::fabs(missing_.value) <= kExact) || std::trunc(missing_.value) != missing_.value ||
        static_cast<int64_t>(missing_.value) < column.low || static_cast<int64_t>(missing_.value) > column.high)
      throw tn::Failure(TN_INVALID, "missing_value",
                        "column " + files::quoted(column.name) + " needs a whole number from " +
                            std::to_string(column.low) + " to " + std::to_string(column.high));
  }
}

}  // namespace tenon::csv
