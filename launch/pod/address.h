// "host:port", and what it stands for. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netdb.h>

#include <memory>
#include <string>

namespace tenon::launch {

// An IPv6 address is in brackets in the text, and without them in the host.
struct Address {
  std::string host, port;

  [[nodiscard]] std::string text() const;
};
// Throws std::invalid_argument.
[[nodiscard]] Address parse_address(const std::string& text);

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;
// Returns what the system knows of an address, of TCP. flags: AI_PASSIVE to listen there. Throws std::runtime_error
// naming it.
[[nodiscard]] AddressList find(const Address& address, int flags);

}  // namespace tenon::launch
