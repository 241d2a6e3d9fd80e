// A command in a pod, by the API's exec over WebSocket (RFC 6455; subprotocols v5 and v4.channel.k8s.io).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/api.h"

namespace tenon::cluster {

class Exec : base::NotCopied {
 public:
  // out: gets what the command writes to standard output, as it comes.
  Exec(Api& api, const std::string& pod, const std::vector<std::string>& words,
       std::function<void(std::string_view)> out);

  // Reads and writes what is possible without waiting. Does nothing once it is over.
  void go_on();
  // Writes to the command's standard input.
  void send(const std::string& text);
  [[nodiscard]] bool is_over() const { return over_; }
  // The exit code of a command that is over; empty: the connection ended before, and why() says how.
  [[nodiscard]] std::optional<int> exit_code() const { return exit_; }
  [[nodiscard]] const std::string& why() const { return why_; }
  // Of a reply that was no connection, such as 403; 0: there was none.
  [[nodiscard]] const Reply& refusal() const { return refusal_; }
  // What the command has written to standard error, at most some KB of it.
  [[nodiscard]] const std::string& errors() const { return errors_; }

 private:
  void receive();
  void take_all();
  void write();
  [[nodiscard]] bool take_head();
  [[nodiscard]] bool take_frame();
  void take_message(std::string_view message);
  void add_frame(int kind, const std::string& bytes);
  void end(const std::string& why);

  Api& api_;
  const std::string path_;
  const std::function<void(std::string_view)> out_;
  std::unique_ptr<Request> connection_;
  bool asked_ = false, open_ = false, over_ = false, answered_ = false;
  std::string unsent_, received_, message_;
  size_t taken_ = 0;  // bytes of received_
  Clock::time_point heard_, pinged_;
  std::optional<int> exit_;
  std::string why_, errors_;
  Reply refusal_;
};

}  // namespace tenon::cluster
