// Checkpoints of a training: when they are written, which are kept, and how a training resumes from one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/files/folder_files.h"
#include "core/system.h"
#include "core/topology.h"
#include "host/readers/reader.h"
#include "host/training/averages.h"
#include "host/training/best_values.h"
#include "host/training/checkpoint_file.h"
#include "host/training/checkpoint_record.h"
#include "host/training/resume_changes.h"
#include "host/training/team/agreement.h"
#include "host/training/team/table_parts.h"
#include "host/training/training_loop.h"
#include "host/training/updater_groups.h"
#include "host/training/validation.h"

namespace tenon::host {

using namespace core;

// The last two begin anew where there is no checkpoint.
enum class Start { kFresh, kResume, kResumeInexactly, kResumeOrFresh, kResumeInexactlyOrFresh };

struct CheckpointOptions {
  std::filesystem::path folder;
  int64_t every_batches = 0, every_passes = 0;  // 0: not by these
  double every_seconds = 0;
  int64_t keep = 3;              // the newest checkpoints that stay
  std::string best;              // "cost", a cost or a metric, of a test or pass; empty: none
  bool best_is_highest = false;  // else the lowest
  Start start = Start::kFresh;
  std::filesystem::path from;            // the checkpoint to resume from; empty: the newest in the folder
  std::vector<std::string> resume_with;  // what may differ from it (resume_changes.h)
};

// The objects of the training. All are borrowed.
struct CheckpointedTraining {
  FileSystem& files;
  Clock& clock;
  Machine& machine;
  Team* team;  // that writes and resumes together; null: this process does alone
  const UpdaterGroups& updater;
  Reader& reader;
  Averages* averages;         // of the parameters; null: there are none
  BestValues* best;           // null: none are kept
  bool tests;                 // whether the best is that of tests, else of passes
  const Topology& topology;   // stored in the checkpoints; includes that of the machine
  Registry& registry;         // of the types of layers and updaters
  bool writes;                // false: another process of the team writes them; this one reads alone
  uint32_t epoch;             // of the start of this process; an older one may not write. 0: starts are not counted
  const nlohmann::json& run;  // what must be equal in a training that resumes, besides the topology
};

class Checkpoints {
 public:
  // Creates the folder if necessary, and locks it: TN_IO if another training has it. A fresh start is refused
  // (TN_INVALID) if it has checkpoints. A resume reads its checkpoint into parameters, updater and reader; if it fails,
  // these are unchanged.
  Checkpoints(const CheckpointedTraining& training, CheckpointOptions options);

  // Return the state to continue from, null after a fresh start, and the file that it was read from.
  [[nodiscard]] const LoopState* resumed() const { return resumed_ ? &*resumed_ : nullptr; }
  [[nodiscard]] const std::string& resumed_from() const { return resumed_from_; }
  // What differs from that checkpoint, one difference in each line.
  [[nodiscard]] const std::string& changes() const { return changes_; }

  [[nodiscard]] bool is_due_after_batch();
  // Returns after how many minibatches one is due by them; INT64_MAX if none is.
  [[nodiscard]] int64_t batches_left() const {
    return options_.every_batches == 0 ? INT64_MAX : std::max<int64_t>(1, options_.every_batches - batches_);
  }
  // Whether one is due by the clock.
  [[nodiscard]] bool is_overdue() const {
    return is_timed() && training_.clock.now() - written_at_ >= options_.every_seconds;
  }
  // Whether that depends on the clock.
  [[nodiscard]] bool is_timed() const { return options_.every_seconds > 0; }
  [[nodiscard]] bool is_due_after_pass(int64_t passes_done) const;
  // Writes a checkpoint, then removes the oldest beyond those kept. Returns its path; "" if the last one is of this
  // place already, or if the cost of the pass or a parameter is not finite: such a state must not replace good ones.
  std::string write(const LoopState& state);
  // Writes the checkpoint "best" if this pass, which has ended, or test is the best so far, and the averages of the
  // parameters beside it as a model.
  void keep_best(const TestResult& measured, const LoopState& state);

 private:
  // A checkpoint by its name, "checkpoint-2-40.safetensors": 2 passes and 40 minibatches of the next one are done.
  struct Found {
    int64_t pass = 0, batch = 0;
    auto operator<=>(const Found&) const = default;  // NOLINT(modernize-use-nullptr): of the comparison with 0
    [[nodiscard]] std::string name() const;
  };

  // Returns the checkpoints in a folder, oldest first; none if it does not exist.
  static std::vector<Found> checkpoints_in(const std::filesystem::path& folder);
  [[nodiscard]] bool resumes_inexactly() const {
    return options_.start == Start::kResumeInexactly || options_.start == Start::kResumeInexactlyOrFresh;
  }
  void lock();
  void resume(const std::vector<Found>& found);
  void read(const std::filesystem::path& file, CheckpointFile& checkpoint);
  // Moves the reader to the place of `state`, and adapts that state to a changed number of samples of a minibatch.
  void move_reader(const std::string& file, LoopState& state, const RunChanges& changes) const;
  void note(const RunChanges& changes, const TrainingPlace& place, const std::string& before);
  void write_file(const std::string& name, const LoopState& state);
  [[nodiscard]] CheckpointContents contents_of(const LoopState& state) const;
  // Writes a file by `write`, which gets the files to write with: the file replaces another one of the name only if
  // this training wrote that, or found it when it began. Throws TN_REFUSED if the training was started again since.
  template <typename Write>
  void write_own(const std::string& name, const Write& write);
  // Throws TN_REFUSED if the training was started again since.
  void require_present() const;
  [[nodiscard]] bool is_finite() const;
  void remove_oldest(const TrainingPlace& newest);
  void check_data(const std::string& file, const DataDigest& data, int64_t samples) const;
  [[nodiscard]] std::string watched_best() const {
    return watched(options_.best, options_.best_is_highest, training_.tests);
  }

  CheckpointedTraining training_;
  CheckpointOptions options_;
  const Agreement agreement_;
  std::optional<TableParts> parts_;  // of tables whose rows lie with the processes of the team; empty: there are none
  std::unique_ptr<FolderFiles::Lock> lock_;  // of the folder; null: its file system has no locks
  std::set<std::string> own_;  // the names of files in the folder that this training may replace and remove
  std::optional<LoopState> resumed_;
  std::string resumed_from_;
  std::string changes_;                // by the last resume
  std::string history_;                // of the changes by all resumes, with their places
  std::optional<TrainingPlace> last_;  // of the last checkpoint that was written or read
  Best best_;
  int64_t batches_ = 0;    // since the last checkpoint
  double written_at_ = 0;  // the time of the last one, or of the start
};

}  // namespace tenon::host
