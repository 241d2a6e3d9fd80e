// SPDX-License-Identifier: Apache-2.0
#include "sockets.h"

#include <cerrno>
#include <cstring>
#include <tenon/base.hpp>
#include <utility>

namespace tenon_zmq {

void fail(const std::string& what) { throw tn::Failure(TN_IO, "", what + ": " + zmq_strerror(zmq_errno())); }

Context::Context(int threads, int sockets) : context_(zmq_ctx_new()) {
  if (context_ == nullptr) fail("a context of ZeroMQ");
  zmq_ctx_set(context_, ZMQ_IO_THREADS, threads);
  zmq_ctx_set(context_, ZMQ_MAX_SOCKETS, sockets);
}

Context::~Context() {
  while (zmq_ctx_term(context_) != 0 && zmq_errno() == EINTR) {
  }
}

Message::Message(std::string_view bytes) {
  if (zmq_msg_init_size(&message_, bytes.size()) != 0) throw std::bad_alloc();
  if (!bytes.empty()) std::memcpy(zmq_msg_data(&message_), bytes.data(), bytes.size());
}

Message::Message(void* data, size_t bytes, zmq_free_fn* release, void* hint) {
  if (zmq_msg_init_data(&message_, data, bytes, release, hint) != 0) throw std::bad_alloc();
}

Socket::Socket(const Context& context, int type) : socket_(zmq_socket(context.get(), type)) {
  if (socket_ == nullptr) fail("a socket of ZeroMQ");
  size_t bytes = sizeof descriptor_;
  zmq_getsockopt(socket_, ZMQ_FD, &descriptor_, &bytes);
  linger(0);
}

Socket::Socket(Socket&& other) noexcept
    : socket_(std::exchange(other.socket_, nullptr)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      monitored_(std::exchange(other.monitored_, false)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(monitored_, other.monitored_);
  return *this;
}

void Socket::set(int option, int value) { set(option, &value, sizeof value); }

void Socket::set(int option, const void* value, size_t bytes) {
  if (zmq_setsockopt(socket_, option, value, bytes) != 0) fail("option " + std::to_string(option) + " of a socket");
}

void Socket::set_most_bytes(int64_t bytes) { set(ZMQ_MAXMSGSIZE, &bytes, sizeof bytes); }

bool Socket::bind(const std::string& endpoint) {
  if (zmq_bind(socket_, endpoint.c_str()) == 0) return true;
  if (zmq_errno() == EADDRNOTAVAIL || zmq_errno() == ENODEV) return false;
  fail("cannot listen at " + endpoint);
}

void Socket::connect(const std::string& endpoint) {
  if (zmq_connect(socket_, endpoint.c_str()) != 0) fail("cannot connect to " + endpoint);
}

std::string Socket::endpoint() const {
  char text[1024];
  size_t bytes = sizeof text;
  if (zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, text, &bytes) != 0) fail("the endpoint of a socket");
  return text;
}

void Socket::send(Message message, bool more) {
  while (zmq_msg_send(message.get(), socket_, ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) < 0 && zmq_errno() == EINTR) {
  }
}

bool Socket::receive(Message& message) {
  for (;;) {
    if (zmq_msg_recv(message.get(), socket_, ZMQ_DONTWAIT) >= 0) return true;
    if (zmq_errno() != EINTR) return false;
  }
}

// A closed socket ends later, on a thread of the context: what happens to it until then is no event any more.
void Socket::close() {
  if (std::exchange(monitored_, false)) zmq_socket_monitor(socket_, nullptr, 0);
  if (socket_ != nullptr) zmq_close(std::exchange(socket_, nullptr));
  descriptor_ = -1;
}

Socket Socket::monitor(const Context& context, int events) {
  const std::string place = "inproc://monitor-" + std::to_string(reinterpret_cast<uintptr_t>(socket_));
  if (zmq_socket_monitor(socket_, place.c_str(), events) != 0) fail("the monitor of a socket");
  monitored_ = true;
  Socket monitor(context, ZMQ_PAIR);
  monitor.set(ZMQ_RCVHWM, 0);
  monitor.connect(place);
  return monitor;
}

int next_event(Socket& monitor) {
  Message event;
  if (!monitor.receive(event)) return 0;
  uint16_t number = 0;
  if (event.bytes() >= sizeof number) std::memcpy(&number, event.data(), sizeof number);
  for (Message part; event.more() && monitor.receive(part);)  // the endpoint
    if (!part.more()) break;
  return number;
}

}  // namespace tenon_zmq
