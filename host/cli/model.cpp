// SPDX-License-Identifier: Apache-2.0
#include "host/cli/model.h"

#include "host/cli/cli.h"

namespace tenon::cli {

Model load_model(const Host& host, const Job& job, const std::string& given) {
  if (given.empty() && !job.save)
    throw Failure(kUsage, job.path + ": the job saves no model; name a file with --model FILE");
  return host.load(given.empty() ? *job.save : given);
}

}  // namespace tenon::cli
