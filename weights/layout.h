// The layouts of parameters of PyTorch and Keras, and how they become those of Tenon.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/model_graph.h"

namespace tenon::weights {

// How a tensor becomes a parameter: reshaped to `sizes`, its axes in the order `axes`, then rows of the first axis and
// columns of the last one in another order.
struct Move {
  std::string to;  // the parameter
  Sizes sizes;
  std::vector<size_t> axes;
  Places rows, columns;
  Sizes shape;           // of the result; not that of the parameter if the tensor does not fit
  std::string mismatch;  // why the tensor cannot have the layout: "has 3 dimensions; 4 are needed"; else empty
};

class Layout {
 public:
  // framework: "pytorch" or "keras"; TN_INVALID for another one.
  Layout(const std::string& framework, const Layers& outputs);

  // The names that a constructor takes.
  static std::vector<std::string> frameworks() { return {"pytorch", "keras"}; }

  [[nodiscard]] const std::vector<Part>& parts() const { return graph_.parts(); }
  [[nodiscard]] bool knows(const Part& part) const;
  [[nodiscard]] std::vector<std::string> known_types() const;
  // Returns how tensor `last` of a module becomes a parameter of a part; nothing if the part has none for it.
  [[nodiscard]] std::optional<Move> move(const Part& part, const std::string& last, const Sizes& shape) const;
  // Returns the name of a tensor with dots between its parts.
  [[nodiscard]] std::string dotted(std::string name) const;
  // Whether a tensor is no parameter of ours, by the last part of its name.
  [[nodiscard]] bool ignores(std::string_view last) const { return last == "num_batches_tracked"; }

 private:
  const bool keras_;
  ModelGraph graph_;
};

// Returns the numbers of a tensor as the parameter has them.
[[nodiscard]] std::vector<float> moved(const Move& move, std::vector<float> values);

}  // namespace tenon::weights
