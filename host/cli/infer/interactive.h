// Predictions for rows that a person types. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "host/cli/infer/predictions.h"
#include "host/cli/saved_model.h"

namespace tenon::cli {

// Reads lines of standard input up to its end, and writes the outputs of `run` for each: a line is a record of the
// reader's files, or the path of a picture where the reader has a folder. Rows of a table have the columns that the
// model needs, in the order that is shown first, unless the first line names others. A line that cannot be read is
// reported on standard error, and the next one follows. Returns the exit code.
int answer_lines(const SavedModel& model, const TrainOptions& run, const PredictionForm& form, bool csv);

}  // namespace tenon::cli
