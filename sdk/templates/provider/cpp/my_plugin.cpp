// A provider of matrix products for the device "cpu", in plain loops. It takes small products of float32 and leaves all
// others to whom the host asks next: another provider, then the device itself. SPDX-License-Identifier: MIT
#include <tenon/device.h>

#include <tenon/plugin.hpp>

TN_RESERVE_NOTE(4096);  // room for the manifest, if the plugin is built without CMake

namespace {

constexpr int64_t kMostFactors = 4096;  // of op(B): elements that stay in the cache

// A prepared product: C = alpha op(A) op(B), [m, k] times [k, n], for each of a batch.
class Product {
 public:
  explicit Product(const tn_gemm& gemm) : gemm_(gemm) {
    if (gemm.dtype != TN_F32) throw tn::Failure(TN_UNSUPPORTED, "dtype", "only float32");
    const bool is_constant = gemm.n.symbol == TN_SYMBOL_NONE && gemm.k.symbol == TN_SYMBOL_NONE;
    if (!is_constant || (gemm.k.offset != 0 && gemm.n.offset > kMostFactors / gemm.k.offset))
      throw tn::Failure(TN_UNSUPPORTED, "n, k", "only products with a small, constant factor B");
  }

  void run(const tn_execution& execution, const tn_call& call) const {
    if (call.requests[0] == TN_REQUEST_NONE) return;
    const int64_t batch = tn_dim_value(&gemm_.batch, execution.symbols), m = tn_dim_value(&gemm_.m, execution.symbols);
    const auto* a = reinterpret_cast<const float*>(tn_data(call.inputs[0]));
    const auto* b = reinterpret_cast<const float*>(tn_data(call.inputs[1]));
    auto* c = reinterpret_cast<float*>(tn_data(call.outputs[0]));
    const int64_t n = gemm_.n.offset, k = gemm_.k.offset;
    for (int64_t each = 0; each < batch; ++each, a += m * k, b += k * n, c += m * n)
      multiply(m, a, b, c, call.requests[0] == TN_REQUEST_ADD);
  }

 private:
  // Each element is summed in the order of k, whatever m and its place are: so the answer for a sample does not depend
  // on the samples beside it.
  void multiply(int64_t m, const float* a, const float* b, float* c, bool adds) const {
    const int64_t n = gemm_.n.offset, k = gemm_.k.offset;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += a[(gemm_.flags & TN_TRANSPOSE_A) != 0 ? l * m + i : i * k + l] *
                 b[(gemm_.flags & TN_TRANSPOSE_B) != 0 ? j * k + l : l * n + j];
        sum *= static_cast<float>(gemm_.alpha);
        c[i * n + j] = adds ? c[i * n + j] + sum : sum;
      }
  }

  tn_gemm gemm_;
};

// The device "cpu" has memory that everybody can address, and a provider without tn_shared gets its instance.
tn_status prepare(void* /*device*/, const tn_services* /*services*/, const tn_errors* errors, const tn_gemm* gemm,
                  tn_prepared* prepared) {
  return tn::guarded(errors, [&] {
    prepared->binding = new Product(*gemm);
    prepared->run = [](void* binding, const tn_execution* execution, const tn_call* call) -> tn_status {
      static_cast<const Product*>(binding)->run(*execution, *call);
      return TN_OK;
    };
    prepared->destroy = [](void* binding) { delete static_cast<Product*>(binding); };
  });
}

void describe(tn::Plugin& plugin) {
  static constexpr tn_gemm_table kTable = {sizeof(tn_gemm_table), 0, &prepare};
  // The score: higher is asked first; the device itself has score 0.
  static constexpr tn_provider kProvider = {sizeof(tn_provider), 5, "cpu", TN_GEMM, "my_plugin", &kTable, nullptr};
  plugin.about("example.my_plugin", "0.1.0", "Small matrix products", "MIT");
  plugin.provider(&kProvider);
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
