// Tenon's C++ API: the options of machines. Include <tenon/tenon.hpp>. Written by
// host/api/spec/generate_options.py. SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_MACHINE_OPTIONS_HPP
#define TENON_TENON_MACHINE_OPTIONS_HPP

#include <cstdint>
#include <string>
#include <tenon/tenon_option_lists.hpp>
#include <vector>

namespace tenon {
inline namespace v0 {

// As tn_machine_options documents it.
struct MachineOptions {
  // Bound of the minibatch; must be at least 1.
  int64_t max_samples = 1;
  // 1: enables backward.
  bool training = false;
  // 1: keeps every layer's output readable; 0: only outputs, costs and metrics.
  bool keep_all = false;
  // TN_F32 (also 0), TN_F64, TN_BF16 or TN_TF32, as tenon.h states.
  tn_dtype compute = TN_F32;
  // Empty: "cpu"; a kind, or a kind and a number: "cuda:1".
  std::string device;
  // Seed of random numbers inside the model, such as dropout masks.
  uint64_t seed = 0;
  // Parameters without gradient and buffers that keep their values: a name includes everything below it ("D": "D",
  // "D.weight").
  std::vector<std::string> immutable_parameters = {};
  // Upper bound of the rows of one ragged data layer (entries of a TN_CSR one) in a minibatch; 0: the machine starts
  // with a few rows per sample and plans again with twice as many when a minibatch has more.
  int64_t max_rows = 0;
  // TN_MACHINE_*.
  uint32_t flags = 0;
  // Devices of one kind, such as {"cuda:0", "cuda:1"}, in place of `device` (none: `device`): each computes a shard of
  // every minibatch, forward and backward, with the same parameters.
  std::vector<std::string> devices = {};
  // The shards of a minibatch; 0: one for each device.
  uint32_t shards = 0;
};

// As tn_predictor_options documents it.
struct PredictorOptions {
  // Bound of the minibatch; 0: 1.
  int64_t max_samples = 1;
  // Upper bound of the rows of one ragged data layer in a minibatch; 0: grows as needed, which plans again, under the
  // lock that building layers takes.
  int64_t max_rows = 0;
  // Predictions at the same time, at most 1,024; further threads wait.
  uint32_t machines = 0;
  // 0: a prediction computes on the calling thread alone, the choice for many threads with small minibatches.
  bool parallel = false;
  // As in tn_machine_options.
  tn_dtype compute = TN_F32;
  // Empty: "cpu".
  std::string device;
  // Of random numbers inside the model, as in tn_machine_options.
  uint64_t seed = 0;
};

namespace detail {

// Each fills a struct of C, which borrows from `from` and `lists`.
inline void fill(tn_machine_options& to, const MachineOptions& from, [[maybe_unused]] OptionLists& lists) {
  to.size = sizeof to;
  to.compute = from.compute;
  to.max_samples = from.max_samples;
  to.training = from.training ? 1 : 0;
  to.keep_all = from.keep_all ? 1 : 0;
  to.device = from.device.empty() ? nullptr : c_text(from.device, "options.device");
  to.seed = from.seed;
  lists.set(to.immutable_parameters, to.immutable_parameters_count,
            c_texts(from.immutable_parameters, "options.immutable_parameters"));
  to.max_rows = from.max_rows;
  to.flags = from.flags;
  lists.set(to.devices, to.devices_count, c_texts(from.devices, "options.devices"));
  to.shards = from.shards;
}
inline void fill(tn_predictor_options& to, const PredictorOptions& from, [[maybe_unused]] OptionLists& lists) {
  to.size = sizeof to;
  to.compute = from.compute;
  to.max_samples = from.max_samples;
  to.max_rows = from.max_rows;
  to.machines = from.machines;
  to.parallel = from.parallel ? 1 : 0;
  to.device = from.device.empty() ? nullptr : c_text(from.device, "options.device");
  to.seed = from.seed;
}

}  // namespace detail
}  // namespace v0
}  // namespace tenon
#endif
