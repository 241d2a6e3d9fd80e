// A training for a program that repeats it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/cli/verbs/train_arguments.h"
#include "record/recorder.h"

namespace tenon::cli {

// Trains, saves and tests as `tenon train` does, alone and without a line of output; recorder: what happens. Returns
// the exit code, or throws Failure.
int train_job(const TrainArguments& arguments, Job job, record::Recorder& recorder);

}  // namespace tenon::cli
