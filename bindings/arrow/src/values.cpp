// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <cstring>

namespace tenon_arrow {

namespace {

struct Format {
  std::string_view format;
  tn_dtype dtype;
};
constexpr Format kNumbers[] = {{"c", TN_I8},  {"C", TN_U8},  {"s", TN_I16}, {"S", TN_U16},
                               {"i", TN_I32}, {"I", TN_U32}, {"l", TN_I64}, {"L", TN_DTYPE(1, 64)},
                               {"e", TN_F16}, {"f", TN_F32}, {"g", TN_F64}};

struct Kind {
  std::string_view prefix, name;
};
constexpr Kind kKinds[] = {{"+s", "structs"}, {"+v", "list views"},   {"+r", "run-end encoded values"},
                           {"+u", "unions"},  {"+m", "maps"},         {"t", "times"},
                           {"d", "decimals"}, {"u", "texts"},         {"U", "texts"},
                           {"z", "bytes"},    {"Z", "bytes"},         {"w", "bytes"},
                           {"v", "texts"},    {"n", "missing values"}};

// Returns numbers of one part in place, and those of several, or misaligned ones, as a copy.
Values numbers_of(const Column& column, tn_dtype dtype) {
  const auto width = static_cast<int64_t>(tn_dtype_bytes(dtype));
  Values result{dtype, {column.size()}, nullptr, nullptr};
  std::vector<std::pair<const Part*, const char*>> pieces;
  for (const Part& part : column.parts) {
    if (part.size() == 0) continue;
    part.require_buffers(2);
    pieces.emplace_back(&part, part.buffer(1, part.stop * width) + part.start * width);
  }
  if (pieces.empty()) return result;
  if (pieces.size() == 1 && reinterpret_cast<uintptr_t>(pieces[0].second) % static_cast<uintptr_t>(width) == 0) {
    result.data = pieces[0].second;
    result.memory = pieces[0].first->memory;
    return result;
  }
  const auto [copy, memory] = new_elements<char>(column.size() * width);
  char* to = copy;
  for (const auto& [part, from] : pieces) {
    std::memcpy(to, from, static_cast<size_t>(part->size() * width));
    to += part->size() * width;
  }
  result.data = copy;
  result.memory = memory;
  return result;
}

// Returns bits as bytes.
Values booleans_of(const Column& column) {
  const auto [bytes, memory] = new_elements<char>(column.size());
  char* to = bytes;
  for (const Part& part : column.parts) {
    if (part.size() == 0) continue;
    part.require_buffers(2);
    const char* const bits = part.buffer(1, part.stop);
    for (int64_t i = part.start; i < part.stop; ++i) *to++ = Part::bit(bits, i) ? 1 : 0;
  }
  return {TN_BOOL, {column.size()}, bytes, memory};
}

Values elements(const Column& column, const Place& place, const std::string& expected);

[[noreturn]] void refuse_kind(const Place& place, const std::string& kind, const std::string& expected) {
  place.refuse(TN_INVALID, "has " + kind + "; expected " + expected);
}

Values fixed_lists(const Column& column, const Place& place, const std::string& expected) {
  Values rows = elements(elements_of(column), place, expected);
  if (!rows.offsets.empty()) refuse_kind(place, "lists in lists of one size", expected);
  rows.shape[0] = column.size();
  rows.shape.insert(rows.shape.begin() + 1, fixed_size(column.format()));
  return rows;
}

Values lists(const Column& column, const Place& place, const std::string& expected) {
  const auto offsets = std::make_shared<std::vector<int64_t>>(1, 0);
  for (const Part& part : column.parts) {
    if (part.size() == 0) continue;
    part.require_buffers(2);
    const char* const starts = part.buffer(1, part.stop + 1);
    const int64_t before = offsets->back() - list_start(column.format(), starts, part.start);
    for (int64_t i = part.start; i < part.stop; ++i)
      offsets->push_back(before + list_start(column.format(), starts, i + 1));
  }
  const Column inner = elements_of(column);
  Values rows;
  if (column.format() == "+m") {
    const auto entry = [&](int64_t number) {
      std::vector<Part> parts;
      for (const Part& part : inner.parts) parts.push_back(part.child(number, part.start, part.stop));
      return elements(inner.child(number, std::move(parts)), place, expected);
    };
    rows = entry(0);
    auto numbers = std::make_shared<Values>(entry(1));
    if (rows.shape.size() > 1 || numbers->shape.size() > 1 || !rows.offsets.empty() || !numbers->offsets.empty())
      refuse_kind(place, "maps of lists", expected);
    rows.numbers = std::move(numbers);
  } else {
    rows = elements(inner, place, expected);
    if (rows.offsets.size() > 1 || rows.numbers != nullptr) refuse_kind(place, "lists of more than 2 levels", expected);
  }
  rows.offsets.insert(rows.offsets.begin(), offsets);
  return rows;
}

Values elements(const Column& column, const Place& place, const std::string& expected) {
  const std::string_view format = column.format();
  const bool categories = column.type->dictionary != nullptr;
  const bool list_of_categories = is_list(format) && column.type->children[0]->dictionary != nullptr;
  if (categories || list_of_categories) refuse_kind(place, "categories in lists", expected);
  const tn_dtype dtype = dtype_of(format);
  if (dtype == TN_BOOL) return booleans_of(column);
  if (dtype != 0) return numbers_of(column, dtype);
  if (is_fixed(format)) return fixed_lists(column, place, expected);
  if (is_list(format)) return lists(column, place, expected);
  refuse_kind(place, kind_of(*column.type), expected);
}

}  // namespace

int64_t Values::row_elements() const {
  int64_t result = 1;
  for (size_t i = 1; i < shape.size(); ++i)
    if (__builtin_mul_overflow(result, shape[i], &result)) refuse_table("has lists of more elements than memory");
  return result;
}

int64_t Values::samples() const {
  return offsets.empty() ? shape[0] : static_cast<int64_t>(offsets.front()->size()) - 1;
}

Values values_of(const Column& column, const Place& place, const std::string& expected) {
  if (const int64_t row = first_null(column); row >= 0) place.refuse_sample(row, "has a missing value");
  if (column.type->dictionary != nullptr) return categories_of(column, place);
  return elements(column, place, expected);
}

Values present_values_of(const Column& column, const Place& place, const std::string& expected) {
  return elements(column, place, expected);
}

tn_dtype dtype_of(std::string_view format) {
  if (format == "b") return TN_BOOL;
  for (const Format& each : kNumbers)
    if (each.format == format) return each.dtype;
  return 0;
}

std::string kind_of(const ArrowSchema& type) {
  for (const Kind& each : kKinds)
    if (std::string_view(type.format).substr(0, each.prefix.size()) == each.prefix) return std::string(each.name);
  return std::string("elements of the format ") + type.format;
}

}  // namespace tenon_arrow
