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

using Message = std::vector<std::byte>;

// Keeps its memory from one exchange to the next: fresh memory of megabytes costs more than what is copied into it.
// Messages that travel end before it does.
class Messages : base::NotCopied {
 public:
  // team: borrowed; null: there is this process alone.
  explicit Messages(Team* team);

  [[nodiscard]] int64_t count() const { return static_cast<int64_t>(outgoing_.size()); }
  // The message to a process, to be filled.
  [[nodiscard]] Message& to(int64_t process) { return outgoing_[static_cast<size_t>(process)]; }
  // Sends them. Collective. most: bytes of a message; TN_BAD_DATA naming the process that announces more.
  void exchange(uint64_t most);
  // The same if it is known how many bytes come from each process; the number of the own process does not count.
  void exchange(const std::vector<uint64_t>& coming);
  // Begins that on a channel, and returns at once. Until wait() returns the messages may not be changed.
  void begin(const std::vector<uint64_t>& coming, uint32_t channel);
  void wait() { transfers_.wait(); }
  // The message of a process; of this one it is to(this one).
  [[nodiscard]] const Message& from(int64_t process) const;

 private:
  Team* team_;
  std::vector<Message> outgoing_, incoming_;  // by process
  Team::Transfers transfers_;                 // borrows both
};

// Writes numbers behind each other into a message, which is as long as it has to be.
class MessageWriter {
 public:
  MessageWriter(Message& message, uint64_t bytes) : message_(message) { message_.resize(bytes); }

  template <typename Number>
  void write(std::span<const Number> numbers) {
    if (!numbers.empty()) std::memcpy(message_.data() + at_, numbers.data(), numbers.size_bytes());
    at_ += numbers.size_bytes();
  }

 private:
  Message& message_;
  uint64_t at_ = 0;
};

// Reads a message of another process from its beginning. Throws TN_BAD_DATA naming the process if it ends too early.
class MessageReader {
 public:
  MessageReader(const Message& message, int64_t process) : message_(message), process_(process) {}

  // Returns so many bytes, which are borrowed.
  [[nodiscard]] const std::byte* bytes(uint64_t count) {
    if (message_.size() - at_ < count)
      fail(TN_BAD_DATA, "a message of process ", process_, " has ", message_.size(), " bytes; expected ", count,
           " from byte ", at_, " on");
    const std::byte* const begin = message_.data() + at_;
    at_ += count;
    return begin;
  }
  // Returns the length of a list. most: of it.
  [[nodiscard]] uint64_t length(int64_t most) {
    int64_t count = 0;
    std::memcpy(&count, bytes(sizeof count), sizeof count);
    if (count < 0 || count > most)
      fail(TN_BAD_DATA, "process ", process_, " sends ", count, " rows; expected at most ", most);
    return static_cast<uint64_t>(count);
  }
  // Reads so many numbers.
  void read(std::vector<int64_t>& to, uint64_t count) {
    to.resize(count);
    if (count > 0) std::memcpy(to.data(), bytes(count * sizeof(int64_t)), count * sizeof(int64_t));
  }

 private:
  const Message& message_;
  int64_t process_;
  uint64_t at_ = 0;
};

}  // namespace tenon::host
