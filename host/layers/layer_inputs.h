// The inputs of a layer as its plugin sees them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/layer.h>

#include <cstdint>
#include <vector>

#include "core/topology.h"
#include "host/plugins/registry.h"

namespace tenon {

// One spec for each input that was given. Borrows the ports and the names, which messages use; fixed in place.
class LayerInputs {
 public:
  // TN_INVALID, naming the port, where the ports do not take these inputs.
  LayerInputs(const std::vector<Port>& ports, const std::vector<Expression>& inputs, const SymbolNames& names);
  LayerInputs(const LayerInputs&) = delete;
  LayerInputs& operator=(const LayerInputs&) = delete;

  [[nodiscard]] const SymbolNames& names() const { return names_; }
  // The port that input number `input` is connected to.
  [[nodiscard]] const Port& port(size_t input) const;
  [[nodiscard]] uint32_t count() const { return static_cast<uint32_t>(pointers_.size()); }
  [[nodiscard]] const tn_spec* const* get() const { return pointers_.data(); }  // null where an input is absent
  // Gives a spec the outer dimensions that its rows have in the inputs. A spec is ragged if its first dimension is a
  // row symbol; for rows that `joined` makes, the outer dimensions are those of the first sequences.
  [[nodiscard]] Spec in_sequences(Spec spec, const std::vector<JoinedRows>& joined) const;

 private:
  void check(const std::vector<Expression>& inputs) const;
  void check(size_t number, const Expression& input) const;
  [[nodiscard]] Shape around(int32_t symbol) const;

  const std::vector<Port>& ports_;
  const SymbolNames& names_;
  std::vector<Spec> specs_;
  std::vector<tn_spec> views_;
  std::vector<const tn_spec*> pointers_;
};

}  // namespace tenon
