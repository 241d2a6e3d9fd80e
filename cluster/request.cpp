// SPDX-License-Identifier: Apache-2.0
#include "cluster/request.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "base/whole_number.h"
#include "cluster/access.h"
#include "cluster/members.h"
#include "host/cli/verbs/save_path.h"
#include "launch/job.h"
#include "launch/tenon.h"

namespace tenon::cluster {

namespace {

namespace fs = std::filesystem;
using cli::Failure;
using cli::TrainCommand;

// Options that pods do not get: those of the cluster, those that this program reads, and those about this machine.
constexpr std::array<std::string_view, 19> kNotForPods = {
    "cluster", "image",       "namespace",     "claim",      "host-path", "memory", "label",
    "detach",  "pull-secret", "node-selector", "toleration", "dry-run",   "output", "processes",
    "servers", "save",        "threads",       "address",    "nodes"};
constexpr size_t kLongestStem =
    30;  // of a name, behind which there are those of roles, pods and their numbers: 63 letters
constexpr int64_t kMemoryUnit = 64 << 20, kLeastMemory = 512 << 20;  // bytes
constexpr int64_t kUnplanned = 256 << 20;                            // bytes of a machine of which no plan is known
constexpr size_t kMostJob = 900 << 10;                               // bytes of a ConfigMap, which may have 1 MiB

// Returns a text that no other start has.
std::string drawn_text() {
  unsigned char bytes[16];
  char text[2 * sizeof bytes + 1];
  randombytes_buf(bytes, sizeof bytes);
  return sodium_bin2hex(text, sizeof text, bytes, sizeof bytes);
}

// Returns a name for the objects of a job: "mnist-x7k2p".
std::string name_for(const std::string& job) {
  std::string name;
  for (const char letter : fs::path(job).stem().string().substr(0, kLongestStem)) {
    const auto lower = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    const bool is_plain = std::isalnum(static_cast<unsigned char>(lower)) != 0;
    if (is_plain || (!name.empty() && name.back() != '-')) name += is_plain ? lower : '-';
  }
  if (name.empty() || std::isalpha(static_cast<unsigned char>(name[0])) == 0) name.insert(0, "job-");
  while (name.back() == '-') name.pop_back();
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";  // spell no words
  name += '-';
  for (int i = 0; i < 5; ++i) name += kLetters[randombytes_uniform(kLetters.size())];
  return name;
}

// Returns the mount of "NAME[:PATH]".
Mount mount_of(const std::string& text, Mount::Kind kind, const char* option) {
  const size_t colon = text.rfind(':');
  Mount mount = {kind, text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
  const bool is_claim = kind == Mount::Kind::kClaim;
  if (is_claim) check_name(mount.source, option);
  if (!is_claim && !mount.source.starts_with('/'))
    throw Failure(cli::kUsage,
                  std::string(option) + ": expected the whole path of a folder of the nodes, got \"" + text + "\"");
  if (mount.path.empty()) mount.path = is_claim ? kFolder : mount.source;
  mount.path = fs::path(mount.path).lexically_normal().string();
  while (mount.path.size() > 1 && mount.path.ends_with('/')) mount.path.pop_back();
  if (!mount.path.starts_with('/') || mount.path == "/")
    throw Failure(cli::kUsage, std::string(option) + ": expected a whole path behind \":\", got \"" + text + "\"");
  return mount;
}

std::vector<Mount> mounts_of(const cli::ClusterArguments& cluster) {
  std::vector<Mount> mounts;
  for (const std::string& text : cluster.claims) mounts.push_back(mount_of(text, Mount::Kind::kClaim, "--claim"));
  for (const std::string& text : cluster.host_paths)
    mounts.push_back(mount_of(text, Mount::Kind::kHostPath, "--host-path"));
  for (size_t i = 0; i < mounts.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (mounts[i].path == mounts[j].path)
        throw Failure(cli::kUsage, "--claim, --host-path: two are to be seen at " + mounts[i].path);
  return mounts;
}

// Refuses paths of data that pods do not see. A whole path that this machine does not have may be in the image. job:
// the path of the job.
void check_data(const launch::LaunchedPath& path, const std::string& job, const std::vector<Mount>& mounts) {
  const auto is_beneath = [](const std::string& text, const std::string& folder) {
    return text == folder || text.starts_with(folder + "/");
  };
  const bool is_whole = path.text.starts_with('/');
  const std::string here = (fs::path(job).parent_path() / path.text).lexically_normal().string();
  std::string hint;
  std::error_code error;
  for (const Mount& mount : mounts) {
    if (is_whole ? is_beneath(path.text, mount.path) : mount.path == kFolder && !path.text.starts_with("..")) return;
    if (mount.kind == Mount::Kind::kHostPath && is_beneath(here, mount.source))
      hint = "; --host-path shows it to pods as " + mount.path + here.substr(mount.source.size()) + ": write that";
  }
  if (is_whole && !fs::exists(path.text, error)) return;
  throw Failure(
      cli::kBadConfig,
      path.place + ": \"" + path.text + "\" is a path of this machine, which pods do not see" + hint +
          ". Data may be in a claim (--claim NAME: a path that is relative to the job is one in the claim), on the "
          "nodes (--host-path DIR), in the image (a whole path that this machine does not have), or come from a "
          "reader that fetches it");
}

// Returns the name of the file that a path ends with.
std::string file_of(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  if (name.empty() || name == "." || name == "..")
    throw Failure(cli::kUsage, "--save: expected the path of a file, got \"" + path + "\"");
  return name;
}

std::vector<std::string> words_for_pods(const TrainCommand& command, const std::string& job, int64_t threads) {
  std::vector<std::string> words = {"./" + job};
  for (const cli::GivenOption& option : command.options.given_options()) {
    if (std::find(kNotForPods.begin(), kNotForPods.end(), option.name) != kNotForPods.end()) continue;
    if (option.name == "plugins" || option.name == "plugin-set" || option.name == "resume-from")
      throw Failure(cli::kUsage, "--" + option.name + " names a path of this machine, which pods do not see; " +
                                     (option.name == "resume-from" ? "--resume continues from a --claim"
                                                                   : "the image has the plugins of its pods"));
    if (option.values.empty()) words.push_back("--" + option.name);
    for (const std::string& value : option.values) words.push_back("--" + option.name + "=" + value);
  }
  if (const std::string& save = command.arguments.save; !save.empty()) words.push_back("--save=" + file_of(save));
  words.push_back("--threads=" + std::to_string(threads));
  return words;
}

// Returns the files of a job, with paths relative to its folder.
std::vector<cli::JobFile> files_of(const launch::LaunchedJob& job) {
  const fs::path folder = fs::path(job.path).parent_path();
  std::vector<cli::JobFile> files;
  for (const cli::JobFile& file : job.files)
    files.push_back({fs::path(file.path).lexically_relative(folder).string(), file.text});
  check_files(files, job.path);
  return files;
}

// Returns the bytes that `tenon plan` says a machine for the job takes; empty if it can say nothing, such as where the
// data is elsewhere.
std::optional<int64_t> planned_bytes(const TrainCommand& command) {
  std::vector<std::string> words = {"plan", command.options.operand(0), "--json"};
  for (const std::string& set : command.arguments.common.sets) words.push_back("--set=" + set);
  const json answer = launch::answer_of_tenon(words);
  const json& bytes = member_of(answer, "bytes");
  if (!bytes.is_object()) return std::nullopt;
  return number_of(bytes, "machine", 0);
}

// Returns the memory of a process: what the plan says twice, since a reader and a checkpoint have copies, and room for
// programs and libraries.
int64_t memory_of(const TrainCommand& command) {
  if (!command.arguments.cluster.memory.empty()) return 0;
  const int64_t bytes = kLeastMemory + 2 * planned_bytes(command).value_or(kUnplanned);
  return (bytes + kMemoryUnit - 1) / kMemoryUnit * kMemoryUnit;
}

}  // namespace

std::optional<int64_t> bytes_of(const std::string& text) {
  constexpr std::pair<std::string_view, int64_t> kUnits[] = {{"Ki", 1LL << 10},
                                                             {"Mi", 1LL << 20},
                                                             {"Gi", 1LL << 30},
                                                             {"Ti", 1LL << 40},
                                                             {"k", 1000},
                                                             {"M", 1000'000},
                                                             {"G", 1000'000'000},
                                                             {"T", 1000'000'000'000},
                                                             {"", 1}};
  for (const auto& [unit, bytes] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = base::whole_number<int64_t>(std::string_view(text).substr(0, text.size() - unit.size()));
    if (!number || *number < 1 || *number > INT64_MAX / bytes) return std::nullopt;
    return *number * bytes;
  }
  return std::nullopt;
}

void set_pods(const cli::ClusterArguments& cluster, const std::string& name, int64_t memory,
              const cli::Options& options, Plan& plan) {
  plan.name = name_for(name);
  plan.image = cluster.image;
  plan.mounts = mounts_of(cluster);
  plan.detached = cluster.detach;
  const auto is_folder = [](const Mount& mount) { return mount.kind == Mount::Kind::kClaim && mount.path == kFolder; };
  if (plan.detached && std::none_of(plan.mounts.begin(), plan.mounts.end(), is_folder))
    options.fail(std::string("--detach: the model stays in the folder of the job, ") + kFolder +
                 ", where no --claim is");
  plan.drawn = drawn_text();
  plan.scheduling = scheduling_of(cluster, options);
  const std::optional<int64_t> bytes = cluster.memory.empty() ? memory : bytes_of(cluster.memory);
  if (!bytes) options.fail("--memory: expected a number of bytes such as 2Gi, got \"" + cluster.memory + "\"");
  plan.memory = *bytes;
  for (const std::string& label : cluster.labels) {
    const auto [key, value] = label_of(label, "--label", options);
    if (key.starts_with("app.kubernetes.io/") || key.starts_with("tenon.dev/"))
      options.fail("--label: " + key + " is a label of Tenon's own");
    plan.labels[key] = value;
  }
}

void check_files(const std::vector<cli::JobFile>& files, const std::string& what) {
  size_t bytes = 0;
  for (const cli::JobFile& file : files) {
    if (file.path.starts_with(".."))
      throw Failure(cli::kBadConfig, what + ": " + file.path + " lies above its folder, which pods do not see");
    bytes += file.text.size();
  }
  if (bytes > kMostJob)
    throw Failure(cli::kBadConfig, what + ": it and what it includes have " + std::to_string(bytes) +
                                       " bytes; pods get " + std::to_string(kMostJob) + " at most");
}

Training training_of(const TrainCommand& command) {
  const cli::TrainArguments& arguments = command.arguments;
  const launch::LaunchedJob launched = launch::read_job(command);
  const cli::Job job = command.load();
  Training result;
  Plan& plan = result.plan;
  set_pods(arguments.cluster, launched.path, memory_of(command), command.options, plan);
  plan.processes = arguments.launch.processes == cli::JobOptions::kNotGiven ? 1 : arguments.launch.processes;
  plan.servers = arguments.launch.servers;
  plan.threads = std::max<int64_t>(1, job.threads);
  plan.restarts = arguments.launch.restarts;
  plan.files = files_of(launched);
  plan.words = words_for_pods(command, plan.files.front().path, plan.threads);
  if (job.shards > 0 && job.shards < plan.processes)
    throw Failure(cli::kBadConfig, launched.path + ": shards is " + std::to_string(job.shards) + ", fewer than the " +
                                       std::to_string(plan.processes) + " processes of --processes");
  for (const launch::LaunchedPath& path : launched.data) check_data(path, launched.path, plan.mounts);
  if (!arguments.no_save && !plan.detached) {
    result.save = arguments.save.empty() ? job.save : std::optional(arguments.save);
    result.average_save = job.average_save;
    if (result.save) cli::check_save_path(*result.save);
    if (result.average_save) cli::check_save_path(*result.average_save);
  }
  return result;
}

}  // namespace tenon::cluster
