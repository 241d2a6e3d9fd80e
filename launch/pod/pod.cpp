// SPDX-License-Identifier: Apache-2.0
#include "launch/pod/pod.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "base/launchers.h"
#include "host/cli/program.h"
#include "host/cli/verbs/train_arguments.h"
#include "launch/events.h"
#include "launch/launcher.h"
#include "launch/node/agent.h"
#include "launch/pod/dial.h"
#include "launch/pod/results.h"
#include "process/child.h"
#include "process/control.h"

namespace tenon::launch {

namespace {

namespace fs = std::filesystem;
using cli::Failure;

constexpr std::chrono::seconds kRedial(1);
constexpr std::chrono::minutes kAway(10);        // without the launcher, after which an agent gives up
constexpr std::chrono::seconds kHeld(60);        // without anybody who holds the training
constexpr std::chrono::seconds kUntilTaken(60);  // likewise after its end, if nobody has held it

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
    const fs::path next = target.string() + ".new." + std::to_string(getpid());
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

// Serves the launcher until that says that the training has ended.
int serve(const std::string& secret) {
  const Address address = parse_address(variable("TENON_POD_LAUNCHER"));
  const std::string node = variable("TENON_POD_NODE");
  Clock::time_point seen = Clock::now();
  std::string last_reason;
  while (Clock::now() < seen + kAway) try {
      const std::unique_ptr<Tunnel> tunnel = dial(address, secret, node);
      last_reason.clear();
      SocketPair pair = make_socket_pair();
      tunnel->open(std::move(pair.theirs));
      if (run_agent_over(std::move(pair.ours))) return cli::kDone;
      seen = Clock::now();
    } catch (const std::runtime_error& error) {
      if (last_reason != error.what())
        std::cerr << "tenon: the launcher is not there so far: " << error.what() << std::endl;
      last_reason = error.what();
      std::this_thread::sleep_for(kRedial);
    }
  std::cerr << "tenon: the launcher was away for " << kAway.count() << " minutes\n";
  return process::kLostExit;
}

// The files that a training may write as its results.
class ResultFiles {
 public:
  explicit ResultFiles(const cli::TrainCommand& command) {
    const cli::Job job = command.load();
    const cli::TrainArguments& arguments = command.arguments;
    if (arguments.no_save) return;
    const std::string save = arguments.save.empty() ? job.save.value_or("") : arguments.save;
    add("save", save);
    add("partial", save + ".partial");
    add("average", job.average_save.value_or(""));
  }
  // Returns those that have been written since.
  [[nodiscard]] json written() const {
    json files = json::array();
    for (const File& file : files_)
      if (const auto time = time_of(file.path); time && time != file.time)
        files.push_back({{"what", file.what}, {"path", file.path.string()}, {"bytes", fs::file_size(file.path)}});
    return files;
  }

 private:
  struct File {
    const char* what;
    fs::path path;
    std::optional<fs::file_time_type> time;  // empty: there was none
  };
  static std::optional<fs::file_time_type> time_of(const fs::path& path) {
    std::error_code error;
    const auto time = fs::last_write_time(path, error);
    return error || !fs::is_regular_file(path, error) ? std::nullopt : std::optional(time);
  }
  void add(const char* what, const std::string& path) {
    if (!path.empty()) files_.push_back({what, fs::absolute(path), time_of(path)});
  }

  std::vector<File> files_;
};

// A launcher that begins in a folder in which one has been begins where that was.
void resume_if_begun(cli::Arguments& words) {
  const fs::path begun = ".tenon-begun-" + variable("TENON_POD_NODE");
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

// Waits for the child that is the launcher, and collects the orphans of the pod. A training that was held and is held
// no more ends. was_asked: whether a signal has asked the pod to end. Returns the exit code.
int supervise(process::Child& launcher, const Results& results, const Signals& signals, bool detached,
              bool& was_asked) {
  bool is_told = false;
  while (!launcher.has_ended()) {
    wait_for({{signals.descriptor(), POLLIN,
               [&] {
                 for (int signal = 0; (signal = signals.next()) != 0;)
                   if (signal != SIGCHLD) launcher.send(signal), was_asked = true;
               }}},
             Clock::now() + std::chrono::milliseconds(500));
    if (detached || is_told || results.held().value_or(std::chrono::seconds(0)) <= kHeld) continue;
    std::cerr << "tenon: nobody has held the training for " << kHeld.count() << " s: it ends" << std::endl;
    launcher.send(SIGTERM);
    is_told = true;
  }
  process::ChildEnd end;
  end.status = launcher.wait();
  return end.code();
}

void wait_until_taken(const Results& results) {
  const Clock::time_point until = Clock::now() + kUntilTaken;
  while (!results.are_taken()) {
    const auto held = results.held();
    if (held ? *held > kHeld : Clock::now() > until) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace

int run_pod(const cli::Arguments& arguments) {
  const bool is_agent = arguments == cli::Arguments{"agent"};
  if (!is_agent && (arguments.empty() || arguments[0] != "launcher"))
    throw Failure(cli::kUsage, "--pod: expected launcher WORDS... or agent");
  const fs::path folder = variable("TENON_POD_FOLDER");
  const std::string secret = read_secret(variable("TENON_POD_SECRET"));
  copy_job(variable("TENON_POD_JOB"), folder);
  fs::current_path(folder);
  if (is_agent) end_by_signals();
  if (is_agent) return serve(secret);
  const cli::Arguments words(arguments.begin() + 1, arguments.end());
  const bool detached = !base::environment_text("TENON_POD_DETACHED").empty();
  const Results results;
  cli::TrainCommand command;
  std::optional<ResultFiles> files;
  if (command.parse(words)) files.emplace(command);
  const Signals signals{SIGCHLD, SIGINT, SIGTERM, SIGHUP};
  process::Child launcher([&] {
    signals.restore();
    _exit(cli::guarded([&] { return launch_here(words, secret); }));
  });
  bool was_asked = false;
  const int exit = supervise(launcher, results, signals, detached, was_asked);
  results.write({{"exit", exit}, {"files", files ? files->written() : json::array()}});
  if (!detached && !was_asked) wait_until_taken(results);
  return exit;
}

}  // namespace tenon::launch
