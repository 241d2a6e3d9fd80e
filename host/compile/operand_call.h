// Calls outside of a graph: of updates, and of sums over the shards of a minibatch. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/program.h"
#include "core/shape.h"
#include "host/plugins/device.h"

namespace tenon::host {

using namespace core;

// A prepared call that owns its operand structs. Neither copied nor moved, since the call points to them.
class OperandCall : base::NotCopied {
 public:
  struct Operand {
    tn_dtype dtype;
    void* data;
    const tn_row_sparse* rows = nullptr;  // not null: a TN_ROW_SPARSE tensor
  };

  // Prepares the program over a dense grid of rows by columns. compute: the type of floats, TN_F32 or TN_F64.
  static std::unique_ptr<OperandCall> over_grid(Device& device, ErrorSink& sink, const Program& program,
                                                tn_dtype compute, const Dim& rows, const Dim& columns,
                                                const std::vector<Operand>& inputs,
                                                const std::vector<Operand>& outputs);
  // Prepares the program over the rows of the row-sparse input 1. All other inputs, except scalars, and all outputs are
  // tables in which these rows are read and written.
  static std::unique_ptr<OperandCall> over_rows(Device& device, ErrorSink& sink, const Program& program,
                                                int64_t capacity, int64_t width, const std::vector<Operand>& inputs,
                                                const std::vector<Operand>& outputs);
  // Prepares adding `count` rows, of values [count, width] and int64 ids [count], to the row-sparse `sum` of a table of
  // `height` rows, which has room for them.
  static std::unique_ptr<OperandCall> adding_rows(Device& device, ErrorSink& sink, int64_t height, int64_t width,
                                                  const Dim& count, const Operand& values, void* ids,
                                                  const Operand& sum);

  [[nodiscard]] uint64_t workspace_bytes() const { return prepared_->workspace_bytes; }
  [[nodiscard]] bool reads_host_sizes() const { return (prepared_->traits & TN_TRAIT_HOST_SIZES) != 0; }
  void set_workspace(void* memory) { call_.workspace = memory; }
  void run(const tn_execution& execution, ErrorSink& sink) const { sink.check(prepared_.run(execution, call_)); }

 private:
  OperandCall(const Device& device, const std::vector<Operand>& inputs, const std::vector<Operand>& outputs,
              uint8_t request = TN_REQUEST_WRITE);
  static constexpr tn_dtype kAbsent = 0;  // the type of an optional operand that is not there

  Prepared prepared_;
  std::vector<tn_tensor> tensors_;  // inputs, then outputs
  std::vector<const tn_tensor*> inputs_;
  std::vector<tn_tensor*> outputs_;
  std::vector<uint8_t> requests_;
  tn_call call_ = {};
};

// Allocates the largest workspace of calls that run one after the other, and gives it to each.
[[nodiscard]] DeviceMemory shared_workspace(const std::shared_ptr<Device>& device,
                                            const std::vector<OperandCall*>& calls);

}  // namespace tenon::host
