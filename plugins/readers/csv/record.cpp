// SPDX-License-Identifier: Apache-2.0
#include "record.h"

#include <fast_float/fast_float.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace tenon::csv {

namespace {

template <typename T, typename From>
void store_as(From value, uint8_t* to) {
  const auto stored = static_cast<T>(value);
  std::memcpy(to, &stored, sizeof stored);
}

struct Range {
  int64_t low, high;
};

Range range_of(const Type& type) {
  const uint32_t bits = tn_dtype_bits(type.dtype);
  const bool is_signed = tn_dtype_code(type.dtype) == tn_dtype_code(TN_I8);
  const int64_t top = std::numeric_limits<int64_t>::max() >> (64 - bits);  // of a signed one
  Range range = is_signed ? Range{-top - 1, top} : Range{0, 2 * top + 1};
  if (type.limit >= 0) range = {0, std::min(range.high, type.limit - 1)};
  return range;
}

void store_integer(int64_t value, tn_dtype dtype, uint8_t* to) {
  switch (tn_dtype_bytes(dtype)) {  // the bits are the same, signed or not
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

// The text's end where it is a number from its beginning on; the value may be infinite.
template <typename T>
const char* read_float(const char* at, const char* end, T* value) {
  const auto [stop, error] = fast_float::from_chars(at, end, *value);
  return error == std::errc() ? stop : nullptr;
}

[[noreturn]] void fail(const Column& column, const std::string& why) {
  throw BadRecord{"column " + files::quoted(column.name) + ": " + why};
}

}  // namespace

bool MissingRules::is_missing(std::string_view text) const {
  return text.empty() || std::find(texts.begin(), texts.end(), text) != texts.end();
}

std::vector<std::string> RecordParser::split(std::string_view text, size_t count) {
  std::vector<std::string> texts;
  Fields fields{text.data(), text.data() + text.size(), delimiter_};
  while (true) {
    const char* why = nullptr;
    const std::string_view field = fields.take(room_, &why);
    if (why != nullptr) throw BadRecord{"field " + std::to_string(texts.size() + 1) + ": " + why};
    texts.emplace_back(trimmed(field, delimiter_));
    if (fields.done()) break;
    ++fields.at;
  }
  if (count != 0 && texts.size() != count) fail_count(text, count);
  return texts;
}

void RecordParser::fail_count(std::string_view text, size_t expected) {
  throw BadRecord{"expected " + std::to_string(expected) + " fields, got " + std::to_string(split(text, 0).size())};
}

bool RecordParser::lacks_value(std::string_view text) {
  Fields fields{text.data(), text.data() + text.size(), delimiter_};
  bool lacks = false;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i != 0 && fields.done()) return false;
    if (i != 0) ++fields.at;
    const char* why = nullptr;
    const std::string_view field = fields.take(room_, &why);
    if (why != nullptr) return false;
    lacks = lacks || (columns[i].slot >= 0 && missing_.is_missing(trimmed(field, delimiter_)));
  }
  return lacks && fields.done();
}

void RecordParser::parse(std::string_view text, uint8_t* const* slots) {
  Fields fields{text.data(), text.data() + text.size(), delimiter_};
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i != 0 && fields.done()) fail_count(text, columns.size());
    if (i != 0) ++fields.at;
    const Column& column = columns[i];
    uint8_t* const to = column.slot < 0 ? nullptr : slots[column.slot] + column.offset;
    if (to == nullptr || !parse_fast(column, fields, to)) parse_slowly(column, fields, to);
  }
  if (!fields.done()) fail_count(text, columns.size());
}

// A number that is followed by the delimiter at once, as most are. False: nothing was done.
bool RecordParser::parse_fast(const Column& column, Fields& fields, uint8_t* to) const {
  const auto ends = [&](const char* stop) { return stop != nullptr && (stop == fields.end || *stop == delimiter_); };
  const char* stop = nullptr;
  if (column.type.dtype == TN_F32) {
    float value = 0;
    stop = read_float(fields.at, fields.end, &value);
    if (!ends(stop) || !std::isfinite(value)) return false;
    std::memcpy(to, &value, sizeof value);
  } else if (column.type.kind == Kind::kFloat) {
    double value = 0;
    stop = read_float(fields.at, fields.end, &value);
    if (!ends(stop) || !std::isfinite(value)) return false;
    std::memcpy(to, &value, sizeof value);
  } else if (column.type.kind == Kind::kInteger) {
    int64_t value = 0;
    const auto [at, error] = std::from_chars(fields.at, fields.end, value);
    const Range range = range_of(column.type);
    if (error != std::errc() || !ends(at) || value < range.low || value > range.high) return false;
    store_integer(value, column.type.dtype, to);
    stop = at;
  } else {
    return false;
  }
  fields.at = stop;
  return true;
}

// Everything else: quotes, spaces, a plus sign, what is missing, categories, and damage. to: null to skip the field.
void RecordParser::parse_slowly(const Column& column, Fields& fields, uint8_t* to) {
  const char* why = nullptr;
  std::string_view text = fields.take(room_, &why);
  if (why != nullptr) fail(column, why);
  if (to == nullptr) return;
  text = trimmed(text, delimiter_);
  if (missing_.is_missing(text)) {
    if (missing_.policy != Missing::kValue) fail(column, "the value is missing");
    return put_missing(column, to);
  }
  if (column.type.kind == Kind::kCategory) {
    int32_t number = vocabularies[column.vocabulary].find(text);
    if (number < 0) number = column.other;
    if (number < 0) fail(column, files::quoted(text) + " is not in the vocabulary");
    return store_integer(number, TN_I32, to);
  }
  std::string_view digits = text;
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  const char* const end = digits.data() + digits.size();
  if (column.type.kind == Kind::kFloat) {
    double value = 0;
    if (read_float(digits.data(), end, &value) != end) fail(column, "expected a number, got " + files::quoted(text));
    const bool narrow = column.type.dtype == TN_F32;
    if (!std::isfinite(value) || (narrow && !std::isfinite(static_cast<float>(value))))
      fail(column, files::quoted(text) + " is not a finite number of its type");
    float single = 0;
    if (!narrow) return store_as<double>(value, to);
    read_float(digits.data(), end, &single);  // rounded once
    return store_as<float>(single, to);
  }
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  const Range range = range_of(column.type);
  if (stop != end || error == std::errc::invalid_argument)
    fail(column, "expected a whole number, got " + files::quoted(text));
  if (error != std::errc() || value < range.low || value > range.high)
    fail(column, "expected a whole number from " + std::to_string(range.low) + " to " + std::to_string(range.high) +
                     ", got " + files::quoted(text));
  store_integer(value, column.type.dtype, to);
}

void RecordParser::put_missing(const Column& column, uint8_t* to) const {
  if (column.type.kind == Kind::kCategory) return store_integer(column.other, TN_I32, to);
  if (column.type.kind == Kind::kInteger)
    return store_integer(static_cast<int64_t>(missing_.value), column.type.dtype, to);
  if (column.type.dtype == TN_F32) return store_as<float>(missing_.value, to);
  store_as<double>(missing_.value, to);
}

void RecordParser::check_missing_value() const {
  for (const Column& column : columns) {
    if (column.slot < 0 || column.type.kind != Kind::kInteger) continue;
    const Range range = range_of(column.type);
    constexpr double kExact = 9007199254740992;  // whole numbers up to here are doubles
    if (!(std::fabs(missing_.value) <= kExact) || std::trunc(missing_.value) != missing_.value ||
        static_cast<int64_t>(missing_.value) < range.low || static_cast<int64_t>(missing_.value) > range.high)
      throw tn::Failure(TN_INVALID, "missing_value",
                        "column " + files::quoted(column.name) + " needs a whole number from " +
                            std::to_string(range.low) + " to " + std::to_string(range.high));
  }
}

}  // namespace tenon::csv
