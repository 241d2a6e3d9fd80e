// SPDX-License-Identifier: Apache-2.0
#include "launch/node/worker.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "launch/child.h"

namespace tenon::launch {

namespace {

constexpr size_t kLongestControl = 1 << 16;  // bytes of a line
constexpr size_t kLongestOutput = 1 << 16;   // longer lines are cut into several

// In the child: replaces this process by the program. Ends with code 127 without it.
[[noreturn]] void become(const WorkerStart& start) {
  std::vector<std::string> words = {start.program};
  words.insert(words.end(), start.words.begin(), start.words.end());
  const char* what = start.folder.c_str();
  if (start.folder.empty() || chdir(what) == 0) {
    what = start.program.c_str();
    execv(what, pointers_to(words).data());
  }
  const std::string text = "tenon: " + std::string(what) + ": " + std::strerror(errno) + "\n";
  base::write_all(STDERR_FILENO, text);
  _exit(127);
}

}  // namespace

Worker::Worker(const WorkerStart& start, const Signals& signals, Handlers handlers)
    : handlers_(std::move(handlers)), streams_{{"out", base::Descriptor(), ""}, {"err", base::Descriptor(), ""}} {
  SocketPair control = make_socket_pair();
  Pipe out = make_pipe(), err = make_pipe();
  const base::Descriptor secret = make_secret_pipe(start.secret);
  const pid_t agent = getpid();
  child_.emplace([&] {
    begin_child_of_agent(agent, signals, out.to.get(), err.to.get());
    for (const auto& [name, value] : start.environment) setenv(name.c_str(), value.c_str(), 1);
    name_inherited("TENON_TEAM_SECRET", secret.get());
    name_inherited("TENON_TEAM_CONTROL", control.theirs.get());
    become(start);
  });
  setpgid(child_->id(), child_->id());  // on both sides: whoever is first
  streams_[0].from = std::move(out.from);
  streams_[1].from = std::move(err.from);
  for (const Stream& stream : streams_) make_waitless(stream.from.get());
  control_.emplace(std::move(control.ours), base::Descriptor(), kLongestControl);
}

Worker::~Worker() {
  if (!ended_) send(SIGKILL);
}

void Worker::add_waits(std::vector<Wait>& waits, bool with_output) {
  if (controlled_) waits.push_back({control_->in(), POLLIN, [this] { read_control(); }});
  if (controlled_ && control_->unsent() > 0) waits.push_back({control_->out(), POLLOUT, [this] { control_->flush(); }});
  for (Stream& stream : streams_)
    if (with_output && stream.from.get() >= 0)
      waits.push_back({stream.from.get(), POLLIN, [this, &stream] { read(stream, false); }});
}

void Worker::read_control() { controlled_ = control_->receive(handlers_.control); }

// all: until nothing is left, and the rest of a line, too.
void Worker::read(Stream& stream, bool all) {
  char part[65536];
  ssize_t got = 0;
  do {
    got = base::uninterrupted([&] { return ::read(stream.from.get(), part, sizeof part); });
    if (got > 0) stream.line.append(part, static_cast<size_t>(got));
    const bool at_end = got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
    if (at_end) stream.from.close();
    size_t end = stream.line.rfind('\n') + 1;  // 0 without one
    if (at_end || all || stream.line.size() > kLongestOutput) end = stream.line.size();
    if (end > 0) handlers_.output(stream.name, stream.line.substr(0, end));
    stream.line.erase(0, end);
  } while (all && got > 0);
}

void Worker::stop(const std::string& reason) {
  if (controlled_) control_->send({{"stop", reason}});
}

void Worker::send(int signal) const noexcept {
  if (!ended_) kill(-child_->id(), signal);
}

bool Worker::has_ended() {
  if (ended_) return true;
  siginfo_t info = {};
  if (waitid(P_PID, static_cast<id_t>(child_->id()), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0)
    return false;
  send(SIGKILL);  // to what it has started: as long as it is not collected, no other process has its number
  child_->wait();
  ended_ = true;
  if (controlled_) read_control();
  for (Stream& stream : streams_)
    if (stream.from.get() >= 0) read(stream, true);
  return true;
}

json Worker::ending() {
  const int status = child_->wait();
  if (!WIFSIGNALED(status)) return {{"code", WEXITSTATUS(status)}};
  return {{"signal", WTERMSIG(status)}, {"name", strsignal(WTERMSIG(status))}};
}

}  // namespace tenon::launch
