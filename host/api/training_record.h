// The record of a training of an application (docs/rerun.md), which is written, or compared with one that was.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/not_copied.h"
#include "host/api/api.h"
#include "host/api/training_call.h"
#include "record/recorder.h"

namespace tenon::host {

class TrainingRecord : tenon::base::NotCopied {
 public:
  // options: with `run` or `rerun`. Throws TN_IO if the folder of `run` cannot be written or has a record, an error
  // that names the file if `rerun` has none, and TN_UNSUPPORTED with a team.
  TrainingRecord(Host& host, const tn_train_options& options, const TrainingCall& call);

  // training: what the training is made of.
  void begin(nlohmann::json training);
  // Throws TN_INVALID naming the first difference.
  void tell(const Event& event);
  void end();

 private:
  Host& host_;
  const tn_train_options& options_;
  const TrainingCall& call_;
  nlohmann::json before_;  // the record of `rerun`
  std::unique_ptr<record::Recorder> recorder_;
};

// Returns the record that a training keeps or is compared with; null: it has none.
[[nodiscard]] std::unique_ptr<TrainingRecord> training_record(Host& host, const tn_train_options& options,
                                                              const TrainingCall& call);

}  // namespace tenon::host
