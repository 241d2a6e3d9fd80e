// Opens GPUs and loads modules. SPDX-License-Identifier: Apache-2.0
#include "device.h"

namespace tenon::cuda {

Context::Context(Driver functions, CUdevice device) : driver(std::move(functions)), device_(device) {
  check(driver, driver.cuDevicePrimaryCtxRetain(&handle_, device_), "cuDevicePrimaryCtxRetain");
}

Context::~Context() { driver.cuDevicePrimaryCtxRelease(device_); }

Module::Module(std::shared_ptr<const Context> context, const std::string& image, size_t kernels,
               const std::string& compiler)
    : context_(std::move(context)) {
  const Driver& driver = context_->driver;
  const Current current(*context_);
  const CUresult loaded = current.call([&] { return driver.cuModuleLoadData(&handle_, image.data()); });
  if (loaded == CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
    int version = 0;
    check(driver, driver.cuDriverGetVersion(&version), "cuDriverGetVersion");
    const std::string cuda = std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
    throw tn::Failure(TN_UNSUPPORTED, "",
                      "the driver is of CUDA " + cuda + ", and cannot load what " + compiler +
                          " compiles: install a newer driver, or an NVRTC of at most " + cuda + ": " +
                          describe(driver, loaded, "cuModuleLoadData"));
  }
  check(driver, loaded, "cuModuleLoadData");
  try {
    for (size_t k = 0; k < kernels; ++k) {
      CUfunction found = nullptr;
      const std::string name = "kernel" + std::to_string(k);
      check(driver, driver.cuModuleGetFunction(&found, handle_, name.c_str()), "cuModuleGetFunction");
      kernels_.push_back(found);
    }
  } catch (...) {
    driver.cuModuleUnload(handle_);
    throw;
  }
}

Module::~Module() {
  const Current current(*context_);
  static_cast<void>(current.call([&] { return context_->driver.cuModuleUnload(handle_); }));
}

Device::Device(int32_t index) {
  Driver driver = load_driver();
  if (!driver.library.is_open())
    throw tn::Failure(TN_NOT_FOUND, "",
                      "the CUDA driver cannot be loaded (" + driver.library.why() + "): " + kDriverHint);
  check(driver, driver.cuInit(0), "cuInit");
  int present = 0;
  check(driver, driver.cuDeviceGetCount(&present), "cuDeviceGetCount");
  if (index < 0 || index >= present)
    throw tn::Failure(
        TN_NOT_FOUND, "",
        "there is no CUDA device number " + std::to_string(index) + ": " + std::to_string(present) + " present");
  int version = 0;
  check(driver, driver.cuDriverGetVersion(&version), "cuDriverGetVersion");
  compiler_ = std::make_unique<Compiler>(version);
  if (!compiler_->is_open())
    throw tn::Failure(TN_NOT_FOUND, "", "NVRTC cannot be loaded (" + compiler_->why() + "): " + kCompilerHint);

  CUdevice device = 0;
  check(driver, driver.cuDeviceGet(&device, index), "cuDeviceGet");
  int major = 0, minor = 0;
  check(driver, driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
        "cuDeviceGetAttribute");
  check(driver, driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
        "cuDeviceGetAttribute");
  capability_ = 10 * major + minor;
  char name[128] = {};
  check(driver, driver.cuDeviceGetName(name, sizeof name - 1, device), "cuDeviceGetName");
  name_ = name;
  size_t bytes = 0;
  check(driver, driver.cuDeviceTotalMem(&bytes, device), "cuDeviceTotalMem");
  memory_bytes_ = bytes;
  context_ = std::make_shared<const Context>(std::move(driver), device);
  first_ = std::make_unique<Stream>(*context_);
  blas_ = open_blas(*context_, version, capability_, &without_blas_);
  dnn_ = open_dnn(*context_, capability_, &without_dnn_);
}

std::string Device::image(const std::string& text) const {
  const std::string key = compiler_->key(text, capability_);
  if (std::optional<std::string> found = cache_.find(key)) return *std::move(found);
  std::string made = compiler_->compile(text, capability_);
  cache_.keep(key, made);
  return made;
}

std::shared_ptr<const Module> Device::module(const std::string& text, size_t kernels) {
  if (const auto found = modules_.find(text); found != modules_.end()) return found->second;
  auto made = std::make_shared<const Module>(context_, image(text), kernels, compiler_->version());
  return modules_.emplace(text, std::move(made)).first->second;
}

}  // namespace tenon::cuda
