// SPDX-License-Identifier: Apache-2.0
#include "tests/support/far_kernels.h"

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/devices/far/late.h"
#include "tests/support/bare_plugin.h"

namespace tenon_tests {

namespace {

// A kernel for "far", whose `user` is this.
struct FarKernel {
  const tn_kernel* of;  // for "cpu"
  tn_kernel made;
  std::vector<const char*> attributes;
};

const FarKernel& of_site(const tn_kernel_site* site) { return *static_cast<const FarKernel*>(site->user); }

// The site as the kernel for "cpu" knows it.
tn_kernel_site near(const tn_kernel_site* site) {
  tn_kernel_site made = *site;
  made.user = of_site(site).of->user;
  return made;
}

tn_status supports(const tn_kernel_site* site, int32_t* score) {
  const tn_kernel_site of = near(site);
  return of_site(site).of->supports(&of, score);
}

tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  const tn_kernel_site of = near(site);
  return of_site(site).of->query(&of, needs);
}

tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  const tn_kernel_site of = near(site);
  tn_prepared inner = {};
  inner.size = sizeof inner;
  if (const tn_status status = of_site(site).of->prepare(&of, direction, &inner); status != TN_OK) return status;
  const auto* const late =
      static_cast<const far_late_table*>(site->device->table(site->device->self, FAR_LATE, sizeof(far_late_table)));
  return late->prepare(site->device->instance, site->errors, &inner, prepared);
}

struct FarPlugin {
  std::string id;
  std::deque<FarKernel> kernels;
  std::vector<const tn_kernel*> list;
  tn_plugin plugin;
};

const tn_layer_description* type_of(const tn_plugin& plugin, const char* type) {
  for (uint32_t i = 0; i < plugin.layers_count; ++i)
    if (std::strcmp(plugin.layers[i]->description->type, type) == 0) return plugin.layers[i]->description;
  return nullptr;
}

std::unique_ptr<FarPlugin> made(const tn_plugin& plugin, size_t number) {
  auto result = std::make_unique<FarPlugin>();
  for (uint32_t i = 0; i < plugin.kernels_count; ++i) {
    const tn_kernel& of = *plugin.kernels[i];
    const tn_layer_description* const type = type_of(plugin, of.type);
    if (std::strcmp(of.device, "cpu") != 0 || of.fusion != nullptr || type == nullptr) continue;
    FarKernel& kernel = result->kernels.emplace_back(FarKernel{&of, {}, {}});
    std::memcpy(&kernel.made, &of, std::min<size_t>(of.size, sizeof kernel.made));
    for (uint32_t k = 0; k < type->attributes_count; ++k) kernel.attributes.push_back(type->attributes[k]->name);
    kernel.made.size = sizeof kernel.made;
    kernel.made.device = "far";
    kernel.made.supports = &supports;
    kernel.made.query = &query;
    kernel.made.prepare = &prepare;
    kernel.made.user = &kernel;
    kernel.made.attributes = kernel.attributes.data();
    kernel.made.attributes_count = type->attributes_count;
    kernel.made.state_version = TN_HAS(type, tn_layer_description, state_version) ? type->state_version : 1;
    kernel.made.inputs_known = type->inputs_count;
    kernel.made.outputs_known = type->outputs_count;
    kernel.made.parameters_known = type->parameters_count;
    result->list.push_back(&kernel.made);
  }
  if (result->list.empty()) return nullptr;
  result->id = "tenon.test.far_kernels_" + std::to_string(number);
  result->plugin = bare_plugin(result->id.c_str());
  result->plugin.kernels = result->list.data();
  result->plugin.kernels_count = static_cast<uint32_t>(result->list.size());
  return result;
}

}  // namespace

const tn_plugin* far_kernels(const tn_plugin& plugin) {
  static std::mutex mutex;
  static std::map<const tn_plugin*, std::unique_ptr<FarPlugin>> known;
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = known.try_emplace(&plugin);
  if (fresh) at->second = made(plugin, known.size());
  return at->second == nullptr ? nullptr : &at->second->plugin;
}

}  // namespace tenon_tests
