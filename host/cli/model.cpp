// SPDX-License-Identifier: Apache-2.0
#include "host/cli/model.h"

namespace tenon::cli {

std::string model_path(const Job& job, const std::string& given) {
  if (given.empty() && !job.save)
    throw Failure(kUsage, job.path + ": the job saves no model; name a file with --model FILE");
  return given.empty() ? *job.save : given;
}

}  // namespace tenon::cli
