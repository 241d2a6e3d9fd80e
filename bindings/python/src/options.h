// Options as dicts of Python hold them: a key that is absent leaves the default. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core.h"

namespace tenon_python {

template <typename Type>
void take(const nb::dict& from, const char* name, Type* to) {
  if (from.contains(name)) *to = nb::cast<Type>(from[name]);
}
inline void take(const nb::dict& from, const char* name, tenon::Reader* to) {
  if (from.contains(name)) *to = nb::cast<Reader>(from[name]);
}
// Pairs of an updater and names.
inline void take(const nb::dict& from, const char* name, std::vector<tenon::UpdaterGroup>* to) {
  std::vector<std::pair<tenon::Updater, std::vector<std::string>>> groups;
  take(from, name, &groups);
  for (const auto& [updater, parameters] : groups) to->push_back({updater, parameters});
}

// The options of a part, if it is there.
[[nodiscard]] inline std::optional<nb::dict> part_of(const nb::dict& from, const char* name) {
  if (!from.contains(name)) return std::nullopt;
  return nb::cast<nb::dict>(from[name]);
}

}  // namespace tenon_python
