// Calls of primitives whose operands stay in memory of the device, for measurements.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>

#include "tests/devices/pointwise_case.h"

namespace tenon_tests {

// Fails with what the device reported.
inline void require(const DeviceUnderTest& device, tn_status status, const char* what) {
  if (status != TN_OK) throw std::runtime_error(std::string(what) + ": " + device.message);
}

class DeviceMemory {
 public:
  // [bytes], each `value`.
  DeviceMemory(DeviceUnderTest& device, uint64_t bytes, uint8_t value) : device_(device), bytes_(bytes) {
    data_ = device.type()->allocate(device.device(), device.errors(), bytes);
    if (data_ == nullptr) throw std::runtime_error("allocate: " + device.message);
    require(device, device.type()->fill(device.device(), device.errors(), nullptr, data_, value, bytes), "fill");
  }
  ~DeviceMemory() { device_.type()->release(device_.device(), data_, bytes_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  void write(const void* from) { copy(TN_COPY_TO_DEVICE, data_, from); }
  [[nodiscard]] std::vector<uint8_t> read() const {
    std::vector<uint8_t> content(bytes_);
    copy(TN_COPY_TO_HOST, content.data(), data_);
    require(device_, device_.type()->stream_wait(device_.device(), device_.errors(), nullptr), "stream_wait");
    return content;
  }

 private:
  void copy(int32_t kind, void* to, const void* from) const {
    const tn_copy copy = {sizeof copy, kind, nullptr, to, from, bytes_};
    require(device_, device_.type()->copy(device_.device(), device_.errors(), &copy), "copy");
    require(device_, device_.type()->stream_wait(device_.device(), device_.errors(), nullptr), "stream_wait");
  }

  DeviceUnderTest& device_;
  uint64_t bytes_;
  void* data_ = nullptr;
};

// A prepared call with its operands. Inputs are floats of [-1, 1), the same in each process.
class DeviceCall {
 public:
  using Prepare = std::function<tn_status(tn_prepared* prepared)>;
  // inputs, outputs: elements of each operand, float32. sizes: of the symbols, as symbol_values takes them.
  DeviceCall(DeviceUnderTest& device, const Prepare& prepare, const std::vector<int64_t>& inputs,
             const std::vector<int64_t>& outputs, const std::vector<int64_t>& sizes)
      : device_(device), host_symbols_(symbol_values(sizes)) {
    require(device, prepare(&prepared_), "prepare");
    std::mt19937 random(7);
    std::vector<float> numbers;
    for (const int64_t elements : inputs) {
      numbers.resize(static_cast<size_t>(elements));
      for (float& number : numbers) number = std::ldexp(static_cast<float>(random() >> 8), -23) - 1;
      add(elements).write(numbers.data());
    }
    for (const int64_t elements : outputs) add(elements);
    workspace_ = std::make_unique<DeviceMemory>(device, std::max<uint64_t>(prepared_.workspace_bytes, 1), uint8_t{0});
    symbols_ = std::make_unique<DeviceMemory>(device, host_symbols_.size() * sizeof(int64_t), uint8_t{0});
    symbols_->write(host_symbols_.data());
    random_ = std::make_unique<DeviceMemory>(device, sizeof kTestStep, uint8_t{0});
    random_->write(&kTestStep);
    tensors_.resize(operands_.size());
    for (size_t i = 0; i < operands_.size(); ++i) {
      tensors_[i].size = sizeof(tn_tensor);
      tensors_[i].dl.data = operands_[i]->data();
      if (i < inputs.size()) in_.push_back(&tensors_[i]);
      if (i >= inputs.size()) out_.push_back(&tensors_[i]);
    }
    requests_.assign(outputs.size(), TN_REQUEST_WRITE);
  }
  ~DeviceCall() { prepared_.destroy(prepared_.binding); }
  DeviceCall(const DeviceCall&) = delete;
  DeviceCall& operator=(const DeviceCall&) = delete;

  [[nodiscard]] const tn_prepared& prepared() const { return prepared_; }
  // Enqueues the call.
  void run(void* stream = nullptr) {
    const tn_execution execution = {sizeof(tn_execution),
                                    0,
                                    device_.device(),
                                    stream,
                                    static_cast<const int64_t*>(symbols_->data()),
                                    static_cast<const tn_random*>(random_->data()),
                                    pool_.parallel(),
                                    device_.errors(),
                                    host_symbols_.data()};
    const tn_call call = {sizeof(tn_call),
                          static_cast<uint32_t>(in_.size()),
                          static_cast<uint32_t>(out_.size()),
                          0,
                          in_.data(),
                          out_.data(),
                          requests_.data(),
                          workspace_->data(),
                          0};
    require(device_, prepared_.run(prepared_.binding, &execution, &call), "run");
  }
  // The bytes of all outputs; waits for them.
  [[nodiscard]] std::vector<uint8_t> result() const {
    std::vector<uint8_t> all;
    for (size_t i = in_.size(); i < operands_.size(); ++i) {
      const std::vector<uint8_t> one = operands_[i]->read();
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  void* operand(size_t number) const { return operands_[number]->data(); }

 private:
  DeviceMemory& add(int64_t elements) {
    operands_.push_back(
        std::make_unique<DeviceMemory>(device_, static_cast<uint64_t>(elements) * sizeof(float), uint8_t{0}));
    return *operands_.back();
  }

  DeviceUnderTest& device_;
  const std::vector<int64_t> host_symbols_;
  RandomPool pool_{1, 1};
  tn_prepared prepared_ = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
  std::vector<std::unique_ptr<DeviceMemory>> operands_;
  std::unique_ptr<DeviceMemory> workspace_, symbols_, random_;
  std::vector<tn_tensor> tensors_;
  std::vector<const tn_tensor*> in_;
  std::vector<tn_tensor*> out_;
  std::vector<uint8_t> requests_;
};

}  // namespace tenon_tests
