// The job file in owning form. docs/formats.md specifies the format. Nothing here touches the library: an attribute
// of a type is kept as it is written and checked by the host. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tenon/tenon.hpp>
#include <vector>

namespace tenon::cli {

// Where something was written, for messages: "mlp.toml:12" or "--set layer.hidden.size=64".
using Place = std::string;

// A type and its attributes.
struct JobType {
  Place place;
  std::string type;
  Attributes attributes;
  std::map<std::string, Place> places;  // of each attribute
};

struct JobLayer : JobType {
  std::string name;
  std::vector<std::string> inputs;
  Place inputs_place;
};

// A slot and the data layer it feeds; integers that flow into a float port become scale * x + offset.
struct JobSlot {
  Place place;
  std::string slot;
  std::string layer;
  double scale = 1;
  double offset = 0;
};

struct JobReader : JobType {
  std::string name;  // train, test
  bool shuffle = false;
  int64_t shuffle_buffer = 0;  // 0: all samples
  int64_t batch = 0;
  bool drop_last = false;
  std::optional<int64_t> first_n;
  std::vector<JobSlot> slots;  // those that are mentioned; any other feeds the data layer of its own name
};

struct Job {
  std::string path;       // of the file, as given
  std::string directory;  // what relative paths in the job start from
  int64_t passes = 1;
  int64_t seed = 0;
  int64_t threads = 0;
  std::string device;                // empty: cpu
  std::optional<std::string> save;   // made absolute or relative to the working directory
  std::vector<std::string> outputs;  // empty: every layer that no other uses
  Place outputs_place;
  std::vector<std::string> immutable_parameters;  // those that training leaves alone
  std::vector<JobLayer> layers;
  std::optional<JobReader> train, test;
  std::optional<JobType> updater;
};

constexpr int64_t kMostThreads = 1024;

// Both throw Failure: kBadConfig naming place and key, kNotFound or kIo for the file itself, kUsage for a --set that
// cannot be understood. `sets` are the arguments of --set, applied in order.
[[nodiscard]] Job load_job(const std::string& path, const std::vector<std::string>& sets);
[[nodiscard]] Job parse_job(std::string_view text, const std::string& path, const std::vector<std::string>& sets);

}  // namespace tenon::cli
