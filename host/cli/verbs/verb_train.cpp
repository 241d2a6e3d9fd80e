// tenon train: trains, saves, tests. SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <regex>
#include <string>
#include <system_error>
#include <vector>

#include "base/files.h"
#include "base/not_copied.h"
#include "base/temporary.h"
#include "base/text.h"
#include "host/cli/cli.h"
#include "host/cli/console.h"
#include "host/cli/external.h"
#include "host/cli/interrupt.h"
#include "host/cli/job/fit.h"
#include "host/cli/job/initial.h"
#include "host/cli/job/reader_metadata.h"
#include "host/cli/job/topology.h"
#include "host/cli/late_refusals.h"
#include "host/cli/options.h"
#include "host/cli/record/recorded.h"
#include "host/cli/report.h"
#include "host/cli/team.h"
#include "host/cli/training.h"
#include "host/cli/verbs/save_path.h"
#include "host/cli/verbs/train_arguments.h"
#include "host/cli/verbs/train_job.h"
#include "host/cli/verbs/verbs.h"
#include "process/thread_probe.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;

// Saves a model that could not be saved as `path` into a new folder in the folder for temporary files, and returns its
// path. If that fails as well, throws Failure with both reasons.
std::string save_elsewhere(const Parameters& parameters, const Layers& outputs, const std::string& path,
                           const Error& error) {
  const auto give_up = [&](const std::string& why) {
    throw Failure(exit_code(error.code()), error.what() + std::string("; nor could it be saved elsewhere: ") + why);
  };
  fs::path folder;
  try {  // of our own: in a folder that all may write to, another user may have put a link under any name
    folder = base::make_temporary_folder();
  } catch (const std::system_error&) {
    give_up("there is no folder for temporary files");
  }
  std::string file = (folder / fs::path(path).filename()).string();
  try {
    parameters.save(outputs, file);
  } catch (const Error& second) {
    rmdir(folder.c_str());
    give_up(second.what());
  }
  return file;
}

// Whether a folder has a checkpoint. A folder that cannot be listed has none: the library says why.
bool has_checkpoint(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    static const std::regex name("checkpoint(-(0|[1-9][0-9]{0,17})){2}\\.safetensors");
    if (std::regex_match(entry->path().filename().string(), name)) return true;
  }
  return false;
}

// Returns what happened to minibatches of lost processes.
std::string repeated_text(uint64_t repeated, uint64_t torn) {
  std::string text =
      std::to_string(repeated) + (repeated == 1 ? " minibatch" : " minibatches") + " of lost processes computed again";
  if (torn > 0) text += "; of " + std::to_string(torn) + " some servers had applied gradients before";
  return text;
}

class Training : base::NotCopied {
 public:
  // team: in which this process was started, if it was. control: of its launcher; null: there is none. recorder: null:
  // no record is kept.
  Training(const TrainArguments& arguments, Job job, LogFormat format, const std::optional<JoinedTeam>& team,
           process::Control* control, record::Recorder* recorder)
      : arguments_(arguments),
        job_(std::move(job)),
        control_(control),
        recorder_(recorder),
        leads_(!team || team->leads()),
        console_(format, arguments.common.quiet || !leads_),
        save_(save_path()),
        average_save_(arguments.no_save || !leads_ ? std::nullopt : job_.average_save),
        goes_on_(arguments.resumes() && job_.checkpoint &&
                 (!arguments.resume_from.empty() || has_checkpoint(job_.checkpoint->folder))),
        host_(arguments.common.host(job_)),
        initial_(load_initial()),
        train_(open_reader(host_, job_, reader_of(job_, "train"), false,
                           initial_ ? initial_->names() : std::vector<Names>())),
        topology_(host_, job_, *job_.train, train_),
        report_(console_, job_.training.passes, samples_of_pass()) {
    if (arguments.test_every >= 0) job_.test_every = arguments.test_every;
    if (save_) check_save_path(*save_);
    if (average_save_) check_save_path(*average_save_);
    if (save_ && save_ == average_save_)
      throw Failure(kBadConfig, job_.path + ": save and average.save are one file, " + *save_ +
                                    "; the model and its averages need one each");
    if (arguments.resumes() && !job_.checkpoint)
      throw Failure(kBadConfig, job_.path + ": resuming needs the table [checkpoint], which is missing");
    outputs_ = topology_.layers(topology_.outputs());
    options_ = training_of(host_, job_, train_, topology_);
    if (job_.test) {
      test_ = open_reader(host_, job_, *job_.test, true, names_of(*job_.train, train_));
      topology_.check_fed_by(*job_.test, *test_);
    } else if (job_.test_every > 0) {
      (void)reader_of(job_, "test");  // says that it is missing
    }
    require_samples(*job_.train, train_.samples);
    if (test_) require_samples(*job_.test, test_->samples);
    const std::string reader = stored_reader();
    if (team) join(*team);
    const auto set = [&] {
      Parameters parameters = host_.parameters(outputs_, static_cast<uint64_t>(job_.seed), job_.tables, options_.team);
      if (!reader.empty()) parameters.set_metadata(kReaderMetadata, reader.c_str());
      if (job_.arithmetic == TN_ARITHMETIC_NATIVE) parameters.set_metadata("arithmetic", "native");
      return parameters;
    };
    options_.parameters = set();
    if (initial_) {
      if (!goes_on_)
        for (const std::string& line : initial_->give(options_.parameters, outputs_, names_of(*job_.train, train_)))
          console_.note(line);
      options_.parameters.set_names(initial_->names());
      initial_.reset();
    }
    options_.cancel = Cancel::make();
    options_.immutable_parameters = immutable_parameters(job_, topology_, options_.parameters);
    if (job_.checkpoint) options_.checkpoint = checkpoint_options(*job_.checkpoint);
    if (job_.test_every > 0) options_.test = {test_->reader, {}, test_->feeding, job_.test_every};
    options_.early_stop = job_.early_stop;
    keep_values(set);
  }
  ~Training() {
    if (control_ != nullptr) control_->set_refresh({});
  }

  int run() {
    if (recorder_ == nullptr) return train_and_save();
    JobTraining training = {job_, host_, options_.parameters, arguments_.common.sets};
    if (options_.team) training.processes = options_.team.info().processes;
    if (options_.team) training.trainers = training.processes - options_.team.info().servers;
    training.is_whole = !rows_are_shared();
    recorder_->begin(recorded(training));
    const int exit = train_and_save();
    recorder_->end(exit, models_, recorded(tested_));
    return exit;
  }

 private:
  int train_and_save() {
    std::optional<Interrupt> interrupt(options_.cancel);
    options_.handler = [&](Event& event) {
      if (event.kind() == TN_BEGIN_TRAINING) refusals_.warn();
      if (recorder_ != nullptr) recorder_->tell(recorded(event));
      if (control_ != nullptr) tell_phase(event.kind());
      best_ = event.best();
      if (event.kind() == TN_END_PASS) require_samples(*job_.train, event.samples());
      tell(event);
      if (event.kind() == TN_END_ITERATION) tested_.reset();
      if (event.kind() == TN_END_TRAINING && event.repeated() > 0)
        console_.note(repeated_text(event.repeated(), event.torn()));
      if (event.kind() == TN_END_TRAINING && event.reason() == TN_REASON_EARLY)
        console_.note("ended early: \"" + job_.early_stop->metric + "\" no longer improves");
      if (event.kind() != TN_TEST) return;
      tested_ = {event.cost(), event.samples(), event.seconds(), event.metrics(), event.costs()};
      // The last one is that of the end, unless the saved values are others.
      if (options_.best || report_.passes_done() < options_.passes)
        report_.test(*tested_, report_.passes_done(), "  test");
    };
    fit_and_train();
    if (!leads_ && rows_are_shared() && names_file()) options_.parameters.save(outputs_, "");
    if (!leads_) return interrupt->signal() != 0 ? kSignalled + interrupt->signal() : kDone;
    if (interrupt->signal() != 0 && report_.passes_done() < options_.passes)
      return spoilt(kSignalled + interrupt->signal(), "interrupted in " + report_.position());
    const bool diverged = !std::isfinite(report_.cost());
    const std::string why = "the cost of the last pass is not a finite number";
    if (diverged && !best_) return spoilt(kBadConfig, why);
    if (diverged) console_.warn(why);
    if (save_ && job_.save_best && !best_) console_.note("[save_best]: nothing was measured: saving the last values");
    if (save_) save(kept(), *save_);
    if (average_save_) save(kept_averages(), *average_save_);
    if (save_) warn_of_names();
    interrupt.reset();  // the test changes nothing and may just end
    if (!save_ && !arguments_.no_save) console_.note("nothing saved: neither the job nor --save names a file");
    const int exit = diverged ? kBadConfig : kDone;
    if (!test_) return exit;
    const bool is_tested = tested_ && (!best_ || best_->pass == report_.passes_done());
    if (!is_tested && rows_are_shared() && !save_) {
      console_.note("not tested: the rows of tables lie with several processes; save the model, or set test_every");
      return exit;
    }
    if (!is_tested) tested_ = test();
    report_.test(*tested_, report_.passes_done(), "test");
    if (std::isfinite(tested_->cost)) return exit;
    console_.warn("the cost on [reader.test] is not a finite number" + (save_ ? "; " + *save_ + " is saved" : ""));
    return kBadConfig;
  }
  // Makes the sets of the averages and of the best values, if the job wants them. make_set: returns a new one.
  template <typename MakeSet>
  void keep_values(const MakeSet& make_set) {
    options_.average = job_.average;
    if (options_.average) options_.average->parameters = make_set();
    options_.best = job_.save_best;
    if (options_.best) options_.best->parameters = make_set();
    if (options_.best && options_.average) options_.best->averages = make_set();
  }
  void join(const JoinedTeam& team) {
    const TeamOptions& options = team.options;
    if (team.leads() && options.secret.empty() && options.address.starts_with("tcp://"))
      console_.warn("whoever reaches " + options.address +
                    " can join this training and change its model; TENON_TEAM_SECRET lets in those alone who know it");
    options_.team = host_.join(options);
    const tn_team_info info = options_.team.info();
    const std::string processes = std::to_string(info.processes),
                      trainers = std::to_string(info.processes - info.servers);
    if (options_.shards == 0 && options_.staleness == 0 && info.processes - info.servers > 1)
      console_.note(trainers + " shards, one for each process" + (info.servers > 0 ? " that trains" : "") +
                    "; shards = " + trainers + " in the job gives the same bits on any number of them");
    console_.note("process 0 of " + processes + ", started by " + team.started_by + ", joined by " + info.comm);
    if (control_ == nullptr) return;
    probe_.emplace(tn_plugin_call);
    control_->change([](process::Control::State& state) { state.phase = "preparation"; });
    control_->set_refresh([this](process::Control::State& state) { tell_step(options_.team.info(), state); });
  }
  // Processes above 0 get no events.
  void tell_step(const tn_team_info& info, process::Control::State& state) {
    if (info.step >= 0) state.step = info.step;
    state.waits_for = info.waits_for;
    constexpr int kLong = 10;  // lines, which are half a second apart
    const bool is_still = info.step == told_step_ && info.waits_for < 0;
    still_ = is_still ? still_ + 1 : 0;
    told_step_ = info.step;
    if (still_ == 0) state.call = "";
    if (still_ > 0 && still_ % kLong == 0) state.call = probe_->ask();
    if (leads_) return;
    if (info.step >= 0)
      state.phase = process::kTrainPhase;
    else if (state.phase == process::kTrainPhase)
      state.phase = "save";
  }
  [[nodiscard]] int64_t samples_of_pass() const {
    const int64_t batches = job_.training.pass_batches;
    return batches > 0 ? batches * train_.batch : train_.samples;
  }
  [[nodiscard]] CheckpointOptions checkpoint_options(CheckpointOptions options) const {
    // What was initialised and fitted for a first start is replaced if there is a checkpoint by now, but a training
    // that skipped this must resume.
    options.start = arguments_.resume_inexact
                        ? (goes_on_ ? TN_START_RESUME_INEXACTLY : TN_START_RESUME_INEXACTLY_OR_FRESH)
                    : arguments_.resumes() ? (goes_on_ ? TN_START_RESUME : TN_START_RESUME_OR_FRESH)
                                           : TN_START_FRESH;
    options.from = arguments_.resume_from;
    options.resume_with = arguments_.resume_with;
    options.outputs = outputs_;
    return options;
  }

  [[nodiscard]] std::optional<Initial> load_initial() const {
    if (!job_.init) return std::nullopt;
    if (!arguments_.resume_from.empty())
      throw Failure(kBadConfig, job_.init->place +
                                    ": key \"init\": a training that resumes takes all values from its "
                                    "checkpoint; remove the key");
    return Initial(host_, *job_.init);
  }
  [[nodiscard]] std::optional<std::string> save_path() const {
    if (!names_file() || !leads_) return std::nullopt;
    return arguments_.save.empty() ? job_.save : arguments_.save;
  }
  [[nodiscard]] bool names_file() const { return !arguments_.no_save && (!arguments_.save.empty() || job_.save); }
  // Whether processes own rows of tables: they all save the model then, once after each training that succeeds.
  [[nodiscard]] bool rows_are_shared() const {
    return !job_.tables.empty() && options_.team && options_.team.info().processes > 1;
  }

  // What is saved and tested in the end: the values of the best measurement, if the job asks for them and there is one.
  [[nodiscard]] const Parameters& kept() const { return best_ ? options_.best->parameters : options_.parameters; }
  [[nodiscard]] const Parameters& kept_averages() const {
    return best_ ? options_.best->averages : options_.average->parameters;
  }
  // Returns how the best was chosen, such as "test accuracy"; empty without a best.
  [[nodiscard]] std::string watched() const {
    if (!best_) return "";
    return (options_.test ? "test " : "") + options_.best->metric;
  }

  // Returns how the data is read, for model files and checkpoints; empty if that is too long.
  [[nodiscard]] std::string stored_reader() {
    constexpr size_t kMost = 1 << 20;  // bytes
    std::string text = reader_metadata(*job_.train);
    if (text.size() <= kMost) return text;
    console_.warn("[reader.train] is too long to be stored in the model: `tenon infer` will need a job");
    return "";
  }

  // A step has a deadline, a test and what follows the last step have none.
  void tell_phase(int32_t event) const {
    control_->change([event](process::Control::State& state) {
      if (event == TN_BEGIN_ITERATION) state.phase = process::kTrainPhase;
      if (event == TN_END_ITERATION || event == TN_END_PASS) state.phase = "between steps";
      if (event == TN_END_TRAINING) state.phase = "save";
    });
  }

  // Reports an event. If the terminal is gone (SIGHUP), a failed report must not prevent saving the model.
  void tell(const Event& event) {
    try {
      if (event.kind() == TN_BEGIN_TRAINING && arguments_.resumes() && event.checkpoint().empty())
        console_.line("nothing to resume in " + job_.checkpoint->folder + ": the training begins anew");
      report_.tell(event);
    } catch (const Failure&) {
      if (Interrupt::signal() != SIGHUP) throw;
    }
  }

  // A training that resumes has the fitted buffers of its checkpoint.
  void fit_and_train() {
    if (!job_.fit.empty() && !goes_on_) {
      const int64_t samples = topology_.placed(
          [&] { return fit(host_, job_, topology_, options_.parameters, names_of(*job_.train, train_)); });
      if (samples < 0) return;
      console_.note("fitted to " + std::to_string(samples) + " samples: " + base::listed(job_.fit));
    }
    train();
  }

  // If the training fails after an update, saves what was trained until then.
  void train() {
    try {
      topology_.placed([&] { tenon::train(options_); });
    } catch (const Failure& failure) {
      failed(failure.exit(), failure.what());
    } catch (const Error& error) {
      if (is_of_lost_process(error)) throw Failure(process::kLostExit, error.what());
      if (error.code() == TN_REFUSED) throw Failure(kRefused, error.what());  // its epoch is over: it saves nothing
      failed(exit_code(error.code()), error.what());
    }
  }

  // Without --save it saves beside the file of the job, which may hold a good model.
  [[noreturn]] void failed(int exit, const std::string& why) {
    if (!save_ || !report_.updated()) throw Failure(exit, why);
    if (rows_are_shared())
      throw Failure(exit, why + "; nothing saved: the rows of tables lie with processes that have failed, too");
    if (arguments_.save.empty()) *save_ += ".partial";
    try {
      save(kept(), *save_);
    } catch (const Failure& failure) {
      throw Failure(exit, why == failure.what() ? why : why + "; " + failure.what());
    }
    throw Failure(exit, why + (best_ ? "; the best" : "; what was trained") + " until then is saved as " + *save_);
  }

  void save(const Parameters& parameters, const std::string& path) {
    try {
      parameters.save(outputs_, path);
    } catch (const Error& error) {
      if (rows_are_shared()) throw Failure(exit_code(error.code()), error.what());  // the others save no second time
      const std::string place = save_elsewhere(parameters, outputs_, path, error);
      try {
        report_.saved(place, best_, watched());
      } catch (const Failure&) {  // standard output may be on the same full disk
      }
      throw Failure(exit_code(error.code()), error.what() + std::string("; the model is saved as ") + place);
    }
    report_.saved(path, best_, watched());
    models_.push_back({path == save_ ? "save" : "average.save", path});
  }

  // Other data must bring the lists that the file cannot hold (docs/model-file.md).
  void warn_of_names() {
    for (const Names& names : options_.parameters.names())
      if (names.count > 0 && names.texts.empty())
        console_.warn("the " + std::to_string(names.count) + " names of \"" + names.slot +
                      "\" are not stored in the model, which keeps at most 65536 names of 1 MiB in UTF-8: other data "
                      "must bring the same list");
  }

  // Ends an interrupted or diverged training. Its model must not replace a good one unless --save asks for that.
  int spoilt(int exit, const std::string& why) {
    if (arguments_.save.empty() && !report_.checkpoint().empty()) {
      console_.warn(why + ": the last checkpoint is " + report_.checkpoint());
    } else if (arguments_.save.empty()) {
      console_.warn(why + ": nothing saved; with --save FILE what was trained so far is saved");
    } else {
      console_.warn(why + ": saving " + (best_ ? "the best" : "what was trained") + " so far");
      save(kept(), *save_);
    }
    return exit;
  }

  // Tests the averages of the parameters, if there are any.
  [[nodiscard]] TestResult test() {
    TrainOptions options = options_;
    options.parameters = options.average ? kept_averages() : kept();
    if (rows_are_shared()) options.parameters = host_.load(*save_).parameters;
    options.pass_batches = 0;
    options.cancel = {};
    options.reader = test_->reader;
    options.feeding = test_->feeding;
    options.handler = nullptr;
    TestResult result = topology_.placed([&] { return tenon::test(options); });
    require_samples(*job_.test, result.samples);
    return result;
  }

  const TrainArguments& arguments_;
  Job job_;
  process::Control* const control_;
  record::Recorder* const recorder_;
  const bool leads_;  // whether this process is alone or number 0 of its team: the one that reports and saves
  Console console_;
  std::optional<std::string> save_, average_save_;  // files of the model and of its averages
  const bool goes_on_;                              // from a checkpoint
  Host host_;
  LateRefusals refusals_{host_};
  std::optional<Initial> initial_;  // the files of [init], until their values are taken
  OpenReader train_;
  Topology topology_;
  Report report_;
  std::optional<OpenReader> test_;
  std::optional<process::ThreadProbe> probe_;  // with a control
  int64_t told_step_ = -1;                     // these two are of the control's thread
  int still_ = 0;                              // lines with the same step, while nobody is waited for
  std::optional<TestResult> tested_;           // of the parameters as they are
  std::optional<BestMeasurement> best_;
  std::vector<record::RecordedModel> models_;  // that were saved
  Layers outputs_;
  TrainOptions options_;
};

// Goes on as another program of Tenon. what: it does
[[noreturn]] void go_on_as(const std::string& name, const std::string& what, const Arguments& arguments) {
  const std::optional<ExternalVerb> program = external_verb(name);
  if (!program)
    throw Failure(kNotFound, what + " by the program tenon-" + name +
                                 ", which is neither beside this one nor in a folder of PATH");
  run_external(*program, arguments);
}

}  // namespace

int train_job(const TrainArguments& arguments, Job job, record::Recorder& recorder) {
  return Training(arguments, std::move(job), LogFormat::kNone, std::nullopt, nullptr, &recorder).run();
}

int run_train(const Arguments& arguments) {
  TrainCommand command;
  if (!command.parse(arguments)) return kDone;
  if (command.arguments.cluster.is_wanted) go_on_as("dist", "a training in a cluster is started", arguments);
  if (command.arguments.launch.is_wanted()) go_on_as("launch", "several processes are started", arguments);
  return supervised([&](process::Control* control) {
    const LogFormat format = command.arguments.common.format(command.options);
    Job job = command.load();
    std::optional<JoinedTeam> team = team_of_environment();
    const int64_t servers = command.arguments.launch.servers;
    if (!team && servers > 0)
      command.options.fail("--servers is about several processes: state --processes or --nodes");
    if (servers > 0 && job.tables.empty() && job.training.staleness == 0)
      throw Failure(kBadConfig,
                    "--servers " + std::to_string(servers) +
                        ": servers own the rows of tables, and the job has no key \"tables\"; in the bounded "
                        "mode, with the key \"staleness\", they have all parameters");
    if (team) team->options.servers = servers;
    if (team && job.threads == 0) job.threads = threads_among(team->local);
    std::optional<record::FileRecorder> recorder;
    if (!command.arguments.run.empty() && (!team || team->leads()))
      recorder.emplace(record_surroundings(), command.arguments.run, "--run", command.arguments.run_every,
                       command.arguments.resumes());
    return Training(command.arguments, std::move(job), format, team, control, recorder ? &*recorder : nullptr).run();
  });
}

}  // namespace tenon::cli
