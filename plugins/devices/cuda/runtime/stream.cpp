// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include "device.h"

namespace tenon::cuda {

namespace {

[[noreturn]] void report(const Fault& fault) {
  switch (fault.code) {
    case Fault::kWrongId:
      throw tn::Failure(TN_BAD_DATA, "ids",
                        "id " + std::to_string(fault.id) + " at position " + std::to_string(fault.position) +
                            " is outside the table of " + std::to_string(fault.height) + " rows");
    case Fault::kRowsDoNotFit:
      throw tn::Failure(TN_MISUSE, "outputs", "the rows do not fit");
    case Fault::kTooManyRows:
      throw tn::Failure(TN_MISUSE, "inputs", "an update of more rows than fit");
    case Fault::kOtherSegments:
      throw tn::Failure(TN_MISUSE, "offsets", "the segments have another number of rows or ids than the call");
    case Fault::kWrongPosition:
      throw tn::Failure(TN_BAD_DATA, "positions",
                        "position " + std::to_string(fault.id) + " of a pooled image is outside of it: it has " +
                            std::to_string(fault.height) + " elements");
    default:
      throw tn::Failure(TN_INTERNAL, "", "a kernel reported the unknown fault " + std::to_string(fault.code));
  }
}

}  // namespace

Stream::Stream(const Context& context) : context_(context) {
  const Driver& driver = context.driver;
  const Current current(context);
  check(driver, current.call([&] { return driver.cuStreamCreate(&handle_, CU_STREAM_NON_BLOCKING); }),
        "cuStreamCreate");
  const CUresult allocated = driver.cuMemAlloc(&fault_, sizeof(Fault));
  const CUresult result =
      allocated == CUDA_SUCCESS ? driver.cuMemsetD8Async(fault_, 0, sizeof(Fault), handle_) : allocated;
  if (result == CUDA_SUCCESS) return;
  if (allocated == CUDA_SUCCESS) driver.cuMemFree(fault_);
  driver.cuStreamDestroy(handle_);
  check(driver, result, allocated == CUDA_SUCCESS ? "cuMemsetD8Async" : "cuMemAlloc");
}

Stream::~Stream() {
  const Current current(context_);
  static_cast<void>(current.call([&] {
    const CUresult freed = context_.driver.cuMemFree(fault_);
    return context_.driver.cuStreamDestroy(handle_) == CUDA_SUCCESS ? freed : CUDA_ERROR_INVALID_VALUE;
  }));
}

void Stream::wait() {
  const Driver& driver = context_.driver;
  const Current current(context_);
  Fault fault = {};
  check(driver, current.call([&] { return driver.cuMemcpyDtoHAsync(&fault, fault_, sizeof fault, handle_); }),
        "cuMemcpyDtoHAsync");
  check(driver, driver.cuStreamSynchronize(handle_), "cuStreamSynchronize");
  if (fault.code == Fault::kNone) return;
  check(driver, driver.cuMemsetD8Async(fault_, 0, sizeof fault, handle_), "cuMemsetD8Async");
  report(fault);
}

void Stream::begin_capture() {
  const Driver& driver = context_.driver;
  const Current current(context_);
  // Of this thread alone: a call of another one, which may be the application's, must not end the capture.
  check(driver, current.call([&] { return driver.cuStreamBeginCapture(handle_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); }),
        "cuStreamBeginCapture");
  is_capturing_ = true;
}

CUgraphExec Stream::end_capture(bool keep) {
  const Driver& driver = context_.driver;
  const Current current(context_);
  CUgraph graph = nullptr;
  is_capturing_ = false;
  const CUresult ended = current.call([&] { return driver.cuStreamEndCapture(handle_, &graph); });
  CUgraphExec made = nullptr;
  CUresult result = ended;
  if (keep && ended == CUDA_SUCCESS) result = driver.cuGraphInstantiate(&made, graph, 0);
  if (graph != nullptr) driver.cuGraphDestroy(graph);
  if (keep) check(driver, result, ended == CUDA_SUCCESS ? "cuGraphInstantiate" : "cuStreamEndCapture");
  return made;
}

}  // namespace tenon::cuda
