// tenon plugins lock: writes the plugin set that a job needs. SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "host/cli/child.h"
#include "host/cli/job/reader.h"
#include "host/cli/late_refusals.h"
#include "host/cli/options.h"
#include "host/cli/planning.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;

int lock_here(const Job& job, const JobOptions& common, const std::string& output) {
  const Host host = common.host(job);
  const LateRefusals refusals(host);
  if (!job.train && !job.test) (void)reader_of(job, "train");  // says that it is missing
  if (job.train) require_backward(plan_job(host, job, *job.train, job.updater.has_value()));
  if (job.train && job.updater) (void)plan_job(host, job, *job.train, false);
  if (job.test) (void)plan_job(host, job, *job.test, false);
  refusals.warn();
  fs::path folder = fs::path(output).parent_path();
  if (folder.empty()) folder = ".";
  const std::string text = host.lock_plugins(folder.string());
  if (output.empty()) {
    std::cout << text;
    return kDone;
  }
  replace_file(output, text);
  std::error_code error;
  // Whatever the umask: a set that others may write is refused.
  fs::permissions(
      output, fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read | fs::perms::others_read, error);
  if (error) throw Failure(kIo, output + ": its permissions cannot be set: " + error.message());
  std::cout << plain("locked " + output) << "\n";
  return kDone;
}

}  // namespace

int run_plugins_lock(const Arguments& arguments) {
  JobOptions common;
  Deadline deadline;
  std::string output;
  Options options(
      "plugins lock", {"JOB.toml"},
      "Writes a plugin set of mode \"locked\" with the plugins that training, testing and inference of the job\n"
      "load, each with its file, SHA-256 and libraries. Plans the job in a process of its own; trains nothing.");
  options.list.add_options()("output,o", boost::program_options::value(&output)->value_name("SET.toml"),
                             "the file of the set; default: standard output, with paths relative to this folder");
  common.add_to(options);
  deadline.add_to(options);
  if (!options.parse(arguments)) return kDone;
  return run_verb_in_child(deadline.seconds(options),
                           [&] { return lock_here(common.load(options, options.operand(0)), common, output); });
}

}  // namespace tenon::cli
