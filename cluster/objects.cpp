// SPDX-License-Identifier: Apache-2.0
#include "cluster/objects.h"

#include <sodium.h>

#include <algorithm>

#include "cluster/members.h"
#include "host/cli/cli.h"
#include "launch/pod/pod.h"
#include "process/control.h"

namespace tenon::cluster {

namespace {

constexpr int kPort = 7411;            // of the launcher
constexpr int64_t kUser = 65532;       // as the images without a system have it: nobody in particular
constexpr int64_t kKeptSeconds = 600;  // of a training that is over
constexpr int64_t kGraceSeconds = 30;  // from the request to end to the end by force
constexpr int64_t kReadableByGroup = 0440;
constexpr const char* kResult = "/tmp/tenon-result.safetensors";
constexpr const char* kIndex = "metadata.annotations['batch.kubernetes.io/job-completion-index']";

// The pods that do the same.
struct Role {
  std::string name;  // "launcher"
  int64_t count;
};

std::vector<Role> roles_of(const Plan& plan) {
  std::vector<Role> roles = {{"launcher", 1}};
  if (plan.processes > 1) roles.push_back({"trainer", plan.processes - 1});
  if (plan.servers > 0) roles.push_back({"server", plan.servers});
  return roles;
}

// Returns the name of a pod for the others: index: its number, or a variable.
std::string host_of(const Plan& plan, const std::string& role, const std::string& index) {
  return plan.name + "-" + role + (plan.has_jobsets ? "-0-" : "-") + index + "." + plan.name;
}

std::string nodes_of(const Plan& plan) {
  std::string nodes;
  for (const Role& role : roles_of(plan))
    for (int64_t i = 0; i < role.count; ++i)
      nodes += (nodes.empty() ? "" : ",") + host_of(plan, role.name, std::to_string(i));
  return nodes;
}

json labels_of(const Plan& plan, const std::string& role) {
  json labels = {
      {"app.kubernetes.io/name", "tenon"}, {kInstance, plan.name}, {"app.kubernetes.io/managed-by", "tenon"}};
  if (!role.empty()) labels[kRole] = role;
  return labels;
}

json metadata_of(const Plan& plan, const std::string& name, bool with_further = false) {
  json metadata = {{"name", name},
                   {"namespace", plan.space},
                   {"labels", labels_of(plan, "")},
                   {"annotations", {{kDrawn, plan.drawn}}}};
  if (with_further)
    for (const auto& [key, value] : plan.labels) metadata["labels"][key] = value;
  return metadata;
}

json variable(const std::string& name, const std::string& value) { return {{"name", name}, {"value", value}}; }
json field(const std::string& name, const std::string& path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}

json environment_of(const Plan& plan, const std::string& role) {
  const std::string port = std::to_string(kPort), launcher = host_of(plan, "launcher", "0") + ":" + port;
  json result = {field("TENON_POD_INDEX", kIndex),
                 variable("TENON_POD_NODE", host_of(plan, role, "$(TENON_POD_INDEX)")),
                 variable("TENON_POD_JOB", "/job"),
                 variable("TENON_POD_FOLDER", kFolder),
                 variable("TENON_POD_SECRET", "/run/tenon/secret"),
                 variable("TENON_POD_VERSION", TENON_VERSION),
                 variable("HOME", "/tmp"),
                 field("TENON_POD_IP", "status.podIP")};
  const auto add = [&](const char* name, const std::string& value) { result.push_back(variable(name, value)); };
  if (plan.is_program || role != "launcher") add("TENON_POD_LAUNCHER", launcher);
  if (plan.is_program) {
    int64_t first = 0;  // of the processes of this role
    for (const Role& other : roles_of(plan)) {
      if (other.name == role) break;
      first += other.count;
    }
    add("TENON_POD_FIRST", std::to_string(first));
    add("TENON_POD_PROCESSES", std::to_string(plan.processes + plan.servers));
    add("TENON_POD_RESULT", kResult);
    add("OMP_NUM_THREADS", std::to_string(plan.threads));
  } else if (role == "launcher") {
    add("TENON_POD_LISTEN", "$(TENON_POD_IP):" + port);
  }
  if (plan.detached) add("TENON_POD_DETACHED", "1");
  return result;
}

// Returns a word that Kubernetes takes as it is: in commands "$$" stands for "$", and "$(NAME)" for a variable.
std::string unexpanded(const std::string& word) {
  std::string result;
  for (const char letter : word) result += letter == '$' ? "$$" : std::string(1, letter);
  return result;
}

// Whether a mount takes the place of the folder of the job, which is empty otherwise.
bool mounts_folder(const Plan& plan) {
  return std::any_of(plan.mounts.begin(), plan.mounts.end(), [](const Mount& mount) { return mount.path == kFolder; });
}

json volumes_of(const Plan& plan) {
  json items = json::array();
  for (size_t i = 0; i < plan.files.size(); ++i)
    items.push_back({{"key", "file-" + std::to_string(i)}, {"path", plan.files[i].path}});
  json volumes = {{{"name", "job"}, {"configMap", {{"name", plan.name}, {"items", items}}}},
                  {{"name", "secret"}, {"secret", {{"secretName", plan.name}, {"defaultMode", kReadableByGroup}}}},
                  {{"name", "temporary"}, {"emptyDir", json::object()}}};
  for (size_t i = 0; i < plan.mounts.size(); ++i) {
    const Mount& mount = plan.mounts[i];
    json volume = {{"name", "data-" + std::to_string(i)}};
    if (mount.kind == Mount::Kind::kClaim)
      volume["persistentVolumeClaim"] = {{"claimName", mount.source}};
    else
      volume["hostPath"] = {{"path", mount.source}, {"type", "Directory"}};
    volumes.push_back(volume);
  }
  if (!mounts_folder(plan)) volumes.push_back({{"name", "work"}, {"emptyDir", json::object()}});
  return volumes;
}

json mounts_of(const Plan& plan) {
  json mounts = {{{"name", "job"}, {"mountPath", "/job"}, {"readOnly", true}},
                 {{"name", "secret"}, {"mountPath", "/run/tenon"}, {"readOnly", true}},
                 {{"name", "temporary"}, {"mountPath", "/tmp"}}};
  for (size_t i = 0; i < plan.mounts.size(); ++i) {
    json mount = {{"name", "data-" + std::to_string(i)}, {"mountPath", plan.mounts[i].path}};
    if (plan.mounts[i].kind == Mount::Kind::kHostPath) mount["readOnly"] = true;
    mounts.push_back(mount);
  }
  if (!mounts_folder(plan)) mounts.push_back({{"name", "work"}, {"mountPath", kFolder}});
  return mounts;
}

// Adds where pods may run, as far as that is said.
void add_scheduling(const Scheduling& scheduling, json& spec) {
  for (const std::string& name : scheduling.pull_secrets) spec["imagePullSecrets"].push_back({{"name", name}});
  for (const auto& [key, value] : scheduling.selector) spec["nodeSelector"][key] = value;
  for (const json& toleration : scheduling.tolerations) spec["tolerations"].push_back(toleration);
}

std::vector<std::string> command_of(const Plan& plan, const std::string& role) {
  std::vector<std::string> command = {"tenon-launch", "--pod"};
  if (plan.is_program) {
    command.emplace_back("program");
    for (const std::string& word : plan.words) command.push_back(unexpanded(word));
  } else if (role == "launcher") {
    command.emplace_back("launcher");
    for (const std::string& word : plan.words) command.push_back(unexpanded(word));
    if (plan.servers > 0) command.push_back("--servers=" + std::to_string(plan.servers));
    command.push_back("--nodes=" + nodes_of(plan));
  } else {
    command.emplace_back("agent");
  }
  return command;
}

json template_of(const Plan& plan, const std::string& role) {
  const json resources = {{"cpu", std::to_string(plan.threads)}, {"memory", std::to_string(plan.memory)}};
  json labels = labels_of(plan, role);
  for (const auto& [key, value] : plan.labels) labels[key] = value;
  json result = {{"metadata", {{"labels", labels}}},
                 {"spec",
                  {{"restartPolicy", "Never"},
                   {"subdomain", plan.name},
                   {"automountServiceAccountToken", false},
                   {"enableServiceLinks", false},
                   {"terminationGracePeriodSeconds", kGraceSeconds},
                   {"securityContext",
                    {{"runAsNonRoot", true},
                     {"runAsUser", kUser},
                     {"runAsGroup", kUser},
                     {"fsGroup", kUser},
                     {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
                   {"containers",
                    {{{"name", "tenon"},
                      {"image", plan.image},
                      {"command", command_of(plan, role)},
                      {"lifecycle", {{"preStop", {{"exec", {{"command", {"tenon-launch", "--before-stop"}}}}}}}},
                      {"env", environment_of(plan, role)},
                      {"resources", {{"requests", resources}, {"limits", resources}}},
                      {"securityContext",
                       {{"allowPrivilegeEscalation", false},
                        {"readOnlyRootFilesystem", true},
                        {"capabilities", {{"drop", {"ALL"}}}}}},
                      {"volumeMounts", mounts_of(plan)}}}},
                   {"volumes", volumes_of(plan)}}}};
  add_scheduling(plan.scheduling, result["spec"]);
  return result;
}

// A pod that is lost is replaced. An end that would come again ends all: of a mistake, of an image that has no tenon or
// another one, of a launcher whose own restarts are used up.
json job_spec_of(const Plan& plan, const Role& role) {
  json codes = json::array();
  for (int code = cli::kUsage; code <= cli::kBadConfig; ++code) codes.push_back(code);
  for (const int code : {126, 127, 128, process::kLostExit, process::kStuckExit, launch::kUnheldExit})
    codes.push_back(code);
  const json rules = {
      {{"action", "Ignore"}, {"onPodConditions", {{{"type", "DisruptionTarget"}, {"status", "True"}}}}},
      {{"action", "FailJob"}, {"onExitCodes", {{"containerName", "tenon"}, {"operator", "In"}, {"values", codes}}}}};
  return {{"parallelism", role.count},
          {"completions", role.count},
          {"completionMode", "Indexed"},
          {"backoffLimit", plan.restarts},
          {"podFailurePolicy", {{"rules", rules}}},
          {"template", template_of(plan, role.name)}};
}

Object jobset_of(const Plan& plan) {
  json jobs = json::array();
  for (const Role& role : roles_of(plan)) {
    json spec = job_spec_of(plan, role);
    spec["template"]["spec"].erase("subdomain");  // the controller sets it
    jobs.push_back({{"name", role.name}, {"replicas", 1}, {"template", {{"spec", spec}}}});
  }
  return {"jobset.x-k8s.io/v1alpha2",
          "jobsets",
          {{"apiVersion", "jobset.x-k8s.io/v1alpha2"},
           {"kind", "JobSet"},
           {"metadata", metadata_of(plan, plan.name, true)},
           {"spec",
            {{"ttlSecondsAfterFinished", kKeptSeconds},
             {"network", {{"enableDNSHostnames", true}, {"publishNotReadyAddresses", true}}},
             {"failurePolicy", {{"maxRestarts", 0}}},
             {"successPolicy", {{"operator", "All"}, {"targetReplicatedJobs", {"launcher"}}}},
             {"replicatedJobs", jobs}}}}};
}

Object job_of(const Plan& plan, const Role& role) {
  json spec = job_spec_of(plan, role);
  if (role.name == "launcher") spec["ttlSecondsAfterFinished"] = kKeptSeconds;
  json metadata = metadata_of(plan, plan.name + "-" + role.name, true);
  metadata["labels"][kRole] = role.name;
  return {"batch/v1", "jobs", {{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"metadata", metadata}, {"spec", spec}}};
}

Object service_of(const Plan& plan) {
  return {"",
          "services",
          {{"apiVersion", "v1"},
           {"kind", "Service"},
           {"metadata", metadata_of(plan, plan.name)},
           {"spec",
            {{"clusterIP", "None"},
             {"publishNotReadyAddresses", true},
             {"selector", {{kInstance, plan.name}}},
             {"ports", {{{"name", "launcher"}, {"port", kPort}}}}}}}};
}

Object config_of(const Plan& plan) {
  json data = json::object();
  for (size_t i = 0; i < plan.files.size(); ++i) data["file-" + std::to_string(i)] = plan.files[i].text;
  return {"",
          "configmaps",
          {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", metadata_of(plan, plan.name)}, {"data", data}}};
}

// The pods of a training speak with each other alone.
Object policy_of(const Plan& plan) {
  const json pods = {{"matchLabels", {{kInstance, plan.name}}}};
  return {
      "networking.k8s.io/v1",
      "networkpolicies",
      {{"apiVersion", "networking.k8s.io/v1"},
       {"kind", "NetworkPolicy"},
       {"metadata", metadata_of(plan, plan.name)},
       {"spec",
        {{"podSelector", pods}, {"policyTypes", {"Ingress"}}, {"ingress", {{{"from", {{{"podSelector", pods}}}}}}}}}}};
}

Object secret_of(const Plan& plan, const std::string& secret) {
  std::string text(sodium_base64_ENCODED_LEN(secret.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(secret.data()), secret.size(),
                    sodium_base64_VARIANT_ORIGINAL);
  text.pop_back();  // its zero
  return {"",
          "secrets",
          {{"apiVersion", "v1"},
           {"kind", "Secret"},
           {"metadata", metadata_of(plan, plan.name)},
           {"type", "Opaque"},
           {"data", {{"secret", text}}}}};
}

}  // namespace

std::vector<Object> objects_of(const Plan& plan, const std::string& secret) {
  std::vector<Object> result;
  if (plan.has_jobsets)
    result.push_back(jobset_of(plan));
  else
    for (const Role& role : roles_of(plan)) result.push_back(job_of(plan, role));
  result.push_back(config_of(plan));
  if (!plan.has_jobsets) result.push_back(service_of(plan));
  result.push_back(policy_of(plan));
  result.push_back(secret_of(plan, secret));
  return result;
}

void set_owner(json& object, const json& owner) {
  object["metadata"]["ownerReferences"] = {{{"apiVersion", text_of(owner, "apiVersion")},
                                            {"kind", text_of(owner, "kind")},
                                            {"name", text_of(owner, "metadata", "name")},
                                            {"uid", text_of(owner, "metadata", "uid")},
                                            {"controller", false},
                                            {"blockOwnerDeletion", true}}};
}

std::string selector_of(const std::string& name) {
  return "labelSelector=app.kubernetes.io%2Fmanaged-by%3Dtenon" +
         (name.empty() ? "" : "%2Capp.kubernetes.io%2Finstance%3D" + name);
}

}  // namespace tenon::cluster
