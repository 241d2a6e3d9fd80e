// How cuDNN computes a convolution: its engine, and the plan for a number of samples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device_images.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "descriptor.h"

namespace tenon::cuda {

// What plans are for: an open GPU, or properties of one (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) that need not be there.
struct DnnTarget {
  const DnnFunctions* dnn;
  cudnnHandle_t handle = nullptr;
  const Descriptor* properties = nullptr;
  int capability = 0;  // 90 for 9.0
};

// A convolution of float32 for a number of samples. adds: the result is added to what it is written to.
struct ConvProblem {
  int32_t op;  // TN_CONV_*
  tn_window window;
  int64_t samples, channels, filters, groups;
  bool adds = false;
  // All numbers that a plan depends on.
  [[nodiscard]] std::vector<int64_t> key() const;
};

// An engine with its settings, as cuDNN numbers them.
struct ConvEngine {
  int64_t number = -1;
  std::vector<std::pair<int64_t, int64_t>> knobs;  // kind and value
};

struct ConvPlan {
  Descriptor plan;
  ConvEngine engine;
  uint64_t workspace_bytes;
};

// Ids of the tensors of a plan.
enum ConvTensor : int64_t { kImages = 1, kWeights = 2, kResults = 3 };

// Engines that cuDNN's own notes call deterministic and exact, and that are not.
struct Erratum {
  int32_t op;
  int64_t engine;
  int capability;
  size_t fixed_in;  // cudnnGetVersion of the first version without the fault
};
[[nodiscard]] const std::vector<Erratum>& errata();

// The plan on the best engine that always gives the same bits, keeps float32 throughout and takes at most
// `most_workspace` bytes, in cuDNN's order; none if there is none. Layout: channels last.
[[nodiscard]] std::optional<ConvPlan> find_plan(const DnnTarget& target, const ConvProblem& problem,
                                                uint64_t most_workspace);
// The same on that engine.
[[nodiscard]] std::optional<ConvPlan> plan_on(const DnnTarget& target, const ConvProblem& problem,
                                              const ConvEngine& engine, uint64_t most_workspace);

}  // namespace tenon::cuda
