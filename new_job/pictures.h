// The job for folders of pictures, one folder for each class. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "new_job/request.h"

namespace tenon::new_job {

// Looks at the files of the folders and writes the job. Throws cli::Failure.
[[nodiscard]] Written job_for_pictures(const Request& request);

}  // namespace tenon::new_job
