// The device "cuda": NVIDIA GPUs through the driver interface. The driver and NVRTC are loaded at run time, so that the
// plugin loads, and counts devices, on any system.
// SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>

#include "runtime/device.h"
#include "tables.h"

namespace tenon::cuda {

namespace {

Device& of(void* device) { return *static_cast<Device*>(device); }

CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

// Calls `function` with the device's context current, and reports its failure.
template <typename Function>
tn_status reported(void* device, const tn_errors* errors, const char* name, const Function& function) {
  const Current current(of(device).context());
  const CUresult result = current.call(function);
  return tn::guarded(errors, [&] { check(of(device).driver(), result, name); });
}

// The same for functions that free and cannot report: a sticky failure of the context shows at the next call.
template <typename Function>
void freed(void* device, const Function& function) {
  const Current current(of(device).context());
  static_cast<void>(current.call(function));
}

int32_t count(void* /*user*/, const tn_errors* errors) {
  int present = 0;
  const tn_status status = tn::guarded(errors, [&] {
    const Driver driver = load_driver();
    if (!driver.library.is_open()) return;
    const CUresult started = driver.cuInit(0);
    if (started == CUDA_ERROR_NO_DEVICE || started == CUDA_ERROR_STUB_LIBRARY) return;
    check(driver, started, "cuInit");
    check(driver, driver.cuDeviceGetCount(&present), "cuDeviceGetCount");
  });
  return status == TN_OK ? present : -status;
}

void warn(const tn_services* services, const std::string& text) {
  const auto* const log = static_cast<const tn_log*>(services->extension(services->self, TN_LOG));
  if (log != nullptr) log->write(log->self, 2, text.c_str());
}

tn_status open(const tn_device_open* open, void** device) {
  return tn::guarded(open->errors, [&] {
    auto made = std::make_unique<Device>(open->index);
    if (made->blas() == nullptr)
      warn(open->services, "device cuda: products run without cublasLt: " + made->without_blas());
    if (made->dnn() == nullptr)
      warn(open->services, "device cuda: convolutions run without cuDNN: " + made->without_dnn());
    *device = made.release();
  });
}

void close(void* device) { delete static_cast<Device*>(device); }

tn_status properties(void* device, const tn_errors* /*errors*/, tn_device_properties* properties) {
  properties->host_memory = 0;
  const std::string& name = of(device).name();
  const size_t length = std::min(name.size(), sizeof properties->name - 1);
  std::memcpy(properties->name, name.data(), length);
  properties->name[length] = '\0';
  properties->memory_bytes = of(device).memory_bytes();
  return TN_OK;
}

void* allocate(void* device, const tn_errors* errors, uint64_t bytes) {
  CUdeviceptr memory = 0;
  const Driver& driver = of(device).driver();
  const Current current(of(device).context());
  const CUresult result = current.call([&] { return driver.cuMemAlloc(&memory, std::max<uint64_t>(bytes, 1)); });
  const tn_status status = tn::guarded(errors, [&] {
    if (result == CUDA_SUCCESS) return;
    throw tn::Failure(
        status_of(result), "",
        std::to_string(bytes) + " bytes on " + of(device).name() + ": " + describe(driver, result, "cuMemAlloc"));
  });
  return status == TN_OK ? reinterpret_cast<void*>(memory) : nullptr;  // NOLINT(performance-no-int-to-ptr)
}

void release(void* device, void* memory, uint64_t /*bytes*/) {
  if (memory == nullptr) return;
  freed(device, [&] { return of(device).driver().cuMemFree(address(memory)); });
}

tn_status copy(void* device, const tn_errors* errors, const tn_copy* copy) {
  const Driver& driver = of(device).driver();
  CUstream queue = of(device).stream(copy->stream).handle();
  const CUdeviceptr to = address(copy->to), from = address(copy->from);
  if (copy->bytes == 0) return TN_OK;
  switch (copy->kind) {
    case TN_COPY_TO_DEVICE:
      return reported(device, errors, "cuMemcpyHtoDAsync",
                      [&] { return driver.cuMemcpyHtoDAsync(to, copy->from, copy->bytes, queue); });
    case TN_COPY_TO_HOST:
      return reported(device, errors, "cuMemcpyDtoHAsync",
                      [&] { return driver.cuMemcpyDtoHAsync(copy->to, from, copy->bytes, queue); });
    case TN_COPY_ON_DEVICE:
      return reported(device, errors, "cuMemcpyDtoDAsync",
                      [&] { return driver.cuMemcpyDtoDAsync(to, from, copy->bytes, queue); });
    default:
      return tn_fail(errors, TN_INVALID, "kind", "is not a kind of copy");
  }
}

tn_status fill(void* device, const tn_errors* errors, void* stream, void* memory, uint8_t value, uint64_t bytes) {
  if (bytes == 0) return TN_OK;
  return reported(device, errors, "cuMemsetD8Async", [&] {
    return of(device).driver().cuMemsetD8Async(address(memory), value, bytes, of(device).stream(stream).handle());
  });
}

tn_status stream_create(void* device, const tn_errors* errors, void** stream) {
  return tn::guarded(errors, [&] { *stream = new Stream(of(device).context()); });
}

void stream_destroy(void* /*device*/, void* stream) { delete static_cast<Stream*>(stream); }

tn_status stream_wait(void* device, const tn_errors* errors, void* stream) {
  return tn::guarded(errors, [&] { of(device).stream(stream).wait(); });
}

tn_status event_create(void* device, const tn_errors* errors, void** event) {
  return reported(device, errors, "cuEventCreate", [&] {
    return of(device).driver().cuEventCreate(reinterpret_cast<CUevent*>(event), CU_EVENT_DISABLE_TIMING);
  });
}

void event_destroy(void* device, void* event) {
  if (event == nullptr) return;
  freed(device, [&] { return of(device).driver().cuEventDestroy(static_cast<CUevent>(event)); });
}

tn_status event_record(void* device, const tn_errors* errors, void* event, void* stream) {
  return reported(device, errors, "cuEventRecord", [&] {
    return of(device).driver().cuEventRecord(static_cast<CUevent>(event), of(device).stream(stream).handle());
  });
}

tn_status event_wait(void* device, const tn_errors* errors, void* event, void* stream) {
  return reported(device, errors, "cuStreamWaitEvent", [&] {
    return of(device).driver().cuStreamWaitEvent(of(device).stream(stream).handle(), static_cast<CUevent>(event), 0);
  });
}

const void* extension(void* /*user*/, const char* id) { return table(id); }

const tn_device_description description = {sizeof(tn_device_description), kDLCUDA, "cuda",
                                           "NVIDIA GPUs; kernels are compiled when a machine is planned", table_ids()};
constexpr tn_device_type kDevice = {sizeof(tn_device_type),
                                    0,
                                    &description,
                                    &count,
                                    &open,
                                    &close,
                                    &properties,
                                    &allocate,
                                    &release,
                                    &copy,
                                    &fill,
                                    &stream_create,
                                    &stream_destroy,
                                    &stream_wait,
                                    &event_create,
                                    &event_destroy,
                                    &event_record,
                                    &event_wait,
                                    &extension,
                                    nullptr};
constexpr const tn_device_type* kDevices[] = {&kDevice};
constexpr tn_library kDriver = {sizeof(tn_library), 0, kDriverName, kDriverHint};
constexpr tn_library kCompiler = {sizeof(tn_library), 0, kCompilerName, kCompilerHint};
constexpr tn_library kProducts = {sizeof(tn_library), 0, kBlasName, kBlasHint};
constexpr tn_library kDnn = {sizeof(tn_library), 0, kDnnName, kDnnHint};
constexpr const tn_library* kLibraries[] = {&kDriver, &kCompiler, &kProducts, &kDnn};
constexpr tn_plugin kPlugin = [] {
  tn_plugin plugin = {};
  plugin.size = sizeof plugin;
  plugin.abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0};
  plugin.id = "tenon.cuda";
  plugin.version = "0.1.0";
  plugin.doc = "the device cuda: NVIDIA GPUs";
  plugin.license = "Apache-2.0";
  plugin.isa = "";
  plugin.devices_count = 1;
  plugin.libraries_count = std::size(kLibraries);
  plugin.devices = kDevices;
  plugin.libraries = kLibraries;
  return plugin;
}();

}  // namespace

}  // namespace tenon::cuda

extern "C" const tn_plugin* tenon_plugin(void) { return &tenon::cuda::kPlugin; }
