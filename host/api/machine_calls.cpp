// The public C API: machines in loops of the application, and inference on arrays. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_machine.h>

#include "host/api/api.h"
#include "host/machine/sample_range.h"

namespace api = tenon::host::api;
using namespace tenon::host;

tn_status tn_machine_forward_with(tn_host* host, tn_machine machine, const tn_feed* feeds, uint32_t feeds_count,
                                  const tn_forward_options* options, tn_error* error) {
  return api::call_machine(host, machine, error, [&](Host&, HeldMachine& held) {
    const UnknownFeeds unknown = api::unknown_feeds(options == nullptr ? 0 : api::sized(options, "options").flags);
    const std::vector<NamedArray> named = api::named_arrays(feeds, feeds_count, "feeds");
    held.require_unleased();
    held.machine->forward(held.parameters->gate, by_number(held.machine->feeds(), named, unknown));
  });
}

tn_status tn_machine_backward_from(tn_host* host, tn_machine machine, const tn_layer* layers, const tn_array* gradients,
                                   uint32_t count, tn_error* error) {
  return api::call_machine(host, machine, error, [&](Host& owner, HeldMachine& held) {
    const std::vector<LayerOutput> outputs = api::outputs(owner, layers, count, "layers");
    if (count > 0) api::required(gradients, "gradients");
    std::vector<ArrayView> arrays;
    for (uint32_t i = 0; i < count; ++i) {
      const std::string name = output_name(outputs[i]);
      arrays.push_back(api::view(
          gradients[i], [&] { return "the gradient of layer \"" + name + "\""; }, name));
    }
    const SetRead read(held.parameters->gate);
    held.machine->backward_from(outputs, arrays);
  });
}

tn_status tn_machine_data_gradient(tn_host* host, tn_machine machine, const char* data_layer, tn_array* values,
                                   tn_error* error) {
  return api::call_machine(host, machine, error, [&](Host&, const HeldMachine& held) {
    api::required(values, "values") = api::array(held.machine->data_gradient(api::string(data_layer, "data_layer")));
  });
}

tn_status tn_machine_set_gradient(tn_host* host, tn_machine machine, const char* parameter, const tn_array* values,
                                  tn_error* error) {
  return api::call_machine(host, machine, error, [&](Host&, HeldMachine& held) {
    const std::string name = api::string(parameter, "parameter");
    const ArrayView view = api::view(
        api::required(values, "values"), [&] { return "the gradient of parameter \"" + name + "\""; }, name);
    held.machine->set_gradient(name, view);
  });
}

// ---- inference

namespace {

// A machine and arrays of any number of samples, which it computes in parts.
class Inference {
 public:
  Inference(Host& host, const tn_infer_options& request)
      : outputs_(api::outputs(host, request.outputs, request.outputs_count, "options.outputs")) {
    if (outputs_.empty()) fail(TN_INVALID, SubjectName{"options.outputs"}, "options.outputs is empty");
    if (request.parameters.generation == 0)
      fail(TN_MISUSE, SubjectName{"options.parameters"}, "options.parameters is not set");
    if (request.max_samples < 0)
      fail(TN_INVALID, SubjectName{"options.max_samples"}, "options.max_samples is ", request.max_samples,
           "; expected at least 0");
    const UnknownFeeds unknown = api::unknown_feeds(request.flags);
    const std::vector<NamedArray> named = api::named_arrays(request.feeds, request.feeds_count, "options.feeds");
    int64_t most = 1;
    for (const NamedArray& each : named)
      if (!each.array.shape.empty()) most = std::max(most, samples_of(each.array));
    constexpr int64_t kMaxSamples = 256;
    MachineOptions options;
    api::read_compute(request.compute, &options);
    options.max_samples = std::min(most, request.max_samples == 0 ? kMaxSamples : request.max_samples);
    options.checks = host.checks;
    options.runs_once = most <= options.max_samples;
    parameters_ = host.parameters.at(request.parameters);
    const std::shared_ptr<Device> device = host.device(api::device_kind(request.device));
    {
      const SetRead read(parameters_->gate);
      machine_ = std::make_unique<Machine>(Topology::trace(outputs_), parameters_->set, host.registry,
                                           std::vector{device}, host.parallel, options);
    }
    arrays_ = by_number(machine_->feeds(), named, unknown);
    machine_->check_feeds(arrays_);
    samples_ = arrays_.empty() ? 0 : samples_of(arrays_.front());
    max_samples_ = options.max_samples;
    for (const LayerOutput& output : outputs_) specs_.push_back(spec_of(output, options.compute));
  }

  [[nodiscard]] const std::vector<LayerOutput>& outputs() const { return outputs_; }
  // Returns the type and shape of an output for all samples, without data.
  [[nodiscard]] ArrayView whole(size_t output) const {
    ArrayView result{specs_[output].dtype, {samples_}};
    for (size_t i = 1; i < specs_[output].shape.size(); ++i) result.shape.push_back(specs_[output].shape[i].offset);
    return result;
  }
  [[nodiscard]] ArrayView part(size_t output) const { return machine_->output(outputs_[output]); }
  // Calls `take` with the number of the first sample of each part, after its forward, until it returns false.
  template <typename Take>
  void run(const Take& take) {
    for (int64_t first = 0; first < samples_; first += max_samples_) {
      const SampleRange range(arrays_, first, std::min(max_samples_, samples_ - first));
      forward(range);
      if (!take(first)) return;
    }
  }

 private:
  void forward(const SampleRange& range) { machine_->forward(parameters_->gate, range.arrays()); }
  // Returns the spec of a dense output with one entry for each sample.
  static Spec spec_of(const LayerOutput& output, tn_dtype compute) {
    const std::string name = output_name(output);
    if (output.output >= output.layer->outputs.size())
      fail(TN_INVALID, SubjectName{name}, "layer \"", name, "\" has no output that arrays can hold");
    Spec spec = output.layer->outputs[output.output];
    const Dim samples = tn_dim_symbol(TN_SYMBOL_SAMPLES);
    const bool fits = spec.storage == TN_DENSE && !spec.shape.empty() && same(spec.shape[0], samples) &&
                      std::all_of(spec.shape.begin() + 1, spec.shape.end(),
                                  [](const Dim& dim) { return dim.symbol == TN_SYMBOL_NONE; });
    if (!fits)
      fail(TN_INVALID, SubjectName{name}, "layer \"", name, "\" is ", storage_name(spec.storage), " ", to_string(spec),
           "; expected a dense output with one entry for each sample");
    if (spec.dtype == TN_COMPUTE) spec.dtype = compute;
    return spec;
  }

  std::vector<LayerOutput> outputs_;
  std::shared_ptr<HeldParameters> parameters_;
  std::unique_ptr<Machine> machine_;
  std::vector<ArrayView> arrays_;  // by number of the feed
  std::vector<Spec> specs_;        // of the outputs
  int64_t samples_ = 0, max_samples_ = 1;
};

// Throws TN_INVALID unless a result has room for an output.
void check_result(const LayerOutput& output, const tn_array& result, const ArrayView& expected) {
  const std::string name = output_name(output);
  const auto who = [&] { return "the result of layer \"" + name + "\""; };
  const ArrayView request = api::view(result, who, name);
  if (request.storage != TN_DENSE || !request.strides.empty())
    fail(TN_INVALID, SubjectName{name}, who(), ": expected a dense array without strides");
  if (request.dtype != expected.dtype || request.shape != expected.shape)
    fail(TN_INVALID, SubjectName{name}, who(), ": expected ", dtype_name(expected.dtype), " ",
         to_string(expected.shape), ", got ", dtype_name(request.dtype), " ", to_string(request.shape));
}

}  // namespace

tn_status tn_infer_arrays(tn_host* host, const tn_infer_options* options, tn_array* results, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    Inference inference(owner, api::sized(options, "options"));
    api::required(results, "results");
    const size_t count = inference.outputs().size();
    bool computes = false;
    for (size_t i = 0; i < count; ++i) {
      if (results[i].data == nullptr) continue;
      check_result(inference.outputs()[i], results[i], inference.whole(i));
      computes = true;
    }
    const auto copy = [&](int64_t first) {
      for (size_t i = 0; i < count; ++i) {
        if (results[i].data == nullptr) continue;
        const ArrayView part = inference.part(i);
        uint64_t bytes = tn_dtype_bytes(part.dtype);  // of one sample
        for (size_t k = 1; k < part.shape.size(); ++k) bytes *= static_cast<uint64_t>(part.shape[k]);
        copy_elements(part, static_cast<std::byte*>(results[i].data) + static_cast<uint64_t>(first) * bytes);
      }
      return true;
    };
    if (computes) inference.run(copy);
    for (size_t i = 0; i < count; ++i)
      if (results[i].data == nullptr) results[i] = api::array(inference.whole(i));
  });
}

tn_status tn_infer_parts(tn_host* host, const tn_infer_options* options,
                         int32_t (*sink)(void* user, int64_t first, const tn_array* outputs, uint32_t outputs_count),
                         void* user, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    Inference inference(owner, api::sized(options, "options"));
    api::required(sink, "sink");
    std::vector<tn_array> arrays(inference.outputs().size());
    inference.run([&](int64_t first) {
      for (size_t i = 0; i < arrays.size(); ++i) arrays[i] = api::array(inference.part(i));
      return sink(user, first, arrays.data(), static_cast<uint32_t>(arrays.size())) == 0;
    });
  });
}
