// A job file in owning structs. docs/formats.md specifies the format. Nothing here calls the library: attributes of
// types are kept as they are written, and the host checks them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tenon/tenon.hpp>
#include <vector>

#include "host/cli/job/include.h"
#include "host/toml/node.h"

namespace tenon::cli {

using toml_file::Node;
using toml_file::Place;

// A type and its attributes.
struct JobType {
  Place place;
  std::string type;
  Attributes attributes;
  std::map<std::string, Place> places;  // of each attribute
};

constexpr int64_t kPrefetch = 2;

// [[scan]]: layers that run at each step of sequences.
struct JobScan {
  Place place;
  std::string name;  // of the layer that stands for it
  bool reverse = false;
  std::string over;    // sequences whose steps it goes through
  size_t results = 0;  // how many
};

// A layer that the library itself makes, where values enter and leave a scan.
struct JobScanPart {
  enum class Kind {
    kInput,   // inputs: the sequences, those of JobScan::over
    kMemory,  // inputs: the initial layer or "", those of JobScan::over, the memory before if there is one
    kScan     // inputs: those of JobScan::over, the results, then each memory and what is left in it
  };
  Kind kind = Kind::kInput;
  std::vector<int64_t> shape;  // kMemory
  double value = 0;            // kMemory
  bool carry = false;          // kMemory: from minibatch to minibatch
};

// [[cond]]: layers that run for some samples alone.
struct JobCond {
  Place place;
  std::string name;       // of the layer that stands for it
  std::string over;       // the predicate, or the integers that choose
  uint32_t branches = 0;  // how many
  size_t results = 0;     // of each branch
};

// A layer that the library itself makes, where values enter and leave branches.
struct JobCondPart {
  enum class Kind {
    kInput,  // inputs: JobCond::over, the layer that chooses the rows, a value
    kCond    // inputs: the first two, the results of the branches, one branch after the other
  };
  Kind kind = Kind::kInput;
  uint32_t branch = 0;  // kInput
};

struct JobLayer : JobType {
  std::string name;
  std::vector<std::string> inputs;  // "": an optional input is left out
  Place inputs_place;
  std::shared_ptr<const JobScan> scan;  // that it is inside of, or stands for; null: none
  std::optional<JobScanPart> part;
  std::shared_ptr<const JobCond> cond;  // that it is inside of, or stands for; null: none
  std::optional<JobCondPart> cond_part;

  [[nodiscard]] bool is_inside() const {
    return (scan != nullptr && !(part && part->kind == JobScanPart::Kind::kScan)) ||
           (cond != nullptr && !(cond_part && cond_part->kind == JobCondPart::Kind::kCond));
  }
};

// A layer of type "block", or one of its repetitions, after its expansion: another name of its output.
struct JobBlock {
  Place place;
  std::string output;  // a layer, or a block again
};

// A slot and the data layer that it feeds. Integers become scale * x + offset at a float port.
struct JobSlot {
  Place place;
  std::string slot;
  std::string layer;
  double scale = 1;
  double offset = 0;
  std::string sequence;  // data layers with the same name here have sequences of equal length; empty: the layer's name
  bool channels_first = false;  // of an image: [channels, height, width]
};

// A source of samples: a reader type with its attributes.
struct JobSource : JobType {
  std::vector<std::pair<std::string, std::string>> choose;  // slot, new name; empty: all slots unchanged
};

// Minibatches of samples of similar length.
struct JobBucket {
  std::string slot;
  int64_t window = 0, rows = 0;
};

// Random changes of the images of a slot.
struct JobAugment {
  Place place;
  AugmentOptions options;
};

// The division of the samples into those that are held out for validation, and the others.
struct JobSplit {
  double fraction = 0;
  int64_t seed = 0;
  bool held_out = false;  // which part the reader reads
};

// Keys of a whole reader, which its parts may not have.
inline constexpr const char* kReaderKeys[] = {"batch",  "shuffle",  "drop_last", "first_n", "shard",    "shards",
                                              "bucket", "prefetch", "slots",     "augment", "hold_out", "held_out"};

struct JobReader : JobSource {  // without a type if it has parts
  std::string name;             // train, test
  std::vector<JobSource> parts;
  std::string join;  // of the parts: chain, interleave or compose
  int64_t shard = 0, shards = 1;
  bool shuffle = false;
  int64_t shuffle_buffer = 0;  // 0: all samples
  int64_t batch = 0;
  bool drop_last = false;
  std::optional<int64_t> first_n;
  std::optional<JobSplit> split;
  std::vector<JobAugment> augments;
  std::optional<JobBucket> bucket;
  int64_t prefetch = kPrefetch;  // minibatches to read ahead; 0: none
  std::vector<JobSlot> slots;    // those in the job; any other feeds the data layer of its name
  bool own_slots = true;         // false: `slots` are those of [reader.train]; this reader may lack some
  Node table;                    // as it is written
};

// The updater of some parameters.
struct JobUpdaterGroup : JobType {
  std::vector<std::string> parameters;
};

// Word vectors that are the initial values of an embedding. Paths are absolute, or relative to the working directory.
struct JobVectors {
  std::string name;   // of the parameter, or one above it
  std::string file;   // of the vectors
  std::string words;  // a file of the words by row; "": those of the reader
};

// The files whose values are initial values of parameters.
struct JobInit {
  Place place;
  std::string file;    // absolute, or relative to the working directory; "": none
  std::string layout;  // of the tensors in the file: "tenon", "pytorch", "keras"; "": not given
  // Names of the file, and those of the job for them, and names of the job that keep their own initial values. A name
  // includes everything below it. In `rename` "*" is a part of a name without dots.
  std::vector<std::pair<std::string, std::string>> rename;
  std::vector<std::string> skip;
  std::vector<JobVectors> vectors;
  std::string target = "the job";  // whose parameters get the values, for messages
};

// How texts are generated with the model of the job.
struct JobGeneration {
  Place place;
  std::string scores;  // a layer
  std::string ids;     // a data layer; "": the only one of the scores with sequences of ids
  std::string reader;  // of the samples for which texts are written; "": prompts are continued
  bool from_logits = false;
  std::string begin, end;  // names of ids; "": none
  bool spaces = true;      // whether they stand between the names of ids in texts
  std::string method = "greedy";
  int64_t max_length = 100;
  int64_t results = 1, beam_size = 1;
  double length_penalty = 0, temperature = 1;
  int64_t top_k = 0;
  double top_p = 1;
};

struct Job {
  std::string path;            // of the file, as given
  std::string directory;       // the base of relative paths in the job
  std::vector<JobFile> files;  // its own, then those that are included
  TrainOptions training;       // its options that have a key of their own, but for the tables below
  int64_t test_every = 0;      // passes; 0: only at the end
  int64_t seed = 0;
  int64_t threads = 0;
  std::string device;                           // empty: cpu
  std::vector<std::string> devices;             // not empty: in place of `device`; each computes a shard of a minibatch
  uint32_t shards = 0;                          // of a minibatch; 0: one for each device
  tn_dtype compute = TN_F32;                    // or TN_BF16, TN_TF32
  uint32_t arithmetic = TN_ARITHMETIC_DEFAULT;  // TN_ARITHMETIC_*
  std::vector<std::string> plugin_folders;      // absolute, or relative to the working directory
  std::optional<std::string> save;              // absolute, or relative to the working directory
  std::vector<std::string> outputs;             // empty: every layer that no other layer uses
  Place outputs_place;
  std::vector<std::string> immutable_parameters;  // training does not change them
  Place immutable_place;
  std::vector<std::string> tables;  // parameters whose rows the processes of a team own between them
  std::vector<std::string> fit;     // layers whose buffers a pass over the data finds before the training
  Place fit_place;
  std::vector<JobLayer> layers;
  std::map<std::string, JobBlock> blocks;  // by name
  std::optional<JobReader> train, test;
  std::optional<JobType> updater;
  std::vector<JobUpdaterGroup> updater_groups;
  std::optional<CheckpointOptions> checkpoint;  // folder: absolute, or relative to the working directory
  std::optional<EarlyStopOptions> early_stop;
  std::optional<AverageOptions> average;    // without parameters
  std::optional<std::string> average_save;  // absolute, or relative to the working directory
  std::optional<BestOptions> save_best;     // without sets
  std::optional<JobInit> init;
  std::optional<JobGeneration> generation;
};

// "[[updater_group]] 2", for messages; number: from 0.
[[nodiscard]] inline std::string group_name(size_t number) { return "[[updater_group]] " + std::to_string(number + 1); }

constexpr int64_t kMostThreads = 1024;

// The attributes of reader types that say where their data is; the first that a type has is that of --data.
inline constexpr const char* kDataPlaces[] = {"files", "file", "folders", "folder", "paths", "path"};

// Both throw Failure: kBadConfig naming place and key, kNotFound or kIo for the file itself, kUsage for a malformed
// --set. `sets` are the arguments of --set, applied in order.
[[nodiscard]] Job load_job(const std::string& path, const std::vector<std::string>& sets);
// included: the files that the job may include, in place of those on disk; null: these.
[[nodiscard]] Job parse_job(std::string_view text, const std::string& path, const std::vector<std::string>& sets,
                            const std::vector<JobFile>* included = nullptr);

// Returns a job with [reader.test] alone, from the text of the model file at `path` that says how its data is read
// (reader_metadata.h). Paths in it are relative to the folder of the file. Throws as parse_job.
[[nodiscard]] Job parse_job_of_model(std::string_view reader, const std::string& path,
                                     const std::vector<std::string>& sets);

// Gives the options of a machine or loop the keys that say where and in which type a model is computed.
template <typename Options>
void set_devices(const Job& job, Options* to) {
  to->device = job.device;
  to->devices = job.devices;
  to->shards = job.shards;
  to->compute = job.compute;
}

}  // namespace tenon::cli
