// SPDX-License-Identifier: Apache-2.0
#include "launch/pod/meeting_place.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/signals_blocked.h"
#include "launch/channel.h"

namespace tenon::launch {

namespace {

constexpr size_t kMostGuests = 2048;     // connections at a time
constexpr int kMostStrangers = 64;       // of them, that have not proved themselves
constexpr int kLook = 500, kShort = 20;  // milliseconds

}  // namespace

MeetingPlace::MeetingPlace(const Address& address, std::string secret) : secret_(std::move(secret)) {
  const AddressList place = find(address, AI_PASSIVE);
  socket_ = base::Descriptor(::socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  constexpr int kMostWaiting = 256;
  if (bind(socket_.get(), place->ai_addr, place->ai_addrlen) != 0 || ::listen(socket_.get(), kMostWaiting) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot listen at " + address.text());
  Pipe pipe = make_pipe();
  wake_ = std::move(pipe.to);
  woken_ = std::move(pipe.from);
  const base::SignalsBlocked blocked;  // for the threads of guests, too
  thread_ = std::thread([this] { listen(); });
}

MeetingPlace::~MeetingPlace() {
  wake_.close();
  thread_.join();
  for (Guest& guest : guests_) guest.thread.join();
}

base::Descriptor MeetingPlace::expect(const std::string& node) {
  SocketPair pair = make_socket_pair();
  const std::lock_guard lock(mutex_);
  expected_[node] = std::move(pair.theirs);
  return std::move(pair.ours);
}

void MeetingPlace::listen() {
  for (;;) {
    // The others wait in the queue of the system: each has a few seconds.
    const bool is_full = strangers_ >= kMostStrangers;
    pollfd waits[] = {{woken_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}};
    if (is_full)
      poll(waits, 1, kShort);
    else
      poll(waits, 2, kLook);
    if (waits[0].revents != 0) return;
    remove_ended();
    if (is_full) continue;
    base::Descriptor tcp(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (tcp.get() < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) poll(waits, 1, kShort);
    if (tcp.get() < 0) continue;
    if (guests_.size() >= kMostGuests) {
      ++refused_;
      continue;
    }
    Guest& guest = guests_.emplace_back();
    ++strangers_;
    try {
      guest.thread = std::thread([this, &guest, tcp = std::move(tcp)]() mutable { receive(std::move(tcp), guest); });
    } catch (const std::system_error&) {  // too many threads
      --strangers_;
      ++refused_;
      guests_.pop_back();
    }
  }
}

void MeetingPlace::receive(base::Descriptor tcp, Guest& guest) noexcept {
  std::optional<Tunnel> tunnel;
  try {
    tunnel.emplace(std::move(tcp), Tunnel::Side::kListens, secret_, "");
  } catch (const std::exception&) {
    ++refused_;
  }
  --strangers_;
  if (tunnel) serve(*tunnel);
  guest.ended = true;
}

// Holds a tunnel as long as it is open.
void MeetingPlace::serve(Tunnel& tunnel) noexcept {
  try {
    base::Descriptor local;
    {
      const std::lock_guard lock(mutex_);
      if (const auto place = expected_.find(tunnel.node()); place != expected_.end())
        local = std::move(expected_.extract(place).mapped());
    }
    if (local.get() < 0) throw std::runtime_error("nobody expects the node " + tunnel.node());
    tunnel.open(std::move(local));
    pollfd wait = {woken_.get(), POLLIN, 0};
    while (!tunnel.has_ended() && wait.revents == 0) poll(&wait, 1, kLook);
  } catch (const std::exception&) {
    ++refused_;
  }
}

void MeetingPlace::remove_ended() {
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    if (!guest->ended) {
      ++guest;
      continue;
    }
    guest->thread.join();
    guest = guests_.erase(guest);
  }
}

}  // namespace tenon::launch
