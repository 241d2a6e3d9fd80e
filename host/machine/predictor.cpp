// SPDX-License-Identifier: Apache-2.0
#include "host/machine/predictor.h"

#include <cstring>

namespace tenon::host {

// A prediction: inside the active side, with a machine of it.
class Predictor::Entered : base::NotCopied {
 public:
  explicit Entered(Predictor& predictor) : side_(enter(predictor)), slot_(take(predictor)) {}
  ~Entered() {
    slot_.user.store({}, std::memory_order_release);
    side_.freed.fetch_add(1, std::memory_order_release);
    side_.freed.notify_one();
    leave(side_);
  }

  [[nodiscard]] Machine& machine() const { return *slot_.machine; }

 private:
  // A refresh writes a side only while it is not active and has nobody inside. Its order is: not active, then read
  // `inside`; here it is: count inside, then read `active_`. All are sequentially consistent, so one sees the other.
  static Side& enter(Predictor& predictor) {
    for (;;) {
      const uint32_t active = predictor.active_.load();
      Side& side = predictor.sides_[active];
      side.inside.fetch_add(1);
      if (predictor.active_.load() == active) return side;
      leave(side);
    }
  }
  static void leave(Side& side) {
    if (side.inside.fetch_sub(1) == 1) side.inside.notify_all();
  }
  Slot& take(const Predictor& predictor) try {
    const std::thread::id self = std::this_thread::get_id();
    for (;;) {
      const uint32_t seen = side_.freed.load(std::memory_order_acquire);
      for (uint32_t i = 0; i < predictor.options_.machines; ++i) {
        std::thread::id none;
        if (side_.slots[i].user.compare_exchange_strong(none, self, std::memory_order_acquire)) return side_.slots[i];
      }
      if (predictor.uses(side_, self))
        fail(TN_MISUSE, "all ", predictor.options_.machines,
             " machines of the predictor are in use, one of them by this thread's own prediction, whose sink predicts");
      side_.freed.wait(seen, std::memory_order_acquire);
    }
  } catch (...) {
    leave(side_);
    throw;
  }

  Side& side_;
  Slot& slot_;
};

Predictor::Predictor(Topology topology, const Snapshot& source, Registry& registry, std::shared_ptr<Device> device,
                     const tn_parallel* parallel, const PredictorOptions& options)
    : topology_(std::move(topology)),
      registry_(registry),
      device_(std::move(device)),
      parallel_(parallel),
      options_(options) {
  for (Side& side : sides_) side.slots = std::make_unique<Slot[]>(options_.machines);
  make(sides_[0], *source.set);
  set_source(sides_[0], source);
}

bool Predictor::has_values_of(const Side& side, const Snapshot& source) {
  return source.version.has_value() && side.version == source.version && side.source.lock() == source.set;
}

void Predictor::set_source(Side& side, const Snapshot& source) {
  side.source = source.set;
  side.version = source.version;
  ++copies_;
  for (uint32_t i = 0; i < options_.machines; ++i) side.slots[i].machine->set_version(copies_);
}

bool Predictor::uses(const Side& side, std::thread::id thread) const {
  for (uint32_t i = 0; i < options_.machines; ++i)
    if (side.slots[i].user.load(std::memory_order_relaxed) == thread) return true;
  return false;
}

void Predictor::predict(const std::vector<NamedArray>& feeds, const std::function<void(const Machine&)>& use) {
  const Entered entered(*this);
  Machine& machine = entered.machine();
  machine.reset_carried();
  machine.forward(by_number(machine.feeds(), feeds), FeedMode::kLent);
  use(machine);
}

void Predictor::refresh(const Snapshot& source) {
  const std::thread::id self = std::this_thread::get_id();
  if (uses(sides_[0], self) || uses(sides_[1], self))
    fail(TN_MISUSE, "the sink of a prediction refreshes its predictor, which would wait for that prediction");
  const std::lock_guard lock(refreshing_);
  if (has_values_of(sides_[active_.load()], source)) return;
  const uint32_t next = 1 - active_.load();
  Side& side = sides_[next];
  for (uint32_t inside = 0; (inside = side.inside.load()) != 0;) side.inside.wait(inside);
  if (side.set == nullptr) {
    make(side, *source.set);
  } else {
    side.set->replace(values_of(*side.set, *source.set));
  }
  set_source(side, source);
  active_.store(next);
}

void Predictor::make(Side& side, const ParameterSet& source) {
  std::shared_ptr<ParameterSet> set = ParameterSet::declare(topology_.declarations(), source.allocator());
  set->replace(values_of(*set, source));
  std::vector<std::unique_ptr<Machine>> machines;
  for (uint32_t i = 0; i < options_.machines; ++i)
    machines.push_back(
        std::make_unique<Machine>(topology_, set, registry_, std::vector{device_}, parallel_, options_.machine));
  for (uint32_t i = 0; i < options_.machines; ++i) side.slots[i].machine = std::move(machines[i]);
  side.set = std::move(set);
}

// Returns a copy of the values of the entries of `set`.
ParameterSet::Values Predictor::values_of(const ParameterSet& set, const ParameterSet& source) const {
  ParameterSet::Values values = set.allocate();
  for (const ParameterEntry& entry : set.entries()) {
    const ParameterEntry& from = source.find(entry.name);
    if (from.shape != entry.shape)
      fail_parameter(TN_INVALID, entry.name, "\"", entry.name, "\" of the parameters is ", to_string(from.shape),
                     "; the outputs need ", to_string(entry.shape));
    if (entry.count > 0) std::memcpy(values.data(entry), source.values(from), entry.count * sizeof(float));
  }
  return values;
}

}  // namespace tenon::host
