// Makes the readers of a job. Failures name the place in the job.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/cli/job/job.h"
#include "host/cli/job/slot.h"

namespace tenon::cli {

// A reader of minibatches, as the job describes it.
struct OpenReader {
  Reader reader;
  std::vector<Slot> slots;
  int64_t samples = -1;  // in a pass; -1 if unknown
  int64_t batch = 1;     // the most in a minibatch
  std::vector<std::pair<std::string, std::string>> feeding;
  std::string whole_reason;  // why each of several processes reads all samples; empty: each reads its own
};

// in_order: without shuffle, bucket, drop_last and random changes, for verbs that print a result per sample. known: the
// names by data layer that a model was trained with; the reader numbers its own names like these, or fails.
// schema_alone: the samples will not be read. needed: the data layers to feed; slots of others may be missing.
using Needed = std::optional<std::vector<std::string>>;
[[nodiscard]] OpenReader open_reader(const Host& host, const Job& job, const JobReader& reader, bool in_order,
                                     const std::vector<Names>& known = {}, bool schema_alone = false,
                                     const Needed& needed = {});
// Returns a reader of other data, such as that of new samples: `reader` with these files or this folder, relative to
// the working directory, without what divides its data. needed: the data layers to feed, which say of a reader with
// parts whose data it is.
[[nodiscard]] JobReader with_data(const Host& host, const JobReader& reader, const std::vector<std::string>& data,
                                  const std::vector<std::string>& needed);
// Returns what a model knows of the data layers that a reader feeds.
[[nodiscard]] std::vector<Names> names_of(const JobReader& reader, const OpenReader& open);

// Refuses a reader whose passes have no samples. samples: of a pass, before or after it was read; -1 if unknown.
void require_samples(const JobReader& reader, int64_t samples);

// Returns how the job uses a slot; a slot that it does not mention feeds the data layer of its own name.
[[nodiscard]] JobSlot use_of(const JobReader& reader, const std::string& slot);

// Returns the reader called `name`; throws Failure if the job does not have it.
[[nodiscard]] const JobReader& reader_of(const Job& job, const std::string& name);

}  // namespace tenon::cli
