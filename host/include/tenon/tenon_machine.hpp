// Machines in loops of the application's own, for C++17 and later: over tenon_machine.h.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_MACHINE_HPP
#define TENON_TENON_MACHINE_HPP

#include <tenon/tenon_machine.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <tenon/tenon.hpp>
#include <utility>
#include <vector>

namespace tenon {
inline namespace v0 {

namespace detail {
inline std::vector<tn_feed> c_feeds(const std::vector<Feed>& feeds) {
  std::vector<tn_feed> list;
  for (const Feed& feed : feeds) list.push_back({c_text(feed.name, "the name of a feed"), c_array(feed.values)});
  return list;
}
}  // namespace detail

// Machine::forward with flags TN_FORWARD_*.
inline void forward(const Machine& machine, const std::vector<Feed>& feeds, uint32_t flags) {
  const std::vector<tn_feed> list = detail::c_feeds(feeds);
  const tn_forward_options options = {sizeof options, flags};
  detail::checked([&](tn_error* error) {
    return tn_machine_forward_with(machine.host(), machine.handle(), list.data(), detail::count_of(list.size()),
                                   &options, error);
  });
}

struct OutputGradient {
  Layer layer;
  Array gradient;  // of the shape of the layer's output
};
// Backward from gradients of outputs, for a machine with TN_MACHINE_GIVEN_GRADIENTS.
inline void backward_from(const Machine& machine, const std::vector<OutputGradient>& gradients) {
  std::vector<tn_layer> layers;
  std::vector<tn_array> arrays;
  for (const OutputGradient& each : gradients) {
    layers.push_back(each.layer.handle());
    arrays.push_back(detail::c_array(each.gradient));
  }
  detail::checked([&](tn_error* error) {
    return tn_machine_backward_from(machine.host(), machine.handle(), layers.data(), arrays.data(),
                                    detail::count_of(layers.size()), error);
  });
}
// The gradient of a data layer by the last backward, for a machine with TN_MACHINE_DATA_GRADIENTS; borrowed until the
// next call on the machine.
inline Array data_gradient(const Machine& machine, const std::string& data_layer) {
  tn_array array = {};
  detail::checked([&](tn_error* error) {
    return tn_machine_data_gradient(machine.host(), machine.handle(), detail::c_text(data_layer, "data_layer"), &array,
                                    error);
  });
  return detail::array_from(array);
}
// Replaces the gradient of a parameter since the last update, as tn_machine_set_gradient documents.
inline void set_gradient(const Machine& machine, const std::string& parameter, const Array& values) {
  const tn_array array = detail::c_array(values);
  detail::checked([&](tn_error* error) {
    return tn_machine_set_gradient(machine.host(), machine.handle(), detail::c_text(parameter, "parameter"), &array,
                                   error);
  });
}

struct InferOptions {
  Layers outputs = {};  // dense ones with one entry for each sample
  Parameters parameters = {};
  std::vector<Feed> feeds = {};  // of any number of samples
  uint32_t flags = 0;            // TN_FORWARD_*
  int64_t max_samples = 0;       // that are computed at once; 0: 256
  std::string device = {};       // empty: cpu
  tn_dtype compute = TN_F32;
};

namespace detail {
// Options in C form; borrows from `options`.
class CInferOptions {
 public:
  explicit CInferOptions(const InferOptions& options)
      : outputs_(handles(options.outputs)), feeds_(c_feeds(options.feeds)) {
    c_.size = sizeof c_;
    c_.outputs = outputs_.data();
    c_.outputs_count = count_of(outputs_.size());
    c_.parameters = options.parameters.handle();
    c_.feeds = feeds_.data();
    c_.feeds_count = count_of(feeds_.size());
    c_.flags = options.flags;
    c_.max_samples = options.max_samples;
    c_.device = options.device.empty() ? nullptr : c_text(options.device, "options.device");
    c_.compute = options.compute;
  }
  CInferOptions(const CInferOptions&) = delete;
  CInferOptions& operator=(const CInferOptions&) = delete;
  [[nodiscard]] const tn_infer_options* get() const { return &c_; }

 private:
  std::vector<tn_layer> outputs_;
  std::vector<tn_feed> feeds_;
  tn_infer_options c_ = {};
};
}  // namespace detail

// An output for all samples: its values and their shape, [samples, shape of one sample...].
template <typename Number>
struct Inferred {
  std::vector<int64_t> shape;
  std::vector<Number> values;
};
// Computes outputs of one type, such as float; throws TN_INVALID for an output of another type.
template <typename Number = float>
std::vector<Inferred<Number>> infer_arrays(const InferOptions& options) {
  const detail::CInferOptions c(options);
  std::vector<tn_array> arrays(options.outputs.size());
  const auto call = [&] {
    detail::checked(
        [&](tn_error* error) { return tn_infer_arrays(options.parameters.host(), c.get(), arrays.data(), error); });
  };
  call();  // the shapes
  std::vector<Inferred<Number>> results;
  for (tn_array& array : arrays) {
    const Array shown = detail::array_from(array);
    Inferred<Number>& result = results.emplace_back();
    result.shape = shown.shape;
    result.values.resize(static_cast<size_t>(shown.count()) + (shown.count() == 0 ? 1 : 0));
    array.dtype = detail::dtype_of<Number>();
    array.data = result.values.data();
  }
  call();
  for (Inferred<Number>& result : results)
    if (result.shape.empty() || result.shape[0] == 0) result.values.clear();
  return results;
}

// `sink` receives the outputs of each part, which begins with sample number `first`, borrowed during the call; it
// returns false to end the computation.
inline void infer_parts(const InferOptions& options,
                        const std::function<bool(int64_t first, const std::vector<Array>&)>& sink) {
  struct Target {
    const std::function<bool(int64_t, const std::vector<Array>&)>& sink;
    std::exception_ptr failure;  // must not pass through C
  } target{sink, nullptr};
  const auto receive = [](void* user, int64_t first, const tn_array* outputs, uint32_t count) -> int32_t {
    auto& to = *static_cast<Target*>(user);
    try {
      std::vector<Array> arrays;
      for (uint32_t i = 0; i < count; ++i) arrays.push_back(detail::array_from(outputs[i]));
      return to.sink(first, arrays) ? 0 : 1;
    } catch (...) {
      to.failure = std::current_exception();
      return 1;
    }
  };
  const detail::CInferOptions c(options);
  detail::checked(
      [&](tn_error* error) { return tn_infer_parts(options.parameters.host(), c.get(), receive, &target, error); });
  if (target.failure) std::rethrow_exception(target.failure);
}

}  // namespace v0
}  // namespace tenon
#endif
