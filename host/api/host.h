// The host: the owner of plugins, threads, memory and all handles. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tenon.h>

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/system.h"
#include "host/api/fork_mark.h"
#include "host/api/handles.h"
#include "host/layers/layer_factory.h"
#include "host/machine/machine.h"
#include "host/plugins/device.h"
#include "host/plugins/registry.h"
#include "host/plugins/services.h"
#include "host/plugins/thread_tags.h"
#include "host/readers/reader.h"
#include "host/threads/thread_pool.h"
#include "host/training/training_loop.h"
#include "host/training/updater.h"

namespace tenon::host {

using namespace core;

struct HostOptions {
  int32_t threads = 0;
  std::vector<std::filesystem::path> plugin_paths;
  std::shared_ptr<Allocator> allocator;  // null: the system's
  std::shared_ptr<FileSystem> files;     // likewise
  std::shared_ptr<Clock> clock;
  LogFunction log;
  bool check = false;  // whether plugins are checked: thread tags, lifetimes, operands of native kernels
  bool check_finite = false;
};

// Counts the bytes that another allocator has allocated.
class CountingAllocator : public Allocator {
 public:
  explicit CountingAllocator(std::shared_ptr<Allocator> inner) : inner_(std::move(inner)) {}
  void* allocate(uint64_t bytes) override;
  void release(void* memory, uint64_t bytes) noexcept override;
  [[nodiscard]] uint64_t now() const;
  [[nodiscard]] uint64_t peak() const;

 private:
  std::shared_ptr<Allocator> inner_;
  mutable std::mutex mutex_;
  uint64_t now_ = 0, peak_ = 0;
};

// A reader that an application holds, and the minibatch that it read last.
struct HeldReader {
  HeldReader(std::shared_ptr<Reader> held, nlohmann::json made, const std::shared_ptr<Allocator>& allocator)
      : reader(std::move(held)), steps(std::move(made)), minibatch(reader->slots(), allocator) {}
  // Throws TN_MISUSE while a train, test or infer call uses the reader: its handler may call the host.
  void require_idle() const {
    if (busy) fail(TN_MISUSE, "the reader is in use by a training, test or inference that has not ended");
  }

  std::shared_ptr<Reader> reader;
  nlohmann::json steps;  // how it was made: a list of the reader and its wrappers, as far as they determine the samples
  SampleBlock minibatch;
  bool busy = false;
};

// Marks a reader as busy while it lives.
class ReaderUse {
 public:
  explicit ReaderUse(std::shared_ptr<HeldReader> held) : held_(std::move(held)) {
    held_->require_idle();
    held_->busy = true;
  }
  ~ReaderUse() { held_->busy = false; }
  ReaderUse(const ReaderUse&) = delete;
  ReaderUse& operator=(const ReaderUse&) = delete;

  [[nodiscard]] HeldReader& operator*() const { return *held_; }

 private:
  std::shared_ptr<HeldReader> held_;
};

// The object behind tn_host. enter() serialises calls; the members are used with its lock held.
class Host {
 public:
  explicit Host(const HostOptions& options);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // Returns the device of a kind, which is opened at its first use and kept.
  std::shared_ptr<Device> device(const std::string& kind);

  // Serialises the calls on a host. The lock is recursive, since a handler may call the host. TN_MISUSE in a forked
  // child.
  [[nodiscard]] std::unique_lock<std::recursive_mutex> enter();

  std::shared_ptr<CountingAllocator> allocator;
  std::shared_ptr<FileSystem> files;
  std::shared_ptr<Clock> clock;
  std::unique_ptr<ThreadTags> tags;  // null if checking is off
  Checks checks;                     // of every machine
  Services services;
  ThreadPool pool;
  const tn_parallel* parallel;  // the pool, as plugins get it
  Registry registry;
  LayerFactory factory;

  HandleTable<LayerOutput> layers;
  HandleTable<std::shared_ptr<ParameterSet>> parameters;
  HandleTable<std::shared_ptr<Machine>> machines;
  HandleTable<std::shared_ptr<Updater>> updaters;
  HandleTable<std::shared_ptr<HeldReader>> readers;

  // Keeps metrics that the application borrows, until the next call.
  const std::vector<tn_metric>& lend(std::vector<MetricValue> metrics);
  // The same for names.
  const NamesTable& lend(std::vector<SlotNames> names);

 private:
  std::recursive_mutex mutex_;
  const ForkMark fork_mark_;
  std::map<std::string, std::shared_ptr<Device>> devices_;
  std::vector<MetricValue> lent_;
  std::vector<tn_metric> lent_metrics_;
  std::unique_ptr<NamesTable> lent_names_;
};

}  // namespace tenon::host
