// SPDX-License-Identifier: Apache-2.0
#include "field.h"

#include <cerrno>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "values.h"

namespace tenon_arrow {

namespace {

constexpr const char* kFormats = "cCsSiIlLefgb";
constexpr tn_dtype kTypes[] = {TN_I8,  TN_U8,           TN_I16, TN_U16, TN_I32, TN_U32,
                               TN_I64, TN_DTYPE(1, 64), TN_F16, TN_F32, TN_F64, TN_BOOL};

[[noreturn]] void refuse_column(tn_status status, const std::string& name, const std::string& fault) {
  throw Error(status, "column \"" + name + "\" " + fault, "export", name);
}

std::string format_of(const std::string& name, tn_dtype dtype) {
  for (size_t i = 0; i < std::size(kTypes); ++i)
    if (kTypes[i] == dtype) return {kFormats[i]};
  refuse_column(TN_UNSUPPORTED, name,
                "has elements of code " + std::to_string(tn_dtype_code(dtype)) + " and " +
                    std::to_string(tn_dtype_bits(dtype)) + " bits, which tables of Arrow lack");
}

FieldRef numbers_field(const std::string& name, tn_dtype dtype, const void* data, int64_t count, const Memory& memory) {
  static constexpr int64_t kNothing = 0;  // consumers want an address of no bytes, too
  Field field{format_of(name, dtype), name, count, {nullptr, data == nullptr ? &kNothing : data}, {memory}};
  if (dtype == TN_BOOL) {
    const auto [bits, bits_memory] = new_elements<unsigned char>((count + 7) / 8);
    const auto* const bytes = static_cast<const unsigned char*>(data);
    for (int64_t i = 0; i < count; ++i)
      if (bytes[i] != 0) bits[i / 8] = static_cast<unsigned char>(bits[i / 8] | (1u << (i % 8)));
    field.buffers[1] = bits;
    field.memory = {bits_memory};
  }
  return std::make_shared<const Field>(std::move(field));
}

// The rows of an array from dimension `axis` on, of which there are `count`.
FieldRef rows_field(const std::string& name, const tenon::Array& array, size_t axis, int64_t count,
                    const Memory& memory) {
  if (axis == array.shape.size()) return numbers_field(name, array.dtype, array.data, count, memory);
  const int64_t size = array.shape[axis];
  return std::make_shared<const Field>(Field{"+w:" + std::to_string(size),
                                             name,
                                             count,
                                             {nullptr},
                                             {},
                                             {rows_field("item", array, axis + 1, count * size, memory)}});
}

FieldRef list_field(const std::string& name, const int64_t* offsets, int64_t count, FieldRef elements,
                    const Memory& memory) {
  return std::make_shared<const Field>(Field{"+L", name, count, {nullptr, offsets}, {memory}, {std::move(elements)}});
}

FieldRef map_field(const std::string& name, const tenon::Array& array, const Memory& memory) {
  const int64_t entries = array.offsets[0][array.samples];
  if (entries > INT32_MAX)
    refuse_column(TN_UNSUPPORTED, name, "has " + std::to_string(entries) + " entries; a map of Arrow has at most 2^31");
  const auto [offsets, offsets_memory] = new_elements<int32_t>(array.samples + 1);
  for (int64_t i = 0; i <= array.samples; ++i) offsets[i] = static_cast<int32_t>(array.offsets[0][i]);
  FieldRef values = numbers_field("value", TN_F32, array.data, entries, memory);
  if (array.data == nullptr) {
    const auto [ones, ones_memory] = new_elements<float>(entries);
    std::fill(ones, ones + entries, 1.0F);
    values = numbers_field("value", TN_F32, ones, entries, ones_memory);
  }
  const FieldRef keys = numbers_field("key", TN_I64, array.ids, entries, memory);
  const auto pairs = std::make_shared<const Field>(Field{"+s", "entries", entries, {nullptr}, {}, {keys, values}});
  return std::make_shared<const Field>(Field{"+m", name, array.samples, {nullptr, offsets}, {offsets_memory}, {pairs}});
}

void check_offsets(const std::string& name, const int64_t* offsets, int64_t count, int64_t last) {
  bool sound = offsets != nullptr && count >= 0 && offsets[0] == 0;
  for (int64_t i = 0; sound && i < count; ++i) sound = offsets[i] <= offsets[i + 1];
  if (!sound || (last >= 0 && offsets[count] != last))
    refuse_column(TN_INVALID, name, "has offsets that do not begin at 0, fall, or do not end with the rows");
}

// Returns the number of elements of a sound array.
int64_t checked_count(const std::string& name, const tenon::Array& array) {
  int64_t count = 1;
  for (const int64_t extent : array.shape)
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count))
      refuse_column(TN_INVALID, name, "has the shape " + tenon::base::to_string(array.shape));
  const bool sound = !array.shape.empty() && (array.storage == TN_DENSE || array.storage == TN_RAGGED ||
                                              (array.storage == TN_CSR && array.shape.size() == 2));
  if (!sound) refuse_column(TN_INVALID, name, "is one number, or of an unknown storage; expected samples");
  if (array.device_type > 1) refuse_column(TN_UNSUPPORTED, name, "is not in the memory of the host");
  if (!array.strides.empty()) refuse_column(TN_UNSUPPORTED, name, "has strides; expected a row-major array");
  if (array.storage == TN_DENSE && array.data == nullptr && count > 0) refuse_column(TN_INVALID, name, "has no data");
  if (array.storage == TN_DENSE) return count;
  const bool nested = array.storage == TN_RAGGED && array.levels == 2;
  const bool rows = array.storage == TN_RAGGED && !nested;
  check_offsets(name, array.offsets[0], array.samples, rows ? array.shape[0] : -1);
  if (nested) check_offsets(name, array.offsets[1], array.offsets[0][array.samples], array.shape[0]);
  if (array.storage == TN_RAGGED && array.data == nullptr && count > 0) refuse_column(TN_INVALID, name, "has no data");
  if (array.storage == TN_CSR && array.ids == nullptr && array.offsets[0][array.samples] > 0)
    refuse_column(TN_INVALID, name, "has entries without columns");
  return array.storage == TN_CSR ? array.offsets[0][array.samples] : count;
}

// The memory of a written struct, of the schema or an array.
template <typename Struct>
struct Lent {
  explicit Lent(FieldRef shared)
      : field(std::move(shared)), buffers(field->buffers), children(field->children.size()) {}
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  ~Lent() {
    for (Struct& child : children)
      if (child.release != nullptr) child.release(&child);
  }
  FieldRef field;
  std::vector<const void*> buffers;
  std::vector<Struct> children;
  std::vector<Struct*> pointers;
};

// Fills what schemas and arrays have in common, and their children. Returns their memory, which *out owns.
template <typename Struct>
Lent<Struct>& lend(const FieldRef& field, Struct* out, void (*write)(const FieldRef&, Struct*)) {
  *out = {};
  auto memory = std::make_unique<Lent<Struct>>(field);
  for (size_t i = 0; i < field->children.size(); ++i) {
    write(field->children[i], &memory->children[i]);
    memory->pointers.push_back(&memory->children[i]);
  }
  out->n_children = static_cast<int64_t>(field->children.size()) - (field->has_dictionary ? 1 : 0);
  out->children = memory->pointers.data();
  out->dictionary = field->has_dictionary ? memory->pointers.back() : nullptr;
  out->release = [](Struct* lent) {
    lent->release = nullptr;
    delete static_cast<Lent<Struct>*>(lent->private_data);
  };
  out->private_data = memory.get();
  return *memory.release();
}

// A stream of one chunk.
struct OneChunk {
  FieldRef table;
  bool over = false;
};

template <typename Work>
int status_of(const Work& work) {
  try {
    work();
    return 0;
  } catch (const std::exception&) {  // memory
    return ENOMEM;
  }
}

}  // namespace

FieldRef field_of(const std::string& name, const tenon::Array& array, const Memory& memory, FieldRef dictionary) {
  const int64_t count = checked_count(name, array);
  if (array.storage == TN_CSR) return map_field(name, array, memory);
  const bool lists = array.storage == TN_RAGGED;
  FieldRef rows = rows_field(lists ? "item" : name, array, 1, array.shape[0], memory);
  if (dictionary != nullptr) {
    if (lists || array.shape.size() > 1 || tn_dtype_code(array.dtype) > 1)
      refuse_column(TN_INVALID, name, "has names, but is not of one integer for each sample");
    Values numbers{array.dtype, {count}, static_cast<const char*>(array.data), memory};
    check_categories(numbers, dictionary->length, {"column \"" + name + "\"", name});
    Field coded = *rows;
    coded.children = {std::move(dictionary)};
    coded.has_dictionary = true;
    return std::make_shared<const Field>(std::move(coded));
  }
  if (!lists) return rows;
  if (array.levels == 2)
    rows = list_field("item", array.offsets[1], array.offsets[0][array.samples], std::move(rows), memory);
  return list_field(name, array.offsets[0], array.samples, std::move(rows), memory);
}

std::pair<tenon::Array, Memory> copy_of(const std::string& name, const tenon::Array& array) {
  const int64_t count = checked_count(name, array);
  struct Block {
    std::vector<char> data;
    std::vector<int64_t> offsets[2], ids;
  };
  const auto block = std::make_shared<Block>();
  tenon::Array copy = array;
  if (array.data != nullptr) {
    const auto* const bytes = static_cast<const char*>(array.data);
    block->data.assign(bytes, bytes + count * static_cast<int64_t>(tn_dtype_bytes(array.dtype)));
    copy.data = block->data.data();
  }
  if (array.storage == TN_CSR) {
    block->ids.assign(array.ids, array.ids + count);
    copy.ids = block->ids.data();
  }
  int64_t lists = array.samples;
  for (size_t level = 0; array.storage != TN_DENSE && level < (array.levels == 2 ? 2 : 1); ++level) {
    block->offsets[level].assign(array.offsets[level], array.offsets[level] + lists + 1);
    copy.offsets[level] = block->offsets[level].data();
    lists = block->offsets[level].back();
  }
  return {copy, block};
}

FieldRef texts_field(const std::string& name, const tn_text* texts, int64_t count) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < count; ++i) bytes += static_cast<int64_t>(texts[i].length);
  const auto [offsets, offsets_memory] = new_elements<int64_t>(count + 1);
  const auto [joined, joined_memory] = new_elements<char>(bytes);
  for (int64_t i = 0; i < count; ++i) {
    const auto length = static_cast<int64_t>(texts[i].length);
    if (length > 0) std::memcpy(joined + offsets[i], texts[i].data, texts[i].length);
    offsets[i + 1] = offsets[i] + length;
  }
  return std::make_shared<const Field>(
      Field{"U", name, count, {nullptr, offsets, joined}, {offsets_memory, joined_memory}});
}

FieldRef table_of(std::vector<FieldRef> columns) {
  const int64_t rows = columns.empty() ? 0 : columns[0]->length;
  for (const FieldRef& column : columns)
    if (column->length != rows)
      refuse_column(TN_INVALID, column->name,
                    "has " + std::to_string(column->length) + " rows; column \"" + columns[0]->name + "\" has " +
                        std::to_string(rows));
  return std::make_shared<const Field>(Field{"+s", "", rows, {nullptr}, {}, std::move(columns)});
}

void write_schema(const FieldRef& field, ArrowSchema* out) {
  const Lent<ArrowSchema>& memory = lend(field, out, write_schema);
  out->flags = field->has_nulls() ? ARROW_FLAG_NULLABLE : 0;
  out->format = memory.field->format.c_str();
  out->name = memory.field->name.c_str();
}

void write_array(const FieldRef& field, ArrowArray* out) {
  Lent<ArrowArray>& memory = lend(field, out, write_array);
  out->length = field->length;
  out->null_count = field->has_nulls() ? -1 : 0;
  out->n_buffers = static_cast<int64_t>(memory.buffers.size());
  out->buffers = memory.buffers.data();
}

ArrowArrayStream stream_of(FieldRef table) {
  ArrowArrayStream stream = {};
  stream.private_data = new OneChunk{std::move(table)};
  stream.get_schema = [](ArrowArrayStream* self, ArrowSchema* out) {
    return status_of([&] { write_schema(static_cast<OneChunk*>(self->private_data)->table, out); });
  };
  stream.get_next = [](ArrowArrayStream* self, ArrowArray* out) {
    auto* const chunk = static_cast<OneChunk*>(self->private_data);
    *out = {};
    if (chunk->over) return 0;
    const int status = status_of([&] { write_array(chunk->table, out); });
    chunk->over = status == 0;
    return status;
  };
  stream.get_last_error = [](ArrowArrayStream*) -> const char* { return "the memory is not enough"; };
  stream.release = [](ArrowArrayStream* self) {
    delete static_cast<OneChunk*>(self->private_data);
    self->release = nullptr;
  };
  return stream;
}

}  // namespace tenon_arrow
