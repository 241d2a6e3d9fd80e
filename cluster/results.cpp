// SPDX-License-Identifier: Apache-2.0
#include "cluster/results.h"

#include <algorithm>
#include <filesystem>

#include "host/cli/cli.h"

namespace tenon::cluster {

namespace {

namespace fs = std::filesystem;
using cli::Failure;

constexpr size_t kMostHead = 1 << 20;  // bytes

std::string part_of(const std::string& path) { return path + ".part"; }

void cannot_write(const std::string& path) { throw Failure(cli::kIo, "cannot write \"" + path + "\""); }

}  // namespace

Results::Results(std::function<std::optional<std::string>(const std::string&)> path_of) : path_of_(std::move(path_of)) {
  crypto_generichash_init(&state_, nullptr, 0, crypto_generichash_BYTES);
}

Results::~Results() {
  out_.close();
  std::error_code error;
  for (const File& file : files_)
    if (!whole_ && file.path) fs::remove(part_of(*file.path), error);
}

void Results::take_head(const std::string& line) {
  const json head = json::parse(line, nullptr, false);
  if (!head.is_object() || !head.contains("exit") || !head.contains("files"))
    throw Failure(cli::kIo, "the pod of the launcher gives no results");
  exit_ = head["exit"].get<int>();
  for (const json& file : head["files"])
    files_.push_back({path_of_(file.value("what", "")), file.value("bytes", uint64_t{0})});
}

void Results::take(std::string_view bytes) {
  if (!exit_) {
    const size_t end = bytes.find('\n');
    head_ += bytes.substr(0, end == std::string_view::npos ? end : end + 1);
    if (head_.size() > kMostHead) throw Failure(cli::kIo, "the pod of the launcher gives no results");
    if (end == std::string_view::npos) return;
    crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(head_.data()), head_.size());
    take_head(head_);
    bytes.remove_prefix(end + 1);
  }
  while (file_ < files_.size()) {
    File& file = files_[file_];
    if (file.path && !out_.is_open()) {
      out_.open(part_of(*file.path), std::ios::binary);
      if (!out_) cannot_write(*file.path);
    }
    const std::string_view part = bytes.substr(0, std::min<uint64_t>(file.left, bytes.size()));
    crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(part.data()), part.size());
    if (file.path && !out_.write(part.data(), static_cast<std::streamsize>(part.size()))) cannot_write(*file.path);
    file.left -= part.size();
    bytes.remove_prefix(part.size());
    if (file.left > 0) return;
    if (file.path) {
      out_.close();
      if (!out_) cannot_write(*file.path);
    }
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
    fs::rename(part_of(*file.path), *file.path);
    written_.push_back(*file.path);
  }
  whole_ = true;
}

}  // namespace tenon::cluster
