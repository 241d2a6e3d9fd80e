// The objects of a training in Kubernetes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cluster/scheduling.h"
#include "cluster/yaml.h"
#include "host/cli/job/include.h"

namespace tenon::cluster {

// What pods see besides the job.
struct Mount {
  enum class Kind { kClaim, kHostPath };
  Kind kind;
  std::string source;  // the name of a PersistentVolumeClaim; a folder of the nodes
  std::string path;    // where pods see it
};

// What the pods of a training are.
struct Plan {
  std::string name;   // of the training, and of its objects
  std::string space;  // the namespace
  std::string image;
  bool is_program = false;          // pods run a program that finds its team; else a job by `tenon train`
  std::vector<std::string> words;   // of the program, or of `tenon train` in the pod of the launcher without --nodes
  std::vector<cli::JobFile> files;  // the job first; paths relative to its folder
  std::vector<Mount> mounts;
  int64_t processes = 1, servers = 0;
  int64_t threads = 1;                        // of each
  int64_t memory = 0;                         // bytes of each
  int64_t restarts = 20;                      // of a pod that was lost
  std::map<std::string, std::string> labels;  // further ones, of the workload and its pods
  Scheduling scheduling;
  bool detached = false;
  std::string drawn;         // of this start, for the annotation
  bool has_jobsets = false;  // the API serves them
};

// An object, and where it is created.
struct Object {
  std::string group;  // "", "batch/v1", ...
  std::string kind;   // in paths: "configmaps"
  json body;
};

constexpr const char* kFolder = "/training";       // of the job in pods, and of its results
constexpr const char* kDrawn = "tenon.dev/drawn";  // an annotation that is another one in each start
constexpr const char *kInstance = "app.kubernetes.io/instance", *kRole = "tenon.dev/role";

// Returns the objects in the order in which they are to be created: first the one that owns the others, and is deleted
// with them; last the Secret, without which no pod starts. secret: bytes.
[[nodiscard]] std::vector<Object> objects_of(const Plan& plan, const std::string& secret);
// Gives an object its owner, as the API has answered it.
void set_owner(json& object, const json& owner);
// Returns the selector of the objects of a training, for paths; of all trainings without a name.
[[nodiscard]] std::string selector_of(const std::string& name);

}  // namespace tenon::cluster
