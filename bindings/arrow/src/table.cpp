// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/utf8.h"

namespace tenon_arrow {

namespace {

constexpr int kMostLevels = 32;            // of columns in columns
constexpr int64_t kMostColumns = 1 << 20;  // of a table, at all levels

void check_type(const ArrowSchema* schema, int level, int64_t& columns) {
  if (level > kMostLevels) refuse_table("has more than " + std::to_string(kMostLevels) + " levels of columns");
  const bool sound = schema != nullptr && schema->format != nullptr && schema->n_children >= 0 &&
                     (schema->n_children == 0 || schema->children != nullptr);
  if (!sound || std::any_of(schema->format, std::strchr(schema->format, 0), [](char c) { return c < ' ' || c > '~'; }))
    refuse_table("has a damaged schema");
  columns += std::min(schema->n_children, kMostColumns) + 1;
  if (columns > kMostColumns) refuse_table("has more than " + std::to_string(kMostColumns) + " columns");
  const std::string_view format = schema->format;
  if ((is_list(format) || is_fixed(format)) && schema->n_children != 1)
    refuse_table("has lists with " + std::to_string(schema->n_children) + " columns of elements");
  for (int64_t i = 0; i < schema->n_children; ++i) check_type(schema->children[i], level + 1, columns);
  if (format == "+m" && (std::string_view(schema->children[0]->format) != "+s" || schema->children[0]->n_children != 2))
    refuse_table("has maps whose entries are not pairs");
  if (is_fixed(format)) (void)fixed_size(format);
  if (schema->dictionary != nullptr) check_type(schema->dictionary, level + 1, columns);
}

template <typename Offset>
int64_t offset_at(const char* offsets, int64_t element) {
  Offset offset = 0;  // producers need not align buffers
  std::memcpy(&offset, offsets + element * static_cast<int64_t>(sizeof offset), sizeof offset);
  return offset;
}

// The same of a part; `nested`: also of the columns of a table.
int64_t null_in(const Column& column, const Part& part, bool nested) {
  const std::string_view format = column.format();
  if (format == "n") return part.size() > 0 ? 0 : -1;
  int64_t row = part.size();
  const bool has_bits = format.substr(0, 2) != "+u" && format.substr(0, 2) != "+r";
  if (has_bits && part.array->null_count != 0 && part.size() > 0)
    if (const char* const present = part.buffer(0, (part.stop + 7) / 8); present != nullptr)
      for (int64_t i = 0; i < row; ++i)
        if (!Part::bit(present, part.start + i)) row = i;
  if (nested && column.is_table())
    for (int64_t i = 0; i < column.type->n_children; ++i) {
      const Part child = part.child(i, part.start, part.stop);
      if (const int64_t inner = null_in(column.child(i, {}), child, true); inner >= 0) row = std::min(row, inner);
    }
  if ((is_list(format) || is_fixed(format)) && part.size() > 0) {
    const int64_t inner = null_in(column.child(0, {}), elements_of(format, part), true);
    if (inner >= 0 && is_fixed(format)) row = std::min(row, inner / fixed_size(format));
    if (inner >= 0 && is_list(format)) {
      const char* const offsets = part.buffer(1, 0);
      const int64_t element = list_start(format, offsets, part.start) + inner;
      int64_t list = 0;
      while (list_start(format, offsets, part.start + list + 1) <= element) ++list;
      row = std::min(row, list);
    }
  }
  return row < part.size() ? row : -1;
}

}  // namespace

void refuse_table(const std::string& fault) { throw Error(TN_BAD_DATA, "the table of Arrow " + fault, "data"); }

Part Part::child(int64_t number, int64_t first, int64_t last) const {
  const ArrowArray& child = *array->children[number];
  if (first < 0 || first > last || last > child.length) refuse_table("has offsets outside of their values");
  return {memory, &child, child.offset + first, child.offset + last};
}

void Part::require_buffers(int64_t count) const {
  if (array->n_buffers == count) return;
  refuse_table("has a column of " + std::to_string(array->n_buffers) + " buffers; expected " + std::to_string(count));
}

const char* Part::buffer(int64_t number, int64_t size) const {
  if (number >= array->n_buffers) refuse_table("has a column that lacks buffers");
  const auto* const data = static_cast<const char*>(array->buffers[number]);
  if (data == nullptr && size > 0 && number > 0) refuse_table("has a column that lacks a buffer");
  return data;
}

int64_t Column::size() const {
  int64_t result = 0;
  for (const Part& part : parts) result += part.size();
  return result;
}

void check_type(const ArrowSchema* schema) {
  int64_t columns = 0;
  check_type(schema, 0, columns);
}

void check_array(const ArrowArray* array, const ArrowSchema& schema) {
  const bool sound = array != nullptr && array->length >= 0 && array->offset >= 0 && array->offset <= INT64_MAX / 16 &&
                     array->length <= INT64_MAX / 16 - array->offset && array->n_buffers >= 0 &&
                     (array->n_buffers == 0 || array->buffers != nullptr) && array->n_children == schema.n_children &&
                     (array->n_children == 0 || array->children != nullptr) &&
                     (array->dictionary == nullptr) == (schema.dictionary == nullptr);
  if (!sound) refuse_table("has a chunk that is not of its schema");
  for (int64_t i = 0; i < array->n_children; ++i) {
    check_array(array->children[i], *schema.children[i]);
    if (std::strcmp(schema.format, "+s") == 0 && array->children[i]->length < array->offset + array->length)
      refuse_table("has a column that is shorter than the table");
  }
  if (array->dictionary != nullptr) check_array(array->dictionary, *schema.dictionary);
}

namespace {

template <typename Function, typename Out>
void call_stream(ArrowArrayStream& stream, Function* function, Out* out) {
  if (function == nullptr || stream.get_last_error == nullptr) refuse_table("has a stream that lacks functions");
  if (function(&stream, out) == 0) return;
  out->release = nullptr;  // of a failed call nothing is the caller's
  const char* const why = stream.get_last_error(&stream);
  refuse_table("cannot be read: " + (why == nullptr ? "its stream failed" : tenon::base::readable_utf8(why)));
}

}  // namespace

void read_schema(ArrowArrayStream& stream, HeldSchema& schema) {
  call_stream(stream, stream.get_schema, &schema.value);
  check_type(&schema.value);
}

bool read_chunk(ArrowArrayStream& stream, const ArrowSchema& schema, HeldArray& chunk) {
  call_stream(stream, stream.get_next, &chunk.value);
  if (chunk.value.release == nullptr) return false;
  check_array(&chunk.value, schema);
  return true;
}

Column read(ArrowArrayStream& stream) {
  const auto schema = std::make_shared<HeldSchema>();
  read_schema(stream, *schema);
  Column column{schema, &schema->value, {}};
  while (true) {
    const auto chunk = std::make_shared<HeldArray>();
    if (!read_chunk(stream, schema->value, *chunk)) return column;
    column.parts.push_back(Part::all(chunk, chunk->value));
  }
}

Column read(std::shared_ptr<const HeldSchema> schema, const std::shared_ptr<const HeldArray>& array) {
  check_type(&schema->value);
  check_array(&array->value, schema->value);
  const ArrowSchema* const type = &schema->value;
  return {std::move(schema), type, {Part::all(array, array->value)}};
}

std::vector<std::pair<std::string, Column>> columns_of(const Column& table) {
  int64_t rows = 0;
  for (const Part& part : table.parts) {
    if (const int64_t row = null_in(table, part, false); row >= 0)
      throw Error(TN_BAD_DATA, "row " + std::to_string(rows + row) + " of the table of Arrow is missing", "data");
    rows += part.size();
  }
  std::vector<std::pair<std::string, Column>> result;
  for (int64_t i = 0; i < table.type->n_children; ++i) {
    const char* const name = table.type->children[i]->name;
    std::vector<Part> parts;  // the children of a struct are cut by its own offset
    for (const Part& part : table.parts) parts.push_back(part.child(i, part.start, part.stop));
    result.emplace_back(name == nullptr ? "" : name, table.child(i, std::move(parts)));
  }
  std::vector<std::string> names;
  for (const auto& [name, column] : result) names.push_back(name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    throw Error(TN_INVALID,
                std::to_string(std::count(names.begin(), names.end(), *twice)) + " columns are called \"" +
                    tenon::base::readable_utf8(*twice) + "\"; expected one",
                "reader", *twice);
  return result;
}

int64_t first_null(const Column& column) {
  int64_t rows = 0;
  for (const Part& part : column.parts) {
    if (const int64_t row = null_in(column, part, false); row >= 0) return rows + row;
    rows += part.size();
  }
  return -1;
}

int64_t fixed_size(std::string_view format) {
  int64_t size = -1;
  const char* const end = format.data() + format.size();
  const auto [last, fault] = std::from_chars(format.data() + 3, end, size);
  if (fault != std::errc() || last != end || size < 0 || size > INT32_MAX)
    refuse_table("has lists of the format \"" + std::string(format) + "\"");
  return size;
}

int64_t list_start(std::string_view format, const char* offsets, int64_t element) {
  return format == "+L" ? offset_at<int64_t>(offsets, element) : offset_at<int32_t>(offsets, element);
}

Part elements_of(std::string_view format, const Part& part) {
  if (is_fixed(format)) {
    int64_t first = 0, last = 0;
    if (__builtin_mul_overflow(part.start, fixed_size(format), &first) ||
        __builtin_mul_overflow(part.stop, fixed_size(format), &last))
      refuse_table("has offsets outside of their values");
    return part.child(0, first, last);
  }
  if (part.size() == 0) return part.child(0, 0, 0);
  const char* const offsets = part.buffer(1, part.stop + 1);
  int64_t last = list_start(format, offsets, part.start);
  for (int64_t i = part.start; i < part.stop; ++i) {
    const int64_t next = list_start(format, offsets, i + 1);
    if (next < last) refuse_table("has offsets that fall");
    last = next;
  }
  return part.child(0, list_start(format, offsets, part.start), last);
}

Column elements_of(const Column& column) {
  std::vector<Part> parts;
  for (const Part& part : column.parts) parts.push_back(elements_of(column.format(), part));
  return column.child(0, std::move(parts));
}

}  // namespace tenon_arrow
