// A communicator for processes of one user on one machine: a Unix socket between each two ranks. Rank 0 listens at the
// path of the address, rank 1 at that with ".1" behind it, and so on; each rank connects to those below it. A message
// is a header, then its bytes; what nobody has received yet waits in memory. SPDX-License-Identifier: MIT
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <tenon/draft/comm.hpp>
#include <tenon/plugin.hpp>
#include <utility>
#include <vector>

TN_RESERVE_NOTE(4096);  // room for the manifest, if the plugin is built without CMake

namespace {

using Clock = std::chrono::steady_clock;
using Micros = std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr uint64_t kMostBytes = uint64_t{1} << 30;

// A descriptor, closed with the object.
class File {
 public:
  explicit File(int number = -1) : number_(number) {}
  ~File() { reset(); }
  File(File&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void reset() {
    if (number_ >= 0) close(std::exchange(number_, -1));
  }

 private:
  int number_;
};

File new_socket() { return File(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

sockaddr_un address_of(const std::string& path) {
  sockaddr_un result = {};
  result.sun_family = AF_UNIX;
  if (path.size() >= sizeof result.sun_path)
    throw tn::Failure(TN_INVALID, path, "is longer than the path of a socket can be");
  std::copy(path.begin(), path.end(), result.sun_path);
  return result;
}
File connected(const std::string& path) {
  const sockaddr_un to = address_of(path);
  File result = new_socket();
  if (connect(result.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) result.reset();
  return result;
}

// The first bytes on a connection, both ways.
struct Hello {
  uint32_t magic = 0x6e6f6e54;
  uint32_t epoch = 0;
  int32_t rank = 0;
  int32_t ranks = 0;
};
struct Header {
  uint32_t channel = 0;
  uint32_t is_message = 0;  // 0: a heartbeat
  uint64_t bytes = 0;
};

// A connection whose Hello has not come yet.
struct Stranger {
  File socket;
  int32_t expected = -1;  // the rank that it was made to; -1: it was accepted
  Hello hello = {};
  size_t got = 0;  // bytes of it
};
struct Send {
  uint64_t request = 0;  // 0: a heartbeat
  Header header = {};
  const char* data = nullptr;
  uint64_t written = 0;  // of header and data
};
struct Receive {
  uint64_t request;
  void* data;
  uint64_t bytes;
};

// Another rank.
struct Peer {
  File socket;  // not open: lost
  std::deque<Send> sends;
  std::map<uint32_t, std::deque<Receive>> receives;             // by channel
  std::map<uint32_t, std::deque<std::vector<char>>> unclaimed;  // messages that came before their receives
  Header header = {};
  std::vector<char> body;
  uint64_t got = 0;  // of header and body
  Clock::time_point heard = Clock::now(), told = Clock::now();
};

class Sockets {
 public:
  static void describe(tn::CommDescription& d) {
    d.type("example.my_plugin", "messages between processes of one user on one machine, by Unix sockets");
    d.traits(TN_COMM_SURVIVES);
  }

  Sockets(const tn::CommOpen& open, tn::CommEvents& events)
      : events_(events), silence_(open.silence_ms()), alarm_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    const std::string address = open.address();
    if (address.rfind("ipc://", 0) != 0)
      throw tn::Failure(TN_UNSUPPORTED, "address", "only addresses ipc:///path are known, got \"" + address + "\"");
    if (open.ranks() < 1 || open.rank() < 0 || open.rank() >= open.ranks())
      throw tn::Failure(
          TN_INVALID, "rank",
          "rank " + std::to_string(open.rank()) + " of " + std::to_string(open.ranks()) + " does not exist");
    own_.epoch = open.epoch();
    own_.rank = open.rank();
    own_.ranks = open.ranks();
    peers_.resize(static_cast<size_t>(own_.ranks));
    path_ = address.substr(6);
    connect_all(open);
    for (Peer& peer : peers_) peer.heard = Clock::now();
  }

  void world(tn_comm_world& world) const {
    world.rank = own_.rank;
    world.ranks = own_.ranks;
    world.most_bytes = kMostBytes;
    world.refused = refused_;
  }

  uint64_t send(const tn_comm_message& message) {
    Peer& peer = peers_.at(static_cast<size_t>(message.peer));
    if (!peer.socket.is_open()) return lost_request(message.peer);
    const Header header = {message.channel, 1, message.bytes};
    peer.sends.push_back({++requests_, header, static_cast<const char*>(message.data), 0});
    return requests_;
  }

  uint64_t receive(const tn_comm_message& message) {
    Peer& peer = peers_.at(static_cast<size_t>(message.peer));
    std::deque<std::vector<char>>& waiting = peer.unclaimed[message.channel];
    const Receive receive = {++requests_, message.data, message.bytes};
    if (!waiting.empty()) {
      deliver(message.peer, receive, waiting.front());
      waiting.pop_front();
    } else if (!peer.socket.is_open()) {
      events_.done(receive.request, message.peer, TN_IO);
    } else {
      peer.receives[message.channel].push_back(receive);
    }
    return receive.request;
  }

  void progress(int64_t timeout_us) {
    const Clock::time_point end = Clock::now() + Micros(timeout_us);
    do {
      keep_alive();
      wait(std::max(Micros(0), std::chrono::duration_cast<Micros>(end - Clock::now())));
    } while (events_.empty() && Clock::now() < end);
  }

  void wake() noexcept { eventfd_write(alarm_.get(), 1); }
  // What was written to a socket reaches the peer, also when it is closed.
  void close(int64_t /*timeout_us*/) noexcept {}

 private:
  std::string path_of(int32_t rank) const { return rank == 0 ? path_ : path_ + "." + std::to_string(rank); }

  // ---- before all are connected

  File listening() const {
    const std::string path = path_of(own_.rank);
    const sockaddr_un at = address_of(path);
    File result = new_socket();
    const auto is_bound = [&] { return bind(result.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0; };
    bool bound = is_bound();
    if (!bound && errno == EADDRINUSE && !connected(path).is_open()) {
      unlink(path.c_str());  // of a process that was killed: nobody listens there
      bound = is_bound();
    }
    if (!bound) throw tn::Failure(TN_IO, path, std::string("cannot be listened at: ") + std::strerror(errno));
    if (listen(result.get(), 128) != 0) throw tn::Failure(TN_IO, path, "cannot be listened at");
    return result;
  }

  void connect_all(const tn::CommOpen& open) {
    const Clock::time_point deadline = Clock::now() + milliseconds(open.deadline_ms());
    struct Listener {
      File socket;
      std::string path;
      ~Listener() { unlink(path.c_str()); }  // nobody joins later
    } listener{listening(), path_of(own_.rank)};
    std::vector<Stranger> strangers;
    while (!missing().empty()) {
      open.check_cancelled();
      if (Clock::now() > deadline)
        throw tn::Failure(TN_IO, "", "not all ranks came before the deadline; missing: " + missing());
      for (int32_t rank = 0; rank < own_.rank; ++rank) call(rank, strangers);
      for (File next(accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)); next.is_open();
           next = File(accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)))
        if (is_of_this_user(next))
          strangers.push_back({std::move(next)});
        else
          ++refused_;
      greet(strangers);
      poll(nullptr, 0, 5);
    }
    refused_ += strangers.size();
  }
  std::string missing() const {
    std::string result;
    for (int32_t rank = 0; rank < own_.ranks; ++rank)
      if (rank != own_.rank && !peers_[static_cast<size_t>(rank)].socket.is_open())
        result += (result.empty() ? "rank " : ", ") + std::to_string(rank);
    return result;
  }
  static bool is_of_this_user(const File& socket) {
    ucred user = {};
    socklen_t bytes = sizeof user;
    return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &user, &bytes) == 0 && user.uid == geteuid();
  }
  // Connects to a rank, unless that has begun.
  void call(int32_t rank, std::vector<Stranger>& strangers) {
    const bool begun =
        std::any_of(strangers.begin(), strangers.end(), [&](const Stranger& s) { return s.expected == rank; });
    if (begun || peers_[static_cast<size_t>(rank)].socket.is_open()) return;
    Stranger stranger = {connected(path_of(rank)), rank};
    if (stranger.socket.is_open() && say_hello(stranger.socket)) strangers.push_back(std::move(stranger));
  }
  bool say_hello(const File& socket) const {
    return ::send(socket.get(), &own_, sizeof own_, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof own_);
  }
  // Reads what strangers say, makes peers of those that belong here, and drops those that do not.
  void greet(std::vector<Stranger>& strangers) {
    for (size_t i = 0; i < strangers.size();) {
      Stranger& stranger = strangers[i];
      const ssize_t got = recv(stranger.socket.get(), reinterpret_cast<char*>(&stranger.hello) + stranger.got,
                               sizeof(Hello) - stranger.got, 0);
      if (got < 0 && errno == EAGAIN) {
        ++i;
        continue;
      }
      stranger.got += static_cast<size_t>(std::max<ssize_t>(got, 0));
      if (got > 0 && stranger.got < sizeof(Hello)) continue;
      const bool called = stranger.expected >= 0;
      if (stranger.got == sizeof(Hello) && belongs(stranger) && (called || say_hello(stranger.socket)))
        peers_[static_cast<size_t>(stranger.hello.rank)].socket = std::move(stranger.socket);
      else if (!called)
        ++refused_;
      strangers.erase(strangers.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  bool belongs(const Stranger& stranger) const {
    const Hello& hello = stranger.hello;
    return hello.magic == own_.magic && hello.epoch == own_.epoch && hello.ranks == own_.ranks &&
           (stranger.expected >= 0 ? hello.rank == stranger.expected
                                   : hello.rank > own_.rank && hello.rank < own_.ranks) &&
           !peers_[static_cast<size_t>(hello.rank)].socket.is_open();
  }

  // ---- messages

  uint64_t lost_request(int32_t peer) {
    events_.done(++requests_, peer, TN_IO);
    return requests_;
  }
  void deliver(int32_t peer, const Receive& receive, const std::vector<char>& message) {
    const bool fits = message.size() == receive.bytes;
    if (fits && !message.empty()) std::memcpy(receive.data, message.data(), message.size());
    events_.done(receive.request, peer, fits ? TN_OK : TN_BAD_DATA);
  }

  // Sends heartbeats, and gives up the ranks that are silent.
  void keep_alive() {
    if (silence_.count() == 0) return;
    const Clock::time_point now = Clock::now();
    for (int32_t rank = 0; rank < own_.ranks; ++rank) {
      Peer& peer = peers_[static_cast<size_t>(rank)];
      if (!peer.socket.is_open()) continue;
      if (now - peer.heard > silence_) {
        lose(rank);
      } else if (peer.sends.empty() && now - peer.told > silence_ / 4) {
        peer.sends.push_back({});
      }
    }
  }

  // Waits until a socket is ready or wake is called, and moves what can move.
  void wait(Micros timeout) {
    std::vector<pollfd> ready = {{alarm_.get(), POLLIN, 0}};
    for (const Peer& peer : peers_) {
      const int events = POLLIN | (peer.sends.empty() ? 0 : POLLOUT);
      ready.push_back({peer.socket.get(), static_cast<short>(events), 0});  // -1 is passed over
    }
    if (silence_.count() > 0) timeout = std::min(timeout, std::chrono::duration_cast<Micros>(silence_ / 8));
    const timespec most = {timeout.count() / 1'000'000, timeout.count() % 1'000'000 * 1000};
    if (ppoll(ready.data(), ready.size(), &most, nullptr) <= 0) return;
    eventfd_t calls = 0;
    if (ready[0].revents != 0 && eventfd_read(alarm_.get(), &calls) == 0) events_.woken();
    for (int32_t rank = 0; rank < own_.ranks; ++rank) {
      const short is = ready[static_cast<size_t>(rank) + 1].revents;
      if ((is & POLLOUT) != 0) write_to(rank);
      if ((is & ~POLLOUT) != 0) read_from(rank);
    }
  }

  void write_to(int32_t rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    while (!peer.sends.empty()) {
      Send& send = peer.sends.front();
      const bool in_header = send.written < sizeof(Header);
      const char* const from = in_header ? reinterpret_cast<const char*>(&send.header) + send.written
                                         : send.data + (send.written - sizeof(Header));
      const uint64_t left = (in_header ? 0 : send.header.bytes) + sizeof(Header) - send.written;
      const ssize_t got = left == 0 ? 0 : ::send(peer.socket.get(), from, left, MSG_NOSIGNAL);
      if (got < 0) return;  // read_from notices the end of a connection
      send.written += static_cast<uint64_t>(got);
      peer.told = Clock::now();
      if (send.written < sizeof(Header) + send.header.bytes) continue;
      if (send.request != 0) events_.done(send.request, rank, TN_OK);
      peer.sends.pop_front();
    }
  }

  void read_from(int32_t rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    for (int times = 0; times < 64; ++times) {  // then others have a turn
      const bool in_header = peer.got < sizeof(Header);
      char* const to =
          in_header ? reinterpret_cast<char*>(&peer.header) + peer.got : peer.body.data() + (peer.got - sizeof(Header));
      const uint64_t left = (in_header ? 0 : peer.header.bytes) + sizeof(Header) - peer.got;
      const ssize_t got = recv(peer.socket.get(), to, left, 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (got <= 0) return lose(rank);
      peer.heard = Clock::now();
      peer.got += static_cast<uint64_t>(got);
      if (peer.got == sizeof(Header)) {
        if (peer.header.bytes > kMostBytes) return lose(rank);
        peer.body.resize(peer.header.bytes);
      }
      if (peer.got < sizeof(Header) || peer.got < sizeof(Header) + peer.header.bytes) continue;
      peer.got = 0;
      if (peer.header.is_message != 0) arrive(rank, std::move(peer.body));
      peer.body.clear();
    }
  }
  void arrive(int32_t rank, std::vector<char>&& message) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    std::deque<Receive>& receives = peer.receives[peer.header.channel];
    if (receives.empty()) {
      peer.unclaimed[peer.header.channel].push_back(std::move(message));
    } else {
      deliver(rank, receives.front(), message);
      receives.pop_front();
    }
  }

  void lose(int32_t rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    peer.socket.reset();
    for (const Send& send : peer.sends)
      if (send.request != 0) events_.done(send.request, rank, TN_IO);
    for (const auto& [channel, receives] : peer.receives)
      for (const Receive& receive : receives) events_.done(receive.request, rank, TN_IO);
    peer.sends.clear();
    peer.receives.clear();
    events_.lost(rank);
  }

  tn::CommEvents& events_;
  const milliseconds silence_;
  const File alarm_;  // readable after wake
  Hello own_;
  std::string path_;
  std::vector<Peer> peers_;  // by rank; its own is not used
  uint64_t requests_ = 0, refused_ = 0;
};

void describe(tn::Plugin& plugin) {
  plugin.about("example.my_plugin", "0.1.0", "Messages between processes of one machine", "MIT");
  plugin.comm(tn::comm_type<Sockets>());
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
