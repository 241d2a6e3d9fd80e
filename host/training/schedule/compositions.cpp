// Of the schedules below the names that a list gives:
//   chained   one after another, each for its `length` of steps, which it counts from 1; the last one goes on
//   product   all at once: the product of their factors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/error.h"
#include "host/training/schedule/rule.h"

namespace tenon::host {

namespace {

std::vector<std::string> names_of(UpdaterAttributes& reader, const char* key) {
  std::vector<std::string> names = reader.texts(key);
  for (auto name = names.begin(); name != names.end(); ++name)
    if (std::find(names.begin(), name, *name) != name) reader.bad(key, text("duplicate name \"", *name, "\""));
  return names;
}

Rule chained(UpdaterAttributes& reader) {
  struct Phase {
    double begin;  // number of the steps before it
    Rule rule;
  };
  std::vector<Phase> phases;
  double begin = 0;
  const std::vector<std::string> names = names_of(reader, "phases");
  for (const std::string& name : names) {
    UpdaterAttributes phase = reader.below(name);
    double length = 0;
    if (name != names.back())
      length = static_cast<double>(phase.whole("length", 1));
    else if (phase.has("length"))
      phase.bad("length", "the last phase goes on without an end");
    phases.push_back({begin, read_part(phase)});
    begin += length;
  }
  return [phases](double u) {
    size_t i = phases.size() - 1;
    while (u <= phases[i].begin) --i;  // the first begins at 0
    return phases[i].rule(u - phases[i].begin);
  };
}

Rule product(UpdaterAttributes& reader) {
  std::vector<Rule> parts;
  for (const std::string& name : names_of(reader, "parts")) parts.push_back(read_part(reader.below(name)));
  return [parts](double u) {
    double factor = 1;
    for (const Rule& part : parts) factor *= part(u);
    return factor;
  };
}

constexpr ScheduleKind kCompositions[] = {{"chained", {"phases"}, chained, true},
                                          {"product", {"parts"}, product, true}};

}  // namespace

std::span<const ScheduleKind> compositions() { return kCompositions; }

}  // namespace tenon::host
