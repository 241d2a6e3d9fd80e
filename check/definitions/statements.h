// The primitives, each as a layer that records it and a plain statement of it in fp64.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <functional>
#include <string>
#include <vector>

#include "check/cases/layer_case.h"
#include "check/cases/numbers.h"

namespace tenon::check {

constexpr uint64_t kMachineSeed = 7;  // of the machines that statements are compared with

// What a statement gets: the fed values of each input, and the offsets of sequences, which all inputs share.
struct StatementArguments {
  int64_t samples = 0;
  std::vector<Numbers> inputs;
  std::vector<int64_t> offsets;  // [samples + 1]; empty without sequences
};

// The number of statements, and their parts by number.
[[nodiscard]] size_t statements_count();
[[nodiscard]] std::string statement_name(size_t number);  // "gemm", "pointwise log1p"
// Whether a device with these tables offers the primitive.
[[nodiscard]] bool is_offered(size_t number, const std::function<bool(const std::string& table)>& has);
// Whether it takes random numbers, which a device may lack: then it refuses the program with TN_UNSUPPORTED.
[[nodiscard]] bool draws(size_t number);
[[nodiscard]] LayerCase statement_case(size_t number);
[[nodiscard]] Numbers stated(size_t number, const StatementArguments& arguments);

// The layer type "check.primitive" with the attribute `number`.
[[nodiscard]] const tn_layer_type* primitive_layer();

}  // namespace tenon::check
