// SPDX-License-Identifier: Apache-2.0
#include "cluster/exec.h"

#include <curl/curl.h>
#include <sodium.h>

#include <algorithm>

#include "base/whole_number.h"
#include "cluster/members.h"

namespace tenon::cluster {

namespace {

constexpr std::chrono::seconds kPingPause(10), kDeaf(30);  // between two pings; without any byte
constexpr size_t kMostRound = 4 << 20;                     // bytes that are taken without a look at anything else
constexpr size_t kMostPing = 125;
constexpr size_t kMostErrors = 4096, kMostReply = 64 << 10, kMostFrame = 64 << 20;  // bytes
enum Frame { kContinued = 0, kText = 1, kBinary = 2, kClose = 8, kPing = 9, kPong = 10 };
enum ChannelOf { kInput = 0, kOutput = 1, kErrors = 2, kStatus = 3 };

std::string path_of(const Api& api, const std::string& pod, const std::vector<std::string>& words) {
  std::string path = parts_of(api.access().server).path + api.path("", "pods", pod) +
                     "/exec?container=tenon&stdin=true&stdout=true&stderr=true";
  for (const std::string& word : words) path += "&command=" + escaped(word);
  return path;
}

std::string random_key() {
  unsigned char bytes[16];
  randombytes_buf(bytes, sizeof bytes);
  char text[sodium_base64_ENCODED_LEN(sizeof bytes, sodium_base64_VARIANT_ORIGINAL)];
  sodium_bin2base64(text, sizeof text, bytes, sizeof bytes, sodium_base64_VARIANT_ORIGINAL);
  return text;
}

// Returns the exit code that a Status says; empty if it says something else.
std::optional<int> code_of(const json& status) {
  if (text_of(status, "status") == "Success") return 0;
  for (const json& cause : list_of(member_of(status, "details"), "causes"))
    if (text_of(cause, "reason") == "ExitCode") return base::whole_number<int>(text_of(cause, "message"));
  return std::nullopt;
}

}  // namespace

Exec::Exec(Api& api, const std::string& pod, const std::vector<std::string>& words,
           std::function<void(std::string_view)> out)
    : api_(api), path_(path_of(api, pod, words)), out_(std::move(out)), connection_(api.connect()) {}

void Exec::end(const std::string& why) {
  over_ = true;
  open_ = false;
  why_ = why;
}

void Exec::go_on() {
  if (over_ || !connection_->is_over()) return;
  if (const Reply& reply = connection_->reply(); !asked_ && !reply.text.empty()) return end(reply.text);
  if (!asked_) {
    const std::string token = api_.authorization();
    unsent_ = "GET " + path_ + " HTTP/1.1\r\nHost: " + parts_of(api_.access().server).authority +
              "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " +
              random_key() +
              "\r\nSec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io\r\nUser-Agent: tenon/" TENON_VERSION
              "\r\n" +
              (token.empty() ? "" : token + "\r\n") + "\r\n";
    asked_ = true;
    heard_ = pinged_ = Clock::now();
  }
  if (open_ && Clock::now() - pinged_ > kPingPause) {
    pinged_ = Clock::now();
    add_frame(kPing, "");
  }
  write();
  receive();
  take_all();
  if (!over_ && Clock::now() - heard_ > kDeaf) end("nothing was heard for " + std::to_string(kDeaf.count()) + " s");
  write();
}

void Exec::write() {
  while (!over_ && !unsent_.empty()) {
    size_t sent = 0;
    const CURLcode code = curl_easy_send(connection_->handle(), unsent_.data(), unsent_.size(), &sent);
    if (code == CURLE_AGAIN) return;
    if (code != CURLE_OK) return end(curl_easy_strerror(code));
    unsent_.erase(0, sent);
  }
}

void Exec::receive() {
  std::string part(1 << 18, '\0');
  for (size_t round = 0; round < kMostRound;) {
    size_t got = 0;
    const CURLcode code = curl_easy_recv(connection_->handle(), part.data(), part.size(), &got);
    if (code == CURLE_AGAIN) return;
    if (code == CURLE_OK && got > 0) {
      received_.append(part, 0, got);
      heard_ = Clock::now();
      round += got;
      continue;
    }
    take_all();  // what came before the end is read all the same
    if (!over_) end(code == CURLE_OK ? "the connection has ended" : curl_easy_strerror(code));
    return;
  }
}

// Takes what is whole of what was received.
void Exec::take_all() {
  while (!over_ && (open_ ? take_frame() : take_head())) {
  }
  received_.erase(0, taken_);
  taken_ = 0;
}

bool Exec::take_head() {
  const size_t end_of_head = received_.find("\r\n\r\n");
  if (end_of_head == std::string::npos) {
    if (received_.size() > kMostReply) end("the answer is no HTTP");
    return false;
  }
  const std::string head = received_.substr(0, end_of_head);
  taken_ = end_of_head + 4;
  refusal_.status = base::whole_number<int>(head.substr(std::min<size_t>(9, head.size()), 3)).value_or(0);
  if (refusal_.status == 101) {
    refusal_ = {};
    open_ = true;
    return true;
  }
  refusal_.text = received_.substr(taken_);
  end("status " + std::to_string(refusal_.status));
  return false;
}

bool Exec::take_frame() {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(received_[taken_ + at]); };
  const size_t left = received_.size() - taken_;
  if (left < 2) return false;
  size_t at = 2, size = byte(1) & 127U;
  size_t wide = 0;  // bytes of a size that does not fit
  if (size > 125) wide = size == 126 ? 2 : 8;
  if (left < at + wide) return false;
  if (wide > 0) size = 0;
  for (size_t i = 0; i < wide; ++i) size = size << 8U | byte(at++);
  if (size > kMostFrame || (byte(1) & 128U) != 0 || message_.size() + size > kMostFrame) {
    end("a message of WebSocket has " + std::to_string(size) + " bytes, or a mask");
    return false;
  }
  if (left < at + size) return false;
  const bool is_last = (byte(0) & 128U) != 0;
  const int kind = byte(0) & 15;
  const std::string body = received_.substr(taken_ + at, size);
  taken_ += at + size;
  if (kind == kPing) {
    add_frame(kPong, body.substr(0, kMostPing));
  } else if (kind == kClose) {
    if (!answered_) end("the connection has ended");
    over_ = true;
  } else if (kind == kBinary || kind == kText || kind == kContinued) {
    message_ += body;
    if (is_last) take_message(std::exchange(message_, ""));
  }
  return !over_;
}

void Exec::take_message(std::string_view message) {
  if (message.empty()) return;
  const int channel = message[0];
  const std::string_view bytes = message.substr(1);
  if (channel == kOutput) out_(bytes);
  if (channel == kErrors && errors_.size() < kMostErrors) errors_ += bytes;
  if (channel != kStatus) return;
  answered_ = true;
  const json status = parse_json(bytes);
  exit_ = code_of(status);
  if (!status.is_object()) return end("the status of the command is no JSON");
  end(exit_ ? "" : text_of(status, "message"));
}

// Frames of a client are masked.
void Exec::add_frame(int kind, const std::string& bytes) {
  std::string frame = {static_cast<char>(128 | kind)};
  if (bytes.size() < 126)
    frame += static_cast<char>(128 | bytes.size());
  else
    frame.append({static_cast<char>(254), static_cast<char>(bytes.size() >> 8U), static_cast<char>(bytes.size())});
  char mask[4];
  randombytes_buf(mask, sizeof mask);
  frame.append(mask, sizeof mask);
  for (size_t i = 0; i < bytes.size(); ++i) frame += static_cast<char>(bytes[i] ^ mask[i % 4]);
  unsent_ += frame;
}

void Exec::send(const std::string& text) {
  add_frame(kBinary, std::string(1, static_cast<char>(kInput)) + text);
  go_on();
}

}  // namespace tenon::cluster
