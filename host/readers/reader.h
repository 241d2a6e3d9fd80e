// Readers as the host sees them: a plugin's or an application's, and wrappers of the same face.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/attribute.h"
#include "core/seams.h"
#include "host/plugins/registry.h"
#include "host/readers/sample_block.h"

namespace tenon {

// A stream of samples, or of minibatches. One call at a time, but for cancel. A call that fails has changed nothing
// that can be seen: what was read before the failure is kept, and the call can be made again.
class Reader {
 public:
  virtual ~Reader() = default;
  [[nodiscard]] virtual const std::vector<Slot>& slots() const = 0;
  // Samples in a pass, or -1 when not known.
  [[nodiscard]] virtual int64_t size() const = 0;
  // The most samples of a minibatch; 0 for a reader of samples.
  [[nodiscard]] virtual int64_t batch() const { return 0; }
  // Whether read_at may be called.
  [[nodiscard]] virtual bool indexed() const { return false; }
  // Appends at most `most` samples, one minibatch where batch() is not 0 (then `most` must be at least that); gives
  // how many. 0 ends the pass; the call after that begins the next. Never 0 otherwise.
  virtual int64_t next(SampleBlock& to, int64_t most) = 0;
  // Appends samples by index. Does not move the position.
  virtual void read_at(const int64_t* indices, int64_t count, SampleBlock& to);
  // The number of the pass, from 0, and the samples of it that next gave, or passed over after it had failed with
  // TN_BAD_DATA because they are damaged.
  [[nodiscard]] virtual int64_t pass() const = 0;
  [[nodiscard]] virtual int64_t position() const = 0;
  // Makes `position` the next sample of pass number `pass`.
  virtual void seek(int64_t pass, int64_t position) = 0;
  // What read_at gives from now on belongs to this pass.
  virtual void begin_pass(int64_t pass) = 0;
  // From any thread: a call that runs fails soon with TN_CANCELLED, as all do until cancel(false).
  virtual void cancel(bool on) = 0;
};

// `type` and `services` must outlive the reader. *cancel, valid as long as the reader, does what Reader::cancel does,
// and does it to open too; null: only Reader::cancel. names: what the integers of slots must stand for, where the
// reader names them; of slots that it lacks, they do not matter.
std::unique_ptr<Reader> open_reader(const ReaderType& type, const Values& attributes, const std::string& directory,
                                    uint32_t shard, uint32_t shards, const tn_services* services,
                                    volatile int32_t* cancel = nullptr, const std::vector<SlotNames>& names = {});
// Fails where a slot of a reader, which begins the message, tells names that are not known.
void require_known(const std::string& who, const Slot& slot, const Names& known);

// A reader of the application's own; each function may throw. What they lend is copied.
struct Source {
  std::vector<Slot> slots;
  int64_t size = -1;
  // At least one of the two. next: at most `most` samples into `values`, one for each slot; 0 ends the pass.
  std::function<int64_t(int64_t most, std::vector<ArrayView>& values)> next;
  std::function<void(const int64_t* indices, int64_t count, std::vector<ArrayView>& values)> read_at;
  std::function<void(int64_t pass, int64_t position)> seek;  // null: only read_at can
};
std::unique_ptr<Reader> open_source(Source source);

// Wrappers share the readers they are given, which from then on are theirs to read; when one cannot be made, the
// readers are as they were. All but map, choose and buffered take readers of samples.

// A new order in each pass, from seed and pass alone (Philox). An exact permutation where `of` is indexed, else a
// buffer of `buffer` samples; buffer 0 with a reader that is not indexed needs a known size.
std::unique_ptr<Reader> shuffle(std::shared_ptr<Reader> of, int64_t buffer, uint64_t seed,
                                std::shared_ptr<Allocator> allocator);
// The first `samples` samples of each pass.
std::unique_ptr<Reader> first_n(std::shared_ptr<Reader> of, int64_t samples, std::shared_ptr<Allocator> allocator);
// The samples i of a pass with i % shards == shard.
std::unique_ptr<Reader> shard(std::shared_ptr<Reader> of, int64_t shard, int64_t shards,
                              std::shared_ptr<Allocator> allocator);

// Several readers as one. chain and interleave need equal slots: one reader after the other, and one sample of each in
// turn. compose puts the slots beside one another, whose names must differ; the readers must have equally many samples.
using Readers = std::vector<std::shared_ptr<Reader>>;
std::unique_ptr<Reader> chain(Readers of, std::shared_ptr<Allocator> allocator);
std::unique_ptr<Reader> compose(Readers of, std::shared_ptr<Allocator> allocator);
std::unique_ptr<Reader> interleave(Readers of, std::shared_ptr<Allocator> allocator);

// Minibatches of `samples`.
std::unique_ptr<Reader> batch(std::shared_ptr<Reader> of, int64_t samples, bool drop_last,
                              std::shared_ptr<Allocator> allocator);
struct BucketOptions {
  std::string slot;               // whose rows or entries count
  int64_t window = 0;             // samples that are sorted together
  int64_t samples = 0, rows = 0;  // bounds of a minibatch, of which one may be 0: none
  uint64_t seed = 0;              // of the order of the minibatches of a window
};
// Minibatches of samples of similar length. A sample counts as one row at least, and one with more than `rows` is a
// minibatch of its own.
std::unique_ptr<Reader> bucket(std::shared_ptr<Reader> of, const BucketOptions& options,
                               std::shared_ptr<Allocator> allocator);

// Other samples, one for each that was read: `function` is given `samples` of them and lends as many, of `slots`.
using MapFunction =
    std::function<void(const std::vector<ArrayView>& from, int64_t samples, std::vector<ArrayView>& to)>;
std::unique_ptr<Reader> map(std::shared_ptr<Reader> of, std::vector<Slot> slots, MapFunction function,
                            std::shared_ptr<Allocator> allocator);
// Some of the slots, under new names.
struct ChosenSlot {
  std::string slot, name;
};
std::unique_ptr<Reader> choose(std::shared_ptr<Reader> of, const std::vector<ChosenSlot>& slots,
                               std::shared_ptr<Allocator> allocator);
// Reads up to `minibatches` of them ahead, on a thread of its own that begins with a call of next: with the first one
// after reading has turned out to take `worthwhile` seconds for a minibatch or more. Handing a minibatch from core to
// core takes about as long as copying it, so what is read faster than that is read by the caller.
constexpr double kWorthAThread = 25e-6;
std::unique_ptr<Reader> buffered(std::shared_ptr<Reader> of, int64_t minibatches, std::shared_ptr<Allocator> allocator,
                                 double worthwhile = kWorthAThread);

}  // namespace tenon
