// Layers that make the rows of their output, one for each rule of tn_rows_rule besides concatenation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

namespace tenon_tests {

// Layer types over sequences of rows [n], part of test_layers():
//   test_windows   sums of `window` rows, one every `stride` rows, with `before` and `after` zero rows around a
//                  sequence; a recorded body.
const tn_layer_type* windows_layer();
//   test_first     the first `count` rows of each sequence; a recorded body.
const tn_layer_type* first_layer();
//   test_positive  the rows that begin with a positive number: their number depends on the data; a native kernel of
//                  the device "cpu". Attribute `fault`: what it writes wrongly: "count", "begin", "order", "end".
const tn_layer_type* positive_layer();
const tn_kernel* positive_kernel();

}  // namespace tenon_tests
