// A case of a layer type, or of a chain of layers: attributes and inputs. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/cases/attributes.h"

namespace tenon::check {

struct InputSpec {
  std::vector<int64_t> shape = {};  // of one sample, or of one row
  int64_t below = 0;                // 0: floats; else integers in [0, below)
  double low = -2, high = 2;        // range of floats
  std::string sequence = {};        // not empty: sequences; equal names have equal lengths
  uint32_t levels = 1;              // of a sequence
  bool sparse = false;              // TN_CSR of shape[0] columns
  bool gradient = true;             // false: the layer has no derivative there, on purpose
};

// A layer of a chain that one kernel computes (tenon/fusion.h).
struct ChainLayer {
  static constexpr int64_t kBefore = -1;  // output 0 of the layer before
  std::string type = {};
  json attributes = json::object();
  std::vector<int64_t> inputs = {};  // numbers of inputs of the case, or kBefore
};

// What a case is for, beside the others. Only checks that do not take long run the last two.
enum class CaseKind {
  kUsual,
  kAttributes,  // values of attributes that no usual case has
  kLarge        // thousands of elements in a row: more than one block of a loop
};

struct LayerCase {
  CaseKind kind = CaseKind::kUsual;
  std::string name = {};  // shown in place of the attributes
  json attributes = json::object();
  std::vector<InputSpec> inputs;
  std::vector<ChainLayer> chain = {};  // not empty: these layers in place of one
  bool reads_inner = false;            // of a chain: outputs inside it have other readers
  std::string device = {};             // empty: cpu
  bool couples_samples = false;        // an output of one sample depends on others, also without a training
  bool differentiable = true;          // false: its own gradient is not the derivative, on purpose
  bool zeros = true;                   // false: equal numbers and zeros may give NaN
  bool huge = true;                    // false: huge numbers may give NaN

  // "size = 3; inputs [4], int [] below 2"
  [[nodiscard]] std::string text() const;
};

// Returns the author's case. Throws Fault with the key that is wrong.
[[nodiscard]] LayerCase read_layer_case(const json& entry);

}  // namespace tenon::check
