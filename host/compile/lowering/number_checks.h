// The numbers that layers take, and checks of them: nodes of the graph that find others, and the messages about these.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/draft/numbers.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/topology.h"
#include "host/plugins/registry.h"

namespace tenon::host {

using namespace core;

// The members of tn_numbers.
struct Numbers {
  double low = 0, high = 0, step = 0;
  bool not_zero = false;
  std::optional<double> exempt;
  std::optional<uint32_t> weight, label;
  double ignored = 0;
  std::string advice;
};

// Those of a layer, by number of the input or output.
struct LayerNumbers {
  std::map<uint32_t, Numbers> inputs, outputs;
};

// The check of one input of a layer, and its values in the graph. Nothing is wrong if `any` is -infinity.
struct NumberCheck {
  ValueId any = kNoValue;      // []
  ValueId by_row = kNoValue;   // [rows]: a number that the layer does not take, or -infinity
  int64_t rows_of_sample = 0;  // 0: rows are those of sequences; -1: of a scan or branch, in an order of its own
  std::string what;            // 'data layer "label"', or 'layer "cost" (auc): input "input"'
  std::string needs;           // 'layer "cost" needs 0 to 1', or 'expected 0 to 1'
  std::string component;       // as of Error
  std::string subject;
  tn_status code = TN_BAD_DATA;

  // Throws the error about `number` in row `row`; first: the number of the first sample.
  [[noreturn]] void refuse(double number, int64_t row, int64_t first) const;
};

struct Lowered;

// Adds the checks of a topology while it is lowered.
class NumberChecks {
 public:
  // Borrows both.
  NumberChecks(Lowered& lowered, Registry& registry, bool training)
      : lowered_(lowered), registry_(registry), training_(training) {}

  // Adds the checks of the inputs of a layer, whose values are `inputs`: of those that are not known to hold the right
  // numbers. Throws TN_INVALID if what must be one of a few numbers is trained.
  void add(const Layer& layer, const std::vector<ValueId>& inputs, const GraphWriter& nodes);

 private:
  const LayerNumbers& declared(const Layer& layer);
  [[nodiscard]] bool are_known(const LayerOutput& output, const Numbers& numbers);
  void refuse_trained(const Layer& layer, const std::string& port, ValueId value, const Numbers& numbers) const;

  Lowered& lowered_;
  Registry& registry_;
  const bool training_;
  std::map<const Layer*, LayerNumbers> declared_;
};

}  // namespace tenon::host
