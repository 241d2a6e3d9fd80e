// A layer with native kernels: exponential smoothing along the last dimension,
//   out[j] = decay * out[j - 1] + (1 - decay) * in[j],  with out[-1] = 0,
// which no recorded program can express, since each element needs the one before it. SPDX-License-Identifier: MIT
#include <tenon/plugin.hpp>

TN_RESERVE_NOTE(4096);  // room for the manifest, if the plugin is built without CMake

namespace {

struct Layer {
  static void describe(tn::LayerDescription& d) {
    d.type("example.my_plugin",
           "Exponential smoothing: out[j] = decay * out[j - 1] + (1 - decay) * in[j] along the last dimension");
    d.input("in", "[samples, ..., elements]");
    d.output("out", "as in");
    d.attribute(tn::float_attribute("decay", 0.5).at_least(0).at_most(1).doc("share of the element before"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec in = planner.input(0);
    if (in.rank() < 2 || !in.back().is_constant()) throw planner.bad_input(0, "must be [samples, ..., elements]");
    planner.output(0, in);
  }
};

// An object is a prepared call.
class Kernel {
 public:
  static void describe(tn::KernelDescription& d) {
    d.kernel("example.my_plugin", "cpu", "my_plugin", 10);
    d.compute(TN_F32);
    d.compute(TN_F64);
  }

  static bool supports(const tn::KernelSite& site, int32_t& /*score*/) {
    const tn_dtype dtype = site.input(0).dtype();
    if (dtype != site->compute) throw tn::Failure(TN_UNSUPPORTED, "in", "must have the float type of the machine");
    return true;
  }

  Kernel(const tn::KernelSite& site, int32_t direction)
      : decay_(site.attributes().number("decay")), backward_(direction == TN_BACKWARD) {}

  // Forward: inputs in; outputs out. Backward: inputs in and out, both null here, gradient of out; outputs gradient of
  // in.
  void run(const tn::Call& call) const {
    if (call.output(0) == nullptr) return;
    if (call.output(0)->dl.dtype.bits == 64)
      rows<double>(call);
    else
      rows<float>(call);
  }

 private:
  // The rows of a call, of which each task of the host's threads computes one.
  template <typename T>
  struct Rows {
    const Kernel* kernel;
    const T* from;
    T* to;
    int64_t columns;

    static void compute(void* argument, int64_t row, int32_t /*worker*/) {
      const auto& it = *static_cast<const Rows*>(argument);
      it.kernel->row(it.from + row * it.columns, it.to + row * it.columns, it.columns);
    }
  };

  template <typename T>
  void rows(const tn::Call& call) const {
    const DLTensor& to = call.output(0)->dl;
    Rows<T> all{this, call.in<T>(backward_ ? 2 : 0), call.out<T>(0), to.shape[to.ndim - 1]};
    const tn_parallel& threads = *call.execution().parallel;
    if (all.columns > 0)
      threads.for_each(threads.self, tn_elements(call.output(0)) / all.columns, &Rows<T>::compute, &all);
  }

  // Backward, from the end: the gradient of out[j] reaches in[j] and all before it.
  template <typename T>
  void row(const T* from, T* to, int64_t n) const {
    const T keep = static_cast<T>(decay_), take = static_cast<T>(1 - decay_);
    T sum = 0;
    if (backward_)
      for (int64_t j = n - 1; j >= 0; --j) to[j] = take * (sum = from[j] + keep * sum);
    else
      for (int64_t j = 0; j < n; ++j) to[j] = sum = keep * sum + take * from[j];
  }

  double decay_;
  bool backward_;
};

void describe(tn::Plugin& plugin) {
  plugin.about("example.my_plugin", "0.1.0", "Exponential smoothing", "MIT");
  plugin.layer<Layer>();
  plugin.kernel<Kernel>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
