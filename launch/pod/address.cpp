// SPDX-License-Identifier: Apache-2.0
#include "launch/pod/address.h"

#include <sys/socket.h>

#include <stdexcept>

namespace tenon::launch {

std::string Address::text() const {
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + port;
}

Address parse_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size())
    throw std::invalid_argument("expected HOST:PORT, got \"" + text + "\"");
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, text.substr(colon + 1)};
}

AddressList find(const Address& address, int flags) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* addresses = nullptr;
  if (const int error = getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &addresses); error != 0)
    throw std::runtime_error(address.text() + ": " + gai_strerror(error));
  return {addresses, freeaddrinfo};
}

}  // namespace tenon::launch
