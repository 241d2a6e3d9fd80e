// Every table by id, at each shorter size and without each of its functions: it is refused or ignored, never called.
// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/offered_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/device_host.h>
#include <tenon/device_images.h>
#include <tenon/draft/numbers.h>
#include <tenon/draft/records.h>
#include <tenon/migrate.h>
#include <tenon/step.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "core/error.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon::core;
using namespace tenon::host;

namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Lent {
  const char* id;
  uint32_t bytes;   // of the table
  size_t required;  // its first functions, without which the host does not use it
  uint32_t draft = 0;
};
const Lent kTables[] = {
    {TN_GEMM, sizeof(tn_gemm_table), 1},
    {TN_GEMM_EPILOGUE, sizeof(tn_gemm_epilogue_table), 2},
    {TN_PACKED_GEMM, sizeof(tn_packed_gemm_table), 3},
    {TN_POINTWISE, sizeof(tn_pointwise_table), 1},
    {TN_GATHER, sizeof(tn_gather_table), 1},
    {TN_GATHER_GEMM, sizeof(tn_gather_gemm_table), 2},
    {TN_MOVE, sizeof(tn_move_table), 1},
    {TN_SEGMENT, sizeof(tn_segment_table), 1},
    {TN_ARGSORT, sizeof(tn_argsort_table), 1},
    {TN_PREFIX_SUM, sizeof(tn_prefix_sum_table), 1},
    {TN_ROW_SPARSE_TABLE, sizeof(tn_row_sparse_table), 0},
    {TN_COALESCE_PRODUCTS, sizeof(tn_coalesce_products_table), 2},
    {TN_CONV, sizeof(tn_conv_table), 1},
    {TN_CONV_EPILOGUE, sizeof(tn_conv_epilogue_table), 2},
    {TN_POOL, sizeof(tn_pool_table), 1},
    {TN_RESIZE, sizeof(tn_resize_table), 1},
    {TN_NATIVE, sizeof(tn_native_table), 1},
    {TN_HOST_MEMORY, sizeof(tn_host_memory_table), 2},
    {TN_CAPTURE, sizeof(tn_capture_table), 4},
    {TN_STEP, sizeof(tn_step), 1},
    {TN_MIGRATE, sizeof(tn_migrate), 1},
    {TN_PASS, sizeof(tn_pass), 1},
    {TN_PARALLEL_READ, sizeof(tn_parallel_read), 1},
    {TN_RECORDS, sizeof(tn_records), 3, TN_RECORDS_DRAFT},
    {TN_LAYER_NUMBERS, sizeof(tn_layer_numbers), 1, TN_NUMBERS_DRAFT},
};

// A table of `bytes` bytes that states `size`, whose functions are all there.
std::vector<uint64_t> table_of(uint32_t bytes, uint32_t size, uint32_t second = 0) {
  std::vector<uint64_t> words(std::max<size_t>(bytes / sizeof(uint64_t), 2), 0x4141414141414141);
  words[0] = size | uint64_t{second} << 32;
  return words;
}
std::string fault_of(const Lent& table, uint32_t size) {
  return table_fault(table.id, table_of(table.bytes, size, table.draft).data());
}

// The ids of the headers that a plugin offers; those of the host's services are left out.
std::set<std::string> ids_of_headers() {
  std::set<std::string> ids;
  const std::regex form("\"(tenon\\.[a-z_]+/[0-9]+)\"");
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(source_folder() + std::string("/sdk/include/tenon"))) {
    if (file.path().extension() != ".h") continue;
    std::ifstream in(file.path());
    for (std::string line; std::getline(in, line);)
      if (std::smatch match; line.starts_with("#define TN_") && std::regex_search(line, match, form))
        ids.insert(match[1]);
  }
  for (const char* service : {TN_LOG, TN_MEMORY, TN_OPTIONS}) ids.erase(service);
  return ids;
}

TEST(OfferedTables, AreAllKnown) {
  std::set<std::string> known;
  for (const Lent& each : kTables) known.insert(each.id);
  EXPECT_EQ(known, ids_of_headers());
}

TEST(OfferedTables, OfEachShorterSizeAreRefused) {
  for (const Lent& each : kTables) {
    SCOPED_TRACE(each.id);
    for (uint32_t size = 0; size < each.bytes; ++size) {
      EXPECT_NE(fault_of(each, size), "") << size;
      const std::vector<uint64_t> words = table_of(each.bytes, size, each.draft);
      try {
        const OfferedTable table(words.data(), each.id, "org.example");
        ADD_FAILURE() << "accepted a size of " << size;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), TN_PLUGIN_FAULT);
        EXPECT_THAT(error.message(), HasSubstr("of org.example states a size of " + std::to_string(size) + " bytes"));
      }
    }
    for (const uint32_t size : {each.bytes, each.bytes + 8}) EXPECT_EQ(fault_of(each, size), "");
    EXPECT_NE(fault_of(each, each.bytes + 4), "");
  }
}

// A reserved member gets a meaning in a later version, which this host would not keep.
TEST(OfferedTables, WithAReservedMemberAreRefused) {
  const std::set<std::string> with_numbers = {TN_POINTWISE, TN_GEMM_EPILOGUE, TN_CONV_EPILOGUE, TN_ROW_SPARSE_TABLE,
                                              TN_MIGRATE};
  for (const Lent& each : kTables) {
    SCOPED_TRACE(each.id);
    const std::string fault = table_fault(each.id, table_of(each.bytes, each.bytes, 7).data());
    if (each.draft != 0)
      EXPECT_THAT(fault, HasSubstr("is of the draft 00000007; this host has the draft "));
    else
      EXPECT_EQ(fault, with_numbers.count(each.id) != 0 ? "" : "has the reserved member 7; expected 0");
  }
}

TEST(OfferedTables, OfAnotherDraftAreRefused) {
  const auto message = [](const char* id, const char* digest) { return draft_fault({.id = id, .digest = digest}); };
  EXPECT_EQ(message("vendor.table/1", "00000007"), "") << "it is never asked for";
  EXPECT_THAT(message(TN_GEMM, "00000007"),
              HasSubstr("of the draft 00000007; for this host the table is no draft any more"));
  EXPECT_THAT(message(TN_RECORDS, "00000007"), AllOf(HasSubstr("of the draft 00000007; this host has the draft "),
                                                     HasSubstr("; rebuild the plugin with the SDK of this Tenon")));
}

TEST(OfferedTables, WithoutARequiredFunctionSayWhich) {
  for (const Lent& each : kTables) {
    SCOPED_TRACE(each.id);
    const size_t functions = each.bytes / sizeof(uint64_t) - 1;
    ASSERT_LE(each.required, functions);
    EXPECT_EQ(OfferedTable(table_of(each.bytes, each.bytes, each.draft).data(), each.id, "org.example").missing(), "");
    for (size_t i = 0; i < functions; ++i) {
      std::vector<uint64_t> words = table_of(each.bytes, each.bytes, each.draft);
      words[1 + i] = 0;
      const OfferedTable table(words.data(), each.id, "org.example");
      EXPECT_EQ(!table.missing().empty(), i < each.required) << i;
      EXPECT_NE(table.get(each.bytes), nullptr);
    }
  }
}

TEST(OfferedTables, OfOtherIdsHaveASizeAndMore) {
  EXPECT_EQ(table_fault("vendor.table/1", table_of(16, 4).data()),
            "states a size of 4 bytes; expected a multiple of 8 from 8 to 65536");
  EXPECT_EQ(table_fault("vendor.table/1", table_of(16, 8, 7).data()), "");
  EXPECT_EQ(OfferedTable(table_of(16, 8).data(), "vendor.table/1", "org.example").missing(), "");
  EXPECT_EQ(OfferedTable(nullptr, TN_GEMM, "org.example").as<tn_gemm_table>(), nullptr);
}

}  // namespace

}  // namespace tenon_tests
