// SPDX-License-Identifier: Apache-2.0
#include "tables.h"

#include <cstring>
#include <iterator>

#include "host_tables.h"
#include "runtime/device.h"

namespace tenon::cuda {

namespace {

// Prepares by `work`. The calls take operands of any alignment: kernels read element by element, and the libraries are
// asked for the alignment at hand.
template <typename Work>
tn_status prepared_by(const tn_services* services, const tn_errors* errors, tn_prepared* prepared, const Work& work) {
  return tn::guarded(errors, [&] {
    work();
    prepared->traits |= tn_any_alignment(services);
  });
}

template <typename Site>
tn_status prepare(void* device, const tn_services* services, const tn_errors* errors, const Site* site,
                  tn_prepared* prepared) {
  return prepared_by(services, errors, prepared,
                     [&] { bind(*static_cast<Device*>(device), kernels_of(*site), prepared); });
}

tn_status prepare_gemm(void* device, const tn_services* services, const tn_errors* errors, const tn_gemm* gemm,
                       tn_prepared* prepared) {
  return prepared_by(services, errors, prepared, [&] {
    auto& on = *static_cast<Device*>(device);
    const Kernels own = kernels_of(*gemm);  // checks what the product is
    if (!bind_by_blas(on, *gemm, prepared)) bind(on, own, prepared);
  });
}

tn_status supports_epilogue(void* device, const tn_errors* errors, const tn_gemm_epilogue* epilogue) {
  bool known = false;
  const tn_status status =
      tn::guarded(errors, [&] { known = knows_epilogue(*static_cast<Device*>(device), *epilogue); });
  return status == TN_OK && !known ? tn_status{TN_UNSUPPORTED} : status;
}

tn_status prepare_epilogue(void* device, const tn_services* services, const tn_errors* errors,
                           const tn_gemm_epilogue* epilogue, tn_prepared* prepared) {
  return prepared_by(services, errors, prepared,
                     [&] { bind_epilogue(*static_cast<Device*>(device), *epilogue, prepared); });
}

// A table with one function, prepare.
template <typename Table, typename Site>
constexpr Table plain(uint32_t opset = 0) {
  return {sizeof(Table), opset, &prepare<Site>};
}

constexpr auto kArgsort = plain<tn_argsort_table, tn_argsort>();

// On cuDNN where it knows the convolution.
tn_status prepare_conv(void* device, const tn_services* services, const tn_errors* errors, const tn_conv* conv,
                       tn_prepared* prepared) {
  return prepared_by(services, errors, prepared, [&] {
    Device& on = *static_cast<Device*>(device);
    bind(on, kernels_of(*conv), prepared);
    try {
      put_dnn_before(on, *conv, prepared);
    } catch (...) {
      prepared->destroy(prepared->binding);
      prepared->binding = nullptr;
      throw;
    }
  });
}
constexpr tn_conv_table kConv = {sizeof(tn_conv_table), 0, &prepare_conv};
constexpr auto kGather = plain<tn_gather_table, tn_gather>();
constexpr tn_gemm_table kGemm = {sizeof(tn_gemm_table), 0, &prepare_gemm};
constexpr tn_gemm_epilogue_table kGemmEpilogue = {sizeof(tn_gemm_epilogue_table), TN_OPSET, &supports_epilogue,
                                                  &prepare_epilogue};
constexpr auto kMove = plain<tn_move_table, tn_move>();
constexpr auto kPointwise = plain<tn_pointwise_table, tn_pointwise_site>(TN_OPSET);
constexpr auto kPool = plain<tn_pool_table, tn_pool>();
constexpr auto kPrefixSum = plain<tn_prefix_sum_table, tn_prefix_sum>();
constexpr auto kResize = plain<tn_resize_table, tn_resize_site>();
constexpr auto kSegment = plain<tn_segment_table, tn_segment>();
constexpr tn_row_sparse_table kRowSparse = {sizeof(tn_row_sparse_table), TN_OPSET, &prepare<tn_coalesce>,
                                            &prepare<tn_row_sparse_update>};

void* native_stream(void* device, void* stream) { return static_cast<Device*>(device)->stream(stream).handle(); }
constexpr tn_native_table kNative = {sizeof(tn_native_table), 0, &native_stream};

struct Entry {
  const char* id;
  const void* functions;
};
constexpr Entry kTables[] = {{TN_ARGSORT, &kArgsort},
                             {TN_CAPTURE, &capture_table},
                             {TN_CONV, &kConv},
                             {TN_GATHER, &kGather},
                             {TN_GEMM, &kGemm},
                             {TN_GEMM_EPILOGUE, &kGemmEpilogue},
                             {TN_HOST_MEMORY, &host_memory_table},
                             {TN_MOVE, &kMove},
                             {TN_NATIVE, &kNative},
                             {TN_POINTWISE, &kPointwise},
                             {TN_POOL, &kPool},
                             {TN_PREFIX_SUM, &kPrefixSum},
                             {TN_RESIZE, &kResize},
                             {TN_ROW_SPARSE_TABLE, &kRowSparse},
                             {TN_SEGMENT, &kSegment}};

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

const char* const* table_ids() noexcept { return kIds.list; }

const void* table(const char* id) {
  for (const Entry& each : kTables)
    if (std::strcmp(id, each.id) == 0) return each.functions;
  return nullptr;
}

}  // namespace tenon::cuda
