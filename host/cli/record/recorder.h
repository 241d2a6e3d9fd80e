// Keeps what happens in a training as JSON (docs/rerun.md). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/not_copied.h"
#include "host/cli/job/job.h"

namespace tenon::cli {

// Between two minibatches: the passes that are done, and the minibatches of the next one.
struct RunPlace {
  int64_t pass = 0, batch = 0;
  auto operator<=>(const RunPlace& other) const = default;  // NOLINT(modernize-use-nullptr): a 0 of its own
};

// A training that is recorded. Borrowed by its recorder.
struct RecordedTraining {
  const Job& job;
  const Host& host;
  const Parameters& parameters;
  int64_t processes = 1, trainers = 1;  // of its team
  bool is_whole = true;                 // whether this process has all rows of the parameters
};

// What was saved: the key of the job, "save" or "average.save", and the file.
struct RecordedModel {
  std::string key, file;
};

// Receives what happens in a training. Derived classes decide which digests are taken, and what becomes of them.
class Recorder : base::NotCopied {
 public:
  Recorder();
  virtual ~Recorder() = default;

  void begin(const RecordedTraining& training);
  void tell(Event& event);
  // tested: the result of the last test; empty: none was made.
  void end(int exit, const std::vector<RecordedModel>& models, const std::optional<TestResult>& tested);

 protected:
  // The training begins: `record` has everything but the members that grow.
  virtual void begun(Event& event) = 0;
  // Whether a digest of the parameters is taken at this place, which updates are the last to have changed.
  [[nodiscard]] virtual bool is_due(const RunPlace& place) = 0;
  // digest: {pass, batch, digest, each}
  virtual void take(Event& event, nlohmann::json digest) = 0;
  // Something has happened after which a training could be resumed; what: TN_END_PASS, TN_TEST or TN_CHECKPOINT.
  virtual void reached(int32_t what) = 0;
  virtual void ended() = 0;

  [[nodiscard]] nlohmann::json digest() const;
  [[nodiscard]] const RunPlace& place() const { return place_; }
  [[nodiscard]] const RecordedTraining& training() const { return *training_; }

  nlohmann::json record;

 private:
  void describe(const Event& event);
  void add_curve(const char* kind, const Event& event);

  const RecordedTraining* training_ = nullptr;
  RunPlace place_;
  std::vector<std::string> names_;  // of the parameters
};

// Writes the record of a training into a folder.
class FileRecorder : public Recorder {
 public:
  // every: updates between two digests; 0: chosen so that about a thousand are kept. sets: the arguments of --set.
  // resumes: whether the training continues the record that is there, if it resumes. Throws Failure: a record is there
  // and not continued, or the folder cannot be written.
  FileRecorder(std::string folder, int64_t every, std::vector<std::string> sets, bool resumes);

 protected:
  void begun(Event& event) override;
  [[nodiscard]] bool is_due(const RunPlace& place) override;
  void take(Event& event, nlohmann::json digest) override;
  void reached(int32_t what) override;
  void ended() override;

 private:
  void continue_record(const Event& event);
  void add_inputs();

  const std::string folder_;
  const int64_t fixed_;
  const std::vector<std::string> sets_;
  const bool resumes_;
  int64_t every_ = 1, updates_ = 0;
  double written_ = 0;  // seconds of a steady clock
};

}  // namespace tenon::cli
