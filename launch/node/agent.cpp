// SPDX-License-Identifier: Apache-2.0
#include "launch/node/agent.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>
#include <system_error>

#include "base/launchers.h"
#include "base/temporary.h"
#include "base/usable_cores.h"
#include "host/cli/cli.h"
#include "launch/channel.h"
#include "launch/events.h"
#include "launch/node/job_place.h"
#include "launch/node/lease.h"
#include "launch/node/worker.h"
#include "launch/node/world.h"
#include "launch/tenon.h"
#include "launch/texts.h"

namespace tenon::launch {

namespace {

namespace fs = std::filesystem;
using cli::Failure;

constexpr size_t kLongestCommand = 64 << 20;  // bytes: the files of a job are in it
constexpr size_t kMostUnsent = 4 << 20;       // bytes; with more nothing is read of what processes print
constexpr std::chrono::seconds kGrace(2);     // from SIGTERM to SIGKILL
constexpr std::chrono::milliseconds kTick(500);

// Returns a free port, or 0 if `port` is taken. port: 0 for any.
int free_port(int port) {
  const base::Descriptor socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const base::Descriptor old(socket.get() < 0 ? ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1);
  const int used = socket.get() < 0 ? old.get() : socket.get(), yes = 1;
  setsockopt(used, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_storage address = {};
  socklen_t size = socket.get() < 0 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  address.ss_family = socket.get() < 0 ? AF_INET : AF_INET6;
  // The port is at the same place in both.
  reinterpret_cast<sockaddr_in*>(&address)->sin_port = htons(static_cast<uint16_t>(port));
  if (bind(used, reinterpret_cast<sockaddr*>(&address), size) != 0) return 0;
  if (getsockname(used, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

class Agent {
 public:
  Agent() : channel_(take(STDIN_FILENO, "/dev/null"), take(STDOUT_FILENO, nullptr), kLongestCommand) {}
  // rank: of the one process that it has, in a World. patience: how long a launcher has, after a signal, to end all in
  // good order.
  explicit Agent(base::Descriptor socket, std::optional<int64_t> rank = std::nullopt, Clock::duration patience = {})
      : channel_(std::move(socket), base::Descriptor(), kLongestCommand), patience_(patience), rank_(rank) {}

  int run() {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    json hello = {{"version", TENON_VERSION},
                  {"host", host},
                  {"cores", base::usable_cores().count},
                  {"program", tenon_program()}};
    if (rank_) hello["rank"] = *rank_;
    channel_.send({{"hello", hello}});
    while (open_ || !workers_.empty() || world_) turn();
    return cli::kDone;
  }

  // Whether the launcher needs no agent any more, or a signal has asked this one to end.
  [[nodiscard]] bool is_finished() const { return finished_ || leave_at_; }

 private:
  struct Running {
    int64_t rank;
    std::unique_ptr<Worker> worker;
  };

  // Returns a copy of a standard stream, which is replaced: by a file, or by standard error.
  static base::Descriptor take(int stream, const char* file) {
    base::Descriptor copy(fcntl(stream, F_DUPFD_CLOEXEC, 3));
    const base::Descriptor other(file == nullptr ? dup(STDERR_FILENO) : ::open(file, O_RDONLY | O_CLOEXEC));
    dup2(other.get(), stream);
    return copy;
  }

  // Waits for something to happen, and handles it.
  void turn() {
    std::vector<Wait> waits;
    if (open_) waits.push_back({channel_.in(), POLLIN, [this] { receive(); }});
    if (open_ && channel_.unsent() > 0) waits.push_back({channel_.out(), POLLOUT, [this] { channel_.flush(); }});
    waits.push_back({signals_.descriptor(), POLLIN, [this] { take_signals(); }});
    const bool reads = open_ && !paused_ && channel_.unsent() < kMostUnsent;
    for (const Running& each : workers_) each.worker->add_waits(waits, reads);
    if (world_) world_->add_waits(waits, reads || !open_);  // which says how its processes have ended
    wait_for(waits, Clock::now() + kTick);
    const Clock::time_point now = Clock::now();
    if (lease_ && now >= renewal_) {
      lease_->renew();
      renewal_ = now + 2 * kTick;
    }
    if (leave_at_ && now >= *leave_at_ && open_) lose("the agent got a signal");
    if (silence_ > Clock::duration::zero() && now - heard_ > silence_) lose("the launcher is silent");
    if (kill_at_ && now >= *kill_at_)
      for (const Running& each : workers_) each.worker->send(SIGKILL);
    if (kill_at_ && world_ && now >= *kill_at_ + kGrace) world_->kill();  // its agents have killed theirs
    collect();
  }

  void receive() {
    const bool there = channel_.receive([this](const json& command) { handle(command); });
    heard_ = Clock::now();  // a command may have taken its time
    if (!there) lose("the launcher has ended");
  }

  // The launcher is gone: everything ends.
  void lose(const std::string& why) {
    open_ = false;
    silence_ = {};
    end(why);
  }

  void take_signals() {
    for (int signal = 0; (signal = signals_.next()) != 0;)
      if (signal != SIGCHLD && !leave_at_) leave_at_ = Clock::now() + patience_;
  }

  void collect() {
    const auto ended = [this](const Running& each) {
      if (!each.worker->has_ended()) return false;
      if (open_) channel_.send({{"process", each.rank}, {"end", each.worker->ending()}});
      return true;
    };
    workers_.erase(std::remove_if(workers_.begin(), workers_.end(), ended), workers_.end());
    if (world_ && world_->has_ended()) world_.reset();
    if (workers_.empty() && !world_) kill_at_.reset();
  }

  void end(const std::string& reason) {
    if (kill_at_) return;
    kill_at_ = Clock::now() + kGrace;
    if (world_) world_->send({{"end", reason}});
    for (const Running& each : workers_) each.worker->stop(reason);
    for (const Running& each : workers_) each.worker->send(SIGTERM);
  }

  void handle(const json& command) try {
    if (command.contains("prepare")) {
      channel_.send({{"prepared", prepare(command["prepare"])}});
    } else if (command.contains("start")) {
      start(command["start"]);
    } else if (command.contains("stop")) {
      for (const Running& each : workers_) each.worker->stop(command["stop"]);
      if (world_) world_->send(command);
    } else if (command.contains("kill")) {
      for (const Running& each : workers_)
        if (each.rank == command["kill"].get<int64_t>()) each.worker->send(SIGKILL);
    } else if (command.contains("end")) {
      end(command["end"]);
    } else if (command.contains("pause")) {
      paused_ = command["pause"];
    } else if (command.contains("finish")) {
      finished_ = true;
      open_ = false;
    }
  } catch (...) {
    const cli::Ending ending = cli::ending_of(std::current_exception());
    channel_.send({{"refused", {{"code", ending.exit}, {"message", ending.message}}}});
  }

  // Returns what the processes of the next epoch need to know.
  json prepare(const json& plan) {
    if (const std::string program = tenon_program(); access(program.c_str(), X_OK) != 0)
      throw Failure(cli::kNotFound, "there is no program " + program);
    folder_.emplace();  // of this epoch
    json result;
    if (plan.contains("job")) result["job"] = place_job(plan["job"], folder_->path()).string();
    if (plan.contains("checkpoints")) {
      const fs::path folder = plan["checkpoints"].get<std::string>();
      const json& by = plan.at("holder");
      const Holder holder = {by.at("job"), by.at("host"), by.at("process"), by.at("since")};
      if (!lease_) lease_.emplace(folder, holder, plan.value("last", 0U));
      const Lease::Checkpoint newest = Lease::newest_checkpoint(folder);
      result["checkpoint"] = {{"path", newest.path}, {"time", newest.time}};
      result["epoch"] = lease_->begin_epoch();
    }
    if (plan.contains("listen")) result["address"] = address(plan["listen"]);
    return result;
  }

  // Returns where process 0 listens. listen: {"host", "port"}, or null if all processes are on this machine.
  std::string address(const json& listen) const {
    if (listen.is_null()) return "ipc://" + folder_->file("team");
    const int asked = listen.at("port"), port = free_port(asked);
    if (port == 0)
      throw Failure(cli::kIo, "port " + std::to_string(asked) + " is taken: " + std::generic_category().message(errno));
    return "tcp://" + listen.at("host").get<std::string>() + ":" + std::to_string(port);
  }

  void start(const json& plan) {
    heard_ = Clock::now();
    silence_ = std::chrono::seconds(plan.at("silence").get<int64_t>());
    if (!rank_ && World::connects(plan.at("comm"))) {
      world_.emplace(plan, folder_->file("world"), signals_, [this](const json& line) {
        if (open_) channel_.send(line);
      });
    } else {
      start_workers(plan);
    }
  }

  void start_workers(const json& plan) {
    const int64_t first = plan.at("first"), count = plan.at("count");
    WorkerStart start;
    start.program = tenon_program();
    start.words = plan.at("words").get<std::vector<std::string>>();
    start.folder = plan.value("folder", "");
    start.secret = bytes_of(plan.at("secret").get<std::string>());
    start.environment = {{"TENON_TEAM_PROCESSES", std::to_string(plan.at("processes").get<int64_t>())},
                         {"TENON_TEAM_COMM", plan.at("comm")},
                         {"TENON_TEAM_ADDRESS", rank_ ? "" : plan.at("address").get<std::string>()},
                         {"TENON_TEAM_LISTEN", plan.value("listen", "")},
                         {"TENON_TEAM_LOCAL", std::to_string(plan.value("local", count))},
                         {"TENON_TEAM_EPOCH", std::to_string(plan.at("epoch").get<int64_t>())}};
    for (int64_t rank = first; rank < first + count; ++rank) {
      start.environment["TENON_TEAM_RANK"] = std::to_string(rank);
      const auto tell = [this, rank](const char* what, const json& value) {
        if (open_) channel_.send({{"process", rank}, {what, value}});
      };
      workers_.push_back(
          {rank, std::make_unique<Worker>(
                     start, signals_,
                     Worker::Handlers{[tell](const json& line) { tell("control", line); },
                                      [tell](const char* stream, const std::string& text) { tell(stream, text); }})});
    }
  }

  const Signals signals_{SIGCHLD, SIGINT, SIGTERM, SIGHUP};
  Channel channel_;
  bool open_ = true;  // the launcher is there
  bool paused_ = false;
  bool finished_ = false;
  const Clock::duration patience_ = {};
  std::optional<Clock::time_point> leave_at_;  // after a signal
  Clock::time_point heard_ = Clock::now(), renewal_;
  Clock::duration silence_ = {};  // of the launcher, after which it is lost; 0: never
  std::optional<base::TemporaryFolder> folder_;
  std::optional<Lease> lease_;
  std::optional<Clock::time_point> kill_at_;
  std::vector<Running> workers_;
  const std::optional<int64_t> rank_;  // of the one process, as an agent of a World
  std::optional<World> world_;         // of an MPI, whose processes are not workers of this agent
};

}  // namespace

int run_agent() { return Agent().run(); }

bool run_agent_over(base::Descriptor socket) {
  constexpr std::chrono::seconds kPatience(20);  // fewer than Kubernetes gives a pod
  Agent agent(std::move(socket), std::nullopt, kPatience);
  agent.run();
  return agent.is_finished();
}

int run_agent_of_world(const std::string& socket, const std::string& comm) {
  const std::optional<base::LaunchedPlace> place = base::place_by_mpi(comm);
  if (!place) throw Failure(cli::kBadConfig, "this process was not started by the launcher of \"" + comm + "\"");
  return Agent(World::connect(socket), place->rank).run();
}

}  // namespace tenon::launch
