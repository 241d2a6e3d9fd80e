// SPDX-License-Identifier: Apache-2.0
#include "host/training/sets.h"

#include <algorithm>

#include "core/error.h"

namespace tenon::host {

bool is_finite(const ParameterSet& set) {
  return std::all_of(set.entries().begin(), set.entries().end(), [&](const ParameterEntry& entry) {
    return entry.table || find_not_finite(TN_F32, set.values(entry), static_cast<int64_t>(entry.count)) < 0;
  });
}

void check_receiver(const ParameterSet& source, const ParameterSet& target, const char* option) {
  if (&source == &target)
    fail(TN_INVALID, SubjectName{"parameters"}, option, ": the values need another set than the one that they are of");
  for (const ParameterEntry& entry : target.entries())
    if (!source.contains(entry.name))
      fail_parameter(TN_INVALID, entry.name, option, ": the set for the values has parameter \"", entry.name,
                     "\", which the training does not have");
  for (const ParameterEntry& entry : source.entries()) {
    if (!target.contains(entry.name))
      fail_parameter(TN_INVALID, entry.name, option, ": the set for the values lacks parameter \"", entry.name, "\"");
    const ParameterEntry& other = target.find(entry.name);
    if (entry.table || other.table)
      fail_parameter(
          TN_UNSUPPORTED, entry.name, option, ": parameter \"", entry.name,
          "\" is a table, whose rows lie with the processes of a team, and copies of them are not kept yet; leave out ",
          option, ", or remove the parameter from the tables");
    if (other.shape != entry.shape || other.buffer != entry.buffer)
      fail_parameter(TN_INVALID, entry.name, option, ": parameter \"", entry.name, "\": expected ",
                     to_string(entry.shape), ", the set for the values has ", to_string(other.shape));
  }
}

}  // namespace tenon::host
