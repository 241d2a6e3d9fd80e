// SPDX-License-Identifier: Apache-2.0
#include "host/compile/lowering/captures.h"

#include <algorithm>

namespace tenon::host {

std::unique_ptr<Captures> Captures::of(const std::shared_ptr<Device>& device) {
  const auto* const table = device->primitives<tn_capture_table>(TN_CAPTURE);
  return table == nullptr ? nullptr : std::unique_ptr<Captures>(new Captures(device, table));
}

void Captures::destroy(Entry& entry) noexcept {
  if (entry.graph == nullptr) return;
  free_by_plugin(device_->origin(), device_->who(), {Tag::kSetup, "destroy"}, table_->destroy, device_->instance(),
                 entry.graph);
}

void Captures::clear() noexcept {
  for (Entry& entry : entries_) destroy(entry);
  entries_.clear();
}

void Captures::run(const Key& key, void* stream, const std::function<void()>& enqueue) {
  if (!entries_.empty() && entries_.front().key.bindings != key.bindings) clear();
  const auto known =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.key == key; });
  if (known == entries_.end()) {
    if (entries_.size() == kMost) {
      destroy(entries_.back());
      entries_.pop_back();
    }
    entries_.push_front({key});
    return enqueue();
  }
  entries_.splice(entries_.begin(), entries_, known);
  if (!known->refused) {
    try {
      return replay(*known, stream, enqueue);
    } catch (...) {
      // Nothing was enqueued. If the device can do no more work at all, the calls say so.
      destroy(*known);
      known->graph = nullptr;
      known->refused = true;
    }
  }
  enqueue();
}

// Enqueues the recording of an entry, which is made first if there is none.
void Captures::replay(Entry& entry, void* stream, const std::function<void()>& enqueue) {
  if (entry.graph == nullptr) entry.graph = record(stream, enqueue);
  ErrorSink sink(device_->who(), device_->origin().tags);
  sink.check(call_plugin(device_->origin(), device_->who(), {Tag::kRun, "launch", this}, table_->launch,
                         device_->instance(), sink.get(), entry.graph, stream));
  ++launches_;
}

// Returns the recording of what `enqueue` enqueues, which does not run.
void* Captures::record(void* stream, const std::function<void()>& enqueue) {
  ErrorSink sink(device_->who(), device_->origin().tags);
  const auto end = [&](void** graph) {
    return call_plugin(device_->origin(), device_->who(), {Tag::kRun, "end", this}, table_->end, device_->instance(),
                       sink.get(), stream, graph);
  };
  sink.check(call_plugin(device_->origin(), device_->who(), {Tag::kRun, "begin", this}, table_->begin,
                         device_->instance(), sink.get(), stream));
  void* graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    static_cast<void>(end(nullptr));
    throw;
  }
  sink.check(end(&graph));
  return graph;
}

}  // namespace tenon::host
