// SPDX-License-Identifier: Apache-2.0
#include "endpoints.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <tenon/base.hpp>
#include <vector>

namespace tenon_zmq {

namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* first = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &first) != 0) first = nullptr;
  return {first, freeaddrinfo};
}

std::string numeric(const sockaddr* address, socklen_t bytes) {
  char host[NI_MAXHOST];
  return getnameinfo(address, bytes, host, sizeof host, nullptr, 0, NI_NUMERICHOST) == 0 ? host : "";
}

}  // namespace

Endpoint Endpoint::parse(const std::string& text) {
  const auto invalid = [&] {
    return tn::Failure(TN_INVALID, "address", "expected \"tcp://host:port\" or \"ipc:///path\", got \"" + text + "\"");
  };
  if (text.rfind("ipc://", 0) == 0 && text.size() > 6) return {false, text.substr(6), ""};
  if (text.rfind("tcp://", 0) != 0) throw invalid();
  const size_t colon = text.rfind(':');
  std::string host = text.substr(6, colon < 6 ? 0 : colon - 6);
  const std::string port = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const bool digits = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  if (host.empty() || !digits || std::stoi(port) < 1 || std::stoi(port) > 65535) throw invalid();
  return {true, host, port};
}

std::string Endpoint::text() const {
  if (!tcp) return "ipc://" + host;
  const bool six = host.find(':') != std::string::npos;
  return "tcp://" + (six ? "[" + host + "]" : host) + ":" + port;
}

std::string listen_at(Socket& socket, const std::string& host, const std::string& port) {
  const Addresses addresses = resolve(host, "0");
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    const std::string address = numeric(each->ai_addr, each->ai_addrlen);
    if (address.empty()) continue;
    socket.set(ZMQ_IPV6, each->ai_family == AF_INET6 ? 1 : 0);
    if (socket.bind(Endpoint{true, address, port}.text())) return socket.endpoint();
  }
  socket.set(ZMQ_IPV6, 0);
  if (!socket.bind("tcp://*:" + port)) fail("cannot listen at tcp://*:" + port);
  const std::string endpoint = socket.endpoint();
  return Endpoint{true, host, endpoint.substr(endpoint.rfind(':') + 1)}.text();
}

std::optional<std::string> address_towards(const Endpoint& endpoint) {
  const Addresses addresses = resolve(endpoint.host, endpoint.port);
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    const int probe = socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);  // sends nothing
    sockaddr_storage local{};
    socklen_t bytes = sizeof local;
    std::string address;
    if (probe >= 0 && connect(probe, each->ai_addr, each->ai_addrlen) == 0 &&
        getsockname(probe, reinterpret_cast<sockaddr*>(&local), &bytes) == 0)
      address = numeric(reinterpret_cast<sockaddr*>(&local), bytes);
    if (probe >= 0) close(probe);
    if (!address.empty()) return address;
  }
  return std::nullopt;
}

}  // namespace tenon_zmq
