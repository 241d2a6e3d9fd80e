// Layers that the harness connects to the layer under test. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

namespace tenon_tests {

// Layer types, for tn_host_add_plugin:
//   test_input  values of the parameter "values" [rows, shape...] picked by integer ids [samples]: [samples, shape...].
//               Its parameter's gradient is the gradient of the layer's input. Attributes: rows, shape; sparse: that
//               gradient is row-sparse.
//   test_cost   sum over all elements of a sample of value * weight; two inputs of one shape. Its gradient is the
//               weight.
//   test_centre value [samples, features] minus the mean of the minibatch in training, else minus the buffer "mean".
//               The next value of the buffer is (1 - rate) mean + rate (mean of the minibatch). Attribute: rate.
// and the layers of row_layers.h.
const tn_plugin& test_layers();

}  // namespace tenon_tests
