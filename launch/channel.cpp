// SPDX-License-Identifier: Apache-2.0
#include "launch/channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace tenon::launch {

Channel::Channel(base::Descriptor in, base::Descriptor out, size_t most)
    : in_(std::move(in)), out_(std::move(out)), both_(out_.get() < 0), most_(most) {
  make_waitless(in_.get());
  if (out_.get() >= 0) make_waitless(out_.get());
}

void Channel::send(const json& line) {
  unsent_ += line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  flush();
}

bool Channel::flush() noexcept {
  while (!unsent_.empty()) {
    const ssize_t put = base::uninterrupted([&] { return ::write(out(), unsent_.data(), unsent_.size()); });
    if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (put < 0) {
      unsent_.clear();
      return false;
    }
    unsent_.erase(0, static_cast<size_t>(put));
  }
  return true;
}

bool Channel::receive(const std::function<void(const json&)>& handle,
                      const std::function<void(const std::string&)>& stray) {
  char part[65536];
  bool open = true;
  for (ssize_t got = 1; open && got > 0;) {
    got = base::uninterrupted([&] { return ::read(in_.get(), part, sizeof part); });
    if (got > 0) received_.append(part, static_cast<size_t>(got));
    open = got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
    if (received_.size() > most_ && received_.find('\n') == std::string::npos) return false;
    size_t begin = 0;
    for (size_t end = 0; (end = received_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string line = received_.substr(begin, end - begin);
      const json message = json::parse(line, nullptr, false);
      if (message.is_object())
        handle(message);
      else if (stray)
        stray(line);
    }
    received_.erase(0, begin);
  }
  return open;
}

void make_waitless(int descriptor) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

void make_waiting(int descriptor) { fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK); }

SocketPair make_socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot create a socket");
  return {base::Descriptor(ends[0]), base::Descriptor(ends[1])};
}

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "cannot create a pipe");
  return {base::Descriptor(ends[0]), base::Descriptor(ends[1])};
}

base::Descriptor make_secret_pipe(const std::string& secret) {
  Pipe pipe = make_pipe();
  base::write_all(pipe.to.get(), secret);
  return std::move(pipe.from);
}

void name_inherited(const char* variable, int descriptor) {
  setenv(variable, ("fd:" + std::to_string(dup(descriptor))).c_str(), 1);
}

}  // namespace tenon::launch
