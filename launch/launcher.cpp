// SPDX-License-Identifier: Apache-2.0
#include "launch/launcher.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "host/cli/cli.h"
#include "host/cli/console.h"
#include "launch/node/world.h"
#include "launch/request.h"
#include "launch/texts.h"
#include "launch/words.h"
#include "process/control.h"

namespace tenon::launch {

namespace {

using cli::Failure;
using process::kLostExit;
using process::kStuckExit;

constexpr std::chrono::seconds kConnect(30);     // for an agent to answer
constexpr std::chrono::seconds kReconnect(5);    // likewise for one that the training can do without
constexpr std::chrono::seconds kPod(600);        // for one that comes by itself, whose machine may have to be found
constexpr std::chrono::seconds kPrepare(60);     // for a node to have its job and lease
constexpr std::chrono::seconds kHalt(8);         // for an agent to end its processes
constexpr std::chrono::seconds kDeaf(3);         // for an agent to say something meanwhile
constexpr std::chrono::seconds kLeave(10);       // from the announced to the real end of a process
constexpr std::chrono::milliseconds kWeak(500);  // for a better reason than that of a process that lost another one
constexpr int64_t kLostLauncher = 5;             // seconds after which an agent on another machine gives up
constexpr size_t kSecretBytes = 32;

// Returns who holds the lease of a training: this process.
json holder_of(const LaunchedJob& job) {
  char host[256] = "", since[64] = "";
  gethostname(host, sizeof host - 1);
  const std::time_t now = std::time(nullptr);
  std::tm parts;
  if (gmtime_r(&now, &parts) != nullptr) std::strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return {{"job", job.path}, {"host", host}, {"process", getpid()}, {"since", since}};
}

std::string new_secret() {
  std::string bytes(kSecretBytes, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Failure(cli::kIo, "the system gives no random bytes");
  return digits_of(bytes);
}

std::string seconds_text(Clock::duration time) {
  return base::brief(std::chrono::duration<double>(time).count(), 2) + " s";
}

bool is_permanent(int exit) {
  return (exit >= cli::kUsage && exit <= cli::kBadConfig) || exit == cli::kSignalled + SIGINT ||
         exit == cli::kSignalled + SIGTERM || exit == cli::kSignalled + SIGHUP;
}

}  // namespace

Launcher::Launcher(const cli::TrainCommand& command, MeetingPlace* meeting)
    : command_(command),
      awaits_agents_(meeting != nullptr),
      job_(read_job(command)),
      output_(command.arguments.common.quiet),
      signals_{SIGINT, SIGTERM, SIGHUP},
      holder_(holder_of(job_)),
      team_(nodes_of(command, meeting != nullptr), signals_, output_, watch_of(command.arguments.launch), meeting) {
  check_alone();
  check_mpi(command.arguments.launch.comm, team_.nodes(), command.options.operand(0));
  const bool is_bounded = job_.staleness > 0;  // where each process computes all shards of its minibatches
  const int64_t count = is_bounded ? 1 : processes_of(team_.nodes()) - servers();
  shards_ = job_.shards > 0 ? job_.shards : count * job_.devices;
  if (job_.shards == 0 && shards_ > 1 && !is_bounded)
    output_.note(counted(shards_, "shard", "shards") + " of a minibatch, one for each " +
                 (job_.devices > 1 ? "device of each process" : "process") + "; shards = " + std::to_string(shards_) +
                 " in the job gives the same bits with any number of processes");
}

int Launcher::run() {
  for (;;) {
    connect();
    start();
    const std::optional<Cause> cause = supervise();
    if (!cause) break;
    halt(cause->text);
    if (signal_ != 0) break;
    const std::string why_not = obstacle(*cause);
    if (!why_not.empty() || cause->permanent) {
      output_.warn("tenon: " + cause->text + why_not);
      team_.finish();
      return cause->exit;
    }
    ++restarts_;
    stuck_at_ = cause->step;
    output_.warn("tenon: " + cause->text + "; the training starts again" +
                 (job_.folder ? " from its last checkpoint" : "") + " (restart " + std::to_string(restarts_) +
                 " of at most " + std::to_string(command_.arguments.launch.restarts) + ")");
    check_unchanged();
  }
  team_.finish();
  return exit_of_training();
}

int64_t Launcher::servers() const {
  return std::min(command_.arguments.launch.servers, processes_of(team_.nodes()) - 1);
}

std::optional<Failure> Launcher::fault_of(size_t node, std::chrono::seconds waited) {
  Link& link = team_.link(node);
  const std::string name = link.node().empty() ? "this machine" : link.node();
  if (link.has_ended()) {
    const std::string ending = link.ending();
    constexpr int kNoProgram = 127, kNotRunnable = 126;
    const int exit = link.exit_code();
    if (exit == kNoProgram || exit == kNotRunnable)
      return Failure(cli::kNotFound,
                     name + ": tenon-launch is neither where it is here nor in the PATH of a shell there; " + ending);
    return Failure(exit >= cli::kUsage && exit <= cli::kBadConfig ? exit : cli::kIo, name + ": " + ending);
  }
  if (!link.hello()) {
    const bool may_be_left_out = epoch_ > 0 && team_.has_answer();
    const std::chrono::seconds of_ssh = may_be_left_out ? kReconnect : kConnect;
    const std::chrono::seconds patience = awaits_agents_ ? kPod : of_ssh;
    if (waited < patience) return std::nullopt;
    return Failure(cli::kIo, name + ": no answer for " + std::to_string(waited.count()) + " s");
  }
  const std::string version = link.hello()->value("version", "unknown");
  if (version != TENON_VERSION)
    return Failure(cli::kBadConfig,
                   name + ": has tenon " + version + ", this machine " + TENON_VERSION + "; they must be the same");
  return std::nullopt;
}

void Launcher::connect() {
  team_.connect();
  const Clock::time_point began = Clock::now();
  for (size_t node = 0; node < team_.nodes().size();) {
    const auto fault = fault_of(node, std::chrono::floor<std::chrono::seconds>(Clock::now() - began));
    if (fault && (epoch_ == 0 || team_.nodes().size() == 1)) throw Failure(fault->exit(), fault->what());
    if (fault) {
      output_.warn(std::string("tenon: ") + fault->what() + "; the training goes on without it");
      team_.remove(node);
    } else if (team_.link(node).hello()) {
      ++node;
    } else {
      turn();
    }
  }
}

json Launcher::plan_of(size_t node) const {
  json plan;
  const bool is_far = !team_.nodes()[node].name.empty();
  if (is_far) {
    json files = json::array();
    for (const cli::JobFile& file : job_.files) files.push_back({{"path", file.path}, {"text", file.text}});
    plan["job"] = {{"path", job_.path}, {"files", files}};
    if (job_.relative) plan["job"]["relative"] = *job_.relative;
  }
  if (node > 0) return plan;
  plan["listen"] = nullptr;
  if (team_.nodes().size() > 1) {
    const auto [host, port] = listen_of(command_.arguments.launch.address, team_.nodes()[0]);
    plan["listen"] = {{"host", host}, {"port", port}};
  }
  if (job_.folder) {
    plan["checkpoints"] = *job_.folder;
    plan["holder"] = holder_;
    plan["last"] = epoch_;
  }
  return plan;
}

void Launcher::prepare() {
  team_.prepare([this](size_t node) { return plan_of(node); });
  const Clock::time_point until = Clock::now() + kPrepare;
  for (size_t node = 0; node < team_.nodes().size();) {
    const std::optional<Answer>& answer = team_.answers()[node];
    const std::string& name = team_.nodes()[node].name;
    const std::string place = name.empty() ? "" : name + ": ";
    if (answer && answer->prepared.is_null()) throw Failure(answer->exit, place + answer->message);
    if (team_.link(node).has_ended()) throw Failure(kLostExit, place + team_.link(node).ending());
    if (Clock::now() >= until)
      throw Failure(cli::kIo, place + "no answer for " + std::to_string(kPrepare.count()) + " s");
    if (answer)
      ++node;
    else
      turn();
  }
}

void Launcher::start() {
  prepare();
  const json& first = team_.answers()[0]->prepared;
  epoch_ = first.value("epoch", epoch_ + 1);
  address_ = first.at("address");
  if (first.contains("checkpoint")) choose_resume(first["checkpoint"]);
  output_.note(roles_of(team_.nodes(), !job_.states_threads, servers(), job_.staleness > 0) +
               (job_.staleness > 0 ? "; bounded mode, staleness " + std::to_string(job_.staleness) : "") + "; epoch " +
               std::to_string(epoch_));
  secret_ = new_secret();
  output_.forget();
  team_.start([&](size_t node) { return start_of(node); });
  running_ = true;
  has_joined_ = false;
  weak_.reset();
  lost_.clear();
  returning_.clear();
  newcomers_.clear();
}

void Launcher::choose_resume(const json& newest) {
  const std::string& from = command_.arguments.resume_from;
  if (!first_checkpoint_)
    first_checkpoint_ = newest;
  else if (from.empty())
    resume_from_ = "";
  else if (newest != *first_checkpoint_)
    resume_from_ = newest.at("path");
}

json Launcher::start_of(size_t node) const {
  const Node& here = team_.nodes()[node];
  const bool is_far = !here.name.empty();
  WordsOptions words;
  words.job = is_far ? team_.answers()[node]->prepared.at("job").get<std::string>() : command_.options.operand(0);
  words.absolute = is_far;
  words.servers = servers();
  if (!job_.states_threads) words.threads = here.threads();
  if (job_.shards == 0 && job_.staleness == 0) words.shards = shards_;
  words.resume_from = resume_from_;
  json plan = {{"words", words_of(command_, words)},
               {"processes", processes_of(team_.nodes())},
               {"first", here.first},
               {"count", here.processes},
               {"comm", command_.arguments.launch.comm},
               {"address", address_},
               {"epoch", epoch_},
               {"listen", here.host()},
               {"secret", secret_},
               {"silence", is_far ? kLostLauncher : 0}};
  if (is_far) plan["folder"] = std::filesystem::path(words.job).parent_path().string();
  return plan;
}

std::optional<Cause> Launcher::supervise() {
  for (;;) {
    turn();
    if (output_.failed() && signal_ == 0) return Cause{cli::kIo, "cannot write to standard output", true};
    if (auto cause = find_cause()) return cause;
    if (team_.all_ended()) return std::nullopt;
  }
}

std::optional<Cause> Launcher::find_cause() {
  const auto& all = team_.processes();
  has_joined_ = has_joined_ || team_.watch().have_joined();
  const bool is_done = std::any_of(all.begin(), all.end(), [](const Process& each) { return each.done.has_value(); });
  if (job_.staleness > 0 && all[0].done == 0) {  // what becomes of the others is no matter any more
    if (Clock::now() - all[0].done_at > kLeave) team_.tell_all({{"end", "the training has ended"}});
    return std::nullopt;
  }
  for (const auto& answer : team_.answers())
    if (answer && answer->prepared.is_null()) return Cause{answer->exit, answer->message, true};
  bool leaves = false;
  for (size_t i = 0; i < all.size(); ++i) {
    const Process& process = all[i];
    leaves = leaves || (process.running && process.done && Clock::now() - process.done_at > kLeave);
    if (process.running || signal_ != 0) continue;
    std::optional<Cause> cause = end_of(i);
    if (cause && may_be_lost(i) && (!cause->permanent || newcomers_.contains(i))) {
      const bool may_come = awaits_agents_ || !team_.link(process.node).has_ended();
      lose(i, cause->text, !cause->permanent && !is_done && may_come);
      if (!is_done) start_again(i);
      continue;
    }
    // A process that lost another one may end first, with an error of its messages, although the other is the cause.
    const int exit = process.end ? process.end->value("code", -1) : -1;
    const bool is_weak = cause && (exit == kLostExit || exit == cli::kIo) && team_.processes().size() > 1;
    if (cause && !is_weak) return cause;
    if (cause && !weak_) {
      weak_ = cause;
      weak_until_ = Clock::now() + kWeak + watch_of(command_.arguments.launch).silence;
    }
  }
  if (leaves) team_.tell_all({{"end", "the training has ended"}});
  if (weak_ && (Clock::now() >= weak_until_ || team_.all_ended())) return weak_;
  std::optional<Cause> fault = fault_now();
  if (!fault || !may_be_lost(fault->process)) return fault;
  lose(fault->process, fault->text, !is_done);
  team_.kill(fault->process);
  return std::nullopt;
}

bool Launcher::may_be_lost(size_t process) const {
  const auto trainers = team_.processes().size() - static_cast<size_t>(servers());
  return job_.staleness > 0 && has_joined_ && process > 0 && process < trainers &&
         !World::connects(command_.arguments.launch.comm);
}

void Launcher::lose(size_t process, const std::string& text, bool may_return) {
  if (!lost_.insert(process).second) return;
  const int64_t most = command_.arguments.launch.restarts;
  std::string what_next;
  if (int64_t& restarts = restarts_of_[process]; may_return && restarts < most)
    what_next =
        ", and starts it again (restart " + std::to_string(++restarts) + " of at most " + std::to_string(most) + ")";
  output_.warn("tenon: " + text + "; the training goes on without it" + what_next);
  if (!what_next.empty()) returning_[process] = {Clock::now()};
}

bool Launcher::is_ready_again(size_t process) {
  Return& state = returning_[process];
  const size_t node = team_.processes()[process].node;
  if (team_.link(node).has_ended() && !awaits_agents_) {  // it stays out, as after the loss of its machine
    returning_.erase(process);
    return false;
  }
  if (team_.link(node).has_ended()) {
    team_.reconnect(node);
    state.has_come = false;
  }
  if (team_.answers()[node]) return true;
  const auto waited = std::chrono::floor<std::chrono::seconds>(Clock::now() - state.since);
  if (const auto fault = fault_of(node, waited)) {
    output_.warn(std::string("tenon: ") + fault->what() + "; the training goes on without it");
    returning_.erase(process);
  } else if (team_.link(node).hello() && !std::exchange(state.has_come, true)) {
    output_.note("tenon: " + team_.nodes()[node].name + " has another pod");
    team_.prepare(node, plan_of(node));
  }
  return false;
}

void Launcher::start_again(size_t process) {
  if (!returning_.contains(process) || !is_ready_again(process)) return;
  returning_.erase(process);
  lost_.erase(process);
  newcomers_.insert(process);
  const size_t node = team_.processes()[process].node;
  json plan = start_of(node);
  plan["local"] = plan["count"];
  plan["first"] = process;
  plan["count"] = 1;
  team_.start_again(process, plan);
}

std::optional<Cause> Launcher::end_of(size_t process) const {
  const Process& state = team_.processes()[process];
  const std::string name = team_.name(process);
  const std::string where = " at " + team_.watch().progress(process).text();
  if (state.done && *state.done == 0) return std::nullopt;
  if (state.done || (state.end && state.end->contains("code"))) {
    const int exit = state.done ? *state.done : state.end->at("code").get<int>();
    if (exit == 0)
      return Cause{kLostExit, name + " has ended with exit code 0" + where + ", before the training", false};
    const std::string text = name + " has ended with exit code " + std::to_string(exit) + where;
    if (is_permanent(exit)) return Cause{exit, text, true};
    return Cause{exit == kStuckExit ? kStuckExit : kLostExit, text, false};
  }
  if (state.end)
    return Cause{kLostExit,
                 name + " was ended by signal " + std::to_string(state.end->value("signal", 0)) + " (" +
                     state.end->value("name", "") + ")" + where,
                 false};
  return Cause{kLostExit, name + " is lost" + where + ": " + team_.link(state.node).ending(), false};
}

std::optional<Cause> Launcher::fault_now() const {
  const std::optional<Fault> fault = team_.watch().fault(Clock::now());
  if (!fault) return std::nullopt;
  const Progress progress = team_.watch().progress(fault->process);
  const std::string name = team_.name(fault->process), since = seconds_text(fault->since);
  if (!fault->stuck)
    return Cause{kLostExit, name + " has said nothing for " + since + " at " + progress.text(), false, -1,
                 fault->process};
  Cause cause{kStuckExit, name + " is stuck: " + progress.text() + " for " + since, false, progress.step,
              fault->process};
  if (progress.step == stuck_at_) {
    cause.text += ", as before the training was started again";
    cause.exit = cli::kInternal;
    cause.permanent = true;
  }
  cause.text += waits_text(fault->process);
  return cause;
}

std::string Launcher::waits_text(size_t process) const {
  const int64_t other = team_.watch().progress(process).waits_for;
  if (other >= 0 && other < static_cast<int64_t>(team_.processes().size()))
    return "; it waits for " + team_.name(static_cast<size_t>(other)) + ", as all wait for one another";
  const std::vector<size_t> others = team_.watch().waiting_for(process);
  if (others.empty()) return "";
  return "; " +
         (others.size() == 1 ? team_.name(others[0]) + " waits" : std::to_string(others.size()) + " processes wait") +
         " for it";
}

int Launcher::exit_of_training() const {
  if (team_.processes().empty()) return cli::kSignalled + signal_;
  const Process& first = team_.processes().front();
  if (first.done) return *first.done;
  const bool has_code = first.end && first.end->contains("code");
  return has_code ? first.end->at("code").get<int>() : cli::kSignalled + signal_;
}

void Launcher::halt(const std::string& reason) {
  halts_ = true;
  team_.tell_all({{"end", reason}});
  const Clock::time_point began = Clock::now();
  while (!team_.all_ended() && Clock::now() < began + kHalt) {
    for (const Process& process : team_.processes()) {
      Link& link = team_.link(process.node);
      const bool is_far = link.is_far();  // then it ends by itself if it hears nothing
      const Clock::time_point heard = is_far ? link.heard() : std::max(link.heard(), began);
      if (process.running && Clock::now() - heard > kDeaf) link.cut();
    }
    turn();
  }
  for (const Process& process : team_.processes())
    if (process.running) team_.link(process.node).cut();
  turn();
  running_ = halts_ = false;
}

std::string Launcher::obstacle(const Cause& cause) const {
  if (cause.permanent) return "";
  const bool has_trained = job_.staleness == 0 || has_joined_;  // else nothing is lost by a new beginning
  if (!job_.folder && has_trained) return "; it cannot be started again, since the job has no table [checkpoint]";
  if (restarts_ >= command_.arguments.launch.restarts)
    return "; it was started again " + counted(restarts_, "time", "times") + " already (--restarts)";
  return "";
}

void Launcher::check_unchanged() const {
  const LaunchedJob now = read_job(command_);
  for (size_t i = 0; i < std::max(now.files.size(), job_.files.size()); ++i) {
    if (i < now.files.size() && i < job_.files.size() && now.files[i] == job_.files[i]) continue;
    const std::string& path = (i < now.files.size() ? now : job_).files[i].path;
    throw Failure(cli::kBadConfig,
                  path +
                      " has changed since the training was started; a training that starts again needs "
                      "the same job. `tenon train --resume` begins one with the new job");
  }
}

void Launcher::turn() {
  std::vector<int> signals;
  team_.turn([&](int signal) { signals.push_back(signal); });
  for (const int signal : signals) interrupt(signal);
}

void Launcher::interrupt(int signal) {
  if (!running_) throw Failure(cli::kSignalled + signal, "interrupted while no process was running");
  if (signal_ == 0) {
    signal_ = signal;
    team_.tell_all({{"stop", "signal " + std::to_string(signal)}});
    output_.note("tenon: ends behind the current minibatch; the same signal again ends it at once");
  } else if (signal != SIGHUP && !halts_) {
    halt("signal " + std::to_string(signal) + " again");
  }
}

}  // namespace tenon::launch
