// Columns of the Arrow C data interface, in chunks: who owns their memory, and whether they fit their schema.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tenon_arrow.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tenon/tenon_error.hpp>
#include <utility>
#include <vector>

namespace tenon_arrow {

using tenon::Error;
using Memory = std::shared_ptr<const void>;

// Throws TN_BAD_DATA: "the table of Arrow " and the fault.
[[noreturn]] void refuse_table(const std::string& fault);

// A struct of the interface. Its end releases it, if it is owned.
template <typename Struct>
class Held {
 public:
  Held() = default;
  // The struct stays the caller's, until `take`.
  explicit Held(const Struct& borrowed) : value(borrowed) { value.release = nullptr; }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (value.release != nullptr) value.release(&value);
  }
  // Moves the struct from the place where the producer has it, as the interface does.
  void take(Struct& place) {
    value = place;
    place.release = nullptr;
  }
  Struct value = {};
};
using HeldSchema = Held<ArrowSchema>;
using HeldArray = Held<ArrowArray>;
using HeldStream = Held<ArrowArrayStream>;

// The elements of a chunk from `start` to `stop`, counted from the begin of its buffers.
struct Part {
  Memory memory;
  const ArrowArray* array = nullptr;
  int64_t start = 0, stop = 0;

  // All elements.
  [[nodiscard]] static Part all(Memory memory, const ArrowArray& array) {
    return {std::move(memory), &array, array.offset, array.offset + array.length};
  }
  [[nodiscard]] int64_t size() const { return stop - start; }
  // Elements of a child, counted from its offset. Throws if the child lacks them.
  [[nodiscard]] Part child(int64_t number, int64_t first, int64_t last) const;
  // Throws if the array has another number of buffers.
  void require_buffers(int64_t count) const;
  // `size` bytes of a buffer. Null where the buffer is absent: of validity, or of no bytes.
  [[nodiscard]] const char* buffer(int64_t number, int64_t size) const;
  // Bit number `element` of a buffer, counted from the begin.
  [[nodiscard]] static bool bit(const char* bits, int64_t element) {
    return ((static_cast<unsigned char>(bits[element / 8]) >> (element % 8)) & 1) != 0;
  }
};

struct Column {
  std::shared_ptr<const HeldSchema> schema;  // whose memory the type is in; null if it is borrowed
  const ArrowSchema* type = nullptr;
  std::vector<Part> parts;

  [[nodiscard]] int64_t size() const;
  [[nodiscard]] std::string_view format() const { return type->format; }
  [[nodiscard]] bool is_table() const { return format() == "+s"; }
  [[nodiscard]] Column child(int64_t number, std::vector<Part> parts_of_child) const {
    return {schema, type->children[number], std::move(parts_of_child)};
  }
};

// What messages call a column: `where` begins them, such as `column "x"`; `name` is their subject.
struct Place {
  std::string where, name;
  int64_t first = 0;  // the number of the column's first sample

  [[noreturn]] void refuse(tn_status status, const std::string& fault) const {
    throw Error(status, where + " " + fault, "data", name);
  }
  [[noreturn]] void refuse_sample(int64_t sample, const std::string& fault) const {
    throw Error(TN_BAD_DATA, "sample " + std::to_string(first + sample) + ": " + where + " " + fault, "data", name);
  }
};

// Throws TN_BAD_DATA for a damaged type, or an array that is not of the type.
void check_type(const ArrowSchema* schema);
void check_array(const ArrowArray* array, const ArrowSchema& schema);

// Calls a function of the stream. Throws with the stream's message if it fails.
void read_schema(ArrowArrayStream& stream, HeldSchema& schema);
// Returns false at the end of the stream.
[[nodiscard]] bool read_chunk(ArrowArrayStream& stream, const ArrowSchema& schema, HeldArray& chunk);

// Reads a stream to its end, a record batch or an array. Its type and memory are the column's.
[[nodiscard]] Column read(ArrowArrayStream& stream);
[[nodiscard]] Column read(std::shared_ptr<const HeldSchema> schema, const std::shared_ptr<const HeldArray>& array);

// Returns the columns of a table, in order. Throws for a missing row, and for two columns of one name.
[[nodiscard]] std::vector<std::pair<std::string, Column>> columns_of(const Column& table);

// Returns the number of the first element that is null, or has one that is; -1 if there is none.
[[nodiscard]] int64_t first_null(const Column& column);

// Returns the number in the format of lists of one size, "+w:3".
[[nodiscard]] int64_t fixed_size(std::string_view format);
[[nodiscard]] inline bool is_list(std::string_view format) {
  return format == "+l" || format == "+L" || format == "+m";
}
[[nodiscard]] inline bool is_fixed(std::string_view format) { return format.substr(0, 3) == "+w:"; }
// Returns where list number `element`, counted from the begin of the buffer, begins.
[[nodiscard]] int64_t list_start(std::string_view format, const char* offsets, int64_t element);
// Returns the elements of the lists of a part.
[[nodiscard]] Part elements_of(std::string_view format, const Part& part);
[[nodiscard]] Column elements_of(const Column& column);

}  // namespace tenon_arrow
