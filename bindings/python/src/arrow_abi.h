// The structs of the Arrow C data and stream interfaces, in the layout of their specification
// (arrow.apache.org/docs/format). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon_python::arrow {

struct Schema {
  const char *format, *name, *metadata;
  int64_t flags;
  int64_t n_children;
  Schema** children;
  Schema* dictionary;
  void (*release)(Schema*);
  void* private_data;
};

struct Array {
  int64_t length, null_count, offset;
  int64_t n_buffers, n_children;
  const void** buffers;
  Array** children;
  Array* dictionary;
  void (*release)(Array*);
  void* private_data;
};

struct Stream {
  int (*get_schema)(Stream*, Schema* out);
  int (*get_next)(Stream*, Array* out);
  const char* (*get_last_error)(Stream*);
  void (*release)(Stream*);
  void* private_data;
};

}  // namespace tenon_python::arrow
