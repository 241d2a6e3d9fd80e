// Tenon's public API for C++17 and later: RAII and exceptions over tenon.h. Header-only: only C calls cross into
// the library, so any compiler and standard library work.
//
//   tenon::Host host;
//   auto pixel = host.data({"pixel", TN_U8, {28, 28}, -1, 1.0 / 255});
//   auto label = host.data({"label", TN_U8, {}, 10});
//   auto cost = host.layer("cross_entropy", {host.layer("fc", {pixel}, {{"size", 10}}), label},
//                          {{"from_logits", true}});
//
// Objects keep their host alive and are released with their last copy. A call that fails throws tenon::Error and
// changes nothing. The inline namespace keeps these classes apart from any other `tenon` in the same program.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_HPP
#define TENON_TENON_HPP

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tenon/tenon_base.hpp>
#include <tenon/tenon_model.hpp>
#include <tenon/tenon_plugins.hpp>
#include <tenon/tenon_reader.hpp>
#include <tenon/tenon_training.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon {
inline namespace v0 {

struct HostOptions {
  int threads = 0;                          // compute threads, the caller's included; 0: the cores this process may use
  std::vector<std::string> plugin_paths;    // folders; none: tenon/plugins beside libtenon.so
  const tn_allocator* allocator = nullptr;  // null: the system's
  // Receives log lines, from any thread; level: 0 debug, 1 info, 2 warning, 3 error. Its exceptions are dropped.
  std::function<void(int level, const char* message)> log;
  uint32_t check = TN_CHECK_DEFAULT;  // TN_CHECK_*: checking of plugins
  bool check_finite = false;          // whether every float of a step must be finite, as in tn_host_options
  std::string plugin_set = {};        // path of the set that says which plugins may load; empty: none
  std::vector<std::string> added_plugin_paths = {};  // folders that are searched, too; after plugin_paths with a set
  bool installed_plugins = true;                     // false: no plugin_paths means no folder
  bool time_calls = false;                           // whether machines measure the time of each call
  uint32_t arithmetic = TN_ARITHMETIC_DEFAULT;       // TN_ARITHMETIC_*, as in tn_host_options; a draft
};

// Writes a file, checks whether it could be written, and finds the file that would be, as tn_file_replace,
// tn_file_check and tn_file_target document it.
inline void replace_file(const std::string& path, const std::string& bytes) {
  const char* const given = detail::c_text(path, "path");
  detail::checked([&](tn_error* error) { return tn_file_replace(given, bytes.data(), bytes.size(), error); });
}
inline void check_file(const std::string& path) {
  const char* const given = detail::c_text(path, "path");
  detail::checked([&](tn_error* error) { return tn_file_check(given, error); });
}
[[nodiscard]] inline std::string file_target(const std::string& path) {
  const char* const given = detail::c_text(path, "path");
  return detail::written(
      [&](tn_write write, void* user, tn_error* error) { return tn_file_target(given, write, user, error); });
}

class Host {
 public:
  explicit Host(const HostOptions& options = {}) {
    host_ = std::make_shared<detail::HostState>();
    host_->log = options.log;
    std::vector<const char*> paths, added;
    for (const std::string& path : options.plugin_paths) paths.push_back(detail::c_text(path, "options.plugin_paths"));
    for (const std::string& path : options.added_plugin_paths)
      added.push_back(detail::c_text(path, "options.added_plugin_paths"));
    const char* const none = nullptr;
    tn_host_options c = {};
    c.size = sizeof c;
    c.threads = options.threads;
    c.plugin_paths = !paths.empty() ? paths.data() : options.installed_plugins ? nullptr : &none;
    c.plugin_paths_count = detail::count_of(paths.size());
    c.added_plugin_paths = added.data();
    c.added_plugin_paths_count = detail::count_of(added.size());
    if (!options.plugin_set.empty()) c.plugin_set = detail::c_text(options.plugin_set, "options.plugin_set");
    c.check = options.check;
    c.check_finite = options.check_finite ? 1 : 0;
    c.time_calls = options.time_calls ? 1 : 0;
    c.arithmetic = options.arithmetic;
    c.allocator = options.allocator;
    c.log_user = &host_->log;
    if (host_->log) {
      c.log = [](void* user, int32_t level, const char* message) {
        try {
          (*static_cast<std::function<void(int, const char*)>*>(user))(level, message);
        } catch (...) {  // a failing log must not break the call
        }
      };
    }
    detail::checked([&](tn_error* error) { return tn_host_create(&c, &host_->host, error); });
  }

  // The host of a layer.
  [[nodiscard]] static Host of(const Layer& layer) { return Host(layer.host_ref(), 0); }

  [[nodiscard]] tn_host* get() const { return host_->host; }
  [[nodiscard]] const detail::HostRef& host_ref() const { return host_; }

  // JSON array of all plugins found; runs no plugin code.
  [[nodiscard]] std::string plugins() const {
    return detail::written(
        [this](tn_write write, void* user, tn_error* error) { return tn_host_plugins(get(), write, user, error); });
  }
  // JSON of a type, as tn_type_describe gives it. kind: "layer", "updater", "reader" or "comm".
  [[nodiscard]] std::string describe_type(const std::string& kind, const std::string& type) const {
    const char* const of = detail::c_text(kind, "kind");
    const char* const name = detail::c_text(type, "type");
    return detail::written([&](tn_write write, void* user, tn_error* error) {
      return tn_type_describe(get(), of, name, write, user, error);
    });
  }
  // Restricts the host to the plugin set at `path`, as tn_host_use_plugin_set does.
  void use_plugin_set(const std::string& path) const {
    const char* const given = detail::c_text(path, "path");
    detail::checked([&](tn_error* error) { return tn_host_use_plugin_set(get(), given, error); });
  }
  // Text of a set of mode "locked" with the plugins that are loaded; `folder`: where it will lie.
  [[nodiscard]] std::string lock_plugins(const std::string& folder) const {
    const char* const in = detail::c_text(folder, "folder");
    return detail::written([&](tn_write write, void* user, tn_error* error) {
      return tn_host_lock_plugins(get(), in, write, user, error);
    });
  }
  void add_plugin(const struct tn_plugin* plugin) const {
    detail::checked([&](tn_error* error) { return tn_host_add_plugin(get(), plugin, error); });
  }
  [[nodiscard]] tn_host_counters count() const {
    tn_host_counters counters = {};
    counters.size = sizeof counters;
    detail::checked([&](tn_error* error) { return tn_host_inspect(get(), &counters, error); });
    return counters;
  }

  // Joins the processes of a training, a draft.
  [[nodiscard]] Team join(const TeamOptions& options = {}) const {
    tn_team_options c = {};
    detail::OptionLists lists;
    detail::fill(c, options, lists);
    return detail::made<Team>(host_, [&](tn_team* to, tn_error* error) { return tn_team_join(get(), &c, to, error); });
  }

  [[nodiscard]] Layer data(const DataOptions& options) const {
    tn_data_options c = {};
    c.size = sizeof c;
    c.dtype = options.dtype;
    c.name = detail::c_text(options.name, "options.name");
    c.shape = options.shape.data();
    c.rank = static_cast<int32_t>(options.shape.size());
    c.index_limit = options.index_limit;
    c.scale = options.scale;
    c.offset = options.offset;
    c.storage = options.storage;
    c.levels = options.storage == TN_RAGGED ? options.levels : 0;
    c.sequence = options.sequence.empty() ? nullptr : detail::c_text(options.sequence, "options.sequence");
    c.layout = options.layout;
    return detail::made<Layer>(host_,
                               [&](tn_layer* to, tn_error* error) { return tn_data_create(get(), &c, to, error); });
  }
  // An empty name is generated. like: as in tn_layer_options; null: none. ports: the name of the port of each input;
  // empty: the inputs are in the order of the ports.
  [[nodiscard]] Layer layer(const std::string& type, const Layers& inputs, const Attributes& attributes = {},
                            const std::string& name = {}, const Layer* like = nullptr,
                            const std::vector<std::string>& ports = {}) const {
    return detail::made_layer(host_, type, inputs, attributes, name, like, ports);
  }
  [[nodiscard]] Parameters parameters(const Layers& outputs, uint64_t seed) const {
    const std::vector<tn_layer> list = detail::handles(outputs);
    return detail::made<Parameters>(host_, [&](tn_parameters* to, tn_error* error) {
      return tn_parameters_create(get(), list.data(), detail::count_of(list.size()), seed, to, error);
    });
  }
  // For a training of several processes that own the rows of `tables` between them, as tn_team_parameters documents. An
  // empty team: this process trains alone.
  [[nodiscard]] Parameters parameters(const Layers& outputs, uint64_t seed, const std::vector<std::string>& tables,
                                      const Team& team) const {
    const std::vector<tn_layer> list = detail::handles(outputs);
    const std::vector<const char*> names = detail::c_texts(tables, "tables");
    return detail::made<Parameters>(host_, [&](tn_parameters* to, tn_error* error) {
      return tn_team_parameters(get(), team.handle(), list.data(), detail::count_of(list.size()), seed, names.data(),
                                detail::count_of(names.size()), to, error);
    });
  }
  // Parameters without values, for planning, as tn_parameters_declare documents.
  [[nodiscard]] Parameters declare(const Layers& outputs) const {
    const std::vector<tn_layer> list = detail::handles(outputs);
    return detail::made<Parameters>(host_, [&](tn_parameters* to, tn_error* error) {
      return tn_parameters_declare(get(), list.data(), detail::count_of(list.size()), to, error);
    });
  }
  [[nodiscard]] Model load(const std::string& path) const {
    const char* const file = detail::c_text(path, "path");
    return detail::loaded_model(host_, [&](auto... to) { return tn_model_load(get(), file, to...); });
  }
  // From the bytes of a model file, which are not kept.
  [[nodiscard]] Model load_memory(const void* data, uint64_t bytes) const {
    return detail::loaded_model(host_, [&](auto... to) { return tn_model_load_memory(get(), data, bytes, to...); });
  }
  // JSON of a model file; loads no plugin.
  [[nodiscard]] std::string describe_model(const std::string& path) const {
    return detail::written([&](tn_write write, void* user, tn_error* error) {
      return tn_model_describe(get(), detail::c_text(path, "path"), write, user, error);
    });
  }
  // As tn_model_join and tn_model_split document them, a draft.
  void join_model(const std::string& from, const std::string& to) const {
    detail::checked([&](tn_error* error) {
      return tn_model_join(get(), detail::c_text(from, "from"), detail::c_text(to, "to"), error);
    });
  }
  void split_model(const std::string& from, const std::string& to, const std::vector<std::string>& tables,
                   uint32_t parts) const {
    const std::vector<const char*> names = detail::c_texts(tables, "tables");
    detail::checked([&](tn_error* error) {
      return tn_model_split(get(), detail::c_text(from, "from"), detail::c_text(to, "to"), names.data(),
                            detail::count_of(names.size()), parts, error);
    });
  }
  [[nodiscard]] Machine machine(const Parameters& parameters, const Layers& outputs,
                                const MachineOptions& options) const {
    const std::vector<tn_layer> list = detail::handles(outputs);
    tn_machine_options c = {};
    detail::OptionLists lists;
    detail::fill(c, options, lists);
    return detail::made<Machine>(host_, [&](tn_machine* to, tn_error* error) {
      return tn_machine_create(get(), parameters.handle(), list.data(), detail::count_of(list.size()), &c, to, error);
    });
  }
  [[nodiscard]] Updater updater(const std::string& type, const Attributes& attributes = {}) const {
    const detail::NamedValues values(attributes);
    return detail::made<Updater>(host_, [&](tn_updater* to, tn_error* error) {
      return tn_updater_create(get(), detail::c_text(type, "type"), values.data(), values.size(), to, error);
    });
  }
  // directory: base of relative paths among the attributes; empty: the working directory. names: required names of the
  // integers of slots, such as those of the parameters to test or of another reader. seed: of random choices of the
  // reader, such as the cropping of images. schema_alone: only slots and number of samples are wanted; what they do not
  // need may stay unread.
  [[nodiscard]] Reader reader(const std::string& type, const Attributes& attributes, const std::string& directory = {},
                              uint32_t shard = 0, uint32_t shards = 1, const std::vector<Names>& names = {},
                              uint64_t seed = 0, bool schema_alone = false,
                              const std::optional<std::vector<std::string>>& needed = {}) const {
    const detail::NamedValues values(attributes);
    const detail::NamesLists lists(names);
    tn_reader_options c = {};
    c.size = sizeof c;
    c.attributes_count = values.size();
    c.type = detail::c_text(type, "type");
    c.attributes = values.data();
    c.directory = directory.empty() ? nullptr : detail::c_text(directory, "directory");
    c.shard = shard;
    c.shards = shards;
    c.names = lists.data();
    c.names_count = lists.size();
    c.flags = schema_alone ? TN_READER_SCHEMA : 0;
    c.seed = seed;
    std::vector<const char*> slots;
    if (needed)
      for (const std::string& slot : *needed) slots.push_back(detail::c_text(slot, "needed"));
    c.needed_count = detail::count_of(slots.size());
    slots.push_back(nullptr);  // an empty list is not null
    if (needed) c.needed = slots.data();
    return detail::made<Reader>(host_,
                                [&](tn_reader* to, tn_error* error) { return tn_reader_create(get(), &c, to, error); });
  }
  // A reader implemented by the application. `source` is either a function bool(Sample&) that makes the next sample and
  // returns false at the end of a pass (the next call starts the next pass), with `samples` samples in a pass, -1 if
  // unknown; or an object with size() and read(index, sample), which shuffle and seek use to read by index. It is
  // called one call at a time, while a call on the reader runs or, if the reader is buffered, on a host thread; it
  // must not use this host. Its exceptions are rethrown by the call that reads.
  template <typename Source>
  [[nodiscard]] Reader reader(const Schema& schema, Source source, int64_t samples = -1) const {
    const detail::Slots slots(schema);
    tn_source_options c = {};
    c.size = sizeof c;
    c.slots_count = slots.size();
    c.slots = slots.data();
    c.samples = samples;
    if constexpr (std::is_invocable_r_v<bool, Source&, Sample&>) {
      c.next = detail::next_of<Source>;
    } else {
      c.samples = source.size();
      c.read_at = detail::read_at_of<Source>;
    }
    c.release = detail::UserObject<Source>::release;
    auto user = std::make_unique<detail::UserObject<Source>>(host_->thrown, schema, std::move(source));
    c.user = user.get();
    Reader result = detail::made<Reader>(
        host_, [&](tn_reader* to, tn_error* error) { return tn_reader_create_from(get(), &c, to, error); });
    user.release();  // NOLINT: the host has it
    return result;
  }

 private:
  Host(detail::HostRef host, int /*tag*/) : host_(std::move(host)) {}

  detail::HostRef host_;
};

}  // namespace v0
}  // namespace tenon
#endif
