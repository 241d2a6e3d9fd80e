// What a pod prints, as it comes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/api.h"

namespace tenon::cluster {

// Reads the log of a pod, and goes on behind the last line when the connection is lost.
class Log : base::NotCopied {
 public:
  // follow: until the pod has ended. line: called for each, without its end.
  Log(Api& api, std::string pod, bool follow, std::function<void(const std::string&)> line);

  // Begins again what was lost. Throws cli::Failure for a reply that is an error.
  void go_on();
  [[nodiscard]] const std::string& pod() const { return pod_; }
  // Whether a connection has ended by itself, and nothing is under way.
  [[nodiscard]] bool is_over() const { return request_ != nullptr && request_->is_over(); }

 private:
  void take(std::string_view bytes);

  Api& api_;
  const std::string pod_;
  const bool follow_;
  const std::function<void(const std::string&)> line_;
  std::unique_ptr<Request> request_;
  std::string rest_;               // an unfinished line
  std::string time_;               // when the last one was printed
  size_t at_time_ = 0, skip_ = 0;  // lines of that time, and of these, that come again
  bool is_renewed_ = false;        // credentials, since a line has come
  Clock::time_point begun_;
};

}  // namespace tenon::cluster
