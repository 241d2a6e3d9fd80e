// A plain interpreter of primitive graphs in fp64, the definition that optimised graphs are compared with. Every value
// has memory of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

#include "core/graph/graph.h"

namespace tenon_tests {

using namespace tenon::core;

using Numbers = std::vector<double>;

// NativeCall::site in graphs of tests. Absent operands are empty; outputs that are not needed may be empty.
struct TestKernel {
  using Function = std::function<std::vector<Numbers>(const std::vector<Numbers>& inputs)>;
  Function forward, backward;
};

[[nodiscard]] int64_t count_of(const Shape& shape, const std::vector<int64_t>& symbols);

// Calls work(T()) for the type of elements.
template <typename Work>
auto with_type(tn_dtype dtype, Work&& work) {
  switch (dtype) {
    case TN_F64:
      return work(double());
    case TN_F32:
      return work(float());
    case TN_I64:
      return work(int64_t());
    case TN_I32:
      return work(int32_t());
    case TN_U8:
    case TN_BOOL:
      return work(uint8_t());
    default:
      throw std::invalid_argument("a type that graphs of tests do not have");
  }
}

// The value of a number after it is stored as `dtype`.
[[nodiscard]] double stored_as(tn_dtype dtype, double number);

// The outputs of a node other than a view, computed from its inputs. Throws if a program or an index does not fit.
[[nodiscard]] std::vector<Numbers> evaluate(const Graph& graph, const Node& node, const std::vector<int64_t>& symbols,
                                            const std::vector<Numbers>& inputs);

// Runs a graph. values[v] must be filled for external values.
class Interpreter {
 public:
  Interpreter(const Graph& graph, std::vector<int64_t> symbols)
      : values(graph.values.size()), graph_(graph), symbols_(std::move(symbols)) {}

  void run();

  std::vector<Numbers> values;

 private:
  void run_node(const Node& node);
  [[nodiscard]] Numbers states(const Loop& loop, ValueId initial, ValueId left) const;

  const Graph& graph_;
  const std::vector<int64_t> symbols_;
};

}  // namespace tenon_tests
