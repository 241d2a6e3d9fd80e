// The provider onednn: convolutions of oneDNN for the device cpu. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.h>

#include "conv.h"
#include "library.h"

namespace tenon::onednn {

namespace {

tn_status open(const tn_services*, const tn_errors* errors, const tn_device*, void*, void** shared) {
  return tn::guarded(errors, [&] { *shared = new Library(); });
}
void close(void* shared) { delete static_cast<Library*>(shared); }

constexpr tn_shared kShared = {sizeof(tn_shared), 0, &open, &close, nullptr};
constexpr tn_provider kConv = {sizeof(tn_provider), 100, "cpu", TN_CONV, "onednn_conv", &conv_table, &kShared};
constexpr const tn_provider* kProviders[] = {&kConv};
constexpr tn_library kOneDnn = {sizeof(tn_library), 0, kLibraryName, kLibraryHint};
constexpr const tn_library* kLibraries[] = {&kOneDnn};
constexpr tn_plugin kPlugin = [] {
  tn_plugin plugin = {};
  plugin.size = sizeof plugin;
  plugin.abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0};
  plugin.id = "tenon.onednn";
  plugin.version = "0.1.0";
  plugin.doc = "convolutions of oneDNN for the device cpu, where arithmetic is native";
  plugin.license = "Apache-2.0";
  plugin.isa = "";
  plugin.arithmetic = TN_ARITHMETIC_NATIVE;
  plugin.libraries_count = 1;
  plugin.libraries = kLibraries;
  plugin.providers_count = 1;
  plugin.providers = kProviders;
  return plugin;
}();

}  // namespace

}  // namespace tenon::onednn

extern "C" const tn_plugin* tenon_plugin(void) { return &tenon::onednn::kPlugin; }
