// Captured work of the emulated driver, and the hooks for tests. SPDX-License-Identifier: Apache-2.0
#include "driver.h"

using emulated::enter;

extern "C" {

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  if (const CUresult result = enter("cuStreamBeginCapture"); result != CUDA_SUCCESS) return result;
  // Calls of other threads must not disturb a capture.
  if (stream == nullptr || stream->capturing || mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
    return CUDA_ERROR_ILLEGAL_STATE;
  return emulated::begin_capture(stream);
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  *status = !stream->capturing ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->invalid  ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                               : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  if (stream == nullptr || !stream->capturing) return CUDA_ERROR_ILLEGAL_STATE;
  const bool invalid = stream->invalid;
  std::vector<emulated::Work> work = emulated::end_capture(stream);
  *graph = nullptr;
  if (const CUresult result = emulated::note("cuStreamEndCapture"); result != CUDA_SUCCESS) return result;
  if (invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = new CUgraph_st{stream->context, std::move(work)};
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiate(CUgraphExec* made, CUgraph graph, unsigned long long flags) {
  if (const CUresult result = enter("cuGraphInstantiate"); result != CUDA_SUCCESS) return result;
  if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *made = new CUgraphExec_st{graph->context, graph->work};
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
  delete graph;
  return enter("cuGraphDestroy");
}
CUresult cuGraphExecDestroy(CUgraphExec graph) {
  delete graph;
  return enter("cuGraphExecDestroy");
}
CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  if (graph == nullptr || stream == nullptr || graph->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
  return emulated::enqueue(
      "cuGraphLaunch", stream,
      [graph] {
        for (const emulated::Work& work : graph->work)
          if (const CUresult result = work(); result != CUDA_SUCCESS) return result;
        return CUDA_SUCCESS;
      },
      false);
}

}  // extern "C"
