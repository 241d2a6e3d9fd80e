// SPDX-License-Identifier: Apache-2.0
#include "launch/node/world.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include "host/cli/cli.h"
#include "host/cli/external.h"
#include "process/control.h"

namespace tenon::launch {

namespace {

constexpr std::chrono::seconds kConnect(60);  // for all processes to come
constexpr std::chrono::seconds kLeave(5);     // for the launcher of the MPI to end after its processes
constexpr size_t kLongestLine = 4 << 20;      // bytes

// The launchers by their communicators. Open MPI's has one process for each core, and binds it there, unless it is told
// otherwise; here the compute threads are divided among the processes.
struct MpiLauncher {
  const char* comm;
  std::vector<std::string> words;
  const char* hosts;  // the option that names machines
};
const std::vector<MpiLauncher>& launchers() {
  static const std::vector<MpiLauncher> list = {
      {"mpich", {"mpiexec.mpich"}, "-hosts"},
      {"openmpi", {"mpiexec.openmpi", "--oversubscribe", "--bind-to", "none"}, "--host"}};
  return list;
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    throw std::system_error(ENAMETOOLONG, std::generic_category(), "cannot listen at " + path);
  path.copy(address.sun_path, path.size());
  return address;
}

base::Descriptor listening_at(const std::string& path) {
  const sockaddr_un address = address_of(path);
  base::Descriptor result(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (result.get() < 0 || bind(result.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(result.get(), SOMAXCONN) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot listen at " + path);
  return result;
}

}  // namespace

bool World::connects(const std::string& comm) {
  return std::any_of(launchers().begin(), launchers().end(),
                     [&](const MpiLauncher& each) { return each.comm == comm; });
}

std::vector<std::string> World::launcher_of(const std::string& comm, int64_t processes, const std::string& hosts) {
  for (const MpiLauncher& each : launchers())
    if (each.comm == comm) {
      std::vector<std::string> words = each.words;
      if (!hosts.empty()) words.insert(words.end(), {each.hosts, hosts});
      words.insert(words.end(), {"-n", std::to_string(processes)});
      return words;
    }
  return {};
}

base::Descriptor World::connect(const std::string& path) {
  const sockaddr_un address = address_of(path);
  base::Descriptor result(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (result.get() < 0 || ::connect(result.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot connect with " + path);
  return result;
}

World::Member::Member(base::Descriptor socket)
    : channel(std::in_place, std::move(socket), base::Descriptor(), kLongestLine) {}

World::World(const json& plan, const std::string& socket, const Signals& signals, std::function<void(const json&)> tell)
    : plan_(plan),
      tell_(std::move(tell)),
      launcher_(launcher_of(plan.at("comm"), plan.at("count"))),
      listening_(listening_at(socket)),
      begun_(plan.at("count").get<size_t>()) {
  std::vector<std::string> words = launcher_;
  words.insert(words.end(), {(cli::this_program().parent_path() / "tenon-launch").string(), "--node", socket,
                             plan.at("comm").get<std::string>()});
  Pipe said = make_pipe();
  const pid_t agent = getpid();
  child_.emplace([&] {
    begin_child_of_agent(agent, signals, said.to.get(), said.to.get());
    execvp(words[0].c_str(), pointers_to(words).data());
    base::write_all(STDERR_FILENO, "cannot run it: " + std::string(std::strerror(errno)) + "\n");
    _exit(127);
  });
  words_.open(std::move(said.from));
}

World::~World() { child_->send(SIGKILL); }

void World::add_waits(std::vector<Wait>& waits, bool with_output) {
  if (listening_.get() >= 0) waits.push_back({listening_.get(), POLLIN, [this] { accept(); }});
  if (words_.is_open()) waits.push_back({words_.descriptor(), POLLIN, [this] { words_.read(); }});
  for (Member& member : members_) {
    if (!member.channel) continue;
    if (with_output) waits.push_back({member.channel->in(), POLLIN, [this, &member] { receive(member); }});
    if (member.channel->unsent() > 0)
      waits.push_back({member.channel->out(), POLLOUT, [&member] { member.channel->flush(); }});
  }
}

void World::accept() {
  base::Descriptor socket(
      base::uninterrupted([&] { return ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC); }));
  if (socket.get() >= 0) members_.emplace_back(std::move(socket));
}

void World::receive(Member& member) {
  bool is_welcome = true;
  const bool open = member.channel->receive([&](const json& line) {
    if (member.rank < 0) {
      is_welcome = is_welcome && line.contains("hello") && greet(member, line["hello"]);
    } else if (line.value("process", int64_t{-1}) == member.rank || line.contains("refused")) {
      member.over = member.over || line.contains("end");
      tell_(line);
    }
  });
  if (open && is_welcome && !member.over) return;
  member.channel.reset();  // the agent ends by that
  if (member.rank >= 0 && !member.over) tell_end(member.rank);
  member.over = true;
}

bool World::greet(Member& member, const json& hello) {
  const auto place = hello.value("rank", size_t{0});
  if (!hello.contains("rank") || place >= begun_.size() || begun_[place]) return false;
  begun_[place] = true;
  member.rank = plan_.at("first").get<int64_t>() + static_cast<int64_t>(place);
  json part = plan_;
  part.update({{"first", member.rank}, {"count", 1}, {"local", plan_.at("count")}, {"silence", 0}});
  member.channel->send({{"start", part}});
  return true;
}

void World::send(const json& line) {
  for (Member& member : members_)
    if (member.channel) member.channel->send(line);
}

void World::tell_end(int64_t rank) const { tell_({{"process", rank}, {"end", {{"code", process::kLostExit}}}}); }

void World::give_up() {
  const auto missing = std::count(begun_.begin(), begun_.end(), false);
  const bool is_late = Clock::now() - since_ > kConnect, has_gone = child_->has_ended();
  if (given_up_ || missing == 0 || (!is_late && !has_gone)) return;
  given_up_ = true;
  if (has_gone) words_.read();
  process::ChildEnd end;
  if (has_gone) end.status = child_->wait();
  constexpr int kNoProgram = 127;
  const std::string how =
      has_gone ? "has ended with " + end.how() : "has started nothing for " + std::to_string(kConnect.count()) + " s";
  tell_({{"refused",
          {{"code", end.code() == kNoProgram ? cli::kNotFound : cli::kIo},
           {"message", launcher_[0] + " " + how + ", and " + std::to_string(missing) + " of " +
                           std::to_string(begun_.size()) + " processes are missing" + words_.after_colon(1000)}}}});
  for (size_t place = 0; place < begun_.size(); ++place)
    if (!begun_[place]) tell_end(plan_.at("first").get<int64_t>() + static_cast<int64_t>(place));
  kill();
}

bool World::has_ended() {
  give_up();
  const bool all_came = given_up_ || std::find(begun_.begin(), begun_.end(), false) == begun_.end();
  const bool none_left =
      std::none_of(members_.begin(), members_.end(), [](const Member& member) { return member.channel.has_value(); });
  if (!all_came || !none_left) return false;
  if (!over_) over_ = Clock::now();
  if (Clock::now() - *over_ > kLeave) kill();
  return child_->has_ended();
}

}  // namespace tenon::launch
