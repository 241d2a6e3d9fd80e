// SPDX-License-Identifier: Apache-2.0
#include "cluster/log.h"

namespace tenon::cluster {

namespace {

constexpr std::chrono::milliseconds kPause(500);  // between two connections

// Whether a text is a time as RFC 3339 writes it: 2026-11-30T22:48:17.123456789Z.
bool is_time(const std::string& text) {
  return text.size() >= 20 && text[4] == '-' && text[7] == '-' && text[10] == 'T' && text[13] == ':' &&
         text.find_first_not_of("0123456789-:.TZ+") == std::string::npos;
}

}  // namespace

Log::Log(Api& api, std::string pod, bool follow, std::function<void(const std::string&)> line)
    : api_(api), pod_(std::move(pod)), follow_(follow), line_(std::move(line)) {}

void Log::go_on() {
  if (request_ != nullptr && !request_->is_over()) return;
  if (request_ != nullptr) {
    const Reply& reply = request_->reply();
    if (reply.status == 401 && !is_renewed_) {
      api_.renew();
      is_renewed_ = true;
    } else if (reply.status == 401 || reply.status == 403) {  // 400: its process does not run so far; 404: it has gone
      api_.fail(reply, "GET", "/pods/log");
    }
    if (Clock::now() < begun_ + kPause) return;
  }
  begun_ = Clock::now();
  rest_.clear();  // it comes again
  skip_ = at_time_;
  std::string path = api_.path("", "pods", pod_) + "/log?container=tenon&timestamps=true";
  if (follow_) path += "&follow=true";
  if (!time_.empty()) path += "&sinceTime=" + escaped(time_);
  request_ = api_.stream(path, [this](std::string_view bytes) { take(bytes); });
}

// Each line begins with its time and a space. After a loss those of the second of the last one come again.
void Log::take(std::string_view bytes) {
  rest_ += bytes;
  size_t begin = 0;
  for (size_t end = 0; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const size_t space = rest_.find(' ', begin);
    const std::string time = space < end ? rest_.substr(begin, space - begin) : "";
    if (!is_time(time)) {  // of the kubelet itself
      line_(rest_.substr(begin, end - begin));
      continue;
    }
    is_renewed_ = false;
    if (time < time_ || (time == time_ && skip_ > 0)) {
      if (time == time_) --skip_;
      continue;
    }
    at_time_ = time == time_ ? at_time_ + 1 : 1;
    skip_ = 0;
    time_ = time;
    line_(rest_.substr(space + 1, end - space - 1));
  }
  rest_.erase(0, begin);
}

}  // namespace tenon::cluster
