// SPDX-License-Identifier: Apache-2.0
#include "cluster/dist.h"

#include <sodium.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "cluster/cluster_training.h"
#include "cluster/log.h"
#include "cluster/members.h"
#include "cluster/pods.h"
#include "cluster/program.h"
#include "host/cli/options.h"

namespace tenon::cluster {

namespace {

namespace po = boost::program_options;
using cli::Failure;

// What the verbs about trainings that are there have in common.
class Command : base::NotCopied {
 public:
  Command(const std::string& verb, std::vector<std::string> operands, const std::string& about)
      : options(verb, std::move(operands), about) {
    options.list.add_options()("cluster", po::value(&context_)->value_name("CONTEXT"),
                               "the context of the kubeconfig (the current one)")(
        "namespace", po::value(&space_)->value_name("NAME"), "the namespace, instead of the context's");
  }
  [[nodiscard]] bool parse(const cli::Arguments& words) { return options.parse(words); }
  [[nodiscard]] std::unique_ptr<Api> api() const {
    return std::make_unique<Api>(
        find_access(context_, space_), [](const std::string& text) { std::cerr << "tenon: " << text << std::endl; },
        std::function<void()>());
  }
  // The name of a training that was given.
  [[nodiscard]] const std::string& name() const {
    check_name(options.operand(0), "NAME");
    return options.operand(0);
  }

  cli::Options options;

 private:
  std::string context_, space_;
};

// Returns the pods of a training, or of all without a name.
json pods_of(Api& api, const std::string& name) {
  return list_of(api.get(api.path("", "pods") + "?" + selector_of(name)), "items");
}

int run_train(const cli::Arguments& arguments) {
  cli::TrainCommand command;
  if (!command.parse(arguments)) return cli::kDone;
  (void)command.arguments.common.format(command.options);
  if (!command.arguments.cluster.is_wanted) command.options.fail("expected --cluster");
  if (sodium_init() < 0) throw Failure(cli::kInternal, "libsodium cannot be used on this machine");
  Training training = training_of(command);
  if (command.arguments.cluster.dry_run.empty()) {
    const cli::JobOptions& common = command.arguments.common;
    const Audience audience = {common.quiet, common.log_format == "json"};
    return ClusterTraining(command.arguments.cluster, audience, std::move(training)).run();
  }
  training.plan.space = command.arguments.cluster.space.empty() ? "default" : command.arguments.cluster.space;
  const bool is_yaml = command.arguments.cluster.output == "yaml";
  training.plan.has_jobsets = command.arguments.cluster.dry_run == "jobset";
  training.plan.drawn = "";  // drawn for each start, as the secret is
  if (is_yaml)
    std::cout << "# For review, not to be applied: tenon train draws the name and the secret, and makes the first "
                 "object the owner "
                 "of the others.\n";
  json items = json::array();
  for (Object& object : objects_of(training.plan, std::string(32, '\0'))) {
    if (object.kind == "secrets") object.body["data"]["secret"] = "";  // drawn for each start
    if (is_yaml)
      std::cout << write_yaml(object.body);
    else
      items.push_back(object.body);
  }
  if (!is_yaml) std::cout << json{{"apiVersion", "v1"}, {"kind", "List"}, {"items", items}}.dump(2) << "\n";
  return cli::kDone;
}

int run_status(const cli::Arguments& arguments) {
  Command command("dist status", {"[NAME]"}, "Lists the trainings in a cluster, and their pods.");
  if (!command.parse(arguments)) return cli::kDone;
  const std::string name = command.options.given().empty() ? "" : command.name();
  const std::unique_ptr<Api> api = command.api();
  std::map<std::string, std::vector<PodState>> trainings;
  for (const json& pod : pods_of(*api, name))
    trainings[text_of(member_of(pod, "metadata"), "labels", kInstance)].push_back(state_of(pod));
  if (trainings.empty() && !name.empty())
    throw Failure(cli::kNotFound,
                  "there is no training \"" + name + "\" in the namespace \"" + api->access().space + "\"");
  if (trainings.empty()) std::cout << "no trainings in the namespace \"" << api->access().space << "\"\n";
  for (const auto& [each, pods] : trainings) {
    std::cout << cli::plain(each) << "\n";
    for (const PodState& pod : pods) {
      std::cout << cli::plain("  " + pod.role + " " + pod.index + "  " + pod.name + "  " +
                              (pod.is_leaving ? "Leaving" : pod.phase));
      if (pod.exit) std::cout << ", exit code " << *pod.exit;
      if (!pod.waits.empty()) std::cout << ", " << cli::plain(pod.waits + ": " + pod.message);
      std::cout << "\n";
    }
  }
  return cli::kDone;
}

int run_logs(const cli::Arguments& arguments) {
  bool follow = false;
  Command command("dist logs", {"NAME"}, "Prints what the launcher of a training has printed.");
  command.options.list.add_options()("follow,f", po::bool_switch(&follow), "until the training ends");
  if (!command.parse(arguments)) return cli::kDone;
  const std::string& name = command.name();
  const std::unique_ptr<Api> api = command.api();
  std::string pod;
  for (const json& each : pods_of(*api, name))
    if (const PodState state = state_of(each); state.role == "launcher") pod = state.name;
  if (pod.empty())
    throw Failure(cli::kNotFound,
                  "there is no training \"" + name + "\" in the namespace \"" + api->access().space + "\"");
  Log log(*api, pod, follow, [](const std::string& line) { std::cout << cli::plain(line) << std::endl; });
  for (bool is_running = true; is_running;) {
    log.go_on();
    while (!log.is_over()) api->turn(Clock::now() + std::chrono::milliseconds(100));
    is_running = follow && state_of(api->get(api->path("", "pods", pod))).phase == "Running";
    if (is_running) api->turn(Clock::now() + std::chrono::milliseconds(500));
  }
  return cli::kDone;
}

int run_stop(const cli::Arguments& arguments) {
  Command command("dist stop", {"NAME"}, "Ends a training in a cluster, and removes its objects.");
  if (!command.parse(arguments)) return cli::kDone;
  const std::string& name = command.name();
  const std::unique_ptr<Api> api = command.api();
  size_t removed = 0;
  constexpr std::pair<const char*, const char*> kKinds[] = {
      {"jobset.x-k8s.io/v1alpha2", "jobsets"},     {"batch/v1", "jobs"}, {"", "configmaps"}, {"", "services"},
      {"networking.k8s.io/v1", "networkpolicies"}, {"", "secrets"}};
  for (const auto& [group, kind] : kKinds) {
    const Reply reply = api->call("GET", api->path(group, kind) + "?" + selector_of(name));
    if (reply.status == 404) continue;  // the API has no JobSets
    if (!reply.is_good()) api->fail(reply, "GET", api->path(group, kind));
    const json list = reply.body();
    for (const json& object : list_of(list, "items"))
      removed += api->remove(api->path(group, kind, text_of(object, "metadata", "name"))) ? 1 : 0;
  }
  if (removed == 0)
    throw Failure(cli::kNotFound,
                  "there is no training \"" + name + "\" in the namespace \"" + api->access().space + "\"");
  std::cout << cli::plain(name) << " is being removed\n";
  return cli::kDone;
}

}  // namespace

int run_dist(const cli::Arguments& arguments) {
  constexpr std::pair<const char*, int (*)(const cli::Arguments&)> kVerbs[] = {
      {"status", run_status}, {"logs", run_logs}, {"stop", run_stop}, {"program", run_program}};
  for (const auto& [name, run] : kVerbs)
    if (!arguments.empty() && arguments[0] == name) return run({arguments.begin() + 1, arguments.end()});
  const auto is_cluster = [](const std::string& word) { return word.starts_with("--cluster"); };
  if (std::any_of(arguments.begin(), arguments.end(), is_cluster)) return run_train(arguments);
  std::cout << "usage: tenon dist status | logs | stop ...\n\n"
               "Trainings in a cluster of Kubernetes, which `tenon train --cluster` starts (docs/kubernetes.md).\n";
  const bool is_help = !arguments.empty() && (arguments[0] == "--help" || arguments[0] == "-h");
  return is_help ? cli::kDone : cli::kUsage;
}

}  // namespace tenon::cluster
