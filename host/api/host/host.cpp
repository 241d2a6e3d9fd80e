// SPDX-License-Identifier: Apache-2.0
#include "host/api/host/host.h"

#include <algorithm>
#include <charconv>
#include <random>

#include "base/text.h"
#include "host/plugins/set/plugin_set.h"

namespace tenon::host {

namespace {

template <typename T>
std::shared_ptr<T> or_else(std::shared_ptr<T> request, std::shared_ptr<T> (*otherwise)()) {
  return request ? std::move(request) : otherwise();
}

Registry make_registry(const HostOptions& options, std::shared_ptr<FileSystem> files, ThreadTags* tags,
                       std::shared_ptr<OptionTable> table) {
  std::shared_ptr<const PluginSet> set;
  if (options.plugin_set) set = std::make_shared<const PluginSet>(read_plugin_set(*options.plugin_set, *files));
  std::vector<std::filesystem::path> paths = options.plugin_paths;
  // A set of mode "locked" searches no folder, but messages say what lies there.
  if (!set || set->installed || set->mode == SetMode::kLocked)
    paths.insert(paths.end(), options.installed_plugins.begin(), options.installed_plugins.end());
  return Registry(std::move(paths), std::move(files), tags, std::move(set), std::move(table),
                  options.added_plugin_paths);
}

uint32_t first_generation() { return static_cast<uint32_t>(std::random_device{}()); }

}  // namespace

void* CountingAllocator::allocate(uint64_t bytes) {
  void* memory = inner_->allocate(bytes);
  const std::lock_guard lock(mutex_);
  now_ += bytes;
  peak_ = std::max(peak_, now_);
  return memory;
}

void CountingAllocator::release(void* memory, uint64_t bytes) noexcept {
  if (memory == nullptr) return;
  inner_->release(memory, bytes);
  const std::lock_guard lock(mutex_);
  now_ -= bytes;
}

uint64_t CountingAllocator::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

uint64_t CountingAllocator::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

Host::Host(const HostOptions& options)
    : allocator(std::make_shared<CountingAllocator>(or_else(options.allocator, &system_allocator))),
      files(or_else(options.files, &system_files)),
      clock(or_else(options.clock, &system_clock)),
      tags(options.check ? std::make_unique<ThreadTags>(options.log) : nullptr),
      checks{options.check, options.check_finite, options.time_calls, options.arithmetic == TN_ARITHMETIC_PORTABLE},
      plugin_options(std::make_shared<OptionTable>()),
      services(allocator, options.log, tags.get(), plugin_options),
      pool(options.threads),
      parallel(tags ? tags->guard(*pool.parallel()) : pool.parallel()),
      alone(tags ? tags->guard(calling_thread()) : &calling_thread()),
      registry(make_registry(options, files, tags.get(), plugin_options)),
      factory(registry),
      layers("layer", first_generation()),
      parameters("parameters", first_generation()),
      machines("machine", first_generation()),
      updaters("updater", first_generation()),
      readers("reader", first_generation()),
      predictors("predictor", first_generation()),
      leases("lease", first_generation()),
      metric_sums("metrics", first_generation()),
      scans("scan", first_generation()),
      conds("cond", first_generation()),
      generators("generator", first_generation()),
      teams("team", first_generation()),
      is_native_(options.arithmetic == TN_ARITHMETIC_NATIVE) {
  constexpr int32_t kWarning = 2;
  if (options.log && !pool.shortage().empty()) options.log(kWarning, pool.shortage().c_str());
}

namespace {

struct DeviceName {
  std::string kind;
  int32_t number = 0;
};

DeviceName parsed(const std::string& name) {
  const size_t colon = name.find(':');
  if (colon == std::string::npos) return {name};
  const char *const begin = name.data() + colon + 1, *const end = name.data() + name.size();
  DeviceName result{name.substr(0, colon)};
  const auto [stop, error] = std::from_chars(begin, end, result.number);
  if (error != std::errc() || stop != end || result.number < 0)
    fail(TN_INVALID, SubjectName{name}, "device \"", name, "\": expected a kind, or a kind and a number, such as \"",
         result.kind, ":0\"");
  return result;
}

}  // namespace

std::shared_ptr<Device> Host::device(const std::string& name) {
  const DeviceName of = parsed(name);
  const SetupLock lock = registry.setup();
  const std::string full = text(of.kind, ":", of.number);
  const auto known = devices_.find(full);
  if (known != devices_.end()) return known->second;
  const auto find = [this, kind = of.kind](const std::string& id, std::vector<RefusedProvider>& refused) {
    return registry.providers(kind, id, is_native_, refused);
  };
  auto made = std::make_shared<Device>(registry.device(of.kind), services, of.number, find);
  devices_.emplace(full, made);
  return made;
}

std::vector<std::shared_ptr<Device>> Host::devices(const std::vector<std::string>& names) {
  const std::string listed = base::joined(names, [](const std::string& name) { return text("\"", name, "\""); });
  std::vector<std::shared_ptr<Device>> result;
  for (const std::string& name : names) {
    try {
      result.push_back(device(name));
    } catch (const Error& error) {
      if (names.size() == 1) throw;
      throw error.with_context("devices " + listed);
    }
    if (result.back()->kind() != result.front()->kind())
      fail(TN_INVALID, SubjectName{name}, "devices ", listed, ": expected devices of one kind");
  }
  return result;
}

std::vector<tn_metric> table_of(const std::vector<MetricValue>& values) {
  std::vector<tn_metric> table;
  for (const MetricValue& value : values) table.push_back({value.name.c_str(), value.value});
  return table;
}

const std::vector<tn_metric>& Host::lend(std::vector<MetricValue> values, Lent kind) {
  const std::lock_guard lock(lent_mutex_);
  Borrowed& lent = lent_[std::this_thread::get_id()];
  const auto number = static_cast<size_t>(kind);
  lent.values[number] = std::move(values);
  return lent.tables[number] = table_of(lent.values[number]);
}

const NamesTable& Host::lend(std::vector<SlotNames> names) {
  auto made = std::make_unique<NamesTable>(std::move(names));
  const std::lock_guard lock(lent_mutex_);
  return *(lent_[std::this_thread::get_id()].names = std::move(made));
}

void Host::require_own_process() const {
  if (fork_mark_.in_child()) fail(TN_MISUSE, "this host was made before fork(); make a new one in the child");
}

}  // namespace tenon::host
