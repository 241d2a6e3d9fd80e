// Native kernels: the description of a layer for a kernel, its requirements, and the calls prepared from them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/fusion.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/topology.h"
#include "host/plugins/device.h"
#include "host/plugins/error_sink.h"
#include "host/plugins/registry.h"

namespace tenon::host {

using namespace core;

struct FusionSite;

// The description of a layer, or of a fused chain of layers, for a native kernel. Bounds are filled in. Owns the arrays
// that `site` points to, and the calls that the kernel prepared.
struct KernelSite {
  const Kernel* kernel = nullptr;
  LayerRef layer;
  std::vector<Spec> inputs, outputs, parameters, buffers, carried;
  std::vector<bool> absent;        // per input
  std::vector<uint8_t> gradients;  // per input, then parameter: 1: its gradient may be wanted
  std::vector<tn_spec> views;
  std::vector<const tn_spec*> pointers;  // of inputs, outputs, parameters, buffers, carried
  std::unique_ptr<AttributesView> attributes;
  std::shared_ptr<FusionSite> fusion;  // of a fused chain, which this describes as one layer; else null
  std::unique_ptr<ErrorSink> errors;
  std::optional<Prepared> forward, backward;  // moved into the call array
  tn_kernel_site site = {};

  // Fills in `site` and the arrays behind it from the other members. precision: TN_PRECISION_*.
  void seal(Device& device, tn_dtype compute, uint32_t precision, bool training, const tn_attributes* attributes_of);
};

// The layers of a fused chain. Owns the arrays that `site` points to.
struct FusionSite {
  std::vector<std::shared_ptr<KernelSite>> layers;
  std::vector<const tn_kernel_site*> layer_pointers;
  std::vector<std::vector<tn_fusion_source>> sources;
  std::vector<const tn_fusion_source*> source_pointers;
  tn_fusion_site site = {};
};

// Returns the name of a native call for messages: `layer "a" (type, native kernel "name", backward)`; of a chain
// the layers without their types.
[[nodiscard]] std::string native_label(const KernelSite& site, bool backward);

// Whether the layer has a dimension whose size its kernel writes.
[[nodiscard]] bool makes_rows(const Layer& layer);
// Returns why the kernel is not asked about a layer or a chain of layers, "" if it is: one has a sparse input, or is of
// a type of another plugin than the kernel, which does not know the type as it is.
[[nodiscard]] std::string unfit_for(const Kernel& kernel, const std::vector<LayerRef>& layers, Registry& registry);

// A kernel that supports a site, with its score there.
struct KernelCandidate {
  std::shared_ptr<KernelSite> site;
  int32_t score = 0;
};
// Asks the kernel whether it supports its site; if so, appends it and returns true, else appends the reason to
// `refusals`.
bool add_candidate(std::vector<KernelCandidate>& candidates, std::shared_ptr<KernelSite> site,
                   std::vector<PassedOver>& refusals);
// A kernel with its score at a site, and why it does not compute what the site describes.
[[nodiscard]] PassedOver passed_over(const Kernel& kernel, int32_t score, const std::string& reason);
// Appends the reason for which a kernel with this score does not take its site.
void add_refusal(std::vector<PassedOver>& refusals, const Kernel& kernel, int32_t score, const std::string& reason);
// Removes the candidates whose score is not above `least`, that of `by`, and appends them to `refusals`.
void remove_outranked(std::vector<KernelCandidate>& candidates, int32_t least, const std::string& by,
                      std::vector<PassedOver>& refusals);
// `kernel "a": reason; kernel "b": reason`, without those that are outranked.
[[nodiscard]] std::string text_of(const std::vector<PassedOver>& refusals);

// A kernel that takes its site: its node, the specs of the tensors that it saves, and how often it draws.
struct NativeChoice {
  std::shared_ptr<KernelSite> site;
  NativeCall call;
  std::vector<Spec> saved;
  uint32_t draws = 0;
  int32_t score = 0;
};

// Returns the candidate with the highest score whose kernel takes its site: that returns TN_UNSUPPORTED neither from
// query nor from prepare, for forward and, if the machine trains and a gradient is wanted, for backward. If there is
// none and the layer `needs_kernel`, takes one without a backward; a gradient that reaches it is an error. Appends the
// reasons of those that do not to `refusals`.
[[nodiscard]] std::optional<NativeChoice> first_that_takes(std::vector<KernelCandidate>& candidates, Device& device,
                                                           bool needs_kernel, std::vector<PassedOver>& refusals);

}  // namespace tenon::host
