// Machines in loops of the application's own, for C++17 and later: over tenon_machine.h.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_MACHINE_HPP
#define TENON_TENON_MACHINE_HPP

#include <tenon/tenon_machine.h>

#include <cstdint>
#include <functional>
#include <string>
#include <tenon/tenon.hpp>
#include <tenon/tenon_infer_options.hpp>
#include <type_traits>
#include <vector>

namespace tenon {
inline namespace v0 {

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

// Trains on the minibatches of `samples` samples each that follow one another in the feeds, as tn_machine_steps
// documents. Appends the cost of each step that is done to `costs`, also where a later one throws. flags: TN_FORWARD_*.
inline void steps(const Machine& machine, const Updater& updater, const std::vector<Feed>& feeds, int64_t samples,
                  std::vector<double>& costs, uint32_t flags = 0) {
  const std::vector<tn_feed> list = detail::c_feeds(feeds);
  tn_steps_options options = {};
  options.size = sizeof options;
  options.flags = flags;
  options.updater = updater.handle();
  options.feeds = list.data();
  options.feeds_count = detail::count_of(list.size());
  options.samples = samples;
  int64_t all = 0;  // samples of all steps
  for (const Feed& feed : feeds)
    all = feed.values.storage == TN_RAGGED ? feed.values.samples : feed.values.shape.empty() ? 0 : feed.values.shape[0];
  const size_t before = costs.size();
  const int64_t count = samples > 0 && all > 0 ? (all - 1) / samples + 1 : 0;
  costs.resize(before + static_cast<size_t>(count));
  struct Cut {
    std::vector<double>& costs;
    const size_t before;
    int64_t done;
    ~Cut() { costs.resize(before + static_cast<size_t>(done)); }  // also where a step throws
  } cut{costs, before, 0};
  detail::checked([&](tn_error* error) {
    return tn_machine_steps(machine.host(), machine.handle(), &options, costs.data() + before, count, &cut.done, error);
  });
}

namespace detail {
template <typename Number>
constexpr tn_dtype dtype_of() {
  static_assert(std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>);
  constexpr uint32_t kBits = 8 * sizeof(Number);
  return std::is_floating_point_v<Number> ? TN_DTYPE(2, kBits) : TN_DTYPE(std::is_signed_v<Number> ? 0 : 1, kBits);
}
// Options in C form; borrows from `options`.
class CInferOptions {
 public:
  explicit CInferOptions(const InferOptions& options) { fill(c_, options, lists_); }
  CInferOptions(const CInferOptions&) = delete;
  CInferOptions& operator=(const CInferOptions&) = delete;
  [[nodiscard]] const tn_infer_options* get() const { return &c_; }

 private:
  OptionLists lists_;
  tn_infer_options c_ = {};
};
}  // namespace detail

// An output for all samples: its values and their shape, [samples, shape of one sample...].
template <typename Number>
struct Inferred {
  std::vector<int64_t> shape;
  std::vector<Number> values;
};

// `sink` receives the outputs of each part, which begins with sample number `first`, borrowed during the call; it
// returns false to end the computation.
inline void infer_parts(const InferOptions& options,
                        const std::function<bool(int64_t first, const std::vector<Array>&)>& sink) {
  const detail::CInferOptions c(options);
  detail::collect<int32_t, int64_t, const tn_array*, uint32_t>(
      [&](int64_t first, const tn_array* outputs, uint32_t count) {
        return sink(first, detail::arrays_from(outputs, count));
      },
      [&](auto receive, void* user, tn_error* error) {
        return tn_infer_parts(options.parameters.host(), c.get(), receive, user, error);
      });
}

// Computes the outputs, all of one type, such as float; throws TN_INVALID for an output of another type.
template <typename Number = float>
std::vector<Inferred<Number>> infer_arrays(const InferOptions& options) {
  std::vector<Inferred<Number>> results(options.outputs.size());
  const auto append = [](Inferred<Number>& to, const Array& part) {
    if (part.dtype != detail::dtype_of<Number>())
      throw Error(TN_INVALID, "infer_arrays: an output has another type than the one asked for");
    const int64_t samples = to.shape.empty() ? 0 : to.shape[0];
    to.shape = part.shape;
    to.shape[0] += samples;
    const auto* const values = static_cast<const Number*>(part.data);
    if (values != nullptr) to.values.insert(to.values.end(), values, values + part.count());
  };
  bool computed = false;
  infer_parts(options, [&](int64_t, const std::vector<Array>& outputs) {
    for (size_t i = 0; i < results.size(); ++i) append(results[i], outputs[i]);
    return computed = true;
  });
  if (computed) return results;
  const detail::CInferOptions c(options);  // without samples: the shapes alone
  std::vector<tn_array> arrays(results.size());
  detail::checked(
      [&](tn_error* error) { return tn_infer_arrays(options.parameters.host(), c.get(), arrays.data(), error); });
  for (size_t i = 0; i < results.size(); ++i) append(results[i], detail::array_from(arrays[i]));
  return results;
}

}  // namespace v0
}  // namespace tenon
#endif
