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

// What reads the fields of a column that are numbers and nothing else, as most are. Parameters: the column, the field,
// the result.
template <typename T>
struct FloatRead {
  using Value = T;
  static bool read(const Column&, const char* at, const char* stop, T* value) {
    return files::read_short_float(at, stop, value) ||
           (files::read_float(at, stop, value) == stop && std::isfinite(*value));
  }
};

template <typename T>  // unsigned, also for signed types: they have the same bits
struct IntegerRead {
  using Value = T;
  static bool read(const Column& column, const char* at, const char* stop, T* value) {
    int64_t whole = 0;
    const bool good = files::read_short_integer(at, stop, &whole) && whole >= column.low && whole <= column.high;
    *value = static_cast<T>(whole);
    return good;
  }
};

struct NoRead {
  using Value = uint8_t;
  static bool read(const Column&, const char*, const char*, uint8_t*) { return false; }
};

// Calls with(read) with what reads the column.
template <typename With>
auto with_quick_read(const Column& column, const With& with) {
  const Type& type = column.type;
  if (column.slot < 0 || type.kind == Kind::kCategory) return with(NoRead());
  if (type.dtype == TN_F32) return with(FloatRead<float>());
  if (type.kind == Kind::kFloat) return with(FloatRead<double>());
  switch (tn_dtype_bytes(type.dtype)) {
    case 1:
      return with(IntegerRead<uint8_t>());
    case 2:
      return with(IntegerRead<uint16_t>());
    case 4:
      return with(IntegerRead<uint32_t>());
    default:
      return with(IntegerRead<uint64_t>());
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
    texts.emplace_back(utf8(field));
    if (fields.done()) break;
    fields.pass();
  }
  if (count != 0 && texts.size() != count) fail_count(text, count);
  return texts;
}

void RecordParser::fail_count(std::string_view text, size_t expected) {
  throw BadRecord{"expected " + std::to_string(expected) + " fields, got " + std::to_string(split(text, 0).size())};
}

std::vector<std::string> RecordParser::by_column(std::string_view text, size_t layout) {
  const std::vector<size_t>& of = layouts[layout];
  std::vector<std::string> fields = split(text, of.size()), result(columns.size());
  for (size_t i = 0; i < of.size(); ++i) result[of[i]].swap(fields[i]);
  return result;
}

bool RecordParser::lacks_value(std::string_view text, size_t layout) {
  Fields fields(text, delimiter_);
  bool lacks = false;
  const std::vector<size_t>& of = layouts[layout];
  for (size_t i = 0; i < of.size(); ++i) {
    if (i != 0 && fields.done()) return false;
    if (i != 0) fields.pass();
    const char* why = nullptr;
    const std::string_view field = fields.take(room_, &why);
    if (why != nullptr) return false;
    lacks = lacks || (columns[of[i]].slot >= 0 && missing_.is_missing(utf8(field)));
  }
  return lacks && fields.done();
}

template <typename Read>
size_t RecordParser::parse_quickly(const Column& column, const Run& run, size_t field, Fields& fields, uint8_t* to) {
  Fields local = fields;  // in registers
  size_t i = field;
  for (; i < run.end; ++i) {
    if (i != 0 && local.done()) fail_count(local.record(), run.all);
    if (i != 0) local.pass();
    const char* const stop = local.stop();
    typename Read::Value value{};
    if (!Read::read(column, local.at(), stop, &value)) break;
    std::memcpy(to + (i - run.first) * sizeof value, &value, sizeof value);
    local.move(stop);
  }
  fields = local;
  return i;
}

void RecordParser::prepare() {
  runs_.assign(layouts.size(), {});
  for (size_t i = 0; i < layouts.size(); ++i) prepare(layouts[i], runs_[i]);
}

void RecordParser::prepare(const std::vector<size_t>& layout, std::vector<Run>& runs) const {
  for (size_t i = 0; i < layout.size(); ++i) {
    const Column& column = columns[layout[i]];
    const Column* const before = i == 0 ? nullptr : &columns[layout[i - 1]];
    const bool goes_on = before != nullptr && column.slot == before->slot &&
                         (column.slot < 0 || column.offset == before->offset + tn_dtype_bytes(column.type.dtype));
    if (!goes_on)
      runs.push_back({i, i,
                      with_quick_read(column, [](auto read) { return &RecordParser::parse_quickly<decltype(read)>; }),
                      layout.size()});
    ++runs.back().end;
  }
}

void RecordParser::parse(std::string_view text, size_t layout, uint8_t* const* slots) {
  const std::vector<size_t>& of = layouts[layout];
  Fields fields(text, delimiter_);
  for (const Run& run : runs_[layout]) {
    const auto to = [&](size_t i) {
      const Column& column = columns[of[i]];
      return column.slot < 0 ? nullptr : slots[column.slot] + column.offset;
    };
    const Column& column = columns[of[run.first]];
    uint8_t* const first = to(run.first);
    for (size_t i = run.first; (i = (this->*run.quickly)(column, run, i, fields, first)) != run.end; ++i)
      parse_slowly(columns[of[i]], fields, to(i));
  }
  if (!fields.done()) fail_count(text, of.size());
}

// Parses all other fields: quotes, spaces, plus signs, missing values, categories, and damage. to: null to skip the
// field.
void RecordParser::parse_slowly(const Column& column, Fields& fields, uint8_t* to) {
  const char* why = nullptr;
  const std::string_view text = fields.take(room_, &why);
  if (why != nullptr) fail(column, why);
  if (to != nullptr) put_text(column, utf8(text), to);
}

void RecordParser::put_text(const Column& column, std::string_view text, uint8_t* to) const {
  if (missing_.is_missing(text)) {
    if (missing_.policy != Missing::kValue)
      fail(column, "the value is missing; missing = \"value\" or \"skip\" says what to do with it");
    if (column.type.limit >= 0) fail(column, "the value is missing, and missing_value fills no column with a limit");
    return put_missing(column, to);
  }
  if (column.type.kind == Kind::kCategory) {
    int32_t number = vocabularies[column.vocabulary].find(text);
    if (number < 0 && !files::is_utf8(text)) fail(column, files::not_utf8(text));
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
