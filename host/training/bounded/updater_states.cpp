// SPDX-License-Identifier: Apache-2.0
#include "host/training/bounded/updater_states.h"

#include <cstring>
#include <span>

namespace tenon::host {

Message states_of(const UpdaterGroups& updater, const std::shared_ptr<ParameterSet>& set) {
  Message message;
  const auto add = [&](const void* bytes, uint64_t count) {
    const auto* const begin = static_cast<const std::byte*>(bytes);
    message.insert(message.end(), begin, begin + count);
  };
  for (const UpdaterProgress& progress : updater.progress(set)) add(&progress.steps, sizeof progress.steps);
  for (const Updater::StateValues& state : updater.states(set))
    if (!state.owned) add(state.values, state.bytes());
  return message;
}

void set_states(const UpdaterGroups& updater, const std::shared_ptr<ParameterSet>& set, MessageReader& from) {
  std::vector<uint64_t> steps(updater.progress(set).size());
  std::memcpy(steps.data(), from.bytes(steps.size() * sizeof(uint64_t)), steps.size() * sizeof(uint64_t));
  for (const Updater::StateValues& state : updater.states(set)) {
    if (state.owned) continue;
    if (state.bytes() > 0) std::memcpy(state.values, from.bytes(state.bytes()), state.bytes());
    state.changed();
  }
  updater.set_steps(set, steps);
}

}  // namespace tenon::host
