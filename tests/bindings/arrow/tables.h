// Tables of the Arrow C data interface as a producer makes them, which count what is released.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tenon_arrow.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon_tests {

// A column: buffers as bytes, an absent one as an empty list that `absent` names.
struct Node {
  std::string format, name;
  int64_t length = 0;
  std::vector<std::shared_ptr<const std::vector<char>>> buffers = {};  // null: absent
  std::vector<Node> children = {};
  std::vector<Node> dictionary = {};  // none or one
  int64_t nulls = 0, offset = 0;

  [[nodiscard]] Node called(std::string as) const {
    Node result = *this;
    result.name = std::move(as);
    return result;
  }
  // The rows from start to stop, by an offset into the same memory.
  [[nodiscard]] Node cut(int64_t start, int64_t stop) const {
    Node result = *this;
    result.offset += start;
    result.length = stop - start;
    return result;
  }
  [[nodiscard]] Node with_null(int64_t row) const {
    std::vector<char> bits(static_cast<size_t>((offset + length + 7) / 8), '\xff');
    const int64_t bit = offset + row;
    bits[static_cast<size_t>(bit / 8)] = static_cast<char>(~(1 << (bit % 8)));
    Node result = *this;
    result.buffers[0] = std::make_shared<const std::vector<char>>(std::move(bits));
    result.nulls = -1;
    return result;
  }
};

template <typename Number>
std::shared_ptr<const std::vector<char>> bytes_of(const std::vector<Number>& numbers) {
  auto bytes = std::make_shared<std::vector<char>>(std::max<size_t>(numbers.size() * sizeof(Number), 1));
  if (!numbers.empty()) std::memcpy(bytes->data(), numbers.data(), numbers.size() * sizeof(Number));
  return bytes;
}

template <typename Number>
Node numbers(const char* format, const std::vector<Number>& values) {
  return {format, "", static_cast<int64_t>(values.size()), {nullptr, bytes_of(values)}};
}
inline Node texts(const std::vector<std::string>& values) {
  std::vector<int32_t> offsets(1, 0);
  std::vector<char> joined;
  for (const std::string& value : values) {
    joined.insert(joined.end(), value.begin(), value.end());
    offsets.push_back(static_cast<int32_t>(joined.size()));
  }
  return {"u", "", static_cast<int64_t>(values.size()), {nullptr, bytes_of(offsets), bytes_of(joined)}};
}
inline Node categories(const std::vector<int8_t>& codes, const std::vector<std::string>& names) {
  Node result = numbers("c", codes);
  result.dictionary = {texts(names)};
  return result;
}
inline Node lists(const std::vector<int32_t>& offsets, Node child) {
  return {"+l", "", static_cast<int64_t>(offsets.size()) - 1, {nullptr, bytes_of(offsets)}, {std::move(child)}};
}
inline Node vectors(int64_t size, Node child) {
  const int64_t length = child.length / size;
  return {"+w:" + std::to_string(size), "", length, {nullptr}, {std::move(child)}};
}
inline Node structs(std::vector<Node> columns) {
  const int64_t length = columns.empty() ? 0 : columns[0].length;
  return {"+s", "", length, {nullptr}, std::move(columns)};
}
inline Node maps(const std::vector<int32_t>& offsets, Node keys, Node values) {
  Node result = lists(offsets, structs({keys.called("key"), values.called("value")}));
  result.format = "+m";
  return result;
}

// What was released, each with its children; `twice` counts releases of what was released before.
struct Count {
  int schemas = 0, arrays = 0, streams = 0, alive = 0;
};

template <typename Struct>
struct Produced {
  Node node;
  Count* count = nullptr;
  bool root = false;
  std::vector<Struct> children;
  std::vector<Struct*> pointers;
  std::vector<const void*> buffers;
};

template <typename Struct>
void fill(const Node& node, Count* count, bool root, Struct* out) {
  auto* const made = new Produced<Struct>{node, count, root, {}, {}, {}};
  made->children.resize(node.children.size() + node.dictionary.size());
  for (size_t i = 0; i < made->children.size(); ++i) {
    const bool inner = i < node.children.size();
    fill(inner ? node.children[i] : node.dictionary[0], count, false, &made->children[i]);
    made->pointers.push_back(&made->children[i]);
  }
  *out = {};
  out->n_children = static_cast<int64_t>(node.children.size());
  out->children = made->pointers.data();
  out->dictionary = node.dictionary.empty() ? nullptr : made->pointers.back();
  out->private_data = made;
  ++count->alive;
  out->release = [](Struct* self) {
    auto* const of = static_cast<Produced<Struct>*>(self->private_data);
    for (Struct& child : of->children)
      if (child.release != nullptr) child.release(&child);
    --of->count->alive;
    if constexpr (std::is_same_v<Struct, ArrowSchema>)
      of->count->schemas += of->root ? 1 : 0;
    else
      of->count->arrays += of->root ? 1 : 0;
    self->release = nullptr;
    delete of;
  };
  if constexpr (std::is_same_v<Struct, ArrowSchema>) {
    out->format = made->node.format.c_str();
    out->name = made->node.name.c_str();
    out->flags = ARROW_FLAG_NULLABLE;
  } else {
    for (const auto& buffer : node.buffers) made->buffers.push_back(buffer == nullptr ? nullptr : buffer->data());
    out->length = node.length;
    out->offset = node.offset;
    out->null_count = node.nulls;
    out->n_buffers = static_cast<int64_t>(made->buffers.size());
    out->buffers = made->buffers.data();
  }
}

inline ArrowSchema schema_of(const Node& node, Count* count) {
  ArrowSchema schema;
  fill(node, count, true, &schema);
  return schema;
}
inline ArrowArray array_of(const Node& node, Count* count) {
  ArrowArray array;
  fill(node, count, true, &array);
  return array;
}

// A stream of chunks; chunk number `fails` fails.
inline ArrowArrayStream stream_of(std::vector<Node> chunks, Count* count, size_t fails = SIZE_MAX) {
  struct Chunks {
    std::vector<Node> list;
    Count* count;
    size_t fails, next;
  };
  ArrowArrayStream stream = {};
  stream.private_data = new Chunks{std::move(chunks), count, fails, 0};
  ++count->alive;
  stream.get_schema = [](ArrowArrayStream* self, ArrowSchema* out) {
    const auto& of = *static_cast<Chunks*>(self->private_data);
    fill(of.list.front(), of.count, true, out);
    return 0;
  };
  stream.get_next = [](ArrowArrayStream* self, ArrowArray* out) {
    auto& of = *static_cast<Chunks*>(self->private_data);
    *out = {};
    if (of.next == of.fails) return EIO;
    if (of.next < of.list.size()) fill(of.list[of.next++], of.count, true, out);
    return 0;
  };
  stream.get_last_error = [](ArrowArrayStream*) { return "the disk is gone"; };
  stream.release = [](ArrowArrayStream* self) {
    auto* const of = static_cast<Chunks*>(self->private_data);
    ++of->count->streams;
    --of->count->alive;
    delete of;
    self->release = nullptr;
  };
  return stream;
}

}  // namespace tenon_tests
