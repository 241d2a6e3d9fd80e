// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/offered_table.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/error.h"
#include "sdk/manifest/tables.h"

namespace tenon::host {

namespace {

uint32_t size_of(const void* table) {
  uint32_t size = 0;
  std::memcpy(&size, table, sizeof size);
  return size;
}

std::string digits_of(uint32_t digest) {
  std::array<char, 9> digits = {};
  std::snprintf(digits.data(), digits.size(), "%08x", digest);
  return digits.data();
}

}  // namespace

Draft draft_of(const std::string& id, uint32_t digest) { return {.id = id, .digest = digits_of(digest)}; }

std::string draft_fault(const Draft& draft) {
  const tn_known_table* const entry = tn_find_table(draft.id.c_str());
  if (entry == nullptr || digits_of(entry->second) == draft.digest) return "";
  const std::string host = tn_is_draft(entry) != 0 ? text("this host has the draft ", digits_of(entry->second))
                                                   : "for this host the table is no draft any more";
  return text("of the draft ", draft.digest, "; ", host, "; rebuild the plugin with the SDK of this Tenon");
}

std::string table_fault(const std::string& id, const void* table) {
  const tn_known_table* const entry = tn_find_table(id.c_str());
  const uint32_t bytes = size_of(table), second = bytes < TN_TABLE_FIRST ? 0 : tn_second_member(table);
  if (entry != nullptr && tn_is_draft(entry) != 0 && bytes >= TN_TABLE_FIRST && second != entry->second)
    return "is " + draft_fault(draft_of(id, second));
  if (tn_is_table_size(entry, bytes) == 0)
    return text("states a size of ", bytes, " bytes; expected a multiple of ", sizeof(void*), " from ",
                tn_least_bytes(entry), " to ", TN_TABLE_MOST);
  if (entry != nullptr && entry->second == 0 && second != 0)
    return text("has the reserved member ", second, "; expected 0");
  return "";
}

bool is_known_table(const std::string& id) { return tn_find_table(id.c_str()) != nullptr; }

Offers offers_of(uint32_t owner, const void* (*extension)(void* user, const char* id), void* user) {
  Offers offers;
  if (extension == nullptr) return offers;
  for (const tn_known_table& entry : tn_known_tables) {
    const void* const table = entry.owner == owner ? extension(user, entry.id) : nullptr;
    if (table == nullptr) continue;
    offers.tables.emplace_back(entry.id);
    if (tn_is_draft(&entry) != 0) offers.drafts.push_back(draft_of(entry.id, tn_second_member(table)));
  }
  return offers;
}

OfferedTable::OfferedTable(const void* given, const char* id, const std::string& plugin) : id_(id) {
  if (given == nullptr) return;
  constexpr size_t kTableBytes = 256;  // more than any table of these headers has
  const uint32_t size = size_of(given);
  if (const std::string fault = table_fault(id_, given); !fault.empty())
    fail(TN_PLUGIN_FAULT, "table \"", id, "\" of ", plugin, " ", fault);
  words_.assign(std::max<size_t>(size, kTableBytes) / sizeof(uint64_t), 0);
  std::memcpy(words_.data(), given, size);
}

std::string OfferedTable::missing() const {
  const tn_known_table* const entry = tn_find_table(id_.c_str());
  if (entry == nullptr || words_.empty()) return "";
  for (size_t i = 0; i < std::size(entry->functions) && entry->functions[i] != nullptr; ++i)
    if (words_[TN_TABLE_FIRST / sizeof(uint64_t) + i] == 0) return entry->functions[i];
  return "";
}

}  // namespace tenon::host
