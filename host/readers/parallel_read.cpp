// SPDX-License-Identifier: Apache-2.0
#include "host/readers/parallel_read.h"

#include <algorithm>
#include <exception>

#include "core/error.h"
#include "host/plugins/error_sink.h"

namespace tenon::host {

namespace {

constexpr int64_t kPartSamples = 4;  // samples: few enough to spread a minibatch, enough to hide the cost of a call

class Parts {
 public:
  Parts(const ParallelReader& reader, const std::vector<Slot>& slots, const int64_t* indices, int64_t count,
        void* const* data)
      : reader_(reader),
        slots_(slots),
        indices_(indices),
        count_(count),
        data_(data),
        failures_(static_cast<size_t>((count + kPartSamples - 1) / kPartSamples)) {}

  void read() {
    const auto task = [](void* self, int64_t part, int32_t) { static_cast<Parts*>(self)->try_part(part); };
    reader_.threads.for_each(reader_.threads.self, static_cast<int64_t>(failures_.size()), task, this);
    for (const std::exception_ptr& failure : failures_)
      if (failure) std::rethrow_exception(failure);
  }

 private:
  void try_part(int64_t part) noexcept {
    try {
      read_part(part * kPartSamples);
    } catch (...) {
      failures_[static_cast<size_t>(part)] = std::current_exception();
    }
  }

  void read_part(int64_t first) {
    if (__atomic_load_n(reader_.cancel, __ATOMIC_RELAXED) != 0)
      fail(TN_CANCELLED, ComponentName{reader_.who}, "cancelled");
    std::vector<void*> data;
    for (size_t slot = 0; slot < slots_.size(); ++slot)
      data.push_back(static_cast<std::byte*>(data_[slot]) + static_cast<uint64_t>(first) * slots_[slot].bytes);
    tn_reader_buffers room = {};
    room.size = sizeof room;
    room.slots_count = static_cast<uint32_t>(data.size());
    room.capacity = std::min(kPartSamples, count_ - first);
    room.data = data.data();
    ErrorSink sink(reader_.who, reader_.type.tags);
    // The sink stands for the instance: each call has its own.
    const TaggedFunction function{Tag::kIo, "read_at of " TN_PARALLEL_READ, &sink};
    const tn_status status =
        call_plugin(reader_.type, reader_.who, function, reader_.table.read_at, reader_.instance, indices_ + first,
                    room.capacity, static_cast<const tn_reader_buffers*>(&room), sink.get());
    sink.check(status);
  }

  const ParallelReader& reader_;
  const std::vector<Slot>& slots_;
  const int64_t* indices_;
  int64_t count_;
  void* const* data_;
  std::vector<std::exception_ptr> failures_;  // of each part
};

}  // namespace

void read_in_parallel(const ParallelReader& reader, const std::vector<Slot>& slots, const int64_t* indices,
                      int64_t count, void* const* data) {
  Parts(reader, slots, indices, count, data).read();
}

}  // namespace tenon::host
