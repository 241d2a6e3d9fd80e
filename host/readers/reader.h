// The interface of readers: those of plugins, those of applications, and wrappers of readers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/attribute.h"
#include "core/system.h"
#include "host/plugins/registry.h"
#include "host/readers/minibatch_part.h"
#include "host/readers/sample_block.h"

namespace tenon::host {

using namespace core;

// Where a reader stands: as Reader::pass and position.
struct ReaderPlace {
  int64_t pass = 0, position = 0;
};

// A stream of samples or of minibatches. One call at a time, except cancel. A failed call loses no samples: those read
// before the failure are kept, and the call can be repeated.
class Reader {
 public:
  virtual ~Reader() = default;
  [[nodiscard]] virtual const std::vector<Slot>& slots() const = 0;
  // Samples in a pass, -1 if unknown.
  [[nodiscard]] virtual int64_t size() const = 0;
  // The most samples of a minibatch; 0 for a reader of samples.
  [[nodiscard]] virtual int64_t batch() const { return 0; }
  // Whether read_at may be called.
  [[nodiscard]] virtual bool indexed() const { return false; }
  // Appends at most `most` samples; if batch() is not 0, one minibatch, and `most` must be at least batch(). Returns
  // the number of samples, 0 only at the end of a pass. The call after that begins the next pass.
  virtual int64_t next(SampleBlock& to, int64_t most) = 0;
  // Why next_part reads the samples of all parts; empty if it reads those of its part alone, whose order and number
  // are then known beforehand.
  [[nodiscard]] virtual std::string whole_reason() const = 0;
  // Does what next does, but appends only the samples of a part of the minibatch, of which it may have none. A reader
  // of samples without a whole_reason() takes the next `most` samples of the pass, or those that are left, as a
  // minibatch. A failed call that reads its part alone leaves the position where it was, damaged samples included.
  virtual PartRead next_part(SampleBlock& to, int64_t most, const MinibatchPart& part);
  // Appends samples by index. Does not move the position.
  virtual void read_at(const int64_t* indices, int64_t count, SampleBlock& to);
  // The number of the pass, from 0, and the number of its samples that next has returned or skipped. It skips a damaged
  // sample by failing with TN_BAD_DATA.
  [[nodiscard]] virtual int64_t pass() const = 0;
  [[nodiscard]] virtual int64_t position() const = 0;
  // Makes `position` the next sample of pass number `pass`.
  virtual void seek(int64_t pass, int64_t position) = 0;
  // Declares that the following calls of read_at belong to this pass.
  virtual void begin_pass(int64_t pass) = 0;
  // Callable from any thread. After cancel(true) a running call fails soon with TN_CANCELLED, and so does every call
  // until cancel(false).
  virtual void cancel(bool on) = 0;
  // The records of the data that are no samples, such as empty lines; -1 if unknown.
  [[nodiscard]] virtual int64_t left_out() const { return 0; }
  // The number of the record that sample `index` of a pass in the order of the data is.
  [[nodiscard]] virtual int64_t record(int64_t index) const { return index; }
  // The text of a column of that record. TN_NOT_FOUND if the data has no such column.
  virtual std::string text_of(int64_t index, const std::string& column);
};

struct ReaderSettings {
  std::string directory = ".";  // of relative paths
  uint32_t shard = 0, shards = 1;
  // A flag that acts like Reader::cancel and also interrupts the opening; valid as long as the reader; null:
  // Reader::cancel alone.
  volatile int32_t* cancel = nullptr;
  // Names of slots that those of the reader must agree with; ignored for slots that the reader lacks or does not name.
  std::vector<SlotNames> names;
  uint64_t seed = 0;  // of its random choices
  // On which a reader that can be read by several threads is read; valid as long as the reader; null: the calling one.
  const tn_parallel* threads = nullptr;
  bool schema_alone = false;                            // slots and size are wanted alone: samples cannot be read
  std::optional<std::vector<std::string>> needed = {};  // slots; the reader may leave out all others
};
// Opens a plugin's reader; `type` and `services` must outlive it.
std::unique_ptr<Reader> open_reader(const ReaderType& type, const Values& attributes, const tn_services* services,
                                    const ReaderSettings& settings = {});
// Throws TN_INVALID if the names of a reader's slot contradict `known`. `who` is the reader, for the message.
void require_known(const std::string& who, const Slot& slot, const Names& known);
// The same for the names of the data layer that the slot feeds, if they are known.
void require_known(const std::string& who, const Slot& slot, const DataNames& names, const std::string& data_layer);

// A reader that the application implements. Its functions may throw. The arrays that they set are copied.
struct Source {
  std::vector<Slot> slots;
  int64_t size = -1;
  // At least one of next and read_at. next puts at most `most` samples into `values`, one array per slot, and returns
  // their number; 0 ends the pass.
  std::function<int64_t(int64_t most, std::vector<ArrayView>& values)> next;
  std::function<void(const int64_t* indices, int64_t count, std::vector<ArrayView>& values)> read_at;
  std::function<void(int64_t pass, int64_t position)> seek;  // may be null; then a reader with next cannot seek
};
std::unique_ptr<Reader> open_source(Source source);

// A wrapper shares ownership of its readers, and from then on it alone may read them. If it cannot be made, the readers
// are unchanged. All wrappers but map, choose and buffered take readers of samples.

// Shuffles each pass in a new order, which depends on seed and pass alone (Philox). An exact permutation if `of` is
// indexed; else a random choice from a buffer of `buffer` samples. Buffer 0 holds the whole pass, of known size.
std::unique_ptr<Reader> shuffle(std::shared_ptr<Reader> of, int64_t buffer, uint64_t seed,
                                std::shared_ptr<Allocator> allocator);
// The first `samples` samples of each pass.
std::unique_ptr<Reader> first_n(std::shared_ptr<Reader> of, int64_t samples,
                                const std::shared_ptr<Allocator>& allocator);
// The samples i of a pass with i % shards == shard.
std::unique_ptr<Reader> shard(std::shared_ptr<Reader> of, int64_t shard, int64_t shards,
                              const std::shared_ptr<Allocator>& allocator);

// One of the two parts into which fraction and seed divide the samples (Philox): the round(fraction * size) samples
// that are held out, or all others, each in the order of the data. `of` must be indexed.
struct SplitOptions {
  double fraction = 0;
  uint64_t seed = 0;
  bool held_out = false;
};
std::unique_ptr<Reader> split(std::shared_ptr<Reader> of, const SplitOptions& options,
                              std::shared_ptr<Allocator> allocator);

// Random changes of the images of a dense slot, [height, width] or [height, width, channels]; tn_augment_options
// documents them. They depend on seed, pass and number of the sample in `of` alone. threads: compute the changes of
// several samples; must outlive the reader.
struct AugmentOptions {
  std::string slot;
  bool channels_first = false;
  int64_t pad = 0, height = 0, width = 0;
  bool flip = false, centre = false;
  double brightness = 0, contrast = 0, saturation = 0;
  uint64_t seed = 0;
};
std::unique_ptr<Reader> augment(std::shared_ptr<Reader> of, const AugmentOptions& options, const tn_parallel& threads,
                                const std::shared_ptr<Allocator>& allocator);

// Join several readers. chain reads one reader after the other, interleave one sample of each in turn; both need equal
// slots. compose reads a sample of each reader and joins their slots: slot names must differ, and sizes be equal.
using Readers = std::vector<std::shared_ptr<Reader>>;
std::unique_ptr<Reader> chain(Readers of, std::shared_ptr<Allocator> allocator);
std::unique_ptr<Reader> compose(Readers of, const std::shared_ptr<Allocator>& allocator);
std::unique_ptr<Reader> interleave(Readers of, std::shared_ptr<Allocator> allocator);

// Minibatches of `samples` samples. drop_last: drops a smaller one at the end of a pass.
std::unique_ptr<Reader> batch(std::shared_ptr<Reader> of, int64_t samples, bool drop_last,
                              const std::shared_ptr<Allocator>& allocator);
struct BucketOptions {
  std::string slot;               // its rows or entries are a sample's length
  int64_t window = 0;             // samples that are sorted together
  int64_t samples = 0, rows = 0;  // bounds of a minibatch; one may be 0: unbounded
  uint64_t seed = 0;              // of the order of the minibatches of a window
};
// Minibatches of samples of similar length. A sample counts as one row at least, and one with more than `rows` is a
// minibatch of its own.
std::unique_ptr<Reader> bucket(std::shared_ptr<Reader> of, const BucketOptions& options,
                               const std::shared_ptr<Allocator>& allocator);

// Replaces each sample by another one: `function` reads `samples` samples and sets as many in `to`, with slots `slots`.
using MapFunction =
    std::function<void(const std::vector<ArrayView>& from, int64_t samples, std::vector<ArrayView>& to)>;
std::unique_ptr<Reader> map(std::shared_ptr<Reader> of, std::vector<Slot> slots, MapFunction function,
                            const std::shared_ptr<Allocator>& allocator);
// Keeps some of the slots, under new names.
struct ChosenSlot {
  std::string slot, name;
};
std::unique_ptr<Reader> choose(std::shared_ptr<Reader> of, const std::vector<ChosenSlot>& slots,
                               const std::shared_ptr<Allocator>& allocator);
// Reads up to `minibatches` minibatches ahead, on a thread of its own. The caller reads until a minibatch is measured
// to take `worthwhile` seconds or more; the next call of next starts the thread. Handing a minibatch from core to core
// takes about as long as copying it, so for faster readers a thread does not pay.
constexpr double kWorthAThread = 25e-6;
std::unique_ptr<Reader> buffered(std::shared_ptr<Reader> of, int64_t minibatches,
                                 const std::shared_ptr<Allocator>& allocator, double worthwhile = kWorthAThread);

}  // namespace tenon::host
