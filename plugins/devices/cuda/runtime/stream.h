// A stream of work on a GPU, and what kernels report in it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "driver.h"

namespace tenon::cuda {

class Context;

// What a kernel found wrong in the data of a call. The first one stays in the stream's device memory; while it is
// there, later kernels of the stream do nothing, so that a step with wrong data changes nothing.
struct Fault {
  enum Code : int64_t {
    kNone = 0,
    kWrongId = 1,
    kRowsDoNotFit = 2,
    kTooManyRows = 3,
    kOtherSegments = 4,
    kWrongPosition = 5
  };
  int64_t code;
  int64_t id, position, height;  // kWrongId, kWrongPosition: ids[position] == id is not in [0, height)
};

class Stream {
 public:
  // Throws tn::Failure.
  explicit Stream(const Context& context);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] CUstream handle() const { return handle_; }
  // Address of the Fault in device memory.
  [[nodiscard]] CUdeviceptr fault() const { return fault_; }
  // Blocks until the stream is empty; then throws a failure of its work as tn::Failure, once.
  void wait();

  // Captures work instead of running it, until end_capture. Both throw tn::Failure.
  void begin_capture();
  // Returns the captured work, ready to be launched, which the caller destroys; null unless `keep`. The stream works as
  // before, also if this fails.
  [[nodiscard]] CUgraphExec end_capture(bool keep);
  [[nodiscard]] bool is_capturing() const { return is_capturing_; }

 private:
  const Context& context_;
  CUstream handle_ = nullptr;
  CUdeviceptr fault_ = 0;
  bool is_capturing_ = false;
};

}  // namespace tenon::cuda
