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

constexpr int64_t kPrefetch = 2;

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
  std::string sequence;  // data layers with the same have sequences of equal length; empty: the layer's name
};

// Where samples come from.
struct JobSource : JobType {
  std::vector<std::pair<std::string, std::string>> choose;  // slot, new name; none: all as they are
};

// Minibatches of samples of similar length.
struct JobBucket {
  std::string slot;
  int64_t window = 0, rows = 0;
};

// Keys of a whole reader, also where it has parts.
inline constexpr const char* kReaderKeys[] = {"batch",  "shuffle", "drop_last", "first_n", "shard",
                                              "shards", "bucket",  "prefetch",  "slots"};

struct JobReader : JobSource {  // without a type where there are parts
  std::string name;             // train, test
  std::vector<JobSource> parts;
  std::string join;  // of the parts: chain, interleave or compose
  int64_t shard = 0, shards = 1;
  bool shuffle = false;
  int64_t shuffle_buffer = 0;  // 0: all samples
  int64_t batch = 0;
  bool drop_last = false;
  std::optional<int64_t> first_n;
  std::optional<JobBucket> bucket;
  int64_t prefetch = kPrefetch;  // minibatches that are read ahead; 0: none
  std::vector<JobSlot> slots;    // those that are mentioned; any other feeds the data layer of its own name
  bool own_slots = true;         // false: `slots` are those of [reader.train], some of which may not be here
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
