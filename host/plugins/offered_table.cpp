// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/offered_table.h"

#include <algorithm>

#include "core/error.h"
#include "sdk/manifest/tables.h"

namespace tenon::host {

std::string size_fault(const std::string& id, uint32_t bytes) {
  const tn_known_table* const known = tn_find_table(id.c_str());
  if (tn_is_table_size(known, bytes) != 0) return "";
  return text("states a size of ", bytes, " bytes; expected a multiple of ", sizeof(void*), " from ",
              tn_least_bytes(known), " to ", TN_TABLE_MOST);
}

OfferedTable::OfferedTable(const void* given, const char* id, const std::string& plugin) : id_(id) {
  if (given == nullptr) return;
  constexpr size_t kTableBytes = 256;  // more than any table of these headers has
  uint32_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (const std::string fault = size_fault(id_, size); !fault.empty())
    fail(TN_PLUGIN_FAULT, "table \"", id, "\" of ", plugin, " ", fault);
  words_.assign(std::max<size_t>(size, kTableBytes) / sizeof(uint64_t), 0);
  std::memcpy(words_.data(), given, size);
}

std::string OfferedTable::missing() const {
  const tn_known_table* const known = tn_find_table(id_.c_str());
  if (known == nullptr || words_.empty()) return "";
  for (size_t i = 0; i < std::size(known->functions) && known->functions[i] != nullptr; ++i)
    if (words_[TN_TABLE_FIRST / sizeof(uint64_t) + i] == 0) return known->functions[i];
  return "";
}

}  // namespace tenon::host
