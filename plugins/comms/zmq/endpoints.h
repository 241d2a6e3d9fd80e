// Where ranks listen. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "sockets.h"

namespace tenon_zmq {

// "tcp://host:port" or "ipc:///path", taken apart.
struct Endpoint {
  bool tcp;
  std::string host;  // without brackets; or the path
  std::string port;

  // Throws tn::Failure with TN_INVALID, which names "address".
  static Endpoint parse(const std::string& text);
  std::string text() const;
};

// Binds a socket for `host`, a name or number, or for all addresses if it is not of this machine (such as that of a
// gateway). Returns the endpoint at which others find it.
std::string listen_at(Socket& socket, const std::string& host, const std::string& port);
// The address of this machine on the way to a host; none if the host is unknown so far.
std::optional<std::string> address_towards(const Endpoint& endpoint);

}  // namespace tenon_zmq
