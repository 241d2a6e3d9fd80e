// The inputs of a layer as its plugin sees them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/layer.h>

#include <cstdint>
#include <vector>

#include "core/topology.h"
#include "host/layers/ragged_symbols.h"
#include "host/plugins/registry.h"

namespace tenon::host {

using namespace core;

// Returns inputs that are given by the names of their ports, one for each, in the order of the ports: of a variadic one
// in their own order. TN_INVALID names an unknown port, or one that is given twice.
[[nodiscard]] std::vector<LayerOutput> in_port_order(const std::vector<Port>& ports,
                                                     const std::vector<LayerOutput>& inputs,
                                                     const std::vector<std::string>& names);

// One spec for each given input. Borrows the ports and, for messages, the names. Neither copied nor moved, since get()
// points into it.
class LayerInputs : base::NotCopied {
 public:
  // scan, branch: those that the layer is inside of, or null. TN_INVALID, naming the port, if the ports do not accept
  // these inputs.
  LayerInputs(const std::vector<Port>& ports, const std::vector<LayerOutput>& inputs, RaggedSymbols& symbols,
              Scan* scan, const Branch* branch);

  [[nodiscard]] const SymbolNames& names() const { return names_; }
  // The port that input number `input` is connected to.
  [[nodiscard]] const Port& port(size_t input) const;
  [[nodiscard]] uint32_t count() const { return static_cast<uint32_t>(pointers_.size()); }
  [[nodiscard]] const tn_spec* const* get() const { return pointers_.data(); }  // null for an absent input
  // Returns `spec` with the storage and the outer dimensions that its rows have in the inputs. A spec is ragged if its
  // first dimension is a row symbol. For rows made by `concatenated`, the outer dimensions are those of the first
  // sequences.
  [[nodiscard]] Spec in_sequences(Spec spec, const std::vector<DerivedRows>& derived) const;
  // Whether the samples, or a dimension of an input, give the symbol its size.
  [[nodiscard]] bool depend_on(int32_t symbol) const;

 private:
  void check(const std::vector<LayerOutput>& inputs) const;
  void check(size_t number, const LayerOutput& input) const;
  [[nodiscard]] Spec seen(size_t number, const LayerOutput& input, RaggedSymbols& symbols) const;
  [[nodiscard]] Shape around(int32_t symbol) const;

  const std::vector<Port>& ports_;
  const SymbolNames& names_;
  Scan* const scan_;
  const Branch* const branch_;
  std::vector<Spec> specs_;
  std::vector<tn_spec> views_;
  std::vector<const tn_spec*> pointers_;
};

}  // namespace tenon::host
