// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/updater.h"

#include "host/cli/cli.h"
#include "host/cli/job/component.h"

namespace tenon::cli {

Updater make_updater(const Host& host, const Job& job) {
  if (!job.updater) throw Failure(kBadConfig, job.path + ": training needs an [updater]");
  try {
    return host.updater(job.updater->type, job.updater->attributes);
  } catch (const Error& error) {
    rethrow_at(error, host, {"updater", *job.updater, "[updater]", {"type"}, "updater \"" + job.updater->type + "\""});
  }
}

std::vector<UpdaterGroup> make_updater_groups(const Host& host, const Job& job) {
  std::vector<UpdaterGroup> result;
  for (size_t i = 0; i < job.updater_groups.size(); ++i) {
    const JobUpdaterGroup& group = job.updater_groups[i];
    try {
      result.push_back({host.updater(group.type, group.attributes), group.parameters});
    } catch (const Error& error) {
      rethrow_at(error, host,
                 {"updater", group, group_name(i), {"type", "parameters"}, "updater \"" + group.type + "\""});
    }
  }
  return result;
}

}  // namespace tenon::cli
