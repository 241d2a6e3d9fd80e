// SPDX-License-Identifier: Apache-2.0
#include "launch/node/lease.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <thread>
#include <utility>

#include "host/cli/cli.h"

namespace tenon::launch {

namespace {

namespace fs = std::filesystem;
using cli::Failure;
using nlohmann::json;

constexpr std::chrono::seconds kFresh(10);  // a lease that was not renewed for so long is given up

// What the file "epoch" says.
struct Record {
  uint32_t epoch = 0;
  Holder holder;
  std::string kernel;
  bool ended = true;
};

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns the start of this kernel, which machines and containers share if they share locks on local files.
std::string this_kernel() {
  std::string text = text_of("/proc/sys/kernel/random/boot_id");
  return text.substr(0, text.find('\n'));
}

Record record_of(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error)) return {};
  const json stored = json::parse(text_of(file), nullptr, false);
  try {
    return {stored.at("epoch"),
            {stored.at("job"), stored.at("host"), stored.at("process"), stored.at("since")},
            stored.at("kernel"),
            stored.at("ended")};
  } catch (const json::exception&) {
    throw Failure(cli::kBadData, file.string() +
                                     ": it is not the epoch of a training, which tenon writes beside checkpoints; "
                                     "remove it if no such training runs");
  }
}

[[noreturn]] void fail_io(const fs::path& path) {
  throw Failure(cli::kIo, "cannot write \"" + path.string() + "\": " + std::generic_category().message(errno));
}

std::chrono::nanoseconds time_of(const struct stat& status) {
  return std::chrono::seconds(status.st_mtim.tv_sec) + std::chrono::nanoseconds(status.st_mtim.tv_nsec);
}

}  // namespace

Lease::Lease(fs::path folder, Holder holder, uint32_t last) : folder_(std::move(folder)), holder_(std::move(holder)) {
  create_folder();
  const fs::path path = folder_ / "epoch.lock";
  lock_ =
      base::Descriptor(base::uninterrupted([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666); }));
  if (lock_.get() < 0) fail_io(path);
  take(last);
}

Lease::~Lease() {
  try {
    if (is_held()) write(true);
  } catch (const std::exception&) {  // the folder is gone: nobody can read it
  }
}

void Lease::create_folder() const {
  std::error_code error;
  if (fs::is_directory(folder_, error)) return;
  if (mkdir(folder_.c_str(), 0777) == 0 || errno == EEXIST) return;
  const int failure = errno;
  if (!fs::is_directory(base::folder_of(folder_), error))
    throw Failure(cli::kNotFound, "there is no folder \"" + base::folder_of(folder_).string() + "\" for checkpoints");
  errno = failure;
  fail_io(folder_);
}

bool Lease::try_lock() {
  if (base::uninterrupted([&] { return flock(lock_.get(), LOCK_EX | LOCK_NB); }) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  locks_ = false;
  return true;
}

// By the clock of the file system: those of machines differ.
bool Lease::is_fresh() const {
  struct stat now, renewed;
  if (futimens(lock_.get(), nullptr) != 0 || fstat(lock_.get(), &now) != 0) return true;
  if (stat(file().c_str(), &renewed) != 0) return false;
  return time_of(now) - time_of(renewed) < kFresh;
}

void Lease::take(uint32_t last) {
  const auto until = std::chrono::steady_clock::now() + 2 * kFresh;
  for (;;) {
    const bool locked = try_lock();
    const Record record = record_of(file());
    const bool is_own = record.holder == holder_;  // an agent of the same launcher, which is lost
    const bool is_here = locks_ && record.kernel == this_kernel();
    if (locked && (record.ended || is_own || is_here || !is_fresh())) {
      if (last > 0 && record.epoch != last)
        throw Failure(cli::kBadConfig, "the checkpoints of epoch " + std::to_string(last) + " are not in \"" +
                                           folder_.string() + "\", whose epoch is " + std::to_string(record.epoch) +
                                           ": the machines do not share this folder");
      epoch_ = record.epoch;
      return;
    }
    if (is_own && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      continue;
    }
    throw Failure(cli::kBadConfig, record.holder.job + " runs already: epoch " + std::to_string(record.epoch) +
                                       ", started on " + record.holder.host + " by process " +
                                       std::to_string(record.holder.process) + ", since " + record.holder.since +
                                       "; its checkpoints are in \"" + folder_.string() + "\"");
  }
}

void Lease::write(bool ended) const {
  const json record = {
      {"epoch", epoch_},        {"job", holder_.job},      {"host", holder_.host}, {"process", holder_.process},
      {"since", holder_.since}, {"kernel", this_kernel()}, {"ended", ended}};
  const fs::path path = folder_ / (".epoch-" + std::to_string(getpid()));
  base::Descriptor out(
      base::uninterrupted([&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666); }));
  const std::string text = record.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  if (out.get() < 0 || !base::write_all(out.get(), text) || fsync(out.get()) != 0 || out.close() != 0 ||
      rename(path.c_str(), file().c_str()) != 0 || !base::sync_folder(folder_)) {
    const int failure = errno;
    unlink(path.c_str());
    errno = failure;
    fail_io(file());
  }
}

bool Lease::is_held() const {
  const Record record = record_of(file());
  return epoch_ > 0 && record.epoch == epoch_ && record.holder == holder_;
}

uint32_t Lease::begin_epoch() {
  if (begun_ && !is_held()) {
    const Record record = record_of(file());
    throw Failure(cli::kRefused, record.holder.job + " was started again, as epoch " + std::to_string(record.epoch) +
                                     " on " + record.holder.host + "; this start is of epoch " +
                                     std::to_string(epoch_));
  }
  ++epoch_;
  begun_ = true;
  write(false);
  return epoch_;
}

void Lease::renew() const noexcept try {
  if (is_held()) utimensat(AT_FDCWD, file().c_str(), nullptr, 0);
} catch (const std::exception&) {  // the file is not readable now
}

Lease::Checkpoint Lease::newest_checkpoint(const fs::path& folder) {
  static const std::regex name("checkpoint(-(0|[1-9][0-9]{0,17})){2}\\.safetensors");
  std::optional<fs::file_time_type> newest;
  Checkpoint result;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!std::regex_match(entry->path().filename().string(), name)) continue;
    std::error_code gone;
    const fs::file_time_type time = fs::last_write_time(entry->path(), gone);
    if (gone || (newest && time <= *newest)) continue;
    newest = time;
    result = {entry->path().string(), std::to_string(time.time_since_epoch().count())};
  }
  return result;
}

}  // namespace tenon::launch
