// Contexts, sockets and messages of libzmq with owners. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zmq.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon_zmq {

// Throws tn::Failure with TN_IO and the reason of libzmq.
[[noreturn]] void fail(const std::string& what);

class Context {
 public:
  Context(int threads, int sockets);
  ~Context();  // after all its sockets
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  void* get() const { return context_; }

 private:
  void* context_;
};

class Message {
 public:
  Message() { zmq_msg_init(&message_); }
  explicit Message(std::string_view bytes);                             // a copy
  Message(void* data, size_t bytes, zmq_free_fn* release, void* hint);  // borrowed until `release`
  ~Message() { zmq_msg_close(&message_); }
  Message(Message&& other) noexcept : Message() { zmq_msg_move(&message_, &other.message_); }
  Message& operator=(Message&& other) noexcept {
    zmq_msg_move(&message_, &other.message_);
    return *this;
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  zmq_msg_t* get() { return &message_; }
  size_t bytes() const { return zmq_msg_size(&message_); }
  const void* data() const { return zmq_msg_data(const_cast<zmq_msg_t*>(&message_)); }  // NOLINT(*-const-cast)
  bool more() const { return zmq_msg_more(&message_) != 0; }
  std::string_view text() const { return {static_cast<const char*>(data()), bytes()}; }

 private:
  zmq_msg_t message_;
};

// Closing drops what was not sent yet, unless linger() says otherwise.
class Socket {
 public:
  Socket() = default;
  Socket(const Context& context, int type);
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  explicit operator bool() const { return socket_ != nullptr; }
  void set(int option, int value);
  void set(int option, const void* value, size_t bytes);
  void set_most_bytes(int64_t bytes);
  void linger(int milliseconds) { set(ZMQ_LINGER, milliseconds); }
  bool bind(const std::string& endpoint);  // false if the address is not of this machine
  void connect(const std::string& endpoint);
  std::string endpoint() const;  // of the last bind
  // Neither waits. send drops a message that cannot be queued; receive returns false if there is none.
  void send(Message message, bool more = false);
  bool receive(Message& message);
  int descriptor() const { return descriptor_; }  // readable when receive may find something
  void close();

  // A socket that receives these events of this one, until this one is closed, which has to be first: a thread of the
  // context waits for ever to send an event that nobody can receive.
  Socket monitor(const Context& context, int events);

 private:
  void* socket_ = nullptr;
  int descriptor_ = -1;
  bool monitored_ = false;
};

// Reads the next event of a monitor; 0: none.
int next_event(Socket& monitor);

}  // namespace tenon_zmq
