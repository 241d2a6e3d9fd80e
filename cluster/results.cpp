// SPDX-License-Identifier: Apache-2.0
#include "cluster/results.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "cluster/members.h"
#include "host/cli/cli.h"

namespace tenon::cluster {

namespace {

using cli::Failure;

constexpr int kMostExit = 255;
constexpr mode_t kReadable = 0666;
constexpr size_t kMostHead = 1 << 20;  // bytes

// Returns what new files of this process do not permit.
mode_t current_mask() {
  const mode_t mask = umask(0);
  umask(mask);
  return mask;
}

[[noreturn]] void cannot_write(const std::string& path) {
  throw Failure(cli::kIo, "cannot write \"" + path + "\": " + std::generic_category().message(errno));
}

}  // namespace

Results::Results(std::function<std::optional<std::string>(const std::string&)> path_of) : path_of_(std::move(path_of)) {
  crypto_generichash_init(&state_, nullptr, 0, crypto_generichash_BYTES);
}

Results::~Results() {
  for (const File& file : files_)
    if (!whole_ && !file.part.empty()) unlink(file.part.c_str());
}

void Results::take_head(const std::string& line) {
  const json head = parse_json(line);
  if (image_.is_null() && member_of(head, "image").is_object()) {
    image_ = head["image"];
    return;
  }
  const int64_t exit = number_of(head, "exit", -1);
  if (exit < 0 || exit > kMostExit || !member_of(head, "files").is_array())
    throw Failure(cli::kIo, "the pod of the launcher gives no results");
  for (const json& entry : list_of(head, "files")) {
    const int64_t bytes = number_of(entry, "bytes", -1);
    if (bytes < 0) throw Failure(cli::kIo, "the pod of the launcher gives no results");
    File& file = files_.emplace_back();
    file.path = path_of_(text_of(entry, "what"));
    file.left = static_cast<uint64_t>(bytes);
  }
  exit_ = static_cast<int>(exit);
}

// Begins a file beside the one that it will be, under a name that nobody else has.
void Results::begin(File& file) {
  file.part = *file.path + ".part-XXXXXX";
  out_ = base::Descriptor(mkostemp(file.part.data(), O_CLOEXEC));
  if (out_.get() < 0) {
    file.part.clear();
    cannot_write(*file.path);
  }
  fchmod(out_.get(), kReadable & ~current_mask());
}

void Results::take(std::string_view bytes) {
  while (!exit_) {
    const size_t end = bytes.find('\n');
    head_ += bytes.substr(0, end == std::string_view::npos ? end : end + 1);
    if (head_.size() > kMostHead) throw Failure(cli::kIo, "the pod of the launcher gives no results");
    if (end == std::string_view::npos) return;
    crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(head_.data()), head_.size());
    take_head(std::exchange(head_, ""));
    bytes.remove_prefix(end + 1);
  }
  while (file_ < files_.size()) {
    File& file = files_[file_];
    if (file.path && file.part.empty()) begin(file);
    const std::string_view part = bytes.substr(0, std::min<uint64_t>(file.left, bytes.size()));
    crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(part.data()), part.size());
    if (file.path && !base::write_all(out_.get(), part)) cannot_write(*file.path);
    file.left -= part.size();
    bytes.remove_prefix(part.size());
    if (file.left > 0) return;
    if (file.path && (fsync(out_.get()) != 0 || out_.close() != 0)) cannot_write(*file.path);
    ++file_;
  }
  digest_ += bytes;
  if (digest_.size() >= crypto_generichash_BYTES && !whole_) finish();
}

void Results::finish() {
  unsigned char expected[crypto_generichash_BYTES];
  crypto_generichash_final(&state_, expected, sizeof expected);
  if (digest_.size() != sizeof expected ||
      !std::equal(digest_.begin(), digest_.end(), reinterpret_cast<char*>(expected)))
    throw Failure(cli::kIo, "the results of the training were damaged on their way");
  for (const File& file : files_) {
    if (!file.path) continue;
    if (rename(file.part.c_str(), file.path->c_str()) != 0) cannot_write(*file.path);
    written_.push_back(*file.path);
  }
  whole_ = true;
}

}  // namespace tenon::cluster
