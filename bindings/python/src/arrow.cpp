// Tables of the Arrow C data interface as columns, and columns as a stream of it. tenon/_base/arrow.py interprets the
// buffers. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "arrow_abi.h"
#include "core.h"

namespace tenon_python {

namespace {

constexpr int kMostLevels = 32;  // of columns in columns

[[noreturn]] void refuse_arrow(const std::string& message) {
  throw tenon::Error(TN_BAD_DATA, "the table of Arrow " + message, "data");
}

// A struct that a capsule held, released at its end.
template <typename Struct>
class Taken {
 public:
  Taken() = default;
  Taken(nb::handle capsule, const char* name) {
    auto* const from = static_cast<Struct*>(PyCapsule_GetPointer(capsule.ptr(), name));
    if (from == nullptr) throw nb::python_error();
    if (from->release == nullptr) refuse_arrow("was taken before");
    value = *from;
    from->release = nullptr;
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken() {
    if (value.release != nullptr) without_lock([this] { value.release(&value); });
  }
  Struct value = {};
};
using Chunk = Taken<arrow::Array>;

// A column of a chunk, or of another column.
struct ArrowPart {
  std::shared_ptr<const Chunk> chunk;
  const arrow::Array* array = nullptr;

  [[nodiscard]] ArrowPart child(int64_t number) const { return {chunk, array->children[number]}; }
};

nb::dict arrow_type(const arrow::Schema& schema) {
  nb::dict result;
  nb::list children;
  for (int64_t i = 0; i < schema.n_children; ++i) children.append(arrow_type(*schema.children[i]));
  result["format"] = schema.format;
  result["name"] = schema.name == nullptr ? nb::bytes("") : nb::bytes(schema.name);
  result["children"] = children;
  result["dictionary"] =
      schema.dictionary == nullptr ? nb::object(nb::none()) : nb::object(arrow_type(*schema.dictionary));
  return result;
}

void check_type(const arrow::Schema* schema, int level) {
  if (level > kMostLevels) refuse_arrow("has more than " + std::to_string(kMostLevels) + " levels of columns");
  const bool sound = schema != nullptr && schema->format != nullptr && schema->n_children >= 0;
  if (!sound || std::any_of(schema->format, std::strchr(schema->format, 0), [](char c) { return c < ' ' || c > '~'; }))
    refuse_arrow("has a damaged schema");
  for (int64_t i = 0; i < schema->n_children; ++i) check_type(schema->children[i], level + 1);
  if (schema->dictionary != nullptr) check_type(schema->dictionary, level + 1);
}

void check_part(const arrow::Array* array, const arrow::Schema& schema) {
  const bool sound = array != nullptr && array->length >= 0 && array->offset >= 0 && array->n_buffers >= 0 &&
                     array->length <= INT64_MAX / 16 - array->offset && array->n_children == schema.n_children &&
                     (array->dictionary == nullptr) == (schema.dictionary == nullptr);
  if (!sound) refuse_arrow("has a chunk that is not of its schema");
  for (int64_t i = 0; i < array->n_children; ++i) {
    check_part(array->children[i], *schema.children[i]);
    if (std::strcmp(schema.format, "+s") == 0 && array->children[i]->length < array->offset + array->length)
      refuse_arrow("has a column that is shorter than the table");
  }
  if (array->dictionary != nullptr) check_part(array->dictionary, *schema.dictionary);
}

// The type, and the chunks of a stream.
nb::object read_arrow_stream(nb::handle capsule) {
  Taken<arrow::Stream> stream(capsule, "arrow_array_stream");
  const auto checked_call = [&](auto* function, auto* out) {
    if (unlocked([&] { return function(&stream.value, out); }) == 0) return;
    const char* const why = stream.value.get_last_error(&stream.value);
    refuse_arrow(std::string("cannot be read: ") + (why == nullptr ? "its stream failed" : why));
  };
  Taken<arrow::Schema> schema;
  checked_call(stream.value.get_schema, &schema.value);
  check_type(&schema.value, 0);
  nb::list chunks;
  while (true) {
    const auto chunk = std::make_shared<Chunk>();
    checked_call(stream.value.get_next, &chunk->value);
    if (chunk->value.release == nullptr) break;
    check_part(&chunk->value, schema.value);
    chunks.append(ArrowPart{chunk, &chunk->value});
  }
  return nb::make_tuple(arrow_type(schema.value), chunks);
}

nb::object read_arrow_array(nb::handle schema_capsule, nb::handle array_capsule) {
  const Taken<arrow::Schema> schema(schema_capsule, "arrow_schema");
  const auto chunk = std::make_shared<Chunk>(array_capsule, "arrow_array");
  check_type(&schema.value, 0);
  check_part(&chunk->value, schema.value);
  nb::list chunks;
  chunks.append(ArrowPart{chunk, &chunk->value});
  return nb::make_tuple(arrow_type(schema.value), chunks);
}

// A view of the first bytes of a buffer, which keeps its chunk alive; None if the buffer is absent.
nb::object arrow_buffer(const nb::object& self, int64_t number, int64_t bytes) {
  const arrow::Array& array = *nb::cast<const ArrowPart&>(self).array;
  if (number >= array.n_buffers) refuse_arrow("has a column that lacks buffers");
  const void* const data = array.buffers[number];
  if (data == nullptr && bytes > 0 && number > 0) refuse_arrow("has a column that lacks a buffer");
  if (data == nullptr) return nb::none();
  tenon::Array view;
  view.dtype = TN_U8;
  view.shape = {bytes};
  view.data = data;
  return python_array(view, self);
}

// A column that is exported: the memory of arrays of NumPy.
struct Exported {
  std::string format, name;
  int64_t length = 0;
  std::vector<const void*> buffers;
  std::unique_ptr<Held> owners;
  std::vector<std::shared_ptr<const Exported>> children;  // the last is the dictionary, if there is one
  bool has_dictionary = false;

  [[nodiscard]] bool has_nulls() const { return !buffers.empty() && buffers.front() != nullptr; }
};
using ExportedColumn = std::shared_ptr<const Exported>;

// column: (format, name, length, arrays or None of the buffers, children, dictionary or None).
ExportedColumn exported(nb::handle column) {
  const auto result = std::make_shared<Exported>();
  result->format = nb::cast<std::string>(column[0]);
  result->name = nb::cast<std::string>(column[1]);
  result->length = nb::cast<int64_t>(column[2]);
  std::vector<nb::object> owners;
  for (const nb::handle buffer : column[3]) {
    const bool absent = buffer.is_none();
    result->buffers.push_back(absent ? nullptr
                                     : nb::cast<nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>>(buffer).data());
    if (!absent) owners.push_back(nb::borrow(buffer));
  }
  result->owners = std::make_unique<Held>(std::move(owners));
  for (const nb::handle child : column[4]) result->children.push_back(exported(child));
  result->has_dictionary = !nb::handle(nb::object(column[5])).is_none();
  if (result->has_dictionary) result->children.push_back(exported(nb::object(column[5])));
  return result;
}

// The memory of an exported struct, of the schema or an array.
template <typename Struct>
struct Lent {
  ExportedColumn column;
  std::vector<Struct> children;
  std::vector<Struct*> pointers;
  std::vector<const void*> buffers;
};

template <typename Struct>
void release_lent(Struct* lent) {
  auto* const memory = static_cast<Lent<Struct>*>(lent->private_data);
  for (Struct& child : memory->children)
    if (child.release != nullptr) child.release(&child);
  lent->release = nullptr;
  delete memory;
}

// Fills what schemas and arrays have in common, and their children.
template <typename Struct>
Lent<Struct>& lend(const ExportedColumn& column, Struct* out, void (*fill)(const ExportedColumn&, Struct*)) {
  auto memory = std::make_unique<Lent<Struct>>();
  memory->column = column;
  memory->buffers = column->buffers;
  memory->children.resize(column->children.size());
  for (size_t i = 0; i < column->children.size(); ++i) {
    fill(column->children[i], &memory->children[i]);
    memory->pointers.push_back(&memory->children[i]);
  }
  out->n_children = static_cast<int64_t>(column->children.size()) - (column->has_dictionary ? 1 : 0);
  out->children = memory->pointers.data();
  out->dictionary = column->has_dictionary ? memory->pointers.back() : nullptr;
  out->release = release_lent<Struct>;
  out->private_data = memory.get();
  return *memory.release();
}

void fill_schema(const ExportedColumn& column, arrow::Schema* out) {
  *out = {};
  lend(column, out, fill_schema);
  out->flags = column->has_nulls() ? 2 : 0;  // ARROW_FLAG_NULLABLE
  out->format = column->format.c_str();
  out->name = column->name.c_str();
}

void fill_array(const ExportedColumn& column, arrow::Array* out) {
  *out = {};
  Lent<arrow::Array>& memory = lend(column, out, fill_array);
  out->length = column->length;
  out->null_count = column->has_nulls() ? -1 : 0;
  out->n_buffers = static_cast<int64_t>(memory.buffers.size());
  out->buffers = memory.buffers.data();
}

// A stream of one chunk.
struct OneChunk {
  ExportedColumn table;
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

arrow::Stream stream_of(ExportedColumn table) {
  arrow::Stream stream = {};
  stream.private_data = new OneChunk{std::move(table)};
  stream.get_schema = [](arrow::Stream* self, arrow::Schema* out) {
    return status_of([&] { fill_schema(static_cast<OneChunk*>(self->private_data)->table, out); });
  };
  stream.get_next = [](arrow::Stream* self, arrow::Array* out) {
    auto* const chunk = static_cast<OneChunk*>(self->private_data);
    *out = {};
    const int status = chunk->over ? 0 : status_of([&] { fill_array(chunk->table, out); });
    chunk->over = true;
    return status;
  };
  stream.get_last_error = [](arrow::Stream*) -> const char* { return "the memory is not enough"; };
  stream.release = [](arrow::Stream* self) {
    delete static_cast<OneChunk*>(self->private_data);
    self->release = nullptr;
  };
  return stream;
}

// A capsule that owns a struct, which a consumer takes out.
template <typename Struct>
nb::object arrow_capsule(const Struct& value, const char* name) {
  auto* const kept = new Struct(value);
  nb::object capsule = nb::steal(PyCapsule_New(kept, name, [](PyObject* object) {
    auto* const owned = static_cast<Struct*>(PyCapsule_GetPointer(object, PyCapsule_GetName(object)));
    if (owned->release != nullptr) owned->release(owned);
    delete owned;
  }));
  if (capsule.is_valid()) return capsule;
  kept->release(kept);
  delete kept;
  throw nb::python_error();
}

}  // namespace

void bind_arrow(nb::module_& module) {
  nb::class_<ArrowPart>(module, "ArrowPart")
      .def_prop_ro("length", [](const ArrowPart& part) { return part.array->length; })
      .def_prop_ro("offset", [](const ArrowPart& part) { return part.array->offset; })
      .def_prop_ro("null_count", [](const ArrowPart& part) { return part.array->null_count; })
      .def_prop_ro("buffers", [](const ArrowPart& part) { return part.array->n_buffers; })
      .def_prop_ro("children",
                   [](const ArrowPart& part) {
                     std::vector<ArrowPart> result;
                     for (int64_t i = 0; i < part.array->n_children; ++i) result.push_back(part.child(i));
                     return result;
                   })
      .def_prop_ro("dictionary",
                   [](const ArrowPart& part) {
                     return ArrowPart{part.chunk, part.array->dictionary};
                   })
      .def("buffer", arrow_buffer);
  module.def("read_arrow_stream", read_arrow_stream);
  module.def("read_arrow_array", read_arrow_array);
  module.def("arrow_schema", [](nb::handle column) {
    arrow::Schema schema;
    fill_schema(exported(column), &schema);
    return arrow_capsule(schema, "arrow_schema");
  });
  module.def("arrow_stream",
             [](nb::handle column) { return arrow_capsule(stream_of(exported(column)), "arrow_array_stream"); });
}

}  // namespace tenon_python
