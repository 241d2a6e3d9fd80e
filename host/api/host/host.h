// The host: the owner of plugins, threads, memory and all handles. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tenon.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/system.h"
#include "host/api/host/fork_mark.h"
#include "host/api/host/handles.h"
#include "host/api/host/use_mark.h"
#include "host/generation/generator.h"
#include "host/layers/layer_factory.h"
#include "host/machine/machine.h"
#include "host/machine/predictor.h"
#include "host/machine/set_gate.h"
#include "host/plugins/device.h"
#include "host/plugins/registry.h"
#include "host/plugins/services.h"
#include "host/plugins/thread_tags.h"
#include "host/readers/reader.h"
#include "host/threads/thread_pool.h"
#include "host/training/program_updater.h"
#include "host/training/training_loop.h"

namespace tenon::host {

using namespace core;

struct HostOptions {
  int32_t threads = 0;
  std::vector<std::filesystem::path> added_plugin_paths;
  std::vector<std::filesystem::path> plugin_paths;  // of the application's own plugins, in place of the installed ones
  std::vector<std::filesystem::path> installed_plugins;  // searched, unless the set says otherwise
  std::optional<std::filesystem::path> plugin_set;
  std::shared_ptr<Allocator> allocator;  // null: the system's
  std::shared_ptr<FileSystem> files;     // likewise
  std::shared_ptr<Clock> clock;
  LogFunction log;
  bool check = false;  // whether plugins are checked: thread tags, lifetimes, operands of native kernels
  bool check_finite = false;
  bool time_calls = false;
  uint32_t arithmetic = TN_ARITHMETIC_DEFAULT;  // TN_ARITHMETIC_*
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

// The objects that an application holds: each with what lets calls of several threads use it without a race. Threads
// take the gate of a set before the lock of [setup] calls, and no other lock while they hold one.

// A reader, and the minibatch that it read last.
struct HeldReader {
  HeldReader(std::shared_ptr<Reader> held, nlohmann::json made, const std::shared_ptr<Allocator>& allocator)
      : reader(std::move(held)), steps(std::move(made)), minibatch(reader->slots(), allocator) {}
  void set_name(std::string name) { mark.set_name(std::move(name)); }

  std::shared_ptr<Reader> reader;
  nlohmann::json steps;  // how it was made: a list of the reader and its wrappers, as far as they determine the samples
  SampleBlock minibatch;
  std::optional<ReaderPlace> place;  // where it stands for its users, while a training has read ahead; else empty
  UseMark mark;
};

struct HeldTeam;

struct HeldParameters {
  explicit HeldParameters(std::shared_ptr<ParameterSet> held) : set(std::move(held)) {}
  void set_name(std::string name) { gate.set_name(std::move(name)); }

  std::shared_ptr<ParameterSet> set;
  SetGate gate;
  std::weak_ptr<HeldTeam> team;  // whose processes own the rows of tables of the set
};

struct HeldMachine {
  HeldMachine(std::shared_ptr<HeldParameters> of, std::unique_ptr<Machine> made)
      : parameters(std::move(of)), machine(std::move(made)) {}

  void set_name(std::string name) { mark.set_name(std::move(name)); }
  // Throws TN_MISUSE if a lease of an output lives: the next forward would overwrite it.
  void require_unleased() const {
    if (leases != 0)
      fail(TN_MISUSE, ComponentName{mark.name()},
           "a lease of an output of the machine is held; end it before the next forward");
  }

  std::shared_ptr<HeldParameters> parameters;
  std::unique_ptr<Machine> machine;
  UseMark mark;
  std::atomic<uint32_t> leases{0};  // of outputs
};

// A generator, and the results that it lends.
struct HeldGenerator {
  HeldGenerator(std::shared_ptr<HeldParameters> of, std::unique_ptr<Generator> made)
      : parameters(std::move(of)), generator(std::move(made)) {}
  void set_name(std::string name) { mark.set_name(std::move(name)); }

  std::shared_ptr<HeldParameters> parameters;
  std::unique_ptr<Generator> generator;
  Generated generated;
  UseMark mark;
};

struct HeldUpdater {
  explicit HeldUpdater(std::unique_ptr<Updater> made) : updater(std::move(made)) {}
  void set_name(std::string name) { mark.set_name(std::move(name)); }

  const std::unique_ptr<Updater> updater;
  UseMark mark;
};

// Cost and metrics that an application sums over minibatches of a machine.
struct HeldMetrics {
  HeldMetrics(tn_machine of, ResultSums made) : machine(of), sums(std::move(made)) {}
  void set_name(std::string name) { mark.set_name(std::move(name)); }

  const tn_machine machine;  // whose metrics they are; may be stale
  ResultSums sums;
  UseMark mark;
};

// A view that an application holds beyond a call. Keeps its memory, and ends the lease when it is destroyed.
class Lease : base::NotCopied {
 public:
  virtual ~Lease() = default;
};

// A view of the values of an entry of a set. While a writing one lives, they may change at any time.
class SetLease : public Lease {
 public:
  SetLease(std::shared_ptr<HeldParameters> of, const ParameterEntry& entry, bool writing)
      : parameters_(std::move(of)),
        home_(parameters_->set->home(entry)),
        part_(ParameterSet::part(entry)),
        writing_(writing) {
    parameters_->gate.begin_lease(writing_);
    try {
      if (writing_) home_.open(part_);
    } catch (...) {
      parameters_->gate.end_lease(writing_, by_);
      throw;
    }
  }
  ~SetLease() override {
    if (writing_) home_.close(part_);
    parameters_->gate.end_lease(writing_, by_);
  }

 private:
  const std::shared_ptr<HeldParameters> parameters_;
  Home& home_;
  const Home::Part part_;
  const bool writing_;
  const std::thread::id by_ = std::this_thread::get_id();
};

// A view of an output of a machine.
class OutputLease : public Lease {
 public:
  explicit OutputLease(std::shared_ptr<HeldMachine> of) : machine_(std::move(of)) { ++machine_->leases; }
  ~OutputLease() override { --machine_->leases; }

 private:
  const std::shared_ptr<HeldMachine> machine_;
};

// The values as the C API has them, borrowed.
[[nodiscard]] std::vector<tn_metric> table_of(const std::vector<MetricValue>& values);

// Values that a host lends to the threads of the application.
enum class Lent { kMetrics, kCosts };

// The object behind tn_host. Its members may be used by any thread at any time.
class Host : base::NotCopied {
 public:
  explicit Host(const HostOptions& options);

  // Returns a device, which is opened at its first use and kept. name: a kind, for its device number 0, or kind:number,
  // such as "cuda:1".
  std::shared_ptr<Device> device(const std::string& name);
  // Returns the devices of a list, which may have one several times. Errors list the names. TN_INVALID if they are of
  // several kinds.
  std::vector<std::shared_ptr<Device>> devices(const std::vector<std::string>& names);

  // Throws TN_MISUSE in a forked child.
  void require_own_process() const;
  [[nodiscard]] bool is_in_forked_child() const { return fork_mark_.in_child(); }
  [[nodiscard]] bool is_native() const { return is_native_; }  // its arithmetic

  std::atomic<bool> ending{false};  // set when the host is destroyed: calls that can be cancelled are
  std::shared_ptr<CountingAllocator> allocator;
  std::shared_ptr<FileSystem> files;
  std::shared_ptr<Clock> clock;
  std::unique_ptr<ThreadTags> tags;             // null if checking is off
  Checks checks;                                // of every machine
  std::shared_ptr<OptionTable> plugin_options;  // of the registry's plugins
  Services services;
  ThreadPool pool;
  const tn_parallel* parallel;  // the pool, as plugins get it
  const tn_parallel* alone;     // the calling thread alone, likewise
  Registry registry;
  LayerFactory factory;

  HandleTable<LayerOutput> layers;
  HandleTable<std::shared_ptr<HeldParameters>> parameters;
  HandleTable<std::shared_ptr<HeldMachine>> machines;
  HandleTable<std::shared_ptr<HeldUpdater>> updaters;
  HandleTable<std::shared_ptr<HeldReader>> readers;
  HandleTable<std::shared_ptr<Predictor>> predictors;
  HandleTable<std::shared_ptr<Lease>> leases;
  HandleTable<std::shared_ptr<HeldMetrics>> metric_sums;
  HandleTable<std::shared_ptr<OpenScan>> scans;
  HandleTable<std::shared_ptr<OpenCond>> conds;
  HandleTable<std::shared_ptr<HeldGenerator>> generators;
  HandleTable<std::shared_ptr<HeldTeam>> teams;

  // Keeps values that the calling thread borrows, until it borrows values of this kind again.
  const std::vector<tn_metric>& lend(std::vector<MetricValue> values, Lent kind);
  // The same for names.
  const NamesTable& lend(std::vector<SlotNames> names);

 private:
  // What a thread borrows.
  struct Borrowed {
    std::vector<MetricValue> values[2];
    std::vector<tn_metric> tables[2];  // of values
    std::unique_ptr<NamesTable> names;
  };
  const ForkMark fork_mark_;
  const bool is_native_;                                    // its arithmetic
  std::map<std::string, std::shared_ptr<Device>> devices_;  // by kind:number; used with the lock of registry.setup()
  std::mutex lent_mutex_;
  std::map<std::thread::id, Borrowed> lent_;
};

}  // namespace tenon::host
