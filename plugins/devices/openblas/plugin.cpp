// The provider openblas: products of OpenBLAS for the device cpu. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.h>

#include "products.h"

namespace tenon::openblas {

namespace {

constexpr tn_provider kGemm = {sizeof(tn_provider), 100, "cpu", TN_GEMM, "openblas_gemm", &gemm_table, nullptr};
constexpr const tn_provider* kProviders[] = {&kGemm};
constexpr tn_plugin kPlugin = [] {
  tn_plugin plugin = {};
  plugin.size = sizeof plugin;
  plugin.abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0};
  plugin.id = "tenon.openblas";
  plugin.version = "0.1.0";
  plugin.doc = "products of OpenBLAS for the device cpu, where arithmetic is native";
  plugin.license = "Apache-2.0";
  plugin.isa = "";
  plugin.arithmetic = TN_ARITHMETIC_NATIVE;
  plugin.providers_count = 1;
  plugin.providers = kProviders;
  return plugin;
}();

}  // namespace

}  // namespace tenon::openblas

extern "C" const tn_plugin* tenon_plugin(void) { return &tenon::openblas::kPlugin; }
