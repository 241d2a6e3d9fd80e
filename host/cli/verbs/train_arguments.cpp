// SPDX-License-Identifier: Apache-2.0
#include "host/cli/verbs/train_arguments.h"

#include <string_view>

namespace tenon::cli {

namespace po = boost::program_options;

namespace {

// Returns the key of a job for a name of tn_checkpoint_options.resume_with, as messages of the library have it, or for
// a key of a job, which stays.
std::string job_key_of(const std::string& name) {
  constexpr std::string_view kGroups = "groups.";
  if (name == "reader.batch") return "reader.train.batch";
  return name.starts_with(kGroups) ? "updater_group." + name.substr(kGroups.size()) : name;
}

// Returns the name in tn_checkpoint_options.resume_with of a key of a job.
std::string change_of(const std::string& key) {
  constexpr std::string_view kGroup = "updater_group.", kSchedule = ".schedule.";
  if (key == "reader.train.batch") return "reader.batch";
  std::string name = key.starts_with(kGroup) ? "groups." + key.substr(kGroup.size()) : key;
  if (const size_t at = name.find(kSchedule); at != std::string::npos) name.resize(at + kSchedule.size() - 1);
  return name;
}

// Returns a check that the text of an option is not empty. what: "the name of a file"
auto not_empty(Options& options, const char* option, const char* what) {
  return [&options, option, what](const std::string& text) {
    if (text.empty()) options.fail(std::string(option) + ": expected " + what + ", got an empty text");
  };
}

}  // namespace

void LaunchArguments::add_to(Options& options) {
  options.list.add_options()("processes", po::value(&processes)->value_name("N"),
                             "train with N processes on this machine (docs/launching.md)")(
      "nodes", po::value(&nodes)->value_name("LIST")->notifier(not_empty(options, "--nodes", "names of machines")),
      "train with processes on these machines, by ssh: \"node0,node1:2\" has one and two of them")(
      "servers", po::value(&servers)->value_name("N"),
      "processes that own the rows of the job's tables, with the key staleness all parameters, and compute no samples: "
      "N more than --processes, of --nodes or of mpirun the last N")(
      "comm", po::value(&comm)->value_name("TYPE")->notifier(not_empty(options, "--comm", "a type")),
      "how the processes exchange data: the type of a communicator, such as zmq")(
      "address", po::value(&address)->value_name("HOST[:PORT]")->notifier(not_empty(options, "--address", "a name")),
      "where process 0 listens for the others (the first of --nodes, a free port)")(
      "stall", po::value(&stall)->value_name("SECONDS"),
      "stop a training without a step in so long (10 times the slowest of the last 100, at least 30)")(
      "silence", po::value(&silence)->value_name("SECONDS"), "a process is lost that is silent for so long (1.5)")(
      "restarts", po::value(&restarts)->value_name("N"),
      "start the processes again at most so often after one was lost, from the last checkpoint (20)");
}

void LaunchArguments::check(const Options& options, bool in_cluster) const {
  const auto fail = [&](const char* option, const std::string& expected, const std::string& found) {
    options.fail(std::string(option) + ": expected " + expected + ", got " + found);
  };
  constexpr double kMostSeconds = 1e6;
  if (processes != JobOptions::kNotGiven && !nodes.empty())
    options.fail("--processes and --nodes exclude each other: node1:2 states the processes of a node");
  if (processes != JobOptions::kNotGiven && (processes < 1 || processes > kMostProcesses))
    fail("--processes", "1 to " + std::to_string(kMostProcesses), std::to_string(processes));
  if (servers < 0 || servers > kMostServers)
    fail("--servers", "0 to " + std::to_string(kMostServers), std::to_string(servers));
  if (restarts < 0) fail("--restarts", "at least 0", std::to_string(restarts));
  if (!(stall >= 0 && stall <= kMostSeconds)) fail("--stall", "0 to 1e6 seconds", base::brief(stall, 6));
  if (!(silence >= 1 && silence <= kMostSeconds)) fail("--silence", "1 to 1e6 seconds", base::brief(silence, 6));
  if (!address.empty() && nodes.empty()) options.fail("--address is about --nodes, which is missing");
  if (is_wanted() || in_cluster) return;
  for (const GivenOption& each : options.given_options())
    for (const char* const name : {"comm", "stall", "silence", "restarts"})
      if (each.name == name)
        options.fail(std::string("--") + name + " is about --processes or --nodes, which are missing");
}

void ClusterArguments::add_to(Options& options) {
  options.list.add_options()(
      "cluster", po::value(&context)->implicit_value("")->value_name("CONTEXT")->notifier([this](const std::string&) {
        is_wanted = true;
      }),
      "train in a cluster of Kubernetes, by this context of the kubeconfig, or by the current one "
      "(docs/kubernetes.md)")("image", po::value(&image)->value_name("IMAGE"),
                              "the image of the pods, which has tenon")(
      "namespace", po::value(&space)->value_name("NAME"), "the namespace, instead of the context's")(
      "claim", po::value(&claims)->value_name("NAME[:PATH]"),
      "a PersistentVolumeClaim that pods see at PATH (/training, where the results of the job are); may be repeated")(
      "host-path", po::value(&host_paths)->value_name("DIR[:PATH]"),
      "a folder of the nodes that pods see at PATH (DIR); may be repeated")(
      "memory", po::value(&memory)->value_name("SIZE"),
      "of a process in a cluster, such as 2Gi (what the plan says twice, and 512Mi)")(
      "label", po::value(&labels)->value_name("KEY=VALUE"),
      "of the workload and its pods, such as kueue.x-k8s.io/queue-name=team; may be repeated")(
      "pull-secret", po::value(&pull_secrets)->value_name("NAME"),
      "a Secret with credentials for the image; may be repeated")(
      "node-selector", po::value(&node_selectors)->value_name("KEY=VALUE"),
      "a label of the nodes that run the pods; may be repeated")(
      "toleration", po::value(&tolerations)->value_name("KEY[=VALUE][:EFFECT]"),
      "a taint of nodes that may run the pods; may be repeated")(
      "detach", po::bool_switch(&detach), "end once the cluster trains; `tenon dist` tells the rest")(
      "dry-run", po::value(&dry_run)->implicit_value("jobs")->value_name("KIND"),
      "print the objects for a cluster, with Jobs or, by --dry-run=jobset, with a JobSet, and create none")(
      "output,o", po::value(&output)->value_name("FORMAT"), "of --dry-run: yaml or json (yaml)");
}

void ClusterArguments::check(const Options& options) const {
  if (output != "yaml" && output != "json") options.fail("--output: expected yaml or json, got \"" + output + "\"");
  if (!dry_run.empty() && dry_run != "jobs" && dry_run != "jobset")
    options.fail("--dry-run: expected jobs or jobset, got \"" + dry_run + "\"");
  if (is_wanted && image.empty()) options.fail("--cluster: --image is missing, the image of the pods");
  if (is_wanted && detach && claims.empty() && dry_run.empty())
    options.fail("--detach: nobody is there to fetch the model; state a --claim, in which it stays");
  if (is_wanted) return;
  for (const GivenOption& each : options.given_options())
    for (const char* const name : {"image", "namespace", "claim", "host-path", "memory", "label", "pull-secret",
                                   "node-selector", "toleration", "detach", "dry-run", "output"})
      if (each.name == name) options.fail(std::string("--") + name + " is about --cluster, which is missing");
}

TrainCommand::TrainCommand(const std::string& verb)
    : options(verb, {"JOB.toml"},
              "Trains the model of a job file, saves it, and measures it on [reader.test].\n"
              "With [checkpoint] in the job, --resume continues an interrupted training: the result is the same,\n"
              "bit for bit, as without the interruption. Without a checkpoint it begins anew, so that one command\n"
              "serves the first start and all others.\n"
              "Ctrl-C ends the training after the current minibatch, with exit code 130; what was trained so far\n"
              "is then saved only with --save. The same holds if the cost is not a finite number at the end.\n"
              "If the training fails, for example since its data is damaged, what was trained so far is saved with\n"
              "--save, else beside the file of the key \"save\", with \".partial\" after its name.\n"
              "A model that cannot be written in the end is saved in the folder for temporary files.\n"
              "--processes and --nodes train with several processes, which are started again from the last\n"
              "checkpoint if one of them is lost.") {
  options.list.add_options()("passes", po::value(&arguments.common.passes)->value_name("N"), "passes over the data");
  arguments.common.add_seed_to(options);
  add_saving();
  add_resuming();
  arguments.launch.add_to(options);
  arguments.cluster.add_to(options);
  arguments.common.add_to(options);
  arguments.common.add_log_to(options);
}

void TrainCommand::add_saving() {
  const auto at_least_0 = [this](int64_t passes) {
    if (passes < 0) options.fail("--test-every: expected at least 0, got " + std::to_string(passes));
  };
  options.list.add_options()(
      "save",
      po::value(&arguments.save)->value_name("FILE")->notifier(not_empty(options, "--save", "the name of a file")),
      "where to save the model, instead of the job's key \"save\"")("no-save", po::bool_switch(&arguments.no_save),
                                                                    "save nothing")(
      "test-every", po::value(&arguments.test_every)->value_name("N")->notifier(at_least_0),
      "also test after every N passes, instead of the job's key \"test_every\"")(
      "run",
      po::value(&arguments.run)->value_name("FOLDER")->notifier(not_empty(options, "--run", "the name of a folder")),
      "write a record of the training into this folder, from which `tenon rerun` repeats it (docs/rerun.md)")(
      "run-every", po::value(&arguments.run_every)->value_name("N")->notifier([this](int64_t updates) {
        if (updates < 1) options.fail("--run-every: expected at least 1, got " + std::to_string(updates));
      }),
      "keep a digest of the parameters every N updates in the record; default: about a thousand in all");
}

void TrainCommand::add_resuming() {
  options.list.add_options()("resume", po::bool_switch(&arguments.resume),
                             "continue from the newest checkpoint in the folder of [checkpoint], if there is one")(
      "resume-from",
      po::value(&arguments.resume_from)
          ->value_name("FILE")
          ->notifier(not_empty(options, "--resume-from", "the name of a file")),
      "continue from this checkpoint")("resume-inexact", po::bool_switch(&arguments.resume_inexact),
                                       "continue also with other kernels or another device")(
      "resume-with", po::value(&changes_)->value_name("KEY[=VALUE]"),
      "continue with another value of this key (docs/checkpoints.md); may be repeated");
}

bool TrainCommand::parse(const Arguments& words) {
  if (!options.parse(words)) return false;
  if (arguments.run_every > 0 && arguments.run.empty()) options.fail("--run-every is about --run, which is missing");
  if (arguments.no_save && !arguments.save.empty()) options.fail("--save and --no-save exclude each other");
  for (const std::string& change : changes_) {
    const std::string name = change.substr(0, change.find('=')), key = job_key_of(name);
    if (key.empty()) options.fail("--resume-with: expected KEY or KEY=VALUE, got \"" + change + "\"");
    if (name != change) arguments.common.sets.push_back(key + change.substr(name.size()));
    arguments.resume_with.push_back(change_of(key));
  }
  arguments.launch.check(options, arguments.cluster.is_wanted);
  arguments.cluster.check(options);
  if (arguments.cluster.is_wanted && !arguments.run.empty())
    options.fail("--cluster and --run exclude each other: the record would end with its pod");
  if (arguments.cluster.is_wanted && !arguments.launch.nodes.empty())
    options.fail("--cluster and --nodes exclude each other: the cluster finds the machines");
  return true;
}

}  // namespace tenon::cli
