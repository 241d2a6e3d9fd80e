// SPDX-License-Identifier: Apache-2.0
#include "host/training/checkpoints.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <set>
#include <system_error>

#include "base/text.h"
#include "core/bounded_json.h"
#include "core/error.h"
#include "core/folder.h"
#include "host/training/data/data_digest.h"
#include "host/training/resume_check.h"
#include "host/training/sets.h"

namespace tenon::host {

namespace {

namespace fs = std::filesystem;

constexpr const char* kBest = "best.safetensors";
constexpr const char* kBestAverage = "best-average.safetensors";
constexpr const char* kLock = ".training.lock";

// Files that get their names as FolderFiles::create says.
class GuardedFiles final : public FileSystem {
 public:
  GuardedFiles(FileSystem& of, bool anew, std::function<void()> check)
      : of_(of), anew_(anew), check_(std::move(check)) {}
  std::unique_ptr<InputFile> open(const fs::path& path) override { return of_.open(path); }
  std::unique_ptr<Output> replace(const fs::path& path) override {
    auto* const files = dynamic_cast<FolderFiles*>(&of_);
    return files == nullptr ? of_.replace(path) : files->create(path, anew_, check_);
  }

 private:
  FileSystem& of_;
  const bool anew_;
  const std::function<void()> check_;
};

// Throws TN_REFUSED if the file "epoch", which a launcher writes beside the checkpoints at each start
// (docs/launching.md), is of a later start than this process. epoch: of this start; 0: no launcher counts them.
void require_epoch(FileSystem& files, const fs::path& folder, uint32_t epoch) {
  std::error_code unknown;
  const fs::path path = folder / "epoch";
  if (epoch == 0 || !fs::exists(path, unknown)) return;
  constexpr uint64_t kMost = 1 << 16;  // bytes
  const std::unique_ptr<InputFile> file = files.open(path);
  std::string content(std::min(file->size(), kMost), '\0');
  file->read(0, content.data(), content.size());
  const nlohmann::json record = bounded_json(content);
  if (!record.is_object() || !record.contains("epoch") || !record["epoch"].is_number_unsigned())
    fail(TN_BAD_DATA, SubjectName{path.string()}, path.string(), ": it is not the epoch of a training");
  const uint64_t present = record["epoch"];
  if (present > epoch)
    fail(TN_REFUSED, SubjectName{folder.string()}, folder.string(), ": the training was started again, as epoch ",
         present, "; this process is of epoch ", epoch, ", which may not write checkpoints any more");
}

void check(const CheckpointOptions& options) {
  const auto refuse = [](const char* field, const auto&... parts) {
    fail(TN_INVALID, SubjectName{field}, "checkpoint: ", field, " is ", parts...);
  };
  if (options.folder.empty()) refuse("folder", "empty");
  if (options.every_batches < 0) refuse("every_batches", options.every_batches, "; expected at least 0");
  if (options.every_passes < 0) refuse("every_passes", options.every_passes, "; expected at least 0");
  if (!std::isfinite(options.every_seconds) || options.every_seconds < 0)
    refuse("every_seconds", options.every_seconds, "; expected a number of at least 0");
  if (options.keep < 1) refuse("keep", options.keep, "; expected at least 1");
  if (options.start == Start::kFresh && !options.from.empty())
    refuse("from", "\"", options.from.string(), "\"; a training that does not resume reads no checkpoint");
  if (options.start == Start::kFresh && !options.resume_with.empty())
    refuse("resume_with", "\"", options.resume_with[0], "\"; a training that does not resume changes nothing");
  check_changeable(options.resume_with);
}

// A failure of the reader while a checkpoint is read, which an older checkpoint does not avoid.
class ReaderError : public Error {
 public:
  explicit ReaderError(const Error& error) : Error(error) {}
};

// Otherwise the training would fail at its first checkpoint.
void require_writable(const fs::path& folder) {
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    fail(TN_IO, SubjectName{folder.string()}, folder.string(),
         ": cannot write to the folder: ", std::generic_category().message(errno));
}

// A model file must hold all parameters of the set.
void check_stored(const CheckpointedTraining& training) {
  std::set<std::string> stored;
  for (const ParameterDeclaration& declaration : training.topology.declarations()) stored.insert(declaration.name);
  for (const ParameterEntry& entry : training.machine.set()->entries())
    if (!stored.contains(entry.name))
      fail(TN_INVALID, SubjectName{entry.name}, "checkpoint: no output depends on parameter \"", entry.name,
           "\" (layer \"", entry.owner, "\"); add an output that does");
}

}  // namespace

std::string Checkpoints::Found::name() const { return text("checkpoint-", pass, "-", batch, ".safetensors"); }

std::vector<Checkpoints::Found> Checkpoints::checkpoints_in(const fs::path& folder) {
  std::error_code error;
  std::vector<Found> found;
  for (const std::string& name : names_in(folder, error)) {
    long long pass = 0, batch = 0;
    // NOLINTNEXTLINE(cert-err34-c): eighteen digits fit
    if (std::sscanf(name.c_str(), "checkpoint-%18lld-%18lld.safetensors", &pass, &batch) == 2 && pass >= 0 &&
        batch >= 0 && name == Found{pass, batch}.name())
      found.push_back({pass, batch});
  }
  if (error && error.value() != ENOENT)
    fail(TN_IO, SubjectName{folder.string()}, folder.string(), ": cannot list the folder: ", error.message());
  std::sort(found.begin(), found.end());
  return found;
}

Checkpoints::Checkpoints(const CheckpointedTraining& training, CheckpointOptions options)
    : training_(training), options_(std::move(options)), agreement_(training.team), best_(options_.best_is_highest) {
  check(options_);
  check_stored(training_);
  const ParameterSet& set = *training_.machine.set();
  if (set.owned() != nullptr) parts_.emplace(training_.files, training_.team, set, options_.folder);
  const bool must_resume = options_.start == Start::kResume || options_.start == Start::kResumeInexactly;
  std::error_code unknown;
  const bool exists = fs::exists(options_.folder, unknown);
  const bool is_made = options_.from.empty() && !must_resume;
  if (exists || is_made) lock();
  // Before the checkpoints are looked for: a process that sees another folder finds others.
  const bool is_there = parts_ && agreement_.of_leader(exists || is_made);
  if (is_there) parts_->require_shared();
  const std::vector<Found> found = checkpoints_in(options_.folder);
  if (must_resume && options_.from.empty() && found.empty())
    fail(TN_NOT_FOUND, SubjectName{options_.folder.string()}, options_.folder.string(),
         ": the folder has no checkpoint to resume from");
  if (options_.start == Start::kFresh && !found.empty())
    fail(TN_INVALID, SubjectName{options_.folder.string()}, options_.folder.string(),
         ": the folder has checkpoints of another training, the newest is ", found.back().name(),
         "; resume from them, remove them or use another folder");
  for (const Found& each : found) own_.insert(each.name());
  for (const char* const best : {kBest, kBestAverage})
    if (fs::exists(options_.folder / best, unknown)) own_.insert(best);
  if (!options_.from.empty() || !found.empty()) resume(found);
  if (!exists && !options_.from.empty()) lock();  // a folder is created only after the checkpoint was read
  if (parts_ && !is_there) parts_->require_shared();
  written_at_ = training_.clock.now();
}

// Two trainings in one folder would replace and remove each other's checkpoints.
void Checkpoints::lock() {
  if (!training_.writes) return;
  make_folder(options_.folder);
  require_writable(options_.folder);
  auto* const files = dynamic_cast<FolderFiles*>(&training_.files);
  if (files == nullptr) return;
  try {
    lock_ = files->lock(options_.folder / kLock);
  } catch (const Error& error) {
    throw error.with_context(options_.folder.string() + ": a training has its folder alone");
  }
  files->remove_leftovers(options_.folder);
  if (lock_ != nullptr) remove_incomplete_parts(training_.files, options_.folder);
}

namespace {

// Checks the slots of the reader against the names of a checkpoint, as the loop does again.
void check_slots(const CheckpointedTraining& training, const DataNames& names) {
  const nlohmann::json feeding = training.run.value("feeding", nlohmann::json::object());
  for (const Slot& slot : training.reader.slots()) {
    const std::string layer = feeding.value(slot.name, slot.name);
    require_known("data layer \"" + layer + "\"", slot, names, layer);
  }
}

// Returns the names of the topology of a checkpoint, and checks that the loop will take the state: what a training
// reads after the parameters have their values must not fail. Sets the states that layers carry, as the loop does
// again.
DataNames names_and_checked_loop(const CheckpointedTraining& training, const CheckpointFile& checkpoint,
                                 const LoopState& state, const std::string& file) {
  try {
    training.machine.set_carried(state.carried);
    ResultSums(training.machine, training.registry).set(state.sums);
    return names_of_topology(checkpoint.topology());
  } catch (const Error& error) {
    if (error.code() != TN_BAD_DATA) throw;
    fail(TN_BAD_DATA, SubjectName{file}, file, ": damaged checkpoint: ", error.message());
  }
}

// Drops the states that layers carry from minibatch to minibatch: with another number of samples they are those of
// other samples. Between two passes they are not used.
void drop_carried(const std::string& file, LoopState& state) {
  const bool used = std::any_of(state.carried.values.begin(), state.carried.values.end(),
                                [](const auto& value) { return !value.empty(); });
  if (used && state.place.batch > 0)
    fail(TN_INVALID, SubjectName{"resume_with"}, file, ": reader.batch differs within a pass, after ",
         state.place.batch,
         " minibatches, from each of which layers carry states to the next; resume from a checkpoint "
         "between two passes");
  state.carried.samples = 0;
  for (auto& value : state.carried.values) value.clear();
}

}  // namespace

void Checkpoints::resume(const std::vector<Found>& found) {
  const fs::path file = options_.from.empty() ? options_.folder / found.back().name() : options_.from;
  const auto naming_the_one_before = [&](const Error& error) -> Error {
    if (!options_.from.empty() || found.size() < 2) return error;
    const fs::path before = options_.folder / found[found.size() - 2].name();
    return {error.code(), text(error.message(), "; the checkpoint before it is ", before.string()), error.component(),
            error.subject()};
  };
  const std::shared_ptr<Allocator>& allocator = training_.machine.set()->allocator();
  std::optional<CheckpointFile> checkpoint;
  try {
    const TableBlocks blocks = training_.machine.set()->tables().blocks.value_or(TableBlocks{});
    const auto open = [&] { checkpoint.emplace(training_.files, file, allocator, blocks); };
    parts_ ? agreement_.together(open) : open();
  } catch (const Error& error) {
    if (error.code() == TN_OUT_OF_MEMORY) throw;
    throw naming_the_one_before(error);
  }
  try {
    read(file, *checkpoint);
  } catch (const ReaderError&) {
    throw;
  } catch (const Error& error) {
    if (error.code() != TN_BAD_DATA) throw;
    throw naming_the_one_before(error);
  }
  resumed_from_ = file.string();
}

void Checkpoints::read(const fs::path& file, CheckpointFile& checkpoint) {
  const std::shared_ptr<ParameterSet>& set = training_.machine.set();
  const CheckpointRecord& record = checkpoint.record();
  nlohmann::json stored = checkpoint.run(), present = training_.run;
  stored["topology"] = without_names(checkpoint.topology());
  add_defaults(stored, training_.registry);
  present["topology"] = without_names(training_.topology.to_json());
  const RunChanges changes = accept_changes(options_.resume_with, stored, present);
  const std::vector<std::string> acceptable = accepting_names(stored, present);
  check_same_run(file.string(), stored, present, resumes_inexactly(),
                 acceptable.empty() ? "" : "; resume_with accepts these: " + base::listed(acceptable));
  const auto states = training_.updater.read_states(set, checkpoint);
  const std::vector<UpdaterProgress> now = training_.updater.progress(set);
  std::vector<UpdaterProgress> progress = {{record.steps, record.learning_rate}};
  for (size_t i = 1; i <= training_.updater.groups(); ++i) progress.push_back(checkpoint.group(i));
  for (const size_t updater : changes.rates) progress[updater].learning_rate = now[updater].learning_rate;
  std::shared_ptr<Averages::Restored> averages;
  if (training_.averages != nullptr)
    averages = training_.averages->read([&](const Updater::StateValues& each) { checkpoint.read_average(each); });
  std::optional<BestValues::Restored> best;
  if (training_.best != nullptr) best = training_.best->read(checkpoint);
  LoopState state = record.loop;
  if (changes.batch != 0) drop_carried(file.string(), state);
  const DataNames names = names_and_checked_loop(training_, checkpoint, state, file.string());
  // The reader may refuse the place, its data may have changed, and load the values: if one fails, it goes back.
  Reader& reader = training_.reader;
  const int64_t pass = reader.pass(), position = reader.position();
  try {
    move_reader(file.string(), state, changes);
    check_slots(training_, names);  // after its data, which say more
    checkpoint.load(*set);
  } catch (...) {
    if (reader.pass() != pass || reader.position() != position) reader.seek(pass, position);
    throw;
  }
  set->set_updates(record.updates);
  set->set_names(names);
  training_.updater.adopt(states, progress);
  if (averages != nullptr) {
    training_.averages->adopt(*averages, record.averaged);
    training_.averages->take_names();
  }
  if (best) training_.best->adopt(std::move(*best), names);
  const bool same = record.best_watched.empty() ? !training_.tests : record.best_watched == watched_best();
  if (same) best_.set(record.best);
  note(changes, state.place, checkpoint.changes());
  last_ = state.place;
  resumed_ = std::move(state);
}

void Checkpoints::move_reader(const std::string& file, LoopState& state, const RunChanges& changes) const {
  Reader& reader = training_.reader;
  try {
    if (!resumes_inexactly()) check_data(file, state.data, changes.batch);
    int64_t position = state.place.reader_position;
    if (changes.batch != 0) {
      if (!state.data.xxh3.empty())
        state.data.xxh3 = digest_again(reader, state.data, training_.machine.set()->allocator()).value_or("");
      // Samples that the other minibatches drop at the end of a pass are no part of it now.
      if (reader.size() >= 0) position = std::min(position, reader.size());
    }
    if (reader.pass() != state.place.reader_pass || reader.position() != position)
      reader.seek(state.place.reader_pass, position);
  } catch (const Error& error) {
    throw ReaderError(error);
  }
}

void Checkpoints::note(const RunChanges& changes, const TrainingPlace& place, const std::string& before) {
  history_ = before;
  for (const std::string& line : changes.lines) {
    base::append(changes_, line, "\n");
    base::append(history_, text("checkpoint-", place.pass, "-", place.batch, ": ", line), "\n");
  }
}

// Reads the minibatch of the digest again. A reader that cannot seek has to be at the right place anyway. samples: of
// the minibatch, if its number has changed; else 0.
void Checkpoints::check_data(const std::string& file, const DataDigest& data, int64_t samples) const {
  if (data.xxh3.empty()) return;
  const std::optional<std::string> now =
      digest_again(training_.reader, data, training_.machine.set()->allocator(), samples);
  if (now && *now != data.xxh3)
    fail(TN_INVALID, SubjectName{file}, file, ": the data of the reader has changed: the first minibatch of its pass ",
         data.pass + 1, " has the digest ", *now, ", ", data.xxh3,
         " in the checkpoint; an inexact resume does not compare the data");
}

bool Checkpoints::is_due_after_batch() {
  ++batches_;
  return (options_.every_batches > 0 && batches_ >= options_.every_batches) || is_overdue();
}

bool Checkpoints::is_due_after_pass(int64_t passes_done) const {
  return options_.every_passes > 0 && passes_done % options_.every_passes == 0;
}

std::string Checkpoints::write(const LoopState& state) {
  if (last_ == state.place || !std::isfinite(state.sums.cost) || !is_finite()) return "";
  const std::string name = Found{state.place.pass, state.place.batch}.name();
  write_file(name, state);
  last_ = state.place;
  batches_ = 0;
  written_at_ = training_.clock.now();
  if (training_.writes) {
    require_present();  // a later start may resume from those that would be removed
    remove_oldest(state.place);
  }
  return (options_.folder / name).string();
}

void Checkpoints::keep_best(const TestResult& measured, const LoopState& state) {
  if (options_.best.empty() || !is_finite()) return;
  // Before the other checkpoint of this place, which contains the value.
  if (!best_.take(compared(options_.best, measured))) return;
  write_file(kBest, state);
  if (training_.averages == nullptr || !training_.writes) return;
  write_own(kBestAverage, [&](FileSystem& files, const fs::path& file) {
    write_model_of(files, file, training_.topology, *training_.averages->set());
  });
}

bool Checkpoints::is_finite() const {
  const ParameterSet& set = *training_.machine.set();
  if (!parts_) return host::is_finite(set);
  return agreement_.all(host::is_finite(set) && host::is_finite(*set.owned()));
}

void Checkpoints::require_present() const { require_epoch(training_.files, options_.folder, training_.epoch); }

template <typename Write>
void Checkpoints::write_own(const std::string& name, const Write& write) {
  if (lock_ != nullptr) lock_->require();
  GuardedFiles files(training_.files, !own_.contains(name), [this] { require_present(); });
  write(files, options_.folder / name);
  own_.insert(name);
}

void Checkpoints::write_file(const std::string& name, const LoopState& state) {
  if (!training_.writes && !parts_) return;
  CheckpointContents contents;
  if (parts_)
    agreement_.together([&] { contents = contents_of(state); });
  else
    contents = contents_of(state);
  const auto write = [&] {
    if (!training_.writes) return;
    const std::vector<ModelPart> former = parts_of_checkpoint(training_.files, options_.folder / name);
    write_own(name, [&](FileSystem& files, const fs::path& file) {
      write_checkpoint(files, file, training_.topology, *training_.machine.set(), contents);
    });
    remove_parts(options_.folder, former);
  };
  if (!parts_) return write();
  GuardedFiles files(training_.files, false, [this] { require_present(); });
  contents.parts = parts_->write(files, name, contents.states);
  try {
    agreement_.together(write);
  } catch (const Error&) {
    // A file that is there although its folder could not be synced names them.
    if (training_.writes && parts_of_checkpoint(training_.files, options_.folder / name) != contents.parts)
      remove_parts(options_.folder, contents.parts);
    throw;
  }
  if (training_.writes) parts_->complete(contents.parts);
}

CheckpointContents Checkpoints::contents_of(const LoopState& state) const {
  const std::shared_ptr<ParameterSet>& set = training_.machine.set();
  const std::vector<UpdaterProgress> progress = training_.updater.progress(set);
  CheckpointContents contents;
  CheckpointRecord& record = contents.record;
  record.run = training_.run.dump();
  record.updates = set->updates();
  record.steps = progress[0].steps;
  record.learning_rate = progress[0].learning_rate;
  record.loop = state;
  record.best = best_.value();
  record.best_watched = options_.best.empty() ? "" : watched_best();
  contents.states = training_.updater.states(set);
  contents.groups = {progress.begin() + 1, progress.end()};
  contents.changes = history_;
  if (training_.averages != nullptr) {
    record.averaged = training_.averages->seen();
    contents.averages = training_.averages->values();
  }
  if (training_.best != nullptr) {
    contents.best = training_.best->record();
    contents.best_values = training_.best->values();
  }
  return contents;
}

// Ignores failures: a checkpoint too many does no harm.
void Checkpoints::remove_oldest(const TrainingPlace& newest) {
  std::vector<Found> found = checkpoints_in(options_.folder);
  std::erase_if(found, [&](const Found& each) {
    return each > Found{newest.pass, newest.batch} || !own_.contains(each.name());
  });
  for (size_t i = 0; i + static_cast<size_t>(options_.keep) < found.size(); ++i) {
    const fs::path file = options_.folder / found[i].name();
    const std::vector<ModelPart> parts = parts_of_checkpoint(training_.files, file);
    std::error_code failure;
    fs::remove(file, failure);
    if (failure) continue;
    remove_parts(options_.folder, parts);  // afterwards: what a checkpoint names is there as long as it is
    own_.erase(found[i].name());
  }
}

}  // namespace tenon::host
