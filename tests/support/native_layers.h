// Layers with native kernels of the device "cpu", for tests of everything that such a kernel may need.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <atomic>
#include <string>
#include <vector>

namespace tenon_tests {

// Layer types, each with a recorded body, and with a kernel of score 10 if it is added:
//   native_square    x^2. Kernel "whole": saves 2 x, may write in place. "forward_only" (score 40) has no backward,
//                    "no_query" (30) and "no_prepare" (20) return TN_UNSUPPORTED from query and prepare; "no_prepare"
//                    has set binding and destroy before. "rounding" (50), of forward alone, takes machines of TN_BF16.
//   native_count     x, and a buffer "count" [1] that every step raises by 1.
//   native_mask      x where a draw is below 0.5, else 0.
//   native_sum       x plus the output of the minibatch before, by sample: a carried state.
//   native_table     rows of the parameter "values" [height, width] by ids; the kernel's gradient has rows.
// kernels: the names of the kernels that the plugin offers ("whole", ...).
class NativeLayers {
 public:
  explicit NativeLayers(const std::vector<std::string>& kernels);

  [[nodiscard]] const tn_plugin& plugin() const { return plugin_; }

 private:
  std::vector<const tn_layer_type*> layers_;
  std::vector<const tn_kernel*> kernels_;
  tn_plugin plugin_ = {};
};

// Bindings of "no_prepare" that were freed.
std::atomic<int>& freed_bindings();

}  // namespace tenon_tests
