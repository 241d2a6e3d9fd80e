// From a job to the library's objects: reader, topology, updater. Failures name the place in the job.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "host/cli/job.h"

namespace tenon::cli {

struct Slot {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;  // of one sample; of one row where storage is TN_RAGGED
  int64_t index_limit = -1;
  int32_t storage = TN_DENSE;
  uint32_t levels = 0;
  bool named = false;  // its integers stand for names, which the reader numbers like those it was opened with
};

// Of a reader's description, or of a data layer in a model file, which leaves out what a dense one has not.
[[nodiscard]] Slot slot_of(const nlohmann::json& described);
// "float32 [3]", "sequences of int64 []", "sparse float32 [1000]"
[[nodiscard]] std::string to_string(const Slot& slot);

// A reader of minibatches, as the job describes it.
struct OpenReader {
  Reader reader;
  std::vector<Slot> slots;
  int64_t samples = -1;  // in a pass; -1: not known
  int64_t batch = 1;     // the most in a minibatch
  std::vector<std::pair<std::string, std::string>> feeding;
};

// in_order: without shuffle, without buckets and without dropping anything, for verbs that answer per sample. known:
// names by data layer, as a model was trained with them: the reader numbers its own like these, or fails.
[[nodiscard]] OpenReader open_reader(const Host& host, const Job& job, const JobReader& reader, bool in_order,
                                     const std::vector<Names>& known = {});
// What the integers of the data layers stand for that a reader feeds.
[[nodiscard]] std::vector<Names> names_of(const JobReader& reader, const OpenReader& open);

// Refuses a reader that gave, or will give, this many samples in a pass: none.
void require_samples(const JobReader& reader, int64_t samples);

enum class Role : int { kLayer, kCost, kMetric };

// The layers of a job, made when they are asked for, together with those they need.
class Topology {
 public:
  // `reader`: whose slots are the data layers; it may be opened later, before the first layer is made.
  Topology(const Host& host, const Job& job, const JobReader& reader, const OpenReader& open);

  // A layer of the job by name.
  [[nodiscard]] Layer layer(const std::string& name);
  [[nodiscard]] Layers layers(const std::vector<std::string>& names);
  // What the job names as outputs, or every layer that no other uses.
  [[nodiscard]] std::vector<std::string> outputs() const;
  // What the type of a layer says; nothing is made, so that what nobody asks for needs no data.
  [[nodiscard]] Role role(const std::string& name) const;
  // Those among outputs() that are costs or metrics. A topology without any cost is no failure here.
  [[nodiscard]] std::vector<std::string> measured() const;
  // These, and what is computed from a cost: the library refuses to train where that takes the cost's place.
  [[nodiscard]] std::vector<std::string> trained() const;
  // Of all layers of the job.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool has_layer(const std::string& name) const { return find(name) != nullptr; }
  // That the job has no such layer, and which one may be meant.
  [[nodiscard]] std::string unknown(const std::string& name) const;
  // The layers made so far, as a model file describes them (docs/model-file.md), by name.
  [[nodiscard]] std::map<std::string, nlohmann::json> described() const;
  // Refuses another reader whose slots are not like those that the data layers were made from.
  void check_fed_by(const JobReader& reader, const OpenReader& open) const;

 private:
  struct DataLayer {
    Layer layer;
    Slot slot;
    double scale = 1, offset = 0;
  };

  [[nodiscard]] const JobLayer* find(const std::string& name) const;
  [[nodiscard]] bool reads_cost(const std::string& name) const;
  Layer make(const JobLayer& layer);
  Layer input(const JobLayer& layer, const std::string& name);
  Layer data(const JobLayer& user, const std::string& name);

  const Host& host_;
  const Job& job_;
  const JobReader& reader_;
  const OpenReader& open_;
  std::map<std::string, Role> roles_;  // of types
  std::map<std::string, Layer> made_;
  std::map<std::string, DataLayer> data_;
  std::vector<std::string> path_;  // layers that are being made, each an input of the one before
};

[[nodiscard]] Updater make_updater(const Host& host, const Job& job);

// The reader called `name`; Failure where the job has none.
[[nodiscard]] const JobReader& reader_of(const Job& job, const std::string& name);

}  // namespace tenon::cli
