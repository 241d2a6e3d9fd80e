// Tables of functions that a component offers by id. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "host/plugins/registry.h"
#include "host/plugins/thread_tags.h"

namespace tenon::host {

// Returns why this host does not use a table, not null, that a plugin offers by `id`; "" if it does. Its size must be
// at least that of the version that brought the table, and whole pointers; of an id that this host does not know, two
// members or more. Its second member: zero where it is reserved, and of a draft the digest of this host's.
[[nodiscard]] std::string table_fault(const std::string& id, const void* table);

// A draft of a table by id that a plugin was built with (docs/interface-1.0.md).
struct Draft {
  std::string id;
  std::string digest;  // eight hexadecimal digits
  bool operator==(const Draft&) const = default;
};
[[nodiscard]] Draft draft_of(const std::string& id, uint32_t digest);
// Returns why this host does not use this draft, "" if it does: "of the draft ...; ...". It has another draft of the
// table, or none any more. A table that the host does not know is never asked for.
[[nodiscard]] std::string draft_fault(const Draft& draft);

// Whether these headers have a table of this id.
[[nodiscard]] bool is_known_table(const std::string& id);
// Ids and draft digests of the tables of these headers for types of the owner, TN_OF_* (sdk/manifest/tables.h), that an
// extension answers.
struct Offers {
  std::vector<std::string> tables;
  std::vector<Draft> drafts;
};
[[nodiscard]] Offers offers_of(uint32_t owner, const void* (*extension)(void* user, const char* id), void* user);

// A copy of a table, padded with zeros so that any table of these headers fits; or nothing.
class OfferedTable {
 public:
  OfferedTable() = default;
  // Copies a table that begins with its size; nothing for null. Throws TN_PLUGIN_FAULT, without the name of a
  // component, if table_fault has a reason.
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
// TN_PLUGIN_FAULT, without the name of the component, if it is not sound or a function is missing. who: the
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
