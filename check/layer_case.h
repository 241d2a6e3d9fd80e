// Cases of a layer type: attributes and inputs that its plan accepts, of the author or drawn from the schema.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/subject.h"

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
[[nodiscard]] LayerCase read_layer_case(const json& given);

// The author's cases for the type that have a chain, or those that have none. Throws Fault for one that plan refuses.
[[nodiscard]] std::vector<LayerCase> given_cases(const Subject& subject, bool chains);

// Finds cases: the author's if there are any, else those that are drawn from the schema and that the layer's plan and,
// unless `plans_alone`, a first forward accept: at most `most` usual ones, which have rows of 1, 3, 4, 7 and 17
// elements among them, then those with the bounds of integers, all choices of texts and both values of flags, then one
// that is large. Throws Fault if there are none.
[[nodiscard]] std::vector<LayerCase> layer_cases(const Subject& subject, size_t most, bool plans_alone);

}  // namespace tenon::check
