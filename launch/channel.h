// Lines of JSON between two processes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files.h"

namespace tenon::launch {

using nlohmann::json;

// Reads and writes without waiting: what cannot be written yet is kept.
class Channel {
 public:
  // out: may be the descriptor `in` again, as of a socket. most: bytes of a line that is received.
  Channel(base::Descriptor in, base::Descriptor out, size_t most);

  [[nodiscard]] int in() const { return in_.get(); }
  [[nodiscard]] int out() const { return both_ ? in_.get() : out_.get(); }
  [[nodiscard]] size_t unsent() const { return unsent_.size(); }

  void send(const json& line);
  // Writes as much as is possible. Returns false if the other side no longer reads.
  bool flush() noexcept;
  // Closes the direction to the other side, if it has a descriptor of its own.
  void close_out() { out_.close(); }
  // Reads all that is there, and calls handle for each line that is an object; stray for others, such as what the start
  // of a shell prints. Returns false at the end, and after a line that is too long.
  [[nodiscard]] bool receive(const std::function<void(const json&)>& handle,
                             const std::function<void(const std::string&)>& stray = {});

 private:
  base::Descriptor in_, out_;
  bool both_;  // in_ is a socket, for both directions
  size_t most_;
  std::string received_, unsent_;
};

// Makes a descriptor one that neither waits nor is inherited.
void make_waitless(int descriptor);
// Makes a descriptor one that waits.
void make_waiting(int descriptor);

// Two ends of a channel in both directions. Throws std::system_error.
struct SocketPair {
  base::Descriptor ours, theirs;
};
[[nodiscard]] SocketPair make_socket_pair();
// A pipe. Throws std::system_error.
struct Pipe {
  base::Descriptor from, to;
};
[[nodiscard]] Pipe make_pipe();

// Returns the end of a pipe from which a secret can be read, of fewer bytes than a pipe holds.
[[nodiscard]] base::Descriptor make_secret_pipe(const std::string& secret);
// In a child, before it becomes another program: has that find a copy of a descriptor by a variable of its environment.
void name_inherited(const char* variable, int descriptor);

}  // namespace tenon::launch
