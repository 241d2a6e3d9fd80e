// Readers as the host sees them: a plugin's reader, and wrappers of the same face. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/reader.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/attribute.h"
#include "core/seams.h"
#include "host/registry.h"

namespace tenon {

struct Slot {
  std::string name;
  tn_dtype dtype = 0;
  std::vector<int64_t> shape;  // of one sample
  int64_t index_limit = -1;
  uint64_t bytes = 0;  // of one sample
};

// A stream of samples. One call at a time.
class Reader {
 public:
  virtual ~Reader() = default;
  [[nodiscard]] virtual const std::vector<Slot>& slots() const = 0;
  // Samples in a pass, or -1 when not known.
  [[nodiscard]] virtual int64_t size() const = 0;
  // Whether read_at may be called.
  [[nodiscard]] virtual bool indexed() const = 0;
  // Reads at most `capacity` samples into one buffer per slot; gives how many. 0 ends the pass; the call after that
  // begins the next. Never 0 otherwise. capacity must be at least 1.
  virtual int64_t next(void* const* buffers, int64_t capacity) = 0;
  virtual void read_at(const int64_t* indices, int64_t count, void* const* buffers) = 0;
  // Samples that next gave in this pass; 0 once it has answered 0.
  [[nodiscard]] virtual int64_t position() const = 0;
  // Makes `position` the next sample of pass number `pass` (from 0).
  virtual void seek(int64_t pass, int64_t position) = 0;
};

// `type` and `services` must outlive the reader. *cancel, valid as long as the reader, asks a long call to fail soon
// with TN_CANCELLED when it becomes non-zero; null: never.
std::unique_ptr<Reader> open_reader(const ReaderType& type, const Values& attributes, const std::string& directory,
                                    uint32_t shard, uint32_t shards, const tn_services* services,
                                    const volatile int32_t* cancel = nullptr);
// Wrappers share the reader they are given, which from then on is theirs to read; when one cannot be made, the
// reader is as it was.
// A new order in each pass, from seed and pass alone (Philox). An exact permutation where `of` is indexed, else a
// buffer of `buffer` samples; buffer 0 with a reader that is not indexed needs a known size.
std::unique_ptr<Reader> shuffle(std::shared_ptr<Reader> of, int64_t buffer, uint64_t seed,
                                std::shared_ptr<Allocator> allocator);
// The first `samples` samples of each pass.
std::unique_ptr<Reader> first_n(std::shared_ptr<Reader> of, int64_t samples);

// Cuts a reader into minibatches, in memory of its own.
class BatchReader {
 public:
  BatchReader(std::shared_ptr<Reader> of, int64_t samples, bool drop_last, std::shared_ptr<Allocator> allocator);

  [[nodiscard]] const Reader& reader() const { return *of_; }
  [[nodiscard]] int64_t batch_samples() const { return batch_; }
  // The next minibatch's samples, 0 at the end of a pass; the call after that begins the next. After an error the
  // samples read before it are kept: the call can be made again, and nothing is lost.
  int64_t next();
  // Goes back to the beginning of a pass that was left in the middle, where the reader can; else goes on in it.
  void restart();
  // Slot number `slot` of the minibatch, [samples, shape of a sample...]; valid until the next call of next.
  [[nodiscard]] const void* data(size_t slot) const { return buffers_[slot].data(); }

 private:
  std::shared_ptr<Reader> of_;
  int64_t batch_;
  bool drop_last_;
  std::vector<Buffer> buffers_;
  std::vector<void*> pointers_;
  int64_t pass_ = 0;    // from 0
  int64_t filled_ = 0;  // samples in the buffers that were not given yet
  bool ended_ = false;  // the pass is over and the caller was not told yet
};

}  // namespace tenon
