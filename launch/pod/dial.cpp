// SPDX-License-Identifier: Apache-2.0
#include "launch/pod/dial.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "launch/channel.h"

namespace tenon::launch {

namespace {

constexpr int kConnectMs = 5000;

// Connects within a few seconds. Returns no descriptor, with errno, if that fails.
base::Descriptor connected(const addrinfo& address) {
  base::Descriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return base::Descriptor();
    pollfd wait = {socket.get(), POLLOUT, 0};
    int error = ETIMEDOUT;
    socklen_t size = sizeof error;
    if (poll(&wait, 1, kConnectMs) > 0) getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    if (error != 0) return base::Descriptor();
  }
  make_waiting(socket.get());
  return socket;
}

}  // namespace

std::unique_ptr<Tunnel> dial(const Address& address, const std::string& secret, const std::string& node) {
  const AddressList addresses = find(address, 0);
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next)
    if (base::Descriptor socket = connected(*each); socket.get() >= 0)
      return std::make_unique<Tunnel>(std::move(socket), Tunnel::Side::kConnects, secret, node);
  throw std::runtime_error(address.text() + ": " + std::generic_category().message(errno));
}

}  // namespace tenon::launch
