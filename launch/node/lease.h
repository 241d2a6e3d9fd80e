// The files "epoch" and "epoch.lock" beside the checkpoints of a training: how often it was started, and by whom it is
// running. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/files.h"
#include "base/not_copied.h"

namespace tenon::launch {

// What started the training.
struct Holder {
  std::string job;   // its file
  std::string host;  // where the launcher runs
  int64_t process = 0;
  std::string since;  // "2026-11-29 14:02:11 UTC"

  bool operator==(const Holder& other) const = default;
};

// One object at a time has the lease of a folder, on all machines that share it: on one machine by a lock, between
// machines by the time of the file "epoch", which the holder renews.
class Lease : base::NotCopied {
 public:
  // Creates the folder if it is missing in one that exists. last: the epoch that the file must have because this holder
  // has written it; 0: none. Throws Failure: kBadConfig if the lease is held, naming the holder, or if the folder is
  // not the one that has the epoch; kIo if the folder cannot be written.
  Lease(std::filesystem::path folder, Holder holder, uint32_t last);
  // Writes that the training has ended.
  ~Lease();

  // Begins the next epoch: it is on the disk when the function returns. Throws Failure: kIo, and kRefused if another
  // holder has begun one since, because this one was stopped or cut off for long.
  uint32_t begin_epoch();
  // Is called at least every 3 seconds.
  void renew() const noexcept;

  // The path of the checkpoint that was written last, and when; empty without one. Texts differ if checkpoints do.
  struct Checkpoint {
    std::string path, time;
  };
  [[nodiscard]] static Checkpoint newest_checkpoint(const std::filesystem::path& folder);

 private:
  void create_folder() const;
  void take(uint32_t last);
  // Returns whether it has the lock. Without locks on this file system: true, and `locks_` is false.
  [[nodiscard]] bool try_lock();
  [[nodiscard]] bool is_fresh() const;
  void write(bool ended) const;
  // Whether the last epoch is that of this holder.
  [[nodiscard]] bool is_held() const;
  [[nodiscard]] std::filesystem::path file() const { return folder_ / "epoch"; }

  const std::filesystem::path folder_;
  const Holder holder_;
  base::Descriptor lock_;
  bool locks_ = true;
  uint32_t epoch_ = 0;  // the last one that is known
  bool begun_ = false;  // whether this object has begun it
};

}  // namespace tenon::launch
