// The state of the emulated driver, and what its parts and the emulated libraries above it share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <functional>
#include <string>
#include <vector>

// One for each device.
struct CUctx_st {
  CUdevice device = 0;
  int retained = 0;
};

namespace emulated {

using Work = std::function<CUresult()>;

}  // namespace emulated

struct CUstream_st {
  CUcontext context;
  bool capturing = false;
  bool invalid = false;              // an illegal call ended the capture
  std::vector<emulated::Work> work;  // captured so far
};
struct CUgraph_st {
  CUcontext context;
  std::vector<emulated::Work> work;
};
struct CUgraphExec_st {
  CUcontext context;
  std::vector<emulated::Work> work;
};

namespace emulated {

// The thread's current context; null: none.
CUcontext current_context();
// Notes a call for emulated_calls, and fails it if a test asked for that. Calls that enqueue work, or that may be made
// at any time, need no more; others use enter.
CUresult note(const std::string& call);
// note, then fails during a capture of this thread, which it makes invalid.
CUresult outside_capture(const std::string& call);
// The same, and fails without a current context, and after a failure that stays.
CUresult enter(const std::string& call);
// note, then does the work now, or keeps it for the graph if the stream captures. `legal`: whether that may be
// captured.
CUresult enqueue(const std::string& call, CUstream stream, Work work, bool legal = true);

// Whether the bytes lie in memory of the current device.
bool is_device(CUdeviceptr address, size_t bytes);
// Makes every later call fail.
void fail_from_now_on(CUresult result);
// Captures the stream's work in this thread; ends that, and returns the work.
CUresult begin_capture(CUstream stream);
std::vector<Work> end_capture(CUstream stream);

}  // namespace emulated

// For tests, found by dlsym.
extern "C" {
// The allocation after `count` more fails, once; a negative count: none.
void emulated_fail_after(int count);
// The bytes of device memory and pinned memory that are allocated.
size_t emulated_used();
// Starts a new list of calls.
void emulated_clear_calls();
// The calls since then, one a line, valid until the next call of this function. Launches are followed by the kernel and
// "BLOCKS x THREADS" as asked for, copies by their bytes. What runs while a stream captures begins with "captured ".
const char* emulated_calls();
// From now on calls whose line begins so fail with CUDA_ERROR_NOT_PERMITTED; null: none.
void emulated_fail_call(const char* line);
}
