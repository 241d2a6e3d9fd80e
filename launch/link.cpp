// SPDX-License-Identifier: Apache-2.0
#include "launch/link.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "host/cli/external.h"

namespace tenon::launch {

namespace {

constexpr size_t kLongestLine = 4 << 20;  // bytes
constexpr std::chrono::milliseconds kPing(500);

// Returns a word as the shell of another machine reads it.
std::string quoted(const std::string& word) {
  std::string result = "'";
  for (const char letter : word) result += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return result + "'";
}

// Returns the command that starts the agent of a node. There the program is where it is here, or in PATH. `sh` reads it
// because the user's shell may be any other one.
std::vector<std::string> command_of(const Node& node) {
  const std::string here = (cli::this_program().parent_path() / "tenon-launch").string();
  if (node.name.empty() || node.is_here) return {here, "--node"};
  const std::string script = "p=" + quoted(here) + "; [ -x \"$p\" ] || p=tenon-launch; exec \"$p\" --node";
  std::string machine = node.name;
  if (const size_t bracket = machine.find('['); bracket != std::string::npos) {  // ssh knows no brackets
    machine.erase(machine.find(']'), 1);
    machine.erase(bracket, 1);
  }
  return {"ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--", machine, "exec sh -c " + quoted(script)};
}

}  // namespace

Link::Link(const Node& node, const Signals& signals, std::function<void(const json&)> handle)
    : node_(node.name), is_far_(!node.name.empty() && !node.is_here), handle_(std::move(handle)), heard_(Clock::now()) {
  Pipe to = make_pipe(), from = make_pipe(), errors = make_pipe();
  std::vector<std::string> words = command_of(node);
  child_.emplace([&] {
    setsid();  // Ctrl-C is for the launcher alone
    signals.restore();
    dup2(to.from.get(), STDIN_FILENO);
    dup2(from.to.get(), STDOUT_FILENO);
    dup2(errors.to.get(), STDERR_FILENO);
    execvp(words[0].c_str(), pointers_to(words).data());
    base::write_all(STDERR_FILENO, "cannot run " + words[0] + ": " + std::strerror(errno) + "\n");
    _exit(127);
  });
  errors_.open(std::move(errors.from));
  channel_.emplace(std::move(from.from), std::move(to.to), kLongestLine);
}

Link::Link(const Node& node, base::Descriptor socket, std::function<void(const json&)> handle)
    : node_(node.name), is_far_(true), handle_(std::move(handle)), heard_(Clock::now()) {
  channel_.emplace(std::move(socket), base::Descriptor(), kLongestLine);
}

Link::~Link() { cut(); }

void Link::add_waits(std::vector<Wait>& waits) {
  if (open_) waits.push_back({channel_->in(), POLLIN, [this] { receive(); }});
  if (open_ && channel_->unsent() > 0) waits.push_back({channel_->out(), POLLOUT, [this] { channel_->flush(); }});
  if (errors_.is_open()) waits.push_back({errors_.descriptor(), POLLIN, [this] { errors_.read(); }});
}

void Link::receive() {
  heard_ = Clock::now();
  open_ = channel_->receive(
      [this](const json& line) {
        if (hello_)
          handle_(line);
        else if (line.contains("hello"))
          hello_ = line["hello"];
      },
      [this](const std::string& stray) { errors_.add(stray + "\n"); });
}

void Link::await_end(std::chrono::seconds most) {
  const auto until = Clock::now() + most;
  while (!child_->has_ended() && Clock::now() < until) {
    pollfd wait = {errors_.descriptor(), POLLIN, 0};
    if (poll(&wait, 1, 20) > 0) errors_.read();
  }
}

void Link::send(const json& line) {
  if (open_) channel_->send(line);
}

void Link::ping(Clock::time_point now) {
  if (now - pinged_ < kPing) return;
  pinged_ = now;
  send({{"ping", 1}});
}

bool Link::has_ended() { return !open_; }

int Link::exit_code() {
  if (!child_) return 0;
  const int status = child_->wait();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string Link::ending() {
  if (!child_) return "the connection has ended";
  const std::string program = is_far_ ? "ssh" : "the agent";
  await_end(std::chrono::seconds(2));
  if (!child_->has_ended()) return "the connection has ended";
  errors_.read();
  process::ChildEnd end;
  end.status = child_->wait();
  return program + " has ended with " + end.how() + errors_.after_colon(500);
}

void Link::finish() {
  if (!child_) send({{"finish", 1}});
  if (channel_) channel_->close_out();
}

void Link::cut() {
  open_ = false;
  channel_.reset();  // an agent on this machine ends by that, one on another by the end of the connection
  if (!child_) return;
  if (is_far_) child_->send(SIGKILL);
  await_end(std::chrono::seconds(3));
  if (!child_->has_ended()) child_->send(SIGKILL);  // it is stopped; what it has started ends with it
}

}  // namespace tenon::launch
