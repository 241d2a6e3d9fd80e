// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <set>
#include <tenon/check.hpp>
#include <tenon/tenon.hpp>

#include "base/files.h"
#include "base/temporary.h"
#include "check/bench/subject.h"
#include "check/cases/case_file.h"
#include "check/checks/comm_checks.h"
#include "check/checks/device_checks.h"
#include "check/checks/file_checks.h"
#include "check/checks/kernel_checks.h"
#include "check/checks/layer_checks.h"
#include "check/checks/reader_checks.h"
#include "check/checks/updater_checks.h"
#include "check/run/component_run.h"

namespace tenon::check {

namespace {

namespace fs = std::filesystem;

// ---- the kinds of components

struct Kind {
  const char* list;  // of the manifest
  const char* name;  // key of a component's name
  const std::vector<Check>& (*checks)();
};
constexpr Kind kKinds[] = {{"layers", "type", layer_checks},     {"kernels", "name", kernel_checks},
                           {"updaters", "type", updater_checks}, {"readers", "type", reader_checks},
                           {"devices", "kind", device_checks},   {"providers", "name", provider_checks},
                           {"comms", "type", comm_checks}};

std::string kind_of(const Kind& kind, const json& component) {
  if (std::string(kind.list) == "layers") {
    const int role = component.at("role").get<int>();
    return role == TN_ROLE_COST ? "cost" : role == TN_ROLE_METRIC ? "metric" : "layer";
  }
  const std::string list = kind.list;
  return list.substr(0, list.size() - 1);
}

// ---- the file

// A folder with links to plugins.
class Links {
 public:
  // Links are in the order of the calls, which is that of a search.
  void add(const fs::path& file) {
    fs::create_symlink(file, folder_.file(std::to_string(1000 + count_++) + "_" + file.filename().string()));
  }
  [[nodiscard]] std::string path() const { return folder_.path(); }

 private:
  base::TemporaryFolder folder_;
  int count_ = 0;
};

fs::path existing(const std::string& path) {
  std::error_code error;
  fs::path file = fs::canonical(path, error);
  if (error == std::errc::no_such_file_or_directory) throw Error(TN_NOT_FOUND, "no file \"" + path + "\"");
  if (error) throw Error(TN_IO, path + ": " + error.message());
  if (!fs::is_regular_file(file, error)) throw Error(TN_IO, path + ": is not a regular file");
  return file;
}

// Returns the manifest of the plugin as a host reads it. Throws TN_REFUSED if the host does not admit the file.
json manifest_of(const std::string& path, const fs::path& file, const json& plugins) {
  for (const json& plugin : plugins) {
    if (plugin.at("file") != file.string()) continue;
    if (plugin.at("status") == "refused")
      throw Error(TN_REFUSED,
                  path + ": is not a plugin that this host admits: " + plugin.at("reason").get<std::string>());
    return plugin.at("manifest");
  }
  throw Error(TN_REFUSED, path + ": is not a plugin: its name does not end with \".so\"");
}

json plugins_in(const std::vector<std::string>& folders) {
  HostOptions options;
  options.threads = 1;
  options.plugin_paths = folders;
  return json::parse(Host(options).plugins());
}

json cases_of(const json& cases, const std::string& type) {
  json result = json::array();
  for (const json& each : cases)
    if (each.value("type", "") == type) result.push_back(each);
  return result;
}

class FileCheck {
 public:
  explicit FileCheck(const Options& options)
      : options_(options),
        file_(existing(options.file)),
        cases_(options.cases.empty() ? json::array() : read_cases(options.cases)) {
    if (options.seconds < 1)
      throw Error(TN_INVALID, "seconds: expected at least 1, got " + std::to_string(options.seconds));
    subject_.file = file_.string();
    own_.add(file_);
    subject_.folders = {own_.path()};
    std::vector<std::string> more = options.plugin_paths;
    if (more.empty())
      for (const fs::path& folder : base::folders_beside(reinterpret_cast<const void*>(&tn_version), "tenon/plugins"))
        more.push_back(folder.string());
    subject_.folders.insert(subject_.folders.end(), more.begin(), more.end());
    const json plugins = plugins_in(subject_.folders);
    subject_.manifest = manifest_of(options.file, file_, plugins);
    for (const json& plugin : plugins)
      if (plugin.at("status") != "refused" && plugin.at("file") != file_.string())
        others_.add(plugin.at("file").get<std::string>());
    subject_.others = others_.path();
    subject_.scratch = scratch_.path();
    subject_.seed = options.seed;
    subject_.folder = options.cases.empty() ? "" : fs::absolute(options.cases).parent_path().string();
    report_.file = options.file;
    report_.plugin = subject_.manifest.at("id");
    report_.seed = options.seed;
    report_.cases = options.cases;
    report_.plugin_paths = options.plugin_paths;
    check_names();
  }

  Report run() {
    if (options_.type.empty()) run_component("plugin", report_.plugin, subject_.manifest, file_checks());
    bool matched = options_.type.empty();
    for (const Kind& kind : kKinds)
      for (const json& component : subject_.manifest.value(kind.list, json::array())) {
        const std::string name = component.at(kind.name);
        if (!options_.type.empty() && options_.type != name) continue;
        matched = true;
        if (kind_of(kind, component) == "kernel")
          run_kernel(component, kind.checks());
        else if (kind_of(kind, component) == "device")
          run_device(name, component, kind.checks());
        else if (kind_of(kind, component) == "provider")
          run_provider(name, component, kind.checks());
        else
          run_component(kind_of(kind, component), name, component, kind.checks());
      }
    if (!matched)
      throw Error(TN_NOT_FOUND,
                  options_.file + ": plugin \"" + report_.plugin + "\" has no component \"" + options_.type + "\"");
    return std::move(report_);
  }

 private:
  void check_names() const {
    std::set<std::string> names;
    for (const Listed& listed : list_checks()) names.insert(listed.check);
    for (const std::string& name : options_.checks)
      if (names.count(name) == 0) throw Error(TN_NOT_FOUND, "no check is called \"" + name + "\"");
  }
  // The layer types may be those of other plugins.
  void run_kernel(const json& kernel, const std::vector<Check>& checks) {
    const std::string type = kernel.at("type");
    HostOptions options;
    options.threads = 1;
    options.plugin_paths = subject_.folders;
    json layer;
    try {
      const Host host(options);
      for (const std::string& each : kernel.value("fuses", std::vector<std::string>{type}))
        layer = json::parse(host.describe_type("layer", each));  // at the end that of `type`
    } catch (const Error& error) {
      skip(kernel.at("name"), std::string("a layer type of it is not found: ") + error.what());
      return;
    }
    if (kernel.at("device") != "cpu") {
      skip(kernel.at("name"),
           "it is for the device \"" + kernel.at("device").get<std::string>() + "\"; the kit computes on cpu alone");
      return;
    }
    subject_.shown = kernel.at("name");
    subject_.chain = kernel.value("fuses", std::vector<std::string>());
    run_component("kernel", type, layer, checks);
    subject_.shown.clear();
    subject_.chain.clear();
  }
  // Layers of the kit, each one primitive, run on the device.
  void run_device(const std::string& name, const json& device, const std::vector<Check>& checks) {
    subject_.device = name;
    subject_.shown = name;
    run_component("device", "check.primitive", device, checks);
    subject_.device.clear();
    subject_.shown.clear();
  }
  // The same on the device that has the provider's tables.
  void run_provider(const std::string& name, const json& provider, const std::vector<Check>& checks) {
    subject_.device = provider.at("device");
    subject_.shown = name;
    run_component("provider", "check.primitive", provider, checks);
    subject_.device.clear();
    subject_.shown.clear();
  }
  void skip(const std::string& kernel, const std::string& why) {
    report_.results.push_back({"kernel", kernel, "chosen", Outcome::kSkipped, why, 0});
    if (options_.progress) options_.progress(report_.results.back());
  }
  void run_component(const std::string& kind, const std::string& type, const json& described,
                     const std::vector<Check>& all) {
    std::vector<Check> checks;
    for (const Check& check : all)
      if (options_.checks.empty() ||
          std::find(options_.checks.begin(), options_.checks.end(), check.name) != options_.checks.end())
        checks.push_back(check);
    subject_.kind = kind;
    subject_.type = type;
    subject_.described = described;
    subject_.cases = cases_of(cases_, type);
    const std::function<void(const Result&)> done = [this](const Result& result) {
      report_.results.push_back(result);
      if (options_.progress) options_.progress(result);
    };
    run_checks(options_.seconds, subject_, checks, done);
  }

  const Options& options_;
  const fs::path file_;
  Links own_, others_;
  base::TemporaryFolder scratch_;
  const json cases_;
  Subject subject_;
  Report report_;
};

}  // namespace

Report run(const Options& options) { return FileCheck(options).run(); }

std::vector<Listed> list_checks() {
  std::vector<Listed> result;
  const auto add = [&](const char* kind, const std::vector<Check>& checks) {
    for (const Check& check : checks) result.push_back({kind, check.name, check.meaning});
  };
  add("plugin", file_checks());
  for (const Kind& kind : kKinds) {
    const std::string list = kind.list;
    add(list.substr(0, list.size() - 1).c_str(), kind.checks());
  }
  return result;
}

}  // namespace tenon::check
