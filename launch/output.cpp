// SPDX-License-Identifier: Apache-2.0
#include "launch/output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <sstream>

#include "base/files.h"
#include "host/cli/cli.h"

namespace tenon::launch {

namespace {

constexpr size_t kMostSeen = 10'000;

}  // namespace

void Output::Stream::write(size_t most) {
  if (text.empty()) return;
  const size_t length = std::min(text.size(), most);
  const ssize_t put = base::uninterrupted([&] { return ::write(descriptor, text.data(), length); });
  if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
  failed = failed || put < 0;
  text.erase(0, put < 0 ? text.size() : static_cast<size_t>(put));
}

void Output::note(const std::string& text) {
  if (!quiet_) warn(text);
}

void Output::warn(const std::string& text) { err_.text += cli::shortened(cli::plain(text)) + "\n"; }

void Output::tell(int64_t rank, const std::string& node, const std::string& stream, const std::string& text) {
  if (stream == "out") {
    if (rank == 0) out_.text += text;
    return;
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto seen = seen_.find(line);
    if (seen != seen_.end() && seen->second != rank) continue;
    if (seen == seen_.end() && seen_.size() < kMostSeen) seen_.emplace(line, rank);
    const std::string place = node.empty() ? "" : " " + node;
    err_.text += (rank == 0 ? "" : "[process " + std::to_string(rank) + place + "] ") + cli::plain(line) + "\n";
  }
}

void Output::add_waits(std::vector<Wait>& waits) {
  for (Stream* const stream : {&out_, &err_})
    if (!stream->text.empty()) waits.push_back({stream->descriptor, POLLOUT, [stream] { stream->write(PIPE_BUF); }});
}

void Output::finish() {
  for (Stream* const stream : {&out_, &err_})
    while (!stream->text.empty()) {
      pollfd ready = {stream->descriptor, POLLOUT, 0};
      poll(&ready, 1, -1);
      stream->write(PIPE_BUF);
    }
}

}  // namespace tenon::launch
