// A kernel of one's own on GPUs: example.mu_law, the layer of mu_law.cpp, on the device "cuda", forward and backward.
// Where there is no GPU or no NVRTC, the layer runs by its recorded body, as on every other device. The text of the
// kernels is compiled by NVRTC for the GPU that is there, so no CUDA Toolkit builds this plugin: the few functions that
// it calls are declared here as cuda.h and nvrtc.h have them. SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <tenon/device.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tenon/kernel.hpp>
#include <tenon/plugin.hpp>

namespace {

// A thread computes every so many elements, however many blocks there are.
constexpr char kText[] = R"(
struct Arguments { const float* in; const float* gradient; float* to; long long count; float mu; };
extern "C" __global__ void forward(Arguments a) {
  for (long long i = blockIdx.x * 256LL + threadIdx.x; i < a.count; i += gridDim.x * 256LL)
    a.to[i] = copysignf(log1pf(a.mu * fabsf(a.in[i])) / log1pf(a.mu), a.in[i]);
}
extern "C" __global__ void backward(Arguments a) {
  for (long long i = blockIdx.x * 256LL + threadIdx.x; i < a.count; i += gridDim.x * 256LL)
    a.to[i] = a.gradient[i] * a.mu / ((1 + a.mu * fabsf(a.in[i])) * log1pf(a.mu));
}
)";
constexpr unsigned kThreads = 256, kMostBlocks = 1024;
struct Arguments {
  const float* in;
  const float* gradient;
  float* to;
  long long count;
  float mu;
};

[[noreturn]] void fail(const std::string& message) { throw tn::Failure(TN_UNSUPPORTED, "", message); }

// A shared library that is loaded while the object lives.
class Library {
 public:
  Library(std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (handle_ == nullptr) handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) fail(std::string(*names.begin()) + " is not there");
  }
  ~Library() { dlclose(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // Calls a function whose result is 0 if all went well.
  template <typename... Parameters, typename... Given>
  void call(const char* name, int (*)(Parameters...), Given... given) const {
    auto* const function = reinterpret_cast<int (*)(Parameters...)>(dlsym(handle_, name));
    if (function == nullptr) fail(std::string("a library has no ") + name);
    if (const int result = function(given...); result != 0)
      throw tn::Failure(TN_IO, "", std::string(name) + " failed with " + std::to_string(result));
  }

 private:
  void* handle_ = nullptr;
};

template <typename... Parameters>
using Function = int (*)(Parameters...);

// The kernels on one GPU, in the context that the device uses: the primary one. All bindings share it.
class Kernels {
 public:
  explicit Kernels(int32_t index) {
    driver_.call("cuDeviceGet", Function<int*, int>(), &device_, index);
    driver_.call("cuDevicePrimaryCtxRetain", Function<void**, int>(), &context_, device_);
    try {
      const Current current(*this);
      const std::string image = compile();
      driver_.call("cuModuleLoadData", Function<void**, const void*>(), &module_, image.data());
      const char* const names[] = {"forward", "backward"};
      for (int i = 0; i < 2; ++i)
        driver_.call("cuModuleGetFunction", Function<void**, void*, const char*>(), &functions_[i], module_, names[i]);
    } catch (...) {
      release();
      throw;
    }
  }
  ~Kernels() { release(); }
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  // Enqueues a kernel in a stream of the driver.
  void launch(int32_t direction, Arguments& arguments, void* stream) const {
    if (arguments.count == 0) return;
    const auto blocks =
        static_cast<unsigned>(std::min<long long>((arguments.count + kThreads - 1) / kThreads, kMostBlocks));
    void* parameters[] = {&arguments};
    const Current current(*this);
    driver_.call(
        "cuLaunchKernel",
        Function<void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**>(),
        functions_[direction], blocks, 1U, 1U, kThreads, 1U, 1U, 0U, stream, parameters, nullptr);
  }

 private:
  // Makes the context that of this thread.
  class Current {
   public:
    explicit Current(const Kernels& of) : of_(of) {
      of.driver_.call("cuCtxPushCurrent_v2", Function<void*>(), of.context_);
    }
    ~Current() {
      void* popped = nullptr;
      try {
        of_.driver_.call("cuCtxPopCurrent_v2", Function<void**>(), &popped);
      } catch (const tn::Failure&) {  // the context is no longer there
      }
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const Kernels& of_;
  };

  // Returns the machine code of kText for this GPU.
  std::string compile() const {
    const Library compiler = {"libnvrtc.so.13", "libnvrtc.so.12"};
    int major = 0, minor = 0;  // of the compute capability: attributes 75 and 76
    driver_.call("cuDeviceGetAttribute", Function<int*, int, int>(), &major, 75, device_);
    driver_.call("cuDeviceGetAttribute", Function<int*, int, int>(), &minor, 76, device_);
    const std::string architecture = "--gpu-architecture=sm_" + std::to_string(10 * major + minor);
    const char* const options[] = {architecture.c_str()};
    void* program = nullptr;
    compiler.call("nvrtcCreateProgram",
                  Function<void**, const char*, const char*, int, const char* const*, const char* const*>(), &program,
                  kText, "mu_law.cu", 0, nullptr, nullptr);
    std::string image;
    try {
      compiler.call("nvrtcCompileProgram", Function<void*, int, const char* const*>(), program, 1, options);
      size_t bytes = 0;
      compiler.call("nvrtcGetCUBINSize", Function<void*, size_t*>(), program, &bytes);
      image.resize(bytes);
      compiler.call("nvrtcGetCUBIN", Function<void*, char*>(), program, image.data());
    } catch (...) {
      compiler.call("nvrtcDestroyProgram", Function<void**>(), &program);
      throw;
    }
    compiler.call("nvrtcDestroyProgram", Function<void**>(), &program);
    return image;
  }

  void release() noexcept {
    try {
      if (module_ != nullptr) {
        const Current current(*this);
        driver_.call("cuModuleUnload", Function<void*>(), module_);
      }
      driver_.call("cuDevicePrimaryCtxRelease_v2", Function<int>(), device_);
    } catch (const tn::Failure&) {  // nothing can be done about it
    }
  }

  Library driver_ = {"libcuda.so.1"};
  int device_ = 0;
  void* context_ = nullptr;
  void* module_ = nullptr;
  void* functions_[2] = {};  // by direction
};

// On failure the host takes the recorded body, and says why.
tn_status open(const tn_services*, const tn_errors* errors, const tn_device* device, void*, void** shared) {
  return tn::guarded(errors, [&] {
    try {
      *shared = std::make_unique<Kernels>(device->index).release();
    } catch (const tn::Failure& failure) {
      throw tn::Failure(TN_UNSUPPORTED, "", failure.what());
    }
  });
}
void close(void* shared) { delete static_cast<Kernels*>(shared); }
constexpr tn_shared kShared = {sizeof(tn_shared), 0, &open, &close, nullptr};

class MuLawOnCuda {
 public:
  static void describe(tn::KernelDescription& d) {
    d.kernel("example.mu_law", "cuda", "mu_law_cuda", 10);
    d.knows(1, {"mu"});
    d.shared(&kShared);
  }
  static void query(const tn::KernelSite&, tn::KernelNeeds& needs) { needs.read_input(0); }

  MuLawOnCuda(const tn::KernelSite& site, int32_t direction)
      : kernels_(*static_cast<const Kernels*>(site->shared)),
        device_(*site->device),
        native_(static_cast<const tn_native_table*>(device_.table(device_.self, TN_NATIVE, sizeof(tn_native_table)))),
        shape_(site.input(0)),
        mu_(static_cast<float>(site.attributes().number("mu"))),
        direction_(direction) {
    if (native_ == nullptr) fail("the device has no streams of its driver");
  }
  // The number of elements is a parameter of the launch, so it is read on the host, and holds for a captured step.
  uint32_t traits() const { return TN_TRAIT_HOST_SIZES; }

  void run(const tn::Call& call) {
    Arguments arguments = {call.in<float>(0), direction_ == TN_BACKWARD ? call.in<float>(2) : nullptr,
                           call.out<float>(0), 1, mu_};
    for (int32_t i = 0; i < shape_.rank(); ++i) {
      const tn_dim dim = shape_[i];
      arguments.count *= tn_dim_value(&dim, call.execution().host_symbols);
    }
    kernels_.launch(direction_, arguments, native_->stream(device_.instance, call.execution().stream));
  }

 private:
  const Kernels& kernels_;
  const tn_device& device_;
  const tn_native_table* native_;
  tn::Spec shape_;
  float mu_;
  int32_t direction_;
};

void describe(tn::Plugin& plugin) {
  plugin.about("org.example.mu_law_cuda", "1.0.0", "The companding of telephony on GPUs", "Apache-2.0");
  plugin.kernel<MuLawOnCuda>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
