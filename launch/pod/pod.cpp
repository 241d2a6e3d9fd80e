// SPDX-License-Identifier: Apache-2.0
#include "launch/pod/pod.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "base/launchers.h"
#include "host/cli/program.h"
#include "host/cli/verbs/train_arguments.h"
#include "launch/child.h"
#include "launch/events.h"
#include "launch/launcher.h"
#include "launch/node/agent.h"
#include "launch/pod/dial.h"
#include "launch/pod/handover.h"
#include "launch/pod/result_files.h"
#include "process/child.h"
#include "process/control.h"

namespace tenon::launch {

namespace {

namespace fs = std::filesystem;
using cli::Failure;

constexpr std::chrono::seconds kRedial(1);
constexpr std::chrono::seconds kUsual(10);       // until the launcher is there
constexpr std::chrono::minutes kAway(10);        // without the launcher, after which an agent gives up
constexpr std::chrono::seconds kHeld(60);        // without anybody who holds the training
constexpr std::chrono::minutes kFirstHeld(10);   // until somebody holds it
constexpr std::chrono::seconds kUntilTaken(60);  // likewise after its end, if nobody has held it
constexpr std::chrono::seconds kBegins(20);      // until the first process of a pod has its handlers, at most

std::string variable(const char* name) {
  std::string text = base::environment_text(name);
  if (text.empty()) throw Failure(cli::kUsage, std::string(name) + " is not set, which a pod has to have");
  return text;
}

std::string read_secret(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string secret(std::istreambuf_iterator<char>(file), {});
  if (secret.size() < kTunnelSecret)
    throw Failure(cli::kBadConfig, path + ": expected a secret of " + std::to_string(kTunnelSecret) +
                                       " bytes or more, found " + std::to_string(secret.size()));
  return secret;
}

// Copies the job, which nobody can write where it is, to where its results go. Kubernetes keeps what is mounted in
// folders whose names begin with two dots, and links to it.
void copy_job(const fs::path& from, const fs::path& to) {
  for (fs::recursive_directory_iterator entry(from, fs::directory_options::follow_directory_symlink), end; entry != end;
       ++entry) {
    if (entry->path().filename().string().starts_with("..")) {
      if (entry->is_directory()) entry.disable_recursion_pending();
      continue;
    }
    if (!fs::is_regular_file(entry->path())) continue;
    const fs::path target = to / entry->path().lexically_relative(from);
    const fs::path next = target.string() + ".new-" + variable("TENON_POD_NODE");
    fs::create_directories(target.parent_path());
    fs::copy_file(entry->path(), next, fs::copy_options::overwrite_existing);
    fs::rename(next, target);  // several pods may share the folder
  }
}

// The first process of a pod has no other way to end by a signal.
void end_by_signals() {
  for (const int number : {SIGTERM, SIGINT, SIGHUP})
    std::signal(number, [](int signal) { _exit(cli::kSignalled + signal); });
}

// Whether the first process of the pod is tenon-launch, and SIGTERM reaches it. Before it, that process is the runtime
// of containers, and a script where an image wraps the program.
bool hears_signals() {
  std::ifstream words("/proc/1/cmdline", std::ios::binary), status("/proc/1/status");
  bool is_pod = false;
  for (std::string word; !is_pod && std::getline(words, word, '\0');) is_pod = word == "--pod";
  uint64_t caught = 0;  // a bit for each signal, that of signal 1 first
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigCgt:")) caught = std::stoull(line.substr(7), nullptr, 16);
  return is_pod && (caught >> (SIGTERM - 1) & 1) != 0;
}

// Serves the launcher until that says that the training has ended.
int serve(const std::string& secret) {
  const Address address = parse_address(variable("TENON_POD_LAUNCHER"));
  const std::string node = variable("TENON_POD_NODE");
  Clock::time_point seen = Clock::now();
  std::string last_reason;
  while (Clock::now() < seen + kAway) try {
      const std::unique_ptr<Tunnel> tunnel = dial(address, secret, node);
      last_reason.clear();
      std::cerr << "this pod, " << node << ", has come to the launcher; what it does is said there" << std::endl;
      SocketPair pair = make_socket_pair();
      tunnel->open(std::move(pair.theirs));
      if (run_agent_over(std::move(pair.ours))) return cli::kDone;
      seen = Clock::now();
    } catch (const std::runtime_error& error) {
      const bool is_late = Clock::now() > seen + kUsual;
      if (is_late && last_reason != error.what())
        std::cerr << "tenon: the launcher is not there so far: " << error.what() << std::endl;
      if (is_late) last_reason = error.what();
      std::this_thread::sleep_for(kRedial);
    }
  std::cerr << "tenon: the launcher was away for " << kAway.count() << " minutes\n";
  return process::kLostExit;
}

// A launcher that begins in a folder in which one has been begins where that was.
void resume_if_begun(cli::Arguments& words) {
  const fs::path begun = ".tenon/begun-" + variable("TENON_POD_NODE");
  fs::create_directory(begun.parent_path());
  cli::TrainCommand command;
  if (command.parse(words) && command.load().checkpoint && fs::exists(begun) && !command.arguments.resumes())
    words.emplace_back("--resume");
  std::ofstream(begun).flush();
}

// The body of the child that is the launcher.
int launch_here(cli::Arguments words, const std::string& secret) {
  resume_if_begun(words);
  cli::TrainCommand command;
  if (!command.parse(words)) return cli::kDone;
  (void)command.arguments.common.format(command.options);
  MeetingPlace meeting(parse_address(variable("TENON_POD_LISTEN")), secret);
  return Launcher(command, &meeting).run();
}

// Becomes a program that finds its team by its environment.
[[noreturn]] void become_program(cli::Arguments words, const std::string& secret, int64_t rank) {
  name_inherited("TENON_TEAM_SECRET", make_secret_pipe(secret).get());
  const std::pair<const char*, std::string> variables[] = {{"PROCESSES", variable("TENON_POD_PROCESSES")},
                                                           {"RANK", std::to_string(rank)},
                                                           {"LOCAL", "1"},
                                                           {"COMM", "zmq"},
                                                           {"ADDRESS", "tcp://" + variable("TENON_POD_LAUNCHER")},
                                                           {"LISTEN", variable("TENON_POD_IP")},
                                                           {"EPOCH", "0"}};
  for (const auto& [name, value] : variables) setenv((std::string("TENON_TEAM_") + name).c_str(), value.c_str(), 1);
  execvp(words[0].c_str(), pointers_to(words).data());
  base::write_all(STDERR_FILENO, "tenon: " + words[0] + ": " + std::strerror(errno) + "\n");
  _exit(cli::kNotFound);
}

// Collects the orphans of the pod that have ended, whose parent its first process is.
void collect_orphans(const process::Child& child) {
  for (siginfo_t ended = {};
       waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0 && ended.si_pid != child.id();
       ended = {})
    waitpid(ended.si_pid, nullptr, 0);
}

// How the first process of a pod looks after the one that works.
struct Supervision {
  const Handover* handover = nullptr;  // of a training that ends once nobody holds it; null: it does not
  bool was_asked = false;              // a signal has asked the pod to end
  bool is_unheld = false;              // nobody holds the training any more
};

// Waits for the child. Returns its exit code.
int supervise(process::Child& child, const Signals& signals, Supervision& supervision) {
  const Clock::time_point began = Clock::now();
  while (!child.has_ended()) {
    wait_for({{signals.descriptor(), POLLIN,
               [&] {
                 for (int signal = 0; (signal = signals.next()) != 0;)
                   if (signal != SIGCHLD) child.send(signal), supervision.was_asked = true;
               }}},
             Clock::now() + std::chrono::milliseconds(500));
    collect_orphans(child);
    if (supervision.handover == nullptr || supervision.is_unheld) continue;
    const auto held = supervision.handover->held();
    if (held ? *held <= kHeld : Clock::now() - began < kFirstHeld) continue;
    std::cerr << "tenon: nobody holds the training: it ends" << std::endl;
    child.send(SIGTERM);
    supervision.is_unheld = true;
  }
  process::ChildEnd end;
  end.status = child.wait();
  return end.code();
}

// Waits for somebody who takes the results, or for a signal.
void wait_until_taken(const Handover& handover, const Signals& signals) {
  const Clock::time_point until = Clock::now() + kUntilTaken;
  while (!handover.are_taken()) {
    const auto held = handover.held();
    if (held ? *held > kHeld : Clock::now() > until) return;
    for (int signal = 0; (signal = signals.next()) != 0;)
      if (signal != SIGCHLD) return;
    wait_for({{signals.descriptor(), POLLIN, [] {}}}, Clock::now() + std::chrono::milliseconds(100));
  }
}

// Runs what trains in a child, and hands out the results of process 0.
int train(const cli::Arguments& words, const std::string& secret, bool is_program) {
  const int64_t rank =
      is_program ? base::environment_number("TENON_POD_FIRST", 0) + base::environment_number("TENON_POD_INDEX", 0) : 0;
  const bool detached = !base::environment_text("TENON_POD_DETACHED").empty();
  const Handover handover;
  ResultFiles files;
  cli::TrainCommand command;
  if (is_program)
    files.add("save", base::environment_text("TENON_POD_RESULT"));
  else if (command.parse(words))
    files.add_of(command);
  const Signals signals{SIGCHLD, SIGINT, SIGTERM, SIGHUP};
  process::Child child([&] {
    signals.restore();
    if (is_program) become_program(words, secret, rank);
    _exit(cli::guarded([&] { return launch_here(words, secret); }));
  });
  Supervision supervision;
  if (!detached && rank == 0) supervision.handover = &handover;
  const int exit = supervise(child, signals, supervision);
  if (rank != 0) return exit;
  handover.write({{"exit", exit}, {"files", files.written()}});
  if (supervision.is_unheld && exit != cli::kDone) return kUnheldExit;
  if (!detached && !supervision.was_asked) wait_until_taken(handover, signals);
  return exit;
}

}  // namespace

int run_before_stop() {
  for (const auto until = Clock::now() + kBegins; !hears_signals() && Clock::now() < until;)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return cli::kDone;
}

int run_pod(const cli::Arguments& arguments) {
  end_by_signals();  // before anything that takes time: until then they are lost (run_before_stop)
  const std::string role = arguments.empty() ? "" : arguments[0];
  const cli::Arguments words(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if ((role != "agent" || !words.empty()) && role != "launcher" && (role != "program" || words.empty()))
    throw Failure(cli::kUsage, "--pod: expected launcher WORDS..., program WORDS... or agent");
  if (const std::string version = base::environment_text("TENON_POD_VERSION"); version != TENON_VERSION)
    throw Failure(cli::kBadConfig, "the image has tenon " TENON_VERSION ", and who has started this training " +
                                       version + "; they must be the same");
  const fs::path folder = variable("TENON_POD_FOLDER");
  const std::string secret = read_secret(variable("TENON_POD_SECRET"));
  copy_job(variable("TENON_POD_JOB"), folder);
  fs::current_path(folder);
  if (role != "agent") return train(words, secret, role == "program");
  return serve(secret);
}

}  // namespace tenon::launch
