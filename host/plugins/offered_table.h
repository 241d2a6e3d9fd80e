// Tables of functions that a component offers by id. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "host/plugins/registry.h"
#include "host/plugins/thread_tags.h"

namespace tenon::host {

// Returns why a table that a plugin offers by `id` may not state this size, "" if it may: it must be at least that of
// the version that brought the table, and whole pointers. Ids that this host does not know: two members or more.
[[nodiscard]] std::string size_fault(const std::string& id, uint32_t bytes);

// A copy of a table, padded with zeros so that any table of these headers fits; or nothing.
class OfferedTable {
 public:
  OfferedTable() = default;
  // Copies a table that begins with its size; nothing for null. Throws TN_PLUGIN_FAULT, without the name of a
  // component, if the size is not that of such a table.
  OfferedTable(const void* given, const char* id, const std::string& plugin);

  // Returns the first function without which the host does not use the table, and which is null; "" if it has all.
  // Others may be null, and then stand for calls that are not offered.
  [[nodiscard]] std::string missing() const;
  // Null if there is no table, or if its copy has fewer bytes.
  [[nodiscard]] const void* get(size_t bytes) const {
    return words_.empty() || bytes > words_.size() * sizeof(uint64_t) ? nullptr : words_.data();
  }
  template <typename Table>
  [[nodiscard]] const Table* as() const {
    return static_cast<const Table*>(get(sizeof(Table)));
  }

 private:
  std::string id_;
  std::vector<uint64_t> words_;
};

// Returns the table that a layer type or a reader type offers by this id; nothing if it offers none. Throws
// TN_PLUGIN_FAULT, without the name of the component, if its size is wrong or a function is missing. who: the
// component.
template <typename Type>
OfferedTable extension_table(const Type& type, const std::string& who, const char* id) {
  if (type.table.extension == nullptr) return {};
  OfferedTable table(call_plugin(type, who, {Tag::kAny, "extension"}, type.table.extension, type.table.user, id), id,
                     type.plugin);
  if (const std::string missing = table.missing(); !missing.empty())
    fail(TN_PLUGIN_FAULT, "table \"", id, "\" of ", type.plugin, " has no function \"", missing, "\"");
  return table;
}

// The same; the failure names the component.
template <typename Type>
OfferedTable named_extension_table(const Type& type, const std::string& who, const char* id) {
  try {
    return extension_table(type, who, id);
  } catch (const Error& error) {
    throw error.component().empty() ? error.with_component(who) : error;
  }
}

}  // namespace tenon::host
