/* Tenon SDK for C++17: native kernels. SPDX-License-Identifier: MIT
 *
 * A kernel is a class; kernel<T>() makes its C table. An object of it is the binding of one prepared call.
 *
 *   class MaxPool {
 *    public:
 *     static void describe(tn::KernelDescription& d) { d.kernel("max_pool", "cpu", "vendor_max_pool", 10); }
 *     static void query(const tn::KernelSite& site, tn::KernelNeeds& needs);   // optional
 *     static bool supports(const tn::KernelSite& site, int32_t& score);        // optional; false: passed over
 *     MaxPool(const tn::KernelSite& site, int32_t direction);
 *     uint64_t workspace_bytes() const;                                        // optional
 *     uint32_t traits() const;                                                 // optional: TN_TRAIT_*
 *     void run(const tn::Call& call);
 *   };
 *
 * Every function may throw. tn::Failure(TN_UNSUPPORTED, ...) from supports, query or the constructor passes the kernel
 * over. What run throws ends the step; run must not allocate. */
#ifndef TENON_KERNEL_HPP
#define TENON_KERNEL_HPP

#include <tenon/fusion.h>
#include <tenon/kernel.h>

#include <memory>
#include <tenon/attribute.hpp>
#include <tenon/base.hpp>
#include <type_traits>

namespace tn {

// Filled by describe. Strings are literals, tables static.
class KernelDescription {
 public:
  KernelDescription() { table_.size = sizeof table_; }
  KernelDescription(const KernelDescription&) = delete;
  KernelDescription& operator=(const KernelDescription&) = delete;

  // type: the layer type; device: the kind; name: shown by `plan`; score: higher wins, the recorded body has 0.
  void kernel(const char* type, const char* device, const char* name, int32_t score) {
    table_.type = type;
    table_.device = device;
    table_.name = name;
    table_.score = score;
  }
  // A compute type that the kernel offers; without a call TN_F32.
  void compute(tn_dtype dtype) {
    if (count_ == 8) throw std::length_error("a kernel has too many compute types");
    dtypes_[count_++] = dtype;
  }
  // For a layer type of another plugin: the state version and the attributes that the kernel knows (tn_kernel).
  void knows(uint32_t state_version, std::initializer_list<const char*> attributes = {}) {
    table_.state_version = state_version;
    for (const char* attribute : attributes) {
      if (table_.attributes_count == kMostAttributes) throw std::length_error("a kernel knows too many attributes");
      attributes_[table_.attributes_count++] = attribute;
    }
  }
#if TN_TARGET_MINOR >= 4
  // How many input ports, output ports and parameters of that type the kernel knows. Older hosts do not ask.
  void knows_ports(uint32_t inputs, uint32_t outputs, uint32_t parameters) {
    table_.inputs_known = inputs;
    table_.outputs_known = outputs;
    table_.parameters_known = parameters;
  }
#endif
  // Its calls have the bits of docs/arithmetic.md on every processor: TN_TRAIT_PORTABLE, on hosts that know it.
  void portable() { portable_ = true; }
  bool is_portable() const { return portable_; }
  void fusion(const tn_fusion_pattern* pattern) { table_.fusion = pattern; }
  void shared(const tn_shared* shared) { table_.shared = shared; }

  tn_kernel get() {
    if (count_ == 0) compute(TN_F32);
    table_.dtypes_count = count_;
    table_.dtypes = dtypes_;
    table_.attributes = attributes_;
    return table_;
  }

 private:
  static constexpr uint32_t kMostAttributes = 64;
  tn_dtype dtypes_[8] = {};
  const char* attributes_[kMostAttributes] = {};
  uint32_t count_ = 0;
  bool portable_ = false;
  tn_kernel table_ = {};
};

// A layer as planned. Borrowed until the function that received it returns.
class KernelSite {
 public:
  explicit KernelSite(const tn_kernel_site& site) : site_(&site) {}

  const tn_kernel_site* operator->() const { return site_; }
  Attributes attributes() const { return Attributes(site_->attributes); }
  bool has_input(uint32_t i) const { return i < site_->inputs_count && site_->inputs[i] != nullptr; }
  Spec input(uint32_t i) const { return spec(site_->inputs, site_->inputs_count, i); }
  Spec output(uint32_t i) const { return spec(site_->outputs, site_->outputs_count, i); }
  Spec parameter(uint32_t i) const { return spec(site_->parameters, site_->parameters_count, i); }
  // Whether backward may be asked for the gradient of an input, or of a parameter.
  bool wants_input(uint32_t i) const { return site_->gradients[i] != 0; }
  bool wants_parameter(uint32_t i) const { return site_->gradients[site_->inputs_count + i] != 0; }

 private:
  static Spec spec(const tn_spec* const* list, uint32_t count, uint32_t i) {
    if (i >= count || list[i] == nullptr) throw std::out_of_range("a kernel asks for a tensor that the site lacks");
    return Spec(*list[i]);
  }

  const tn_kernel_site* site_;
};

// The requirements of a kernel (tn_kernel_needs).
class KernelNeeds {
 public:
  KernelNeeds(const tn_kernel_site& site, tn_kernel_needs& needs) : site_(site), needs_(needs) {}

  // Backward reads an input, a parameter, a buffer, a carried state, an output.
  void read_input(uint32_t i) { mark(needs_.reads_in, i, 0, site_.inputs_count); }
  void read_parameter(uint32_t i) { mark(needs_.reads_in, i, site_.inputs_count, site_.parameters_count); }
  void read_buffer(uint32_t i) {
    mark(needs_.reads_in, i, site_.inputs_count + site_.parameters_count, site_.buffers_count);
  }
  void read_carried(uint32_t i) {
    mark(needs_.reads_in, i, site_.inputs_count + site_.parameters_count + site_.buffers_count, site_.carried_count);
  }
  void read_output(uint32_t i) { mark(needs_.reads_out, i, 0, site_.outputs_count); }
  // The output may share the memory of the input; the gradient of the input that of the gradient of the output.
  void in_place(uint32_t output, uint32_t input) {
    if (output < site_.outputs_count) needs_.in_place[output] = static_cast<int32_t>(input);
  }
  void backward_in_place(uint32_t input, uint32_t output) {
    if (input < site_.inputs_count) needs_.backward_in_place[input] = static_cast<int32_t>(output);
  }
  // Declares the next tensor that forward writes for backward.
  void save(const Spec& spec) {
    const tn_spec view = spec.get();
    if (needs_.saved(needs_.self, &view) < 0) throw Reported(TN_INVALID);
  }
  // The gradient of a parameter is written as `count` rows and their ids.
  void rows(uint32_t parameter, const Dim& count) { check(needs_.rows(needs_.self, parameter, &count)); }
  void draws(uint32_t count) { needs_.draws = count; }

 private:
  static void mark(uint8_t* list, uint32_t i, uint32_t first, uint32_t count) {
    if (i >= count) throw std::out_of_range("a kernel reads a tensor that the site lacks");
    list[first + i] = 1;
  }

  const tn_kernel_site& site_;
  tn_kernel_needs& needs_;
};

// One run: the operands, in the order of tenon/kernel.h, and the context. Valid during run.
class Call {
 public:
  Call(const tn_execution& execution, const tn_call& call) : execution_(&execution), call_(&call) {}

  const tn_call* operator->() const { return call_; }
  const tn_execution& execution() const { return *execution_; }
  // Null if absent or not requested.
  const tn_tensor* input(uint32_t i) const { return i < call_->inputs_count ? call_->inputs[i] : nullptr; }
  tn_tensor* output(uint32_t i) const { return i < call_->outputs_count ? call_->outputs[i] : nullptr; }
  // The values; null for a null tensor.
  template <typename T>
  const T* in(uint32_t i) const {
    return reinterpret_cast<const T*>(tn_data(input(i)));
  }
  template <typename T>
  T* out(uint32_t i) const {
    return reinterpret_cast<T*>(tn_data(output(i)));
  }
  bool adds(uint32_t output) const { return call_->requests[output] == TN_REQUEST_ADD; }
  // The current value of a dimension of the site.
  int64_t size(const tn_dim& dim) const { return tn_dim_value(&dim, execution_->symbols); }

 private:
  const tn_execution* execution_;
  const tn_call* call_;
};

namespace detail {

template <typename T, typename = void>
struct HasSupports : std::false_type {};
template <typename T>
struct HasSupports<T, std::void_t<decltype(&T::supports)>> : std::true_type {};
template <typename T, typename = void>
struct HasQuery : std::false_type {};
template <typename T>
struct HasQuery<T, std::void_t<decltype(&T::query)>> : std::true_type {};
template <typename T, typename = void>
struct HasWorkspace : std::false_type {};
template <typename T>
struct HasWorkspace<T, std::void_t<decltype(&T::workspace_bytes)>> : std::true_type {};
template <typename T, typename = void>
struct HasTraits : std::false_type {};
template <typename T>
struct HasTraits<T, std::void_t<decltype(&T::traits)>> : std::true_type {};

// The table of a kernel; immutable once made.
template <typename T>
class KernelTable {
 public:
  KernelTable() {
    T::describe(description_);
    table_ = description_.get();
    table_.supports = &supports;
    table_.query = &query;
    table_.prepare = &prepare;
  }
  const tn_kernel* get() const { return &table_; }
  static const KernelTable& instance() {
    static const KernelTable table;
    return table;
  }

 private:
  static tn_status supports(const tn_kernel_site* site, int32_t* score) {  // NOLINT(readability-non-const-parameter)
    bool offered = true;
    const tn_status status = guarded(site->errors, [&] {
      if constexpr (HasSupports<T>::value) offered = T::supports(KernelSite(*site), *score);
    });
    return status == TN_OK && !offered ? TN_UNSUPPORTED : status;
  }
  static tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
    return guarded(site->errors, [&] {
      KernelNeeds wrapped(*site, *needs);
      if constexpr (HasQuery<T>::value) T::query(KernelSite(*site), wrapped);
    });
  }
  static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
    if (direction != TN_FORWARD && direction != TN_BACKWARD) return TN_UNSUPPORTED;
    return guarded(site->errors, [&] {
      auto binding = std::make_unique<T>(KernelSite(*site), direction);
      if constexpr (HasWorkspace<T>::value) prepared->workspace_bytes = binding->workspace_bytes();
      if constexpr (HasTraits<T>::value) prepared->traits = binding->traits();
      if (instance().description_.is_portable()) prepared->traits |= tn_portable(site->services);
      prepared->run = &run;
      prepared->destroy = &destroy;
      prepared->binding = binding.release();
    });
  }
  static tn_status run(void* binding, const tn_execution* execution, const tn_call* call) {
    return guarded(execution->errors, [&] { static_cast<T*>(binding)->run(Call(*execution, *call)); });
  }
  static void destroy(void* binding) { delete static_cast<T*>(binding); }

  KernelDescription description_;
  tn_kernel table_ = {};
};

}  // namespace detail

// The C table of a kernel, made at the first call; valid while the plugin is mapped.
template <typename T>
const tn_kernel* kernel() {
  return detail::KernelTable<T>::instance().get();
}

}  // namespace tn
#endif
