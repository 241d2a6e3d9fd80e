// Parses the records of CSV files. SPDX-License-Identifier: Apache-2.0
#include "record.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "number.h"
#include "words.h"

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
auto with_quick_read(const Column& column, const NumberForm& form, const With& with) {
  const Type& type = column.type;
  const bool number = type.kind == Kind::kFloat || type.kind == Kind::kInteger;
  if (column.slot < 0 || !number || !type.separator.empty()) return with(NoRead());
  if (type.kind == Kind::kFloat && !form.is_plain()) return with(NoRead());
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

// Throws for a text that does not fit the column's type; says so if the type was inferred. digits: the text as a
// number.
[[noreturn]] void fail_text(const Column& column, std::string_view text, std::string_view digits,
                            const std::string& why) {
  if (column.sampled == 0) fail(column, why);
  fail(column, why + "; its type was inferred from the first " + std::to_string(column.sampled) +
                   " records: " + column.advice(text, digits));
}

// The whole number that `digits` is, also with zeros as decimals, as programs write integers among missing values.
std::errc read_whole(std::string_view digits, int64_t* value) {
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, *value);
  if (error == std::errc::invalid_argument || stop == end) return error;
  const std::string_view rest(stop, static_cast<size_t>(end - stop));
  return rest.size() > 1 && rest[0] == '.' && rest.find_first_not_of('0', 1) == std::string_view::npos
             ? error
             : std::errc::invalid_argument;
}

void store_number(double value, const Type& type, uint8_t* to) {
  if (type.kind == Kind::kInteger || type.dtype == TN_I32)
    return store_integer(static_cast<int64_t>(value), type.dtype, to);
  if (type.dtype == TN_F32) return store_as<float>(value, to);
  store_as<double>(value, to);
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

std::string Column::advice(std::string_view text, std::string_view digits) const {
  const char* const end = digits.data() + digits.size();
  double value = 0;
  const bool number = !digits.empty() && files::read_float(digits.data(), end, &value) == end && std::isfinite(value);
  const char* const fitting = std::isfinite(static_cast<float>(value)) || !number ? "f32" : "f64";
  constexpr size_t kMost = 200;  // of a name: the type behind it must be seen
  const auto declared = [&](const char* as) { return files::quoted(entry + ": " + as, kMost); };
  std::string result = "declare it as " + declared(fitting);
  if (number) return result;
  result += ", with missing_texts = [" + files::quoted(text) + "] where that means missing";
  return joined ? result : result + ", or as " + declared("category");
}

void for_each_word(const Column& column, std::string_view text, std::string& room,
                   const std::function<void(std::string_view, bool gram)>& each) {
  const Type& type = column.type;
  const files::Split split = type.kind == Kind::kCharacters ? files::Split::kCharacters : files::Split::kWords;
  try {
    files::for_each_word(text, {type.lower_case, split, type.grams, type.buckets}, room, each);
  } catch (const files::BadLine& bad) {
    fail(column, bad.why);
  }
}

bool MissingRules::is_missing(std::string_view text) const {
  return text.empty() || std::find(texts.begin(), texts.end(), text) != texts.end();
}

std::vector<std::string> RecordParser::split(std::string_view text, size_t count) {
  const Fields fields = fields_of(text);
  std::vector<std::string> texts = texts_of(fields);
  if (count != 0 && texts.size() != count) fail_count(fields.record(), count);
  return texts;
}

std::vector<std::string> RecordParser::texts_of(Fields fields) {
  std::vector<std::string> texts;
  while (true) {
    const char* why = nullptr;
    const std::string_view field = fields.take(room_, &why);
    if (why != nullptr) throw BadRecord{"field " + std::to_string(texts.size() + 1) + ": " + why};
    texts.emplace_back(utf8(field));
    if (fields.done()) return texts;
    fields.pass();
  }
}

void RecordParser::fail_count(std::string_view record, size_t expected) {
  const Fields all(record, delimiter_.sign(), delimiter_.quotes());
  throw BadRecord{"expected " + std::to_string(expected) + " fields, got " + std::to_string(texts_of(all).size())};
}

std::vector<std::string> RecordParser::by_column(std::string_view text, size_t layout) {
  const std::vector<size_t>& of = layouts[layout];
  std::vector<std::string> fields = split(text, of.size()), result(columns.size());
  for (size_t i = 0; i < of.size(); ++i) result[of[i]].swap(fields[i]);
  return result;
}

bool RecordParser::leaves_out(std::string_view text, size_t layout) {
  const auto skips = [](const Column& column) { return column.slot >= 0 && column.missing == Missing::kSkip; };
  if (std::none_of(columns.begin(), columns.end(), skips)) return false;
  Fields fields = fields_of(text);
  bool lacks = false;
  const std::vector<size_t>& of = layouts[layout];
  for (size_t i = 0; i < of.size(); ++i) {
    if (i != 0 && fields.done()) return false;
    if (i != 0) fields.pass();
    const char* why = nullptr;
    const std::string_view field = fields.take(room_, &why);
    if (why != nullptr) return false;
    lacks = lacks || (skips(columns[of[i]]) && missing_.is_missing(utf8(field)));
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
  for (const Column& column : columns)
    if (column.slot >= 0 && column.flag >= 0) flags_.push_back(&column);
  runs_.assign(layouts.size(), {});
  for (size_t i = 0; i < layouts.size(); ++i) prepare(layouts[i], runs_[i]);
}

void RecordParser::prepare(const std::vector<size_t>& layout, std::vector<Run>& runs) const {
  for (size_t i = 0; i < layout.size(); ++i) {
    const Column& column = columns[layout[i]];
    const Column* const before = i == 0 ? nullptr : &columns[layout[i - 1]];
    const bool goes_on = before != nullptr && column.slot == before->slot &&
                         (column.slot < 0 || (column.type.values() == 1 &&
                                              column.offset == before->offset + tn_dtype_bytes(column.type.dtype)));
    if (!goes_on)
      runs.push_back(
          {i, i, with_quick_read(column, form_, [](auto read) { return &RecordParser::parse_quickly<decltype(read)>; }),
           layout.size()});
    ++runs.back().end;
  }
}

void RecordParser::parse(std::string_view text, size_t layout, uint8_t* const* slots) {
  const std::vector<size_t>& of = layouts[layout];
  Fields fields = fields_of(text);
  for (const Column* const column : flags_) store_number(0, column->type, slots[column->slot] + column->flag);
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
  if (!fields.done()) fail_count(fields.record(), of.size());
}

// Parses all other fields: quotes, spaces, plus signs, missing values, categories, and damage. to: null for a list or
// text, and to skip the field.
void RecordParser::parse_slowly(const Column& column, Fields& fields, uint8_t* to) {
  const char* why = nullptr;
  const std::string_view text = fields.take(room_, &why);
  if (why != nullptr) fail(column, why);
  if (column.slot >= 0) put_field(column, utf8(text), to);
  if (column.trailing && !utf8(text).empty())
    throw BadRecord{"the field " + files::quoted(text) + " behind the last column; other records have an empty one"};
}

void RecordParser::put_field(const Column& column, std::string_view text, uint8_t* to) {
  const bool missing = missing_.is_missing(text);
  if (column.type.is_ragged()) lists[static_cast<size_t>(column.slot)].clear();
  if (column.type.is_ragged() && missing) return;
  if (column.type.is_text()) return put_words(column, text);
  if (column.type.multi_hot) return put_set(column, missing ? std::string_view() : text, to);
  if (missing) {
    if (column.missing == Missing::kError || column.missing == Missing::kSkip)
      fail(column, "the value is missing; missing = \"value\" or \"skip\" says what to do with it");
    if (column.type.limit >= 0 && !column.own_fill)
      fail(column, "the value is missing, and missing_value fills no column with a limit");
    return put_missing(column, to);
  }
  if (!column.type.separator.empty()) return put_list(column, text, to);
  put_text(column, text, to);
}

// Writes the values of a list to `to`, or to lists if it may have any number of them.
void RecordParser::put_list(const Column& column, std::string_view text, uint8_t* to) {
  const Type& type = column.type;
  const size_t bytes = tn_dtype_bytes(type.dtype);
  size_t count = 0;
  for_each_value(text, type.separator, [&](std::string_view value) {
    ++count;
    std::vector<uint8_t>& list = lists[static_cast<size_t>(column.slot)];
    if (type.size == 0) list.resize(count * bytes);
    if (type.size == 0 || count <= type.values())
      put_text(column, value, (type.size == 0 ? list.data() : to) + (count - 1) * bytes);
  });
  if (type.size > 0 && count != type.values())
    fail(column, "expected a list of " + std::to_string(type.size) + " values, got " + std::to_string(count));
}

// Writes 1 for each category of a list, 0 for the others. Unknown ones that are allowed have no number.
void RecordParser::put_set(const Column& column, std::string_view text, uint8_t* to) {
  const auto size = static_cast<size_t>(std::max(vocabularies[column.vocabulary].size(), 1));
  std::memset(to, 0, size * sizeof(float));
  for_each_value(text, column.type.separator, [&](std::string_view value) {
    if (value.empty()) return;
    int32_t number = 0;
    put_text(column, value, reinterpret_cast<uint8_t*>(&number));
    if (number != column.unknown) store_as<float>(1, to + static_cast<size_t>(number) * sizeof(float));
  });
}

// Writes the numbers of the words of a text to lists.
void RecordParser::put_words(const Column& column, std::string_view text) {
  std::vector<uint8_t>& list = lists[static_cast<size_t>(column.slot)];
  const files::Vocabulary& vocabulary = vocabularies[column.vocabulary];
  for_each_word(column, text, word_room_, [&](std::string_view word, bool gram) {
    const bool hashed = gram && column.type.buckets > 0;
    int32_t number = hashed ? vocabulary.size() + static_cast<int32_t>(files::bucket_of(word, column.type.buckets))
                            : vocabulary.find(word);
    if (number < 0) number = column.unknown;
    if (number < 0) fail(column, files::quoted(word) + " is not in the vocabulary, which has no <unk> either");
    list.resize(list.size() + sizeof number);
    std::memcpy(list.data() + list.size() - sizeof number, &number, sizeof number);
  });
}

void RecordParser::put_text(const Column& column, std::string_view text, uint8_t* to) {
  if (column.type.kind == Kind::kDate) return put_date(column, text, to);
  if (column.type.kind != Kind::kCategory) return put_number(column, text, to);
  int32_t number = vocabularies[column.vocabulary].find(text);
  if (number < 0 && !files::is_utf8(text)) fail(column, files::not_utf8(text));
  if (number < 0) number = column.unknown;
  if (number < 0) fail(column, files::quoted(text) + " is not in the vocabulary");
  store_integer(number, TN_I32, to);
}

void RecordParser::put_number(const Column& column, std::string_view text, uint8_t* to) {
  const std::string_view digits = form_.plain(text, digits_room_);
  const char* const end = digits.data() + digits.size();
  const auto hint = [&] { return form_.is_plain() ? NumberForm::hint(text) : std::string(); };
  if (column.type.kind == Kind::kFloat) {
    double value = 0;
    if (digits.empty() || files::read_float(digits.data(), end, &value) != end)
      fail_text(column, text, digits, "expected a number, got " + files::quoted(text) + hint());
    const bool narrow = column.type.dtype == TN_F32;
    if (!std::isfinite(value) || (narrow && !std::isfinite(static_cast<float>(value))))
      fail_text(column, text, digits, files::quoted(text) + " is not a finite number of its type");
    float single = 0;
    if (!narrow) return store_as<double>(value, to);
    files::read_float(digits.data(), end, &single);  // from the text, so that it is rounded once
    return store_as<float>(single, to);
  }
  int64_t value = 0;
  const std::errc error = digits.empty() ? std::errc::invalid_argument : read_whole(digits, &value);
  if (error == std::errc::invalid_argument)
    fail_text(column, text, digits, "expected a whole number, got " + files::quoted(text) + hint());
  if (error != std::errc() || value < column.low || value > column.high)
    fail_text(column, text, digits,
              "expected a whole number from " + std::to_string(column.low) + " to " + std::to_string(column.high) +
                  ", got " + files::quoted(text));
  store_integer(value, column.type.dtype, to);
}

void RecordParser::put_date(const Column& column, std::string_view text, uint8_t* to) const {
  const Type& type = column.type;
  const std::optional<Date> date = read_date(text, type.format);
  if (!date)
    fail(column, "expected a date " +
                     (type.format.empty() ? std::string("such as 2024-01-31 or 2024-01-31T12:30:00Z")
                                          : "of the form " + files::quoted(type.format)) +
                     ", got " + files::quoted(text) +
                     (type.format.empty() ? "; date(FORMAT) states another form, such as date(%d.%m.%Y)" : ""));
  if (type.parts.empty()) return store_number(date->epoch(), type, to);
  for (size_t i = 0; i < type.parts.size(); ++i)
    store_number(date->part(type.parts[i]), type, to + i * tn_dtype_bytes(type.dtype));
}

void RecordParser::put_missing(const Column& column, uint8_t* to) const {
  const size_t bytes = tn_dtype_bytes(column.type.dtype);
  for (size_t i = 0; i < column.type.values(); ++i) {
    if (column.type.kind == Kind::kCategory)
      store_integer(column.absent, TN_I32, to + i * bytes);
    else
      store_number(column.fill, column.type, to + i * bytes);
  }
  if (column.flag >= 0) store_number(1, column.type, to - column.offset + column.flag);
}

double RecordParser::number(const Column& column, std::string_view text) {
  uint8_t stored[sizeof(double)] = {};
  put_text(column, text, stored);
  double number = 0;
  float single = 0;
  int64_t integer = 0;
  switch (column.type.kind) {
    case Kind::kInteger:
      (void)read_whole(form_.plain(text, digits_room_), &integer);
      return static_cast<double>(integer);
    default:
      if (column.type.dtype == TN_F32) {
        std::memcpy(&single, stored, sizeof single);
        return single;
      }
      std::memcpy(&number, stored, sizeof number);
      return number;
  }
}

void RecordParser::check_fills() const {
  for (const Column& column : columns) {
    const bool fills = column.missing != Missing::kError && column.missing != Missing::kSkip;
    if (column.slot < 0 || !fills || column.type.kind == Kind::kCategory || column.type.is_ragged()) continue;
    const char* const attribute = column.own_fill ? "columns" : "missing_value";
    if (column.type.dtype == TN_F32 && !std::isfinite(static_cast<float>(column.fill)))
      throw tn::Failure(TN_INVALID, attribute, "column " + files::quoted(column.name) + " needs a finite number");
    if (column.type.kind != Kind::kInteger || (column.type.limit >= 0 && !column.own_fill)) continue;
    constexpr double kExact = 9007199254740992;  // 2^53: whole numbers up to it are exact doubles
    if (!(std::fabs(column.fill) <= kExact) || std::trunc(column.fill) != column.fill ||
        static_cast<int64_t>(column.fill) < column.low || static_cast<int64_t>(column.fill) > column.high)
      throw tn::Failure(TN_INVALID, attribute,
                        "column " + files::quoted(column.name) + " needs a whole number from " +
                            std::to_string(column.low) + " to " + std::to_string(column.high));
  }
}

}  // namespace tenon::csv
