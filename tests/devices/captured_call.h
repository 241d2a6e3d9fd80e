// A prepared call with memory of the device, which may be captured. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device_host.h>

#include "tests/devices/prepared_call.h"

namespace tenon_tests {

// Two inputs and an output of at most 1024 bytes each, on the default stream. The call must outlive it.
class CapturedCall {
 public:
  CapturedCall(DeviceUnderTest& device, const tn_prepared& prepared) : device_(device), prepared_(prepared) {
    memory_ = static_cast<uint8_t*>(device.type()->allocate(device.device(), device.errors(), bytes()));
    if (memory_ == nullptr) throw std::runtime_error(device.message);
  }
  ~CapturedCall() {
    EXPECT_EQ(device_.type()->stream_wait(device_.device(), device_.errors(), nullptr), TN_OK) << device_.message;
    device_.type()->release(device_.device(), memory_, bytes());
  }
  CapturedCall(const CapturedCall&) = delete;
  CapturedCall& operator=(const CapturedCall&) = delete;

  tn_status run(int64_t samples) const {
    tn_tensor tensors[3] = {};
    for (size_t i = 0; i < 3; ++i) tensors[i].dl.data = memory_ + kEach * i;
    const tn_tensor* const inputs[] = {&tensors[0], &tensors[1]};
    tn_tensor* const outputs[] = {&tensors[2]};
    const uint8_t request = TN_REQUEST_WRITE;
    const std::vector<int64_t> symbols = symbol_values({0, samples});
    const tn_execution execution = {sizeof execution, 0,       device_.device(), nullptr,       nullptr,
                                    nullptr,          nullptr, device_.errors(), symbols.data()};
    const tn_call operands = {sizeof operands, 2, 1, 0, inputs, outputs, &request, memory_ + 3 * kEach, 0};
    return prepared_.run(prepared_.binding, &execution, &operands);
  }
  // Captures a run; returns its status. The capture is expected to succeed, and dropped.
  tn_status capture(int64_t samples) const {
    return capture([&] { return run(samples); }, TN_OK);
  }
  // Captures what `work` does; returns its status. ended: the expected status of the end of the capture, which asks for
  // a graph if the work succeeded.
  template <typename Work>
  tn_status capture(const Work& work, tn_status ended) const {
    const auto* const table = device_.table<tn_capture_table>(TN_CAPTURE);
    EXPECT_EQ(table->begin(device_.device(), device_.errors(), nullptr), TN_OK) << device_.message;
    const tn_status status = work();
    void* graph = nullptr;
    void** const wanted = status == TN_OK ? &graph : nullptr;
    EXPECT_EQ(table->end(device_.device(), device_.errors(), nullptr, wanted), ended) << device_.message;
    if (graph != nullptr) table->destroy(device_.device(), graph);
    return status;
  }

 private:
  static constexpr size_t kEach = 1024;
  [[nodiscard]] uint64_t bytes() const { return 3 * kEach + prepared_.workspace_bytes; }

  DeviceUnderTest& device_;
  const tn_prepared& prepared_;
  uint8_t* memory_ = nullptr;
};

}  // namespace tenon_tests
