// SPDX-License-Identifier: Apache-2.0
#include "tables.h"

#include <tenon/device_host.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <tenon/base.hpp>

#include "call.h"
#include "late.h"
#include "primitives.h"

namespace tenon::far {

namespace {

// The number of symbols that a call reads from the host: products do, as those of libraries must that take sizes as
// numbers of the host.
template <typename Site>
size_t host_sizes(const Site&) {
  return 0;
}
size_t behind(std::initializer_list<tn_dim> dims) {
  int32_t last = 0;
  for (const tn_dim& dim : dims) last = std::max(last, dim.symbol);
  return static_cast<size_t>(last) + 1;
}
size_t host_sizes(const tn_gemm& gemm) { return behind({gemm.batch, gemm.m, gemm.n, gemm.k}); }
size_t host_sizes(const tn_gemm_epilogue& epilogue) {
  return std::max(host_sizes(*epilogue.gemm), behind({epilogue.site->rows, epilogue.site->columns}));
}

// A prepare function of table kTable of the cpu, whose calls run late.
template <auto kTable, auto kMember, typename Site>
tn_status prepare(void* device, const tn_services* services, const tn_errors* errors, const Site* site,
                  tn_prepared* prepared) {
  tn_prepared inner = {};
  inner.size = sizeof inner;
  const tn_status status = (kTable->*kMember)(nullptr, services, errors, site, &inner);
  return status != TN_OK ? status : tn::guarded(errors, [&] {
    const size_t sizes = host_sizes(*site);
    const uint32_t traits = sizes > 0 ? TN_TRAIT_HOST_SIZES : TN_TRAIT_CAPTURABLE;
    prepare_late(*static_cast<Device*>(device), inner, sizes, traits, prepared);
  });
}

// A function of the table that prepares nothing.
template <auto kTable, auto kMember, typename... Arguments>
tn_status ask(void* /*device*/, const tn_errors* errors, Arguments... arguments) {
  return (kTable->*kMember)(nullptr, errors, arguments...);
}

// The table of a primitive with one function, prepare.
template <typename Table, const Table* kTable, typename Site>
constexpr Table plain(uint32_t opset = 0) {
  return {sizeof(Table), opset, &prepare<kTable, &Table::prepare, Site>};
}
// The table of a call that does the work of several.
template <typename Table, const Table* kTable, typename Site>
constexpr Table fused(uint32_t opset = 0) {
  return {sizeof(Table), opset, &ask<kTable, &Table::supports, const Site*>, &prepare<kTable, &Table::prepare, Site>};
}

constexpr auto kArgsort = plain<tn_argsort_table, &cpu::argsort_table, tn_argsort>();
constexpr auto kCoalesceProducts =
    fused<tn_coalesce_products_table, &cpu::coalesce_products_table, tn_coalesce_products>();
constexpr auto kConv = plain<tn_conv_table, &cpu::conv_table, tn_conv>();
constexpr auto kConvEpilogue = fused<tn_conv_epilogue_table, &cpu::conv_epilogue_table, tn_conv_epilogue>(TN_OPSET);
constexpr auto kGather = plain<tn_gather_table, &cpu::gather_table, tn_gather>();
constexpr auto kGatherGemm = fused<tn_gather_gemm_table, &cpu::gather_gemm_table, tn_gather_gemm>();
constexpr auto kGemm = plain<tn_gemm_table, &cpu::gemm_table, tn_gemm>();
constexpr auto kGemmEpilogue = fused<tn_gemm_epilogue_table, &cpu::gemm_epilogue_table, tn_gemm_epilogue>(TN_OPSET);
constexpr auto kMove = plain<tn_move_table, &cpu::move_table, tn_move>();
constexpr auto kPointwise = plain<tn_pointwise_table, &cpu::pointwise_table, tn_pointwise_site>(TN_OPSET);
constexpr auto kPool = plain<tn_pool_table, &cpu::pool_table, tn_pool>();
constexpr auto kPrefixSum = plain<tn_prefix_sum_table, &cpu::prefix_sum_table, tn_prefix_sum>();
constexpr auto kResize = plain<tn_resize_table, &cpu::resize_table, tn_resize_site>();
constexpr auto kSegment = plain<tn_segment_table, &cpu::segment_table, tn_segment>();

using Packed = tn_packed_gemm_table;
constexpr Packed kPackedGemm = {sizeof(Packed),
                                0,
                                &ask<&cpu::packed_gemm_table, &Packed::packed_bytes, const tn_gemm*, uint64_t*>,
                                &prepare<&cpu::packed_gemm_table, &Packed::prepare_pack, tn_gemm>,
                                &prepare<&cpu::packed_gemm_table, &Packed::prepare_multiply, tn_gemm>,
                                &prepare<&cpu::packed_gemm_table, &Packed::prepare_epilogue, tn_gemm_epilogue>};
using Rows = tn_row_sparse_table;
constexpr Rows kRowSparse = {sizeof(Rows), TN_OPSET,
                             &prepare<&cpu::row_sparse_table, &Rows::prepare_coalesce, tn_coalesce>,
                             &prepare<&cpu::row_sparse_table, &Rows::prepare_update, tn_row_sparse_update>};

tn_status prepare_kernel(void* device, const tn_errors* errors, const tn_prepared* inner, tn_prepared* prepared) {
  return tn::guarded(errors, [&] { prepare_late(*static_cast<Device*>(device), *inner, 0, inner->traits, prepared); });
}
void* allocate_for_copies(void* /*device*/, const tn_errors* errors, uint64_t bytes) {
  constexpr uint64_t kPage = 4096;
  void* const made = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (made == nullptr) tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for copies");
  return made;
}
void release_for_copies(void* /*device*/, void* memory, uint64_t /*bytes*/) { std::free(memory); }
constexpr tn_host_memory_table kHostMemory = {sizeof(tn_host_memory_table), 0, &allocate_for_copies,
                                              &release_for_copies};

using Graph = std::shared_ptr<const Stream::Recording>;

Device& of(void* device) { return *static_cast<Device*>(device); }

tn_status begin(void* device, const tn_errors* errors, void* stream) {
  return tn::guarded(errors, [&] { of(device).stream_at(stream).begin_recording(); });
}
tn_status end(void* device, const tn_errors* errors, void* stream, void** graph) {
  return tn::guarded(errors, [&] {
    Graph made = of(device).stream_at(stream).end_recording();
    if (graph != nullptr) *graph = new Graph(std::move(made));
  });
}
tn_status launch(void* device, const tn_errors* errors, void* graph, void* stream) {
  return tn::guarded(errors, [&] { of(device).stream_at(stream).launch(*static_cast<Graph*>(graph)); });
}
void destroy_graph(void* /*device*/, void* graph) { delete static_cast<Graph*>(graph); }
constexpr tn_capture_table kCapture = {sizeof(tn_capture_table), 0, &begin, &end, &launch, &destroy_graph};

constexpr far_late_table kLate = {sizeof(far_late_table), 0, &prepare_kernel};

constexpr cpu::Primitive kTables[] = {{FAR_LATE, &kLate},
                                      {TN_CAPTURE, &kCapture},
                                      {TN_HOST_MEMORY, &kHostMemory},
                                      {cpu::argsort_id, &kArgsort},
                                      {cpu::coalesce_products_id, &kCoalesceProducts},
                                      {cpu::conv_id, &kConv},
                                      {cpu::conv_epilogue_id, &kConvEpilogue},
                                      {cpu::gather_id, &kGather},
                                      {cpu::gather_gemm_id, &kGatherGemm},
                                      {cpu::gemm_id, &kGemm},
                                      {cpu::gemm_epilogue_id, &kGemmEpilogue},
                                      {cpu::move_id, &kMove},
                                      {cpu::packed_gemm_id, &kPackedGemm},
                                      {cpu::pointwise_id, &kPointwise},
                                      {cpu::pool_id, &kPool},
                                      {cpu::prefix_sum_id, &kPrefixSum},
                                      {cpu::resize_id, &kResize},
                                      {cpu::row_sparse_id, &kRowSparse},
                                      {cpu::segment_id, &kSegment}};
static_assert(std::size(kTables) == std::size(cpu::kPrimitives) + 3, "each primitive of the cpu has a table here");

struct Ids {
  const char* list[std::size(kTables) + 1];
};
constexpr Ids ids() {
  Ids result = {};
  for (size_t i = 0; i < std::size(kTables); ++i) result.list[i] = kTables[i].id;
  return result;
}
constexpr Ids kIds = ids();

}  // namespace

const char* const* table_ids() { return kIds.list; }

const void* table(const char* id) {
  for (const cpu::Primitive& each : kTables)
    if (std::strcmp(id, each.id) == 0) return each.table;
  return nullptr;
}

}  // namespace tenon::far
