// SPDX-License-Identifier: Apache-2.0
#include "host/compile/operand_call.h"

#include <algorithm>

#include "core/alignment.h"
#include "host/compile/pointwise_site.h"

namespace tenon::host {

namespace {

std::vector<tn_dtype> dtypes_of(const std::vector<OperandCall::Operand>& operands) {
  std::vector<tn_dtype> types;
  for (const OperandCall::Operand& operand : operands) types.push_back(operand.dtype);
  return types;
}

}  // namespace

OperandCall::OperandCall(const Device& device, const std::vector<Operand>& inputs, const std::vector<Operand>& outputs,
                         uint8_t request) {
  for (const auto* list : {&inputs, &outputs})
    for (const Operand& operand : *list) {
      tn_tensor tensor = device.tensor(operand.dtype, operand.rows == nullptr ? TN_DENSE : TN_ROW_SPARSE);
      tensor.dl.data = operand.data;
      tensor.alignment = alignment_of(operand.data);
      tensor.part = operand.rows;
      tensors_.push_back(tensor);
    }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (i < inputs.size())
      inputs_.push_back(inputs[i].dtype == kAbsent ? nullptr : &tensors_[i]);
    else
      outputs_.push_back(&tensors_[i]);
  }
  requests_.assign(outputs.size(), request);
  call_.size = sizeof call_;
  call_.inputs_count = static_cast<uint32_t>(inputs_.size());
  call_.outputs_count = static_cast<uint32_t>(outputs_.size());
  call_.inputs = inputs_.data();
  call_.outputs = outputs_.data();
  call_.requests = requests_.data();
}

std::unique_ptr<OperandCall> OperandCall::over_grid(Device& device, ErrorSink& sink, const Program& program,
                                                    tn_dtype compute, const Dim& rows, const Dim& columns,
                                                    const std::vector<Operand>& inputs,
                                                    const std::vector<Operand>& outputs) {
  std::unique_ptr<OperandCall> made(new OperandCall(device, inputs, outputs));
  const PointwiseSite site(program, compute, dtypes_of(inputs), dtypes_of(outputs), rows, columns);
  prepare_primitive(device, TN_POINTWISE, &tn_pointwise_table::prepare, site.get(), sink, made->prepared_);
  return made;
}

std::unique_ptr<OperandCall> OperandCall::over_rows(Device& device, ErrorSink& sink, const Program& program,
                                                    int64_t capacity, int64_t width, const std::vector<Operand>& inputs,
                                                    const std::vector<Operand>& outputs) {
  std::unique_ptr<OperandCall> made(new OperandCall(device, inputs, outputs));
  const PointwiseSite site(program, TN_F32, dtypes_of(inputs), dtypes_of(outputs), tn_dim_constant(capacity),
                           tn_dim_constant(width));
  std::vector<uint8_t> indexed_inputs;
  for (size_t i = 0; i < inputs.size(); ++i)
    indexed_inputs.push_back(i != 1 && program.inputs[i].extent != TN_SCALAR ? 1 : 0);
  const std::vector<uint8_t> indexed_outputs(outputs.size(), 1);
  const tn_row_sparse_update update = {sizeof update, 1, site.get(), indexed_inputs.data(), indexed_outputs.data()};
  prepare_primitive(device, TN_ROW_SPARSE_TABLE, &tn_row_sparse_table::prepare_update, &update, sink, made->prepared_);
  return made;
}

std::unique_ptr<OperandCall> OperandCall::adding_rows(Device& device, ErrorSink& sink, int64_t height, int64_t width,
                                                      const Dim& count, const Operand& values, void* ids,
                                                      const Operand& sum) {
  const Operand offsets = {kAbsent, nullptr};
  std::unique_ptr<OperandCall> made(new OperandCall(device, {values, {TN_I64, ids}, offsets}, {sum}, TN_REQUEST_ADD));
  tn_coalesce_part part = {};
  part.size = sizeof part;
  part.ids = TN_I64;
  part.count = count;
  const tn_coalesce_part* const parts = &part;
  const tn_coalesce site = {sizeof site, values.dtype, tn_dim_constant(height), tn_dim_constant(width), 1, 0, &parts};
  prepare_primitive(device, TN_ROW_SPARSE_TABLE, &tn_row_sparse_table::prepare_coalesce, &site, sink, made->prepared_);
  return made;
}

DeviceMemory shared_workspace(const std::shared_ptr<Device>& device, const std::vector<OperandCall*>& calls) {
  uint64_t bytes = 0;
  for (const OperandCall* call : calls) bytes = std::max(bytes, call->workspace_bytes());
  DeviceMemory memory(device, bytes);
  for (OperandCall* call : calls) call->set_workspace(memory.data());
  return memory;
}

}  // namespace tenon::host
