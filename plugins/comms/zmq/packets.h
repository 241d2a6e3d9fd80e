// What ranks send to each other beside data. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace tenon_zmq {

// The first four bytes of the first frame. Data have the channel behind it, and a second frame.
enum class Kind : uint32_t {
  // From the rank that connects:
  kHello = 0x31544e54,  // instance, epoch, rank, ranks, nonce
  kProof,               // proof, endpoint of the sender
  kData,                // channel
  kBye,                 // the last message
  // To it:
  kChallenge,  // nonce, proof
  kWelcome,
  kRefused,  // status, reason
  kTable,    // of rank 0: the endpoints of all ranks
  kSeen,     // Bye has arrived
  kLost      // the receiver is lost to the sender
};

class Writer {
 public:
  explicit Writer(Kind kind) { add(kind); }
  template <typename T>
  Writer& add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Writer& add_text(std::string_view text) {
    add(static_cast<uint32_t>(text.size()));
    text_.append(text);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Reads what a Writer wrote. Values that are not there are zero, and good() is false.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  template <typename T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const std::string_view bytes = take_bytes(sizeof value);
    if (good_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string take_text() { return std::string(take_bytes(take<uint32_t>())); }
  bool good() const { return good_; }

 private:
  std::string_view take_bytes(size_t bytes) {
    good_ = good_ && bytes <= text_.size();
    if (!good_) return {};
    const std::string_view taken = text_.substr(0, bytes);
    text_.remove_prefix(bytes);
    return taken;
  }

  std::string_view text_;
  bool good_ = true;
};

}  // namespace tenon_zmq
