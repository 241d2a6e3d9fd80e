// SPDX-License-Identifier: Apache-2.0
#include "call.h"

#include <stdexcept>
#include <tenon/base.hpp>

namespace tenon::far {

namespace {

// The thread of the stream computes alone.
void for_each(void*, int64_t count, void (*task)(void*, int64_t, int32_t), void* argument) {
  for (int64_t i = 0; i < count; ++i) task(argument, i, 0);
}
void phases(void*, int32_t count, const int64_t* sizes, void (*task)(void*, int32_t, int64_t, int32_t),
            void* argument) {
  for (int32_t phase = 0; phase < count; ++phase)
    for (int64_t i = 0; i < sizes[phase]; ++i) task(argument, phase, i, 0);
}
constexpr tn_parallel kAlone = {sizeof(tn_parallel), 1, nullptr, &for_each, &phases};

void keep(void* self, const tn_error_report* report) {
  auto& failure = *static_cast<Failure*>(self);
  failure.message = report->message == nullptr ? "" : report->message;
  failure.port = report->port == nullptr ? "" : report->port;
}

}  // namespace

template <typename T>
T* Operands::real(T* at, const std::string& name) const {
  if (at != nullptr && !memory_.contains(at)) throw std::invalid_argument(name + " is not in the device's memory");
  return memory_.real(at);
}

Operands::Operands(const Memory& memory, const tn_execution& execution, const tn_call& call, size_t sizes)
    : memory_(memory),
      requests_(call.requests, call.requests + call.outputs_count),
      call_(call),
      host_symbols_(execution.host_symbols, execution.host_symbols + sizes),
      symbols_(sizes > 0 ? host_symbols_.data() : real(execution.symbols, "the array of symbols")),
      random_(real(execution.random, "the seed of random numbers")) {
  for (uint32_t i = 0; i < call.inputs_count; ++i)
    inputs_.push_back(call.inputs[i] == nullptr ? nullptr : copy(*call.inputs[i], "input " + std::to_string(i)));
  for (uint32_t i = 0; i < call.outputs_count; ++i)
    outputs_.push_back(call.outputs[i] == nullptr ? nullptr : copy(*call.outputs[i], "output " + std::to_string(i)));
  call_.inputs = inputs_.data();
  call_.outputs = outputs_.data();
  call_.requests = requests_.data();
  call_.workspace = real(call.workspace, "the workspace");
}

tn_tensor* Operands::copy(const tn_tensor& tensor, const std::string& name) {
  tn_tensor& made = tensors_.emplace_back(tensor);
  made.dl.data = real(tensor.dl.data, name);
  if (tensor.dl.shape != nullptr)
    made.dl.shape = shapes_.emplace_back(tensor.dl.shape, tensor.dl.shape + tensor.dl.ndim).data();
  if (tensor.storage == TN_RAGGED) {
    const auto& part = *static_cast<const tn_ragged*>(tensor.part);
    std::vector<int64_t*>& offsets = offsets_.emplace_back();
    for (uint32_t level = 0; level < part.levels; ++level)
      offsets.push_back(real(part.offsets[level], "the offsets of " + name));
    const int64_t* const capacity = shapes_.emplace_back(part.capacity, part.capacity + part.levels).data();
    made.part = &ragged_.emplace_back(tn_ragged{sizeof(tn_ragged), part.levels, capacity, offsets.data()});
  } else if (tensor.storage == TN_ROW_SPARSE) {
    const auto& part = *static_cast<const tn_row_sparse*>(tensor.part);
    made.part = &rows_.emplace_back(tn_row_sparse{sizeof(tn_row_sparse), 0, part.capacity,
                                                  real(part.count, "the number of rows of " + name),
                                                  real(part.ids, "the ids of " + name)});
  }
  return &made;
}

Failure Operands::run(const tn_prepared& prepared) const {
  Failure failure;
  const tn_errors errors = {sizeof errors, 0, &failure, &keep};
  const tn_execution execution = {sizeof execution, 0, nullptr, nullptr, symbols_, random_, &kAlone, &errors, nullptr};
  failure.status = prepared.run(prepared.binding, &execution, &call_);
  return failure;
}

namespace {

struct Binding {
  Device& device;
  tn_prepared inner;
  size_t sizes;
};

tn_status run(void* binding, const tn_execution* execution, const tn_call* call) {
  return tn::guarded(execution->errors, [&] {
    const Binding& of = *static_cast<const Binding*>(binding);
    Stream& stream = of.device.stream_at(execution->stream);
    const auto operands = std::make_shared<const Operands>(of.device.memory, *execution, *call, of.sizes);
    stream.enqueue([operands, inner = of.inner] { return operands->run(inner); });
  });
}

void destroy(void* binding) {
  auto* const of = static_cast<Binding*>(binding);
  if (of->inner.destroy != nullptr) of->inner.destroy(of->inner.binding);
  delete of;
}

}  // namespace

void prepare_late(Device& device, const tn_prepared& inner, size_t sizes, uint32_t traits, tn_prepared* prepared) {
  try {
    prepared->binding = new Binding{device, inner, sizes};
  } catch (...) {
    if (inner.destroy != nullptr) inner.destroy(inner.binding);
    throw;
  }
  prepared->destroy = &destroy;
  prepared->run = &run;
  prepared->traits = traits;
  prepared->workspace_bytes = inner.workspace_bytes;
}

}  // namespace tenon::far
