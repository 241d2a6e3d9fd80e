// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/offered_table.h"

#include <tenon/device_host.h>
#include <tenon/device_images.h>
#include <tenon/migrate.h>
#include <tenon/numbers.h>
#include <tenon/reader.h>
#include <tenon/step.h>

#include <algorithm>

#include "core/error.h"

namespace tenon::host {

namespace {

constexpr size_t kFirst = 2 * sizeof(uint32_t);  // the first function: behind the size and another number

// A table of these headers. A later version adds functions behind those that it has here, and does not change this.
struct KnownTable {
  const char* id;
  uint32_t bytes;                      // of the version that brought it
  std::vector<const char*> functions;  // the first ones, without which the host does not use it
};

const std::vector<KnownTable>& known_tables() {
  static const std::vector<KnownTable> tables = {
      {TN_GEMM, 16, {"prepare"}},
      {TN_GEMM_EPILOGUE, 24, {"supports", "prepare"}},
      {TN_PACKED_GEMM, 40, {"packed_bytes", "prepare_pack", "prepare_multiply"}},
      {TN_POINTWISE, 16, {"prepare"}},
      {TN_GATHER, 16, {"prepare"}},
      {TN_GATHER_GEMM, 24, {"supports", "prepare"}},
      {TN_MOVE, 16, {"prepare"}},
      {TN_SEGMENT, 16, {"prepare"}},
      {TN_ARGSORT, 16, {"prepare"}},
      {TN_PREFIX_SUM, 16, {"prepare"}},
      {TN_ROW_SPARSE_TABLE, 24, {}},  // each of its two calls may be absent
      {TN_COALESCE_PRODUCTS, 24, {"supports", "prepare"}},
      {TN_CONV, 16, {"prepare"}},
      {TN_CONV_EPILOGUE, 24, {"supports", "prepare"}},
      {TN_POOL, 16, {"prepare"}},
      {TN_RESIZE, 16, {"prepare"}},
      {TN_NATIVE, 16, {"stream"}},
      {TN_HOST_MEMORY, 24, {"allocate", "release"}},
      {TN_CAPTURE, 40, {"begin", "end", "launch", "destroy"}},
      {TN_STEP, 16, {"step"}},
      {TN_MIGRATE, 16, {"migrate"}},
      {TN_LAYER_NUMBERS, 16, {"declare"}},
      {TN_PASS, 16, {"begin"}},
      {TN_PARALLEL_READ, 16, {"read_at"}},
      {TN_RECORDS, 32, {"count", "record", "text"}},
  };
  return tables;
}

const KnownTable* known_table(std::string_view id) {
  const std::vector<KnownTable>& tables = known_tables();
  const auto found = std::find_if(tables.begin(), tables.end(), [&](const KnownTable& each) { return each.id == id; });
  return found == tables.end() ? nullptr : &*found;
}

}  // namespace

bool is_table_size(std::string_view id, uint32_t bytes) {
  constexpr uint32_t kMostBytes = 65536;
  const KnownTable* const known = known_table(id);
  const uint32_t least = known == nullptr ? kFirst : known->bytes;
  return bytes >= least && bytes <= kMostBytes && bytes % alignof(void*) == 0;
}

OfferedTable::OfferedTable(const void* given, const char* id, const std::string& plugin) : id_(id) {
  if (given == nullptr) return;
  constexpr size_t kTableBytes = 256;  // more than any table of these headers has
  uint32_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (!is_table_size(id, size))
    fail(TN_PLUGIN_FAULT, "table \"", id, "\" of ", plugin, " states a size of ", size, " bytes");
  words_.assign(std::max<size_t>(size, kTableBytes) / sizeof(uint64_t), 0);
  std::memcpy(words_.data(), given, size);
}

std::string OfferedTable::missing() const {
  const KnownTable* const known = known_table(id_);
  if (known == nullptr || words_.empty()) return "";
  for (size_t i = 0; i < known->functions.size(); ++i)
    if (words_[kFirst / sizeof(uint64_t) + i] == 0) return known->functions[i];
  return "";
}

}  // namespace tenon::host
