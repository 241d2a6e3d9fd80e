// Keeps what happens in a training as JSON (docs/rerun.md). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/not_copied.h"
#include "record/record.h"

namespace tenon::record {

// Between two minibatches: the passes that are done, and the minibatches of the next one.
struct RunPlace {
  int64_t pass = 0, batch = 0;
  auto operator<=>(const RunPlace& other) const = default;  // NOLINT(modernize-use-nullptr): a 0 of its own
};

struct RecordedParameter {
  std::string name;
  std::vector<int64_t> shape;
};
// The values of a parameter, borrowed.
struct RecordedValues {
  const void* data = nullptr;
  uint64_t bytes = 0;
};

// A training that is recorded.
struct RecordedTraining {
  nlohmann::json members;  // of the record, which do not change while it trains
  bool is_whole = true;    // whether this process has all rows of the parameters
  std::vector<RecordedParameter> parameters;
  std::function<RecordedValues(size_t parameter)> values;
  std::function<nlohmann::json()> plugins;  // as tn_host_plugins lists them
  // What the training is made of, {job, data, ...}; asked for a record that is written, in its folder.
  std::function<nlohmann::json(const std::string& folder)> inputs;
};

enum class Happening { kBegin, kIteration, kPass, kTest, kCheckpoint, kEnd, kOther };

// What happens in a training; as in tn_event.
struct RecordedEvent {
  Happening what = Happening::kOther;
  int64_t pass = 0, batch = 0, samples = 0;
  double cost = 0, seconds = 0, scheduled_rate = 0;
  std::vector<std::pair<std::string, double>> metrics, costs;
  std::string checkpoint, changes;
  uint32_t reason = 0;     // TN_REASON_*
  nlohmann::json machine;  // kBegin: as tn_machine_plan describes it
};

// What was saved: the key of the job, "save" or "average.save", and the file.
struct RecordedModel {
  std::string key, file;
};

// Cost and metrics of the last test.
struct RecordedTest {
  int64_t samples = 0;
  double cost = 0;
  std::vector<std::pair<std::string, double>> metrics;
};

// Receives what happens in a training. Derived classes decide which digests are taken, and what becomes of them.
class Recorder : base::NotCopied {
 public:
  explicit Recorder(Surroundings surroundings) : surroundings_(std::move(surroundings)) {}
  virtual ~Recorder() = default;

  void begin(RecordedTraining training);
  // digest: of the samples of the next minibatch, in hex.
  void read(const std::string& digest);
  void tell(const RecordedEvent& event);
  // exit: of the program; -1: none. tested: the result of the last test; empty: none was made.
  void end(int exit, const std::vector<RecordedModel>& models, const std::optional<RecordedTest>& tested);

 protected:
  // The training begins: `record` has everything but the members that grow.
  virtual void begun(const RecordedEvent& event) = 0;
  // Whether a digest of the parameters is taken at this place, which updates are the last to have changed.
  [[nodiscard]] virtual bool is_due(const RunPlace& place) = 0;
  // digest: {pass, batch, xxh3, each}, and of a training whose samples are read() `data`: of all samples so far.
  virtual void take(nlohmann::json digest) = 0;
  // Something has happened after which a training could be resumed.
  virtual void reached(Happening what) = 0;
  virtual void ended() = 0;

  [[nodiscard]] nlohmann::json digest() const;
  [[nodiscard]] const RunPlace& place() const { return place_; }
  [[nodiscard]] const RecordedTraining& training() const { return training_; }
  [[nodiscard]] const Surroundings& surroundings() const { return surroundings_; }
  // Continues the digest of the samples; empty: it is unknown from here on.
  void continue_data(std::optional<std::string> digest) { data_ = std::move(digest); }

  nlohmann::json record;

 private:
  void describe(const nlohmann::json& machine);
  void add_curve(const char* kind, const RecordedEvent& event);

  const Surroundings surroundings_;
  RecordedTraining training_;
  RunPlace place_;
  std::optional<std::string> data_ = "";  // the digest of all samples so far; "": none were read
};

// Writes the record of a training into a folder.
class FileRecorder : public Recorder {
 public:
  // every: updates between two digests; 0: chosen so that about a thousand are kept. option: the name of the option
  // that states the folder, for messages. resumes: whether the training continues the record that is there, if it
  // resumes. Refuses a record that is there and not continued, and a folder that cannot be written.
  FileRecorder(Surroundings surroundings, std::string folder, const std::string& option, int64_t every, bool resumes);

 protected:
  void begun(const RecordedEvent& event) override;
  [[nodiscard]] bool is_due(const RunPlace& place) override;
  void take(nlohmann::json digest) override;
  void reached(Happening what) override;
  void ended() override;

 private:
  void continue_record(const RecordedEvent& event);

  const std::string folder_;
  const int64_t fixed_;
  const bool resumes_;
  int64_t every_ = 1, updates_ = 0;
  double written_ = 0;  // seconds of a steady clock
};

}  // namespace tenon::record
