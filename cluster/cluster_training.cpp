// SPDX-License-Identifier: Apache-2.0
#include "cluster/cluster_training.h"

#include <sodium.h>

#include <csignal>
#include <iostream>
#include <sstream>

#include "cluster/image.h"
#include "cluster/members.h"
#include "host/cli/cli.h"
#include "launch/pod/image.h"
#include "launch/texts.h"

namespace tenon::cluster {

namespace {

using cli::Failure;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kSecretBytes = 32;
constexpr milliseconds kLook(100);
constexpr milliseconds kOften(300), kSeldom(2000);  // between two looks at pods: before all run, and after
constexpr seconds kPatience(20);                    // for pods to come, before events are told
constexpr seconds kHopeless(60);                    // for pods that cannot be created
constexpr seconds kLastWords(5);                    // for the end of a log
constexpr seconds kUntilRemoved(60);
constexpr seconds kExecPause(2);
constexpr int kLastLines = 30;
constexpr int kMostRefusals = 10;  // of exec, before the training ends

Access access_of(const cli::ClusterArguments& cluster, const std::string& credentials) {
  Access access = find_access(cluster.context, cluster.space);
  if (!credentials.empty()) set_credentials(access, credentials);
  return access;
}

}  // namespace

ClusterTraining::ClusterTraining(const cli::ClusterArguments& cluster, Audience audience, Training training)
    : audience_(audience),
      training_(std::move(training)),
      signals_{SIGINT, SIGTERM, SIGHUP},
      api_(
          access_of(cluster, training_.credentials), [this](const std::string& text) { tell("tenon: " + text); },
          [this] { poll(); }) {
  training_.plan.space = api_.access().space;
}

void ClusterTraining::poll() {
  if (const int signal = signals_.next(); signal != 0) signal_ = signal;
  if (signal_ != 0 && may_end_) throw Interrupted();
}

void ClusterTraining::tell(const std::string& text) const {
  if (!audience_.quiet || text.starts_with("tenon:")) std::cerr << cli::plain(text) << std::endl;
}

// What pods print: events in JSON are for programs, all other lines for people.
void ClusterTraining::print(const std::string& line) const {
  const bool is_event = audience_.events && line.starts_with('{');
  if (is_event)
    std::cout << line << std::endl;
  else
    std::cerr << cli::plain(line) << std::endl;
}

int ClusterTraining::run() try {
  choose_kind();
  create();
  if (training_.plan.detached) {
    const std::string& name = training_.plan.name;
    tell(name + " trains in the namespace \"" + training_.plan.space + "\": tenon dist status " + name +
         ", tenon dist logs " + name + ", tenon dist stop " + name);
    return cli::kDone;
  }
  const int exit = follow();
  remove();
  return exit;
} catch (const Interrupted&) {
  tell("tenon: ends: removes what was created in the cluster");
  remove();
  return cli::kSignalled + signal_;
} catch (...) {
  remove();
  throw;
}

void ClusterTraining::choose_kind() {
  const Reply groups = api_.call("GET", "/apis");
  if (!groups.is_good()) api_.fail(groups, "GET", "/apis");
  const json body = groups.body();
  for (const json& group : list_of(body, "groups"))
    if (text_of(group, "name") == "jobset.x-k8s.io")
      for (const json& version : list_of(group, "versions"))
        if (text_of(version, "version") == "v1alpha2") training_.plan.has_jobsets = true;
}

void ClusterTraining::create() {
  std::string secret(kSecretBytes, '\0');
  randombytes_buf(secret.data(), secret.size());
  json owner;
  for (Object& object : objects_of(training_.plan, secret)) {
    if (!owner.is_null()) set_owner(object.body, owner);
    const std::string path = api_.path(object.group, object.kind);
    created_.push_back(path + "/" + text_of(object.body, "metadata", "name"));  // although the answer may be lost
    may_end_ = false;  // what is under way would be created behind its removal
    json there = api_.create(path, object.body);
    may_end_ = true;
    poll();
    if (owner.is_null()) owner = std::move(there);
  }
  const Plan& plan = training_.plan;
  tell(plan.name + ": " + launch::counted(plan.processes + plan.servers, "pod", "pods") + " in the namespace \"" +
       plan.space + "\" of " + api_.access().context + ", image " + plan.image);
}

int ClusterTraining::follow() {
  began_ = Clock::now();
  std::optional<int> exit;
  while (!exit) {
    const bool all_run = launcher_ && launcher_->is_ready;
    if (Clock::now() - looked_ >= (all_run ? kSeldom : kOften)) {
      look_at_pods();
      exit = ending();
    }
    if (log_ != nullptr) log_->go_on();
    fetch();
    if (results_ && results_->are_whole()) exit = results_->exit_code();
    if (!exit) api_.turn(Clock::now() + (results_ && results_->exit_code() ? milliseconds(5) : kLook));
  }
  finish_log();
  if (results_)
    for (const std::string& path : results_->written()) tell("fetched " + path);
  return *exit;
}

void ClusterTraining::look_at_pods() {
  looked_ = Clock::now();
  const json list = api_.get(api_.path("", "pods") + "?" + selector_of(training_.plan.name));
  size_t pods = 0;
  launcher_.reset();
  for (const json& pod : list_of(list, "items")) {
    const PodState state = state_of(pod);
    tell_changes(state);
    ++pods;
    if (state.role == "launcher" && !state.is_leaving &&
        (!launcher_ || state.phase == "Running" || state.phase == "Pending"))
      launcher_ = state;
    look_at_wait(state);
  }
  if (launcher_) look_at_launcher(*launcher_);
  const auto expected = static_cast<size_t>(training_.plan.processes + training_.plan.servers);
  const bool all_come = pods >= expected;
  if (!all_come && Clock::now() - began_ > kPatience) look_at_events();
}

void ClusterTraining::tell_changes(const PodState& pod) {
  std::string text = "pod " + pod.name + ": ";
  if (pod.exit && *pod.exit != 0)
    text += "its process has ended with code " + std::to_string(*pod.exit) +
            (pod.message.empty() ? "" : " (" + pod.message + ")");
  else if (pod.is_leaving)
    text += "is being removed";
  else if (pod.waits == "Unschedulable" && Clock::now() - began_ > kPatience)
    text += "no machine has room for it: " + pod.message;
  else
    return;
  tell_of(pod, text);
}

// text: is told if it was not the last that was told of the pod.
void ClusterTraining::tell_of(const PodState& pod, const std::string& text) {
  if (std::exchange(told_[pod.name], text) == text) return;
  tell(text);
  if (pod.exit && pod.role != "launcher") tell_last_words(pod);
}

void ClusterTraining::look_at_wait(const PodState& pod) {
  const Endurance::Verdict verdict = endurance_.look(pod, Clock::now());
  if (verdict == Endurance::Verdict::kGood) return;
  const std::string text = "pod " + pod.name + " cannot begin (" + pod.waits + "): " + pod.message;
  if (verdict == Endurance::Verdict::kEnds) throw Failure(cli::kBadConfig, text);
  tell_of(pod, text + "; it is in the place of one that has run, so the training waits for it for 10 minutes");
}

// What a pod has said before it failed; the launcher's comes as it is said.
void ClusterTraining::tell_last_words(const PodState& pod) {
  if (!exit_) exit_ = pod.exit;
  const Reply reply =
      api_.text(api_.path("", "pods", pod.name) + "/log?container=tenon&tailLines=" + std::to_string(kLastLines));
  if (!reply.is_good()) return;  // it has gone
  std::istringstream lines(reply.text);
  for (std::string line; std::getline(lines, line);) tell("[" + pod.role + " " + pod.index + "] " + line);
}

void ClusterTraining::look_at_launcher(const PodState& pod) {
  if (log_ == nullptr || log_->pod() != pod.name) {
    if (pod.phase == "Pending") return;
    if (log_ != nullptr) finish_log();
    exec_.reset();
    log_ = std::make_unique<Log>(api_, pod.name, true, [this](const std::string& line) { print(line); });
  }
  if (pod.exit) exit_ = pod.exit;
}

void ClusterTraining::look_at_events() {
  const json list = api_.get(api_.path("", "events"));
  const std::string& name = training_.plan.name;
  bool is_refused = false;
  std::string why;
  for (const json& event : list_of(list, "items")) {
    const std::string name_of_object = text_of(event, "involvedObject", "name"), text = text_of(event, "message"),
                      reason = text_of(event, "reason");
    if (!name_of_object.starts_with(name) || text_of(event, "type") != "Warning") continue;
    if (events_.insert(reason + text).second) tell("event of " + name_of_object + ": " + reason + ": " + text);
    if (reason == "FailedCreate") {
      is_refused = true;
      why = text;
    }
  }
  if (is_refused && Clock::now() - began_ > kHopeless)
    throw Failure(cli::kRefused, "the pods of " + name + " cannot be created: " + why);
}

// The launcher's Job has given up, or a pod has ended before its results were fetched.
std::optional<int> ClusterTraining::ending() {
  const Plan& plan = training_.plan;
  const std::string path = plan.has_jobsets ? api_.path("jobset.x-k8s.io/v1alpha2", "jobsets", plan.name)
                                            : api_.path("batch/v1", "jobs", plan.name + "-launcher");
  if (launcher_ && !launcher_->exit) return std::nullopt;
  const Reply reply = api_.call("GET", path);
  if (reply.status == 404) throw Failure(cli::kIo, plan.name + " was removed from the cluster");
  if (!reply.is_good()) api_.fail(reply, "GET", path);
  const json body = reply.body();
  for (const json& condition : list_of(member_of(body, "status"), "conditions")) {
    const std::string type = text_of(condition, "type");
    if (text_of(condition, "status") != "True") continue;
    if (type == "Complete" || type == "Completed")
      throw Failure(cli::kIo, plan.name + " has ended, and nobody has fetched its results in time");
    if (type != "Failed") continue;
    tell("tenon: " + plan.name + " has failed: " + text_of(condition, "reason") + ": " + text_of(condition, "message"));
    if (!exit_) look_at_pods();  // the end of a pod may be younger than the last look
    return exit_.value_or(cli::kIo);
  }
  return std::nullopt;
}

// Says once in which plugins the image differs: the training is as it should be, but its bits may be others than here.
void ClusterTraining::compare_image() {
  if (is_compared_ || !results_ || results_->image().is_null()) return;
  is_compared_ = true;
  const std::string text = differences(results_->image(), launch::image_here());
  if (!text.empty()) tell("the image has other builds of plugins than this machine: " + text);
}

// Results that cannot be written here are fetched again, until they can or the user gives up: they are nowhere else.
void ClusterTraining::fetch() {
  std::string why;
  if (exec_ != nullptr) try {
      exec_->go_on();
    } catch (const Failure& failure) {
      why = std::string(failure.what()) + "; the training waits for that";
    }
  compare_image();
  if (exec_ != nullptr && why.empty() && results_->are_whole()) return exec_->send("taken\n");
  if (exec_ != nullptr && (exec_->is_over() || !why.empty())) {
    const Reply& refusal = exec_->refusal();
    if (refusal.status == 401) api_.renew();
    refusals_ = refusal.status >= 400 && refusal.status < 500 ? refusals_ + 1 : 0;
    if (refusal.status == 403 || refusals_ > kMostRefusals) api_.fail(refusal, "POST", "/pods/exec");
    if (why.empty()) why = exec_->errors().empty() ? exec_->why() : exec_->errors();
    if (std::exchange(lost_why_, why) != why) tell("tenon: the results cannot be fetched so far: " + why);
    exec_.reset();
    exec_again_ = Clock::now() + kExecPause;
  }
  if (exec_ == nullptr && launcher_ && launcher_->is_ready && Clock::now() >= exec_again_) {
    results_.emplace([this](const std::string& what) -> std::optional<std::string> {
      if (what == "average") return training_.average_save;
      if (what == "partial" && training_.save) return *training_.save + ".partial";
      return training_.save;
    });
    exec_ = std::make_unique<Exec>(api_, launcher_->name, std::vector<std::string>{"tenon-launch", "--give"},
                                   [this](std::string_view bytes) { results_->take(bytes); });
  }
}

// Prints what is left of a log, at most for a while.
void ClusterTraining::finish_log() {
  const Clock::time_point until = Clock::now() + kLastWords;
  while (log_ != nullptr && Clock::now() < until && !log_->is_over()) {
    if (exec_ != nullptr) exec_->go_on();
    api_.turn(Clock::now() + kLook);
    log_->go_on();
  }
  log_.reset();
}

void ClusterTraining::remove() noexcept {
  may_end_ = false;
  try {
    remove_all();
  } catch (const std::exception& error) {
    std::cerr << "tenon: " << cli::plain(error.what()) << "; `tenon dist stop " << training_.plan.name
              << "` removes what is left" << std::endl;
  }
}

// Returns when all is gone: the others go with the first.
void ClusterTraining::remove_all() {
  exec_.reset();
  log_.reset();
  for (const std::string& path : created_) (void)api_.remove(path);
  const Clock::time_point until = Clock::now() + kUntilRemoved;
  for (const std::string& path : created_)
    while (api_.call("GET", path).status != 404) {
      if (Clock::now() > until) throw Failure(cli::kIo, path + " is still there");
      api_.turn(Clock::now() + kLook);
    }
}

}  // namespace tenon::cluster
