// Tenon's public API for C++17 and later: scans, layers that run at each step of sequences.
//
//   const tenon::ScanResult rnn = tenon::scan({words}, [&](tenon::Step& step) {
//     const tenon::Layer state = step.memory({8});
//     const tenon::Layer next = host.layer("fc", {step.input(0), state}, {{"size", 8}, {"act", "tanh"}});
//     step.next(state, next);
//     return tenon::Layers{next};
//   });
//
// Then rnn.results[0] has the sequences of `next`, rnn.last[0] the last value of `state`.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_SCAN_HPP
#define TENON_TENON_SCAN_HPP

#include <tenon/tenon_scan.h>

#include <cstdint>
#include <string>
#include <tenon/tenon_model.hpp>
#include <utility>
#include <vector>

namespace tenon {
inline namespace v0 {

struct ScanOptions {
  bool reverse = false;  // from the last row of each sequence to the first
  std::string name;      // of the layer that stands for the scan; empty: generated
};

// What a scan leaves outside.
struct ScanResult {
  Layer layer;     // whose outputs are the others
  Layers results;  // sequences
  Layers last;     // one value per sequence: of each memory, in the order of their making
};

// The inside of a scan while it is built. Its functions document themselves in tenon_scan.h.
class Step : public detail::Owned<tn_scan, tn_scan_release> {
 public:
  using Owned::Owned;
  // The row of input number `number`, of two levels the sub-sequence.
  [[nodiscard]] const Layer& input(size_t number) const { return inputs_.at(number); }
  // The row of further sequences, of the same lengths.
  [[nodiscard]] Layer input(const Layer& sequences, const std::string& name = {}) const {
    return detail::made<Layer>(host_ref(), [&](tn_layer* to, tn_error* error) {
      return tn_scan_input(host(), handle(), sequences.handle(), c_name(name), to, error);
    });
  }
  // A value that begins with `initial_value` and then is what the step before left. carry: it begins with what the last
  // step of the sample of the same number left in the forward before, at first with zeros.
  [[nodiscard]] Layer memory(const std::vector<int64_t>& shape, double initial_value = 0, const std::string& name = {},
                             bool carry = false) {
    tn_scan_memory_options c = {};
    c.rank = static_cast<int32_t>(shape.size());
    c.shape = shape.data();
    c.initial_value = initial_value;
    c.carry = carry ? 1 : 0;
    return memory(c, name);
  }
  // The same, which begins with a layer that has one value per sequence.
  [[nodiscard]] Layer memory(const Layer& initial, const std::string& name = {}) {
    tn_scan_memory_options c = {};
    c.initial = initial.handle();
    return memory(c, name);
  }
  // States what each step leaves in a memory.
  void next(const Layer& memory, const Layer& value) const {
    detail::checked(
        [&](tn_error* error) { return tn_scan_next(host(), handle(), memory.handle(), value.handle(), error); });
  }

 private:
  friend Step begin_scan(const Layers& inputs, const ScanOptions& options);
  friend ScanResult end_scan(Step& step, const Layers& results);

  static const char* c_name(const std::string& name) { return name.empty() ? nullptr : detail::c_text(name, "name"); }
  Layer memory(tn_scan_memory_options& c, const std::string& name) {
    c.size = sizeof c;
    c.name = c_name(name);
    Layer made = detail::made<Layer>(
        host_ref(), [&](tn_layer* to, tn_error* error) { return tn_scan_memory(host(), handle(), &c, to, error); });
    ++memories_;
    return made;
  }

  Layers inputs_;
  uint32_t memories_ = 0;
};

// Begins a scan over sequences of equal lengths, whose rows are the inputs of its steps. inputs: at least one.
inline Step begin_scan(const Layers& inputs, const ScanOptions& options = {}) {
  if (inputs.empty()) throw Error(TN_INVALID, "a scan needs at least one input", {}, "inputs");
  tn_scan_options c = {};
  c.size = sizeof c;
  c.reverse = options.reverse ? 1 : 0;
  c.over = inputs[0].handle();
  c.name = Step::c_name(options.name);
  Step step = detail::made<Step>(inputs[0].host_ref(), [&](tn_scan* to, tn_error* error) {
    return tn_scan_begin(inputs[0].host(), &c, to, error);
  });
  for (const Layer& input : inputs) step.inputs_.push_back(step.input(input));
  return step;
}

// Ends a scan. results: layers inside, whose values at all steps are results.
inline ScanResult end_scan(Step& step, const Layers& results) {
  const std::vector<tn_layer> list = detail::handles(results);
  ScanResult result;
  result.layer = detail::made<Layer>(step.host_ref(), [&](tn_layer* to, tn_error* error) {
    return tn_scan_end(step.host(), step.handle(), list.data(), detail::count_of(list.size()), to, error);
  });
  const uint32_t count = detail::count_of(results.size()), memories = step.memories_;
  step.forget();
  for (uint32_t i = 0; i < count; ++i) result.results.push_back(result.layer.output(i));
  for (uint32_t i = 0; i < memories; ++i) result.last.push_back(result.layer.output(count + i));
  return result;
}

// Makes a scan in one call. function(Step&) makes the layers inside, and returns those whose values at all steps are
// results. Its exceptions are passed on; nothing is left then.
template <typename Function>
ScanResult scan(const Layers& inputs, Function function, const ScanOptions& options = {}) {
  Step step = begin_scan(inputs, options);
  const Layers results = function(step);
  return end_scan(step, results);
}

}  // namespace v0
}  // namespace tenon
#endif
