// Predictions from a snapshot of parameters, by any number of threads at once. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "host/machine/machine.h"

namespace tenon::host {

using namespace core;

struct PredictorOptions {
  MachineOptions machine;  // not for training
  uint32_t machines = 1;   // predictions at a time; further threads wait for one to end
};

// The values of a set at one version (SetGate::version).
struct Snapshot {
  std::shared_ptr<const ParameterSet> set;
  std::optional<uint64_t> version;  // empty: no version names them
};

// Machines over a copy of the parameters of a topology. A refresh writes a second copy with machines of its own and
// then swaps the two, so predictions neither wait for it nor see a part of it. Thread-safe.
class Predictor : base::NotCopied {
 public:
  // Copies the parameters that the topology uses from `source`, which must not change meanwhile. TN_NOT_FOUND or
  // TN_INVALID if it does not have them.
  Predictor(Topology topology, const Snapshot& source, Registry& registry, std::shared_ptr<Device> device,
            const tn_parallel* parallel, const PredictorOptions& options);

  // Computes a minibatch; calls `use` with the machine that has the outputs. TN_MISUSE inside such a call if no machine
  // is free: it would wait for itself.
  void predict(const std::vector<NamedArray>& feeds, const std::function<void(const Machine&)>& use);
  // Takes the values from `source`, which must not change meanwhile, unless they are those that predictions use
  // already. Predictions that begin afterwards use them. On failure nothing has changed. Refreshes run one at a time.
  // TN_MISUSE inside `use`: it waits for predictions to end.
  void refresh(const Snapshot& source);

  [[nodiscard]] const Topology& topology() const { return topology_; }

 private:
  struct Slot {
    std::unique_ptr<Machine> machine;
    std::atomic<std::thread::id> user{};  // the thread that predicts with it; empty: none
  };
  // One copy of the parameters.
  struct Side {
    std::shared_ptr<ParameterSet> set;  // null: it and its machines are not made yet
    std::weak_ptr<const ParameterSet> source;
    std::optional<uint64_t> version;  // of the source when it was copied
    std::unique_ptr<Slot[]> slots;    // [machines]
    std::atomic<uint32_t> inside{0};  // predictions
    std::atomic<uint32_t> freed{0};   // slots freed so far
  };
  class Entered;

  [[nodiscard]] bool uses(const Side& side, std::thread::id thread) const;
  [[nodiscard]] static bool has_values_of(const Side& side, const Snapshot& source);
  void make(Side& side, const ParameterSet& source);
  void set_source(Side& side, const Snapshot& source);
  [[nodiscard]] ParameterSet::Values values_of(const ParameterSet& set, const ParameterSet& source) const;

  const Topology topology_;
  Registry& registry_;
  const std::shared_ptr<Device> device_;
  const tn_parallel* const parallel_;
  const PredictorOptions options_;
  std::array<Side, 2> sides_;
  uint64_t copies_ = 0;  // made of parameters so far
  std::atomic<uint32_t> active_{0};
  std::mutex refreshing_;
};

}  // namespace tenon::host
