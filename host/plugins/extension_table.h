// Optional tables of a component type, by id. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "core/error.h"
#include "host/plugins/registry.h"
#include "host/plugins/thread_tags.h"

namespace tenon::host {

// Returns the table that a layer type offers by this id, checked: it reaches to its member `last`, a function, which is
// there. Nothing if the type offers none. who: for messages.
template <typename Table, typename Function>
std::optional<Table> extension_table(const LayerType& type, const std::string& who, const char* id,
                                     Function Table::*last) {
  if (type.table.extension == nullptr) return std::nullopt;
  const void* const given = call_plugin(type, who, {Tag::kAny, "extension"}, type.table.extension, type.table.user, id);
  if (given == nullptr) return std::nullopt;
  uint32_t size = 0;
  std::memcpy(&size, given, sizeof size);
  Table table = {};
  const auto end = reinterpret_cast<std::byte*>(&(table.*last)) - reinterpret_cast<std::byte*>(&table) +
                   static_cast<std::ptrdiff_t>(sizeof(Function));
  if (size < static_cast<size_t>(end) || size % alignof(Table) != 0)
    fail(TN_PLUGIN_FAULT, "its extension \"", id, "\" of ", size, " bytes is not sound");
  std::memcpy(&table, given, std::min<size_t>(size, sizeof table));
  if (table.*last == nullptr) fail(TN_PLUGIN_FAULT, "its extension \"", id, "\" has no function");
  return table;
}

}  // namespace tenon::host
