// Messages of any length from each process of a team to each. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/error.h"
#include "host/comm/team.h"

namespace tenon::host {

using namespace core;

// Numbers one behind the other.
using Message = std::vector<std::byte>;

template <typename Number>
void append(Message& message, std::span<const Number> numbers) {
  const auto bytes = std::as_bytes(numbers);
  message.insert(message.end(), bytes.begin(), bytes.end());
}

// Reads a message of another process from its beginning. Throws TN_BAD_DATA naming the process if it ends too early.
class MessageReader {
 public:
  MessageReader(const Message& message, int64_t process) : message_(message), process_(process) {}

  template <typename Number>
  void read(std::span<Number> to) {
    if (message_.size() - at_ < to.size_bytes())
      fail(TN_BAD_DATA, "a message of process ", process_, " has ", message_.size(), " bytes; expected ",
           to.size_bytes(), " from byte ", at_, " on");
    if (!to.empty()) std::memcpy(to.data(), message_.data() + at_, to.size_bytes());
    at_ += to.size_bytes();
  }
  // Returns a list behind its length. most: of the length.
  template <typename Number>
  [[nodiscard]] std::vector<Number> list(int64_t most) {
    int64_t count = 0;
    read(std::span(&count, 1));
    if (count < 0 || count > most)
      fail(TN_BAD_DATA, "process ", process_, " sends ", count, " rows; expected at most ", most);
    std::vector<Number> numbers(static_cast<size_t>(count));
    read(std::span(numbers));
    return numbers;
  }

 private:
  const Message& message_;
  int64_t process_;
  size_t at_ = 0;
};

template <typename Number>
void append_list(Message& message, std::span<const Number> numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  append(message, std::span(&count, 1));
  append(message, numbers);
}

// Sends message number i to process i, and returns those that have come, by process. Collective; team: null: there is
// this process alone. most: bytes of a message; TN_BAD_DATA naming the process that announces more.
[[nodiscard]] std::vector<Message> all_to_all(Team* team, std::vector<Message> messages, uint64_t most);

}  // namespace tenon::host
