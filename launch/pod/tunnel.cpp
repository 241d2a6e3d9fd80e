// SPDX-License-Identifier: Apache-2.0
#include "launch/pod/tunnel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/signals_blocked.h"

namespace tenon::launch {

namespace {

using State = crypto_secretstream_xchacha20poly1305_state;

constexpr char kProtocol[] = "TENONtn1";  // without its zero
constexpr size_t kNonce = 32, kPart = 32768;
constexpr size_t kMostFrame = kPart + crypto_secretstream_xchacha20poly1305_ABYTES;
constexpr std::chrono::seconds kHandshake(5);
constexpr size_t kMostFirst = 256 + crypto_secretstream_xchacha20poly1305_ABYTES;  // bytes of a name

State& state(std::byte* memory) { return *reinterpret_cast<State*>(memory); }

// Waits for bytes end at this time; without one they do not.
void limit_waits(int socket, std::optional<Clock::time_point> until) {
  timeval limit = {};
  if (until) {
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(*until - Clock::now()).count();
    if (left <= 0) throw std::runtime_error("the other side is too slow");
    limit = {static_cast<time_t>(left / 1'000'000), static_cast<suseconds_t>(left % 1'000'000)};
  }
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

// A process of another machine that has gone without a word is noticed after half a minute.
void keep_alive(int socket) {
  const int yes = 1, idle = 15, interval = 5, count = 3;
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

// Without the signal SIGPIPE, whatever the process makes of that.
void write_whole(int to, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t put =
        base::uninterrupted([&] { return ::send(to, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL); });
    if (put < 0) throw std::runtime_error("the connection has ended");
    at += static_cast<size_t>(put);
  }
}

}  // namespace

Tunnel::Tunnel(base::Descriptor tcp, Side side, const std::string& secret, const std::string& node)
    : tcp_(std::move(tcp)), node_(node) {
  static_assert(sizeof(State) <= kStateBytes);
  if (sodium_init() < 0) throw std::runtime_error("libsodium cannot be used on this machine");
  until_ = Clock::now() + kHandshake;
  agree(side, secret);
  if (side == Side::kConnects) {
    send_frame(node);
    (void)receive_frame();
  } else {
    node_ = receive_frame();
    send_frame("");
  }
  until_.reset();
  limit_waits(tcp_.get(), until_);
  keep_alive(tcp_.get());
}

Tunnel::~Tunnel() {
  shutdown(tcp_.get(), SHUT_RDWR);
  if (local_.get() >= 0) shutdown(local_.get(), SHUT_RDWR);
  if (outward_.joinable()) outward_.join();
  if (inward_.joinable()) inward_.join();
  sodium_memzero(sealing_.data(), sealing_.size());
  sodium_memzero(opening_.data(), opening_.size());
}

// Both sides have random bytes in the keys, so that no frame of another connection is taken.
void Tunnel::agree(Side side, const std::string& secret) {
  std::string mine(kProtocol, sizeof kProtocol - 1), theirs(mine.size() + kNonce, '\0');
  mine.resize(theirs.size());
  randombytes_buf(mine.data() + sizeof kProtocol - 1, kNonce);
  write_whole(tcp_.get(), mine);
  receive_all(theirs.data(), theirs.size());
  if (!theirs.starts_with(kProtocol)) throw std::runtime_error("the other side speaks another protocol");
  const bool connects = side == Side::kConnects;
  const std::string both = connects ? mine + theirs : theirs + mine;
  unsigned char keys[2][crypto_secretstream_xchacha20poly1305_KEYBYTES];
  crypto_generichash(&keys[0][0], sizeof keys, reinterpret_cast<const unsigned char*>(both.data()), both.size(),
                     reinterpret_cast<const unsigned char*>(secret.data()),
                     std::min<size_t>(secret.size(), crypto_generichash_KEYBYTES_MAX));
  std::string header(crypto_secretstream_xchacha20poly1305_HEADERBYTES, '\0');
  auto* const bytes = reinterpret_cast<unsigned char*>(header.data());
  crypto_secretstream_xchacha20poly1305_init_push(&state(sealing_.data()), bytes, keys[connects ? 0 : 1]);
  write_whole(tcp_.get(), header);
  receive_all(header.data(), header.size());
  crypto_secretstream_xchacha20poly1305_init_pull(&state(opening_.data()), bytes, keys[connects ? 1 : 0]);
  sodium_memzero(keys, sizeof keys);
}

void Tunnel::receive_all(void* to, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    if (until_) limit_waits(tcp_.get(), until_);
    const ssize_t got =
        base::uninterrupted([&] { return ::read(tcp_.get(), static_cast<char*>(to) + at, bytes - at); });
    if (got <= 0) throw std::runtime_error("the connection has ended");
    at += static_cast<size_t>(got);
  }
}

void Tunnel::send_frame(const std::string& bytes) {
  std::string frame(4 + bytes.size() + crypto_secretstream_xchacha20poly1305_ABYTES, '\0');
  const size_t count = frame.size() - 4;
  for (size_t i = 0; i < 4; ++i) frame[i] = static_cast<char>(count >> (24 - 8 * i));
  crypto_secretstream_xchacha20poly1305_push(&state(sealing_.data()), reinterpret_cast<unsigned char*>(&frame[4]),
                                             nullptr, reinterpret_cast<const unsigned char*>(bytes.data()),
                                             bytes.size(), nullptr, 0, 0);
  write_whole(tcp_.get(), frame);
}

std::string Tunnel::receive_frame() {
  unsigned char head[4];
  receive_all(head, sizeof head);
  size_t count = 0;
  for (const unsigned char byte : head) count = count << 8U | byte;
  if (count < crypto_secretstream_xchacha20poly1305_ABYTES || count > (until_ ? kMostFirst : kMostFrame))
    throw std::runtime_error("the other side sends a frame of " + std::to_string(count) + " bytes");
  std::string frame(count, '\0'), bytes(count - crypto_secretstream_xchacha20poly1305_ABYTES, '\0');
  receive_all(frame.data(), frame.size());
  if (crypto_secretstream_xchacha20poly1305_pull(
          &state(opening_.data()), reinterpret_cast<unsigned char*>(bytes.data()), nullptr, nullptr,
          reinterpret_cast<const unsigned char*>(frame.data()), frame.size(), nullptr, 0) != 0)
    throw std::runtime_error("the other side has another secret");
  return bytes;
}

// Copies in one direction until that fails, which ends the other direction, too.
template <typename Copy>
void Tunnel::run(const Copy& copy) noexcept {
  try {
    while (copy()) {
    }
  } catch (const std::exception&) {  // the connection is over
  }
  shutdown(tcp_.get(), SHUT_RDWR);
  shutdown(local_.get(), SHUT_RDWR);
  ++ended_;
}

void Tunnel::open(base::Descriptor local) {
  local_ = std::move(local);
  const base::SignalsBlocked blocked;
  outward_ = std::thread([this] {
    std::string part(kPart, '\0');
    run([&] {
      const ssize_t got = base::uninterrupted([&] { return ::read(local_.get(), part.data(), part.size()); });
      if (got > 0) send_frame(part.substr(0, static_cast<size_t>(got)));
      return got > 0;
    });
  });
  inward_ = std::thread([this] {
    run([&] {
      write_whole(local_.get(), receive_frame());
      return true;
    });
  });
}

}  // namespace tenon::launch
