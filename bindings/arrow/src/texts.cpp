// Texts, and the categories that dictionaries name. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <unordered_map>

#include "half.h"
#include "values.h"

namespace tenon_arrow {

namespace {

constexpr int32_t kInline = 12;  // bytes of a text that lie within its view

// Texts of views: 16 bytes each, with a text that is short, or else its place in one of several buffers.
void append_viewed(const Part& part, std::vector<std::string>& texts) {
  struct View {
    int32_t size;
    std::array<char, 4> begin;
    int32_t buffer, start;
  };
  const int64_t last = part.array->n_buffers - 1;
  if (last < 2) refuse_table("has a column that lacks buffers");
  const char* const views = part.buffer(1, part.stop * 16);
  const char* const sizes = part.buffer(last, (last - 2) * 8);
  for (int64_t i = part.start; i < part.stop; ++i) {
    View view = {};
    std::memcpy(&view, views + i * 16, sizeof view);
    if (view.size >= 0 && view.size <= kInline) {
      texts.emplace_back(views + i * 16 + 4, static_cast<size_t>(view.size));
      continue;
    }
    int64_t room = -1;
    if (view.buffer >= 0 && view.buffer < last - 2) std::memcpy(&room, sizes + int64_t{view.buffer} * 8, sizeof room);
    if (view.size < 0 || view.start < 0 || view.start > room - view.size)
      refuse_table("has views outside of their texts");
    texts.emplace_back(part.buffer(2 + view.buffer, room) + view.start, static_cast<size_t>(view.size));
  }
}

void append_texts(std::string_view format, const Part& part, std::vector<std::string>& texts) {
  if (part.size() == 0) return;
  if (format[0] == 'v') return append_viewed(part, texts);
  part.require_buffers(3);
  const std::string_view lists = format == "u" || format == "z" ? "+l" : "+L";  // whose offsets they have
  const char* const offsets = part.buffer(1, part.stop + 1);
  int64_t start = list_start(lists, offsets, part.start);
  const char* const bytes = part.buffer(2, std::max<int64_t>(list_start(lists, offsets, part.stop), 0));
  for (int64_t i = part.start; i < part.stop; ++i) {
    const int64_t stop = list_start(lists, offsets, i + 1);
    if (start < 0 || stop < start) refuse_table("has offsets of texts that fall");
    if (stop > start && bytes == nullptr) refuse_table("has a column that lacks a buffer");
    texts.emplace_back(stop == start ? "" : bytes + start, static_cast<size_t>(stop - start));
    start = stop;
  }
}

// A float as Python writes it: the fewest digits that give it back, with an exponent below 1e-4 and from 1e16 on.
std::string text_of(double number) {
  std::array<char, 512> text = {};
  const double size = number < 0 ? -number : number;
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string result(text.data(), end.ptr);
  const bool finite = size <= 1.7976931348623157e308;
  if (plain && finite && result.find('.') == std::string::npos) result += ".0";
  return result;
}

std::string date_of(int32_t days) {
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{days}}};
  const auto year = static_cast<int>(date.year());
  if (year < 1 || year > 9999) return std::to_string(days);
  std::array<char, 32> text = {};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02u", year, static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()));
  return text.data();
}

template <typename Number>
Number number_at(const char* data, int64_t element) {
  Number number = {};
  std::memcpy(&number, data + element * static_cast<int64_t>(sizeof number), sizeof number);
  return number;
}

int64_t integer_at(const Values& values, int64_t element) {
  switch (values.dtype) {
    case TN_I8:
      return number_at<int8_t>(values.data, element);
    case TN_U8:
      return number_at<uint8_t>(values.data, element);
    case TN_I16:
      return number_at<int16_t>(values.data, element);
    case TN_U16:
      return number_at<uint16_t>(values.data, element);
    case TN_I32:
      return number_at<int32_t>(values.data, element);
    case TN_U32:
      return number_at<uint32_t>(values.data, element);
    default:
      return number_at<int64_t>(values.data, element);  // a uint64 beyond int64 is negative, so no category
  }
}

std::string number_text(const Values& values, int64_t element) {
  if (values.dtype == TN_BOOL) return values.data[element] != 0 ? "True" : "False";
  if (values.dtype == TN_F16) return text_of(from_half(number_at<uint16_t>(values.data, element)));
  if (values.dtype == TN_F32) return text_of(static_cast<double>(number_at<float>(values.data, element)));
  if (values.dtype == TN_F64) return text_of(number_at<double>(values.data, element));
  if (values.dtype == TN_DTYPE(1, 64)) return std::to_string(number_at<uint64_t>(values.data, element));
  return std::to_string(integer_at(values, element));
}

// Returns the entries of a dictionary as texts.
std::vector<std::string> entries_of(const Column& column, const Place& place) {
  std::vector<std::string> texts;
  const std::string_view format = column.format();
  if (is_text(format)) {
    for (const Part& part : column.parts) append_texts(format, part, texts);
    return texts;
  }
  const bool dates = format == "tdD";
  if (!dates && dtype_of(format) == 0)
    place.refuse(TN_INVALID,
                 "has categories of " + kind_of(*column.type) + "; expected numbers, categories, or lists of numbers");
  ArrowSchema type = {};
  type.format = dates ? "i" : column.type->format;
  const Values values = present_values_of({column.schema, &type, column.parts}, place, "");
  for (int64_t i = 0; i < column.size(); ++i)
    texts.push_back(dates ? date_of(number_at<int32_t>(values.data, i)) : number_text(values, i));
  return texts;
}

// The names of the dictionaries of several chunks.
struct Categories {
  std::vector<std::string> names;
  std::unordered_map<std::string, int64_t> number_of;

  // Returns the number of each entry of a dictionary, -1 for one that is null.
  [[nodiscard]] std::vector<int64_t> add(const Column& dictionary, const Place& place) {
    const Part& entries = dictionary.parts[0];
    const bool complete = entries.array->null_count == 0 || entries.size() == 0;
    const char* const present = complete ? nullptr : entries.buffer(0, (entries.stop + 7) / 8);
    const std::vector<std::string> texts = entries_of(dictionary, place);
    std::vector<int64_t> result;
    for (int64_t i = 0; i < entries.size(); ++i) {
      const bool missing = present != nullptr && !Part::bit(present, entries.start + i);
      const std::string& text = texts[static_cast<size_t>(i)];
      if (!missing && number_of.emplace(text, static_cast<int64_t>(names.size())).second) names.push_back(text);
      result.push_back(missing ? -1 : number_of.at(text));
    }
    return result;
  }
};

}  // namespace

void check_categories(const Values& numbers, int64_t count, const Place& place) {
  for (int64_t i = 0; i < numbers.shape[0]; ++i)
    if (const int64_t number = integer_at(numbers, i); number < 0 || number >= count)
      place.refuse(TN_INVALID, "has the number " + std::to_string(number) + ", which none of its " +
                                   std::to_string(count) + " names names");
}

bool is_text(std::string_view format) {
  return format == "u" || format == "z" || format == "U" || format == "Z" || format == "vu" || format == "vz";
}

std::vector<std::string> texts_of(const Column& column, const Place& place) {
  if (const int64_t row = first_null(column); row >= 0) place.refuse_sample(row, "has a missing value");
  std::vector<std::string> texts;
  for (const Part& part : column.parts) append_texts(column.format(), part, texts);
  return texts;
}

Values categories_of(const Column& column, const Place& place) {
  const tn_dtype dtype = dtype_of(column.format());
  if (tn_dtype_code(dtype) > 1 || dtype == 0) refuse_table("has a dictionary whose numbers are not integers");
  const auto [numbers, memory] = new_elements<int64_t>(column.size());
  Categories categories;
  ArrowSchema type = {};  // of the numbers alone
  type.format = column.type->format;
  int64_t row = 0;
  for (const Part& part : column.parts) {
    const Values codes = present_values_of({column.schema, &type, {part}}, place, "");
    const std::vector<int64_t> number_of_entry = categories.add(
        {column.schema, column.type->dictionary, {Part::all(part.memory, *part.array->dictionary)}}, place);
    for (int64_t i = 0; i < part.size(); ++i, ++row) {
      const int64_t code = integer_at(codes, i);
      if (code < 0 || code >= static_cast<int64_t>(number_of_entry.size()))
        place.refuse(TN_BAD_DATA, "has numbers of categories that its dictionary lacks");
      numbers[row] = number_of_entry[static_cast<size_t>(code)];
      if (numbers[row] < 0) place.refuse_sample(row, "has a missing value");
    }
  }
  Values result{TN_I64, {column.size()}, reinterpret_cast<const char*>(numbers), memory};
  result.names = std::make_shared<const std::vector<std::string>>(std::move(categories.names));
  return result;
}

}  // namespace tenon_arrow
