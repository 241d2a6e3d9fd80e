// SPDX-License-Identifier: Apache-2.0
#include "host_tables.h"

#include <algorithm>
#include <tenon/base.hpp>

#include "runtime/device.h"

namespace tenon::cuda {

namespace {

Device& of(void* device) { return *static_cast<Device*>(device); }

void* allocate(void* device, const tn_errors* errors, uint64_t bytes) {
  void* memory = nullptr;
  const tn_status status = tn::guarded(errors, [&] {
    const Driver& driver = of(device).driver();
    const Current current(of(device).context());
    check(driver, current.call([&] { return driver.cuMemAllocHost(&memory, std::max<uint64_t>(bytes, 1)); }),
          "cuMemAllocHost");
  });
  return status == TN_OK ? memory : nullptr;
}

void release(void* device, void* memory, uint64_t /*bytes*/) {
  if (memory == nullptr) return;
  const Current current(of(device).context());
  static_cast<void>(current.call([&] { return of(device).driver().cuMemFreeHost(memory); }));
}

tn_status begin(void* device, const tn_errors* errors, void* stream) {
  return tn::guarded(errors, [&] { of(device).stream(stream).begin_capture(); });
}

tn_status end(void* device, const tn_errors* errors, void* stream, void** graph) {
  return tn::guarded(errors, [&] {
    CUgraphExec made = of(device).stream(stream).end_capture(graph != nullptr);
    if (graph != nullptr) *graph = made;
  });
}

tn_status launch(void* device, const tn_errors* errors, void* graph, void* stream) {
  return tn::guarded(errors, [&] {
    const Driver& driver = of(device).driver();
    const Current current(of(device).context());
    CUstream queue = of(device).stream(stream).handle();
    check(driver, current.call([&] { return driver.cuGraphLaunch(static_cast<CUgraphExec>(graph), queue); }),
          "cuGraphLaunch");
  });
}

void destroy(void* device, void* graph) {
  const Current current(of(device).context());
  static_cast<void>(
      current.call([&] { return of(device).driver().cuGraphExecDestroy(static_cast<CUgraphExec>(graph)); }));
}

}  // namespace

const tn_host_memory_table host_memory_table = {sizeof(tn_host_memory_table), 0, &allocate, &release};
const tn_capture_table capture_table = {sizeof(tn_capture_table), 0, &begin, &end, &launch, &destroy};

}  // namespace tenon::cuda
