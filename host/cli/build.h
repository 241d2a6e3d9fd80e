// Makes the library's objects from a job: reader, topology, updater. Failures name the place in the job.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "host/cli/job/job.h"
#include "host/cli/job/slot.h"

namespace tenon::cli {

// A reader of minibatches, as the job describes it.
struct OpenReader {
  Reader reader;
  std::vector<Slot> slots;
  int64_t samples = -1;  // in a pass; -1 if unknown
  int64_t batch = 1;     // the most in a minibatch
  std::vector<std::pair<std::string, std::string>> feeding;
};

// in_order: without shuffle, bucket and drop_last, for verbs that print a result per sample. known: the names by data
// layer that a model was trained with; the reader numbers its own names like these, or fails. schema_alone: the samples
// will not be read.
[[nodiscard]] OpenReader open_reader(const Host& host, const Job& job, const JobReader& reader, bool in_order,
                                     const std::vector<Names>& known = {}, bool schema_alone = false);
// Returns the names of the data layers that a reader feeds.
[[nodiscard]] std::vector<Names> names_of(const JobReader& reader, const OpenReader& open);

// Refuses a reader whose passes have no samples. samples: of a pass, before or after it was read; -1 if unknown.
void require_samples(const JobReader& reader, int64_t samples);

enum class Role : int { kLayer, kCost, kMetric };

// The layers of a job. Each is made on first use, together with its inputs.
class Topology {
 public:
  // The slots of `reader` are the data layers. `open` may be filled later, before the first layer is made.
  Topology(const Host& host, const Job& job, const JobReader& reader, const OpenReader& open);

  // Sets the outputs of a saved model, before the first layer is made. A layer gets the attributes that the job does
  // not give from the layer of the same name and type in that model.
  void set_saved(Layers outputs) { saved_ = std::move(outputs); }
  // Returns the layer of that model from which the layer `name`, once it is made, got attributes; null if there is
  // none.
  [[nodiscard]] const Layer* saved_like(const std::string& name) const;

  // Returns a layer of the job by name, "parts", or one of its outputs, "parts:1". A layer of exactly that name comes
  // first.
  [[nodiscard]] Layer layer(const std::string& name);
  [[nodiscard]] Layers layers(const std::vector<std::string>& names);
  // Returns the outputs that the job names, else every layer that no other layer uses.
  [[nodiscard]] std::vector<std::string> outputs() const;
  // Returns the role of an output: that of the layer's type, and kLayer for outputs other than the first. Makes no
  // layer, so that unused layers need no data.
  [[nodiscard]] Role role(const std::string& name) const;
  // Returns the costs and metrics among outputs(). There may be no cost.
  [[nodiscard]] std::vector<std::string> measured() const;
  // Returns these and the outputs computed from a cost: the library refuses to train if such an output hides its cost.
  [[nodiscard]] std::vector<std::string> trained() const;
  // Returns the names of all layers and blocks of the job.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool has_layer(const std::string& name) const { return find(name).layer != nullptr; }
  // Returns the job's layer of this name; null if there is none.
  [[nodiscard]] const JobLayer* job_layer(const std::string& name) const { return find(name).layer; }
  // Returns the inputs of all layers that these outputs depend on: layers and slots.
  [[nodiscard]] std::set<std::string> inputs_of(std::vector<std::string> outputs) const;
  // Returns a message that the job has no such layer, with a suggestion.
  [[nodiscard]] std::string unknown(const std::string& name) const;
  // Returns the layers made so far, by name, as a model file describes them (docs/model-file.md).
  [[nodiscard]] std::map<std::string, nlohmann::json> described() const;
  // Refuses another reader whose slots do not match those that the data layers were made from.
  void check_fed_by(const JobReader& reader, const OpenReader& open) const;
  // Calls `work`, which uses the layers. An error of a layer begins with its place in the job.
  template <typename Work>
  auto placed(const Work& work) const {
    try {
      return work();
    } catch (const Error& error) {
      rethrow(error);
    }
  }

 private:
  struct DataLayer {
    Layer layer;
    Slot slot;
    double scale = 1, offset = 0;
  };

  struct Output {
    const JobLayer* layer = nullptr;
    uint32_t number = 0;
    bool whole = false;  // the name is that of the layer or of a block, without a number
  };

  [[noreturn]] void rethrow(const Error& error) const;
  // Returns a null layer for an unknown name.
  [[nodiscard]] Output find(const std::string& name) const;
  [[nodiscard]] bool reads_cost(const std::string& name) const;
  Layer layer(const Output& output, const Place& user);
  Layer make(const JobLayer& layer);
  // Returns, for the error of a missing attribute, what is known of the integers that feed the layer; else "".
  [[nodiscard]] std::string limits_for(const JobLayer& layer, const Error& error) const;
  void find_saved(const JobLayer& layer);
  Layer input(const JobLayer& layer, const std::string& name);
  Layer data(const JobLayer& user, const std::string& name);

  const Host& host_;
  const Job& job_;
  const JobReader& reader_;
  const OpenReader& open_;
  Layers saved_;                       // the outputs of a saved model
  std::map<std::string, Layer> like_;  // layers of that model, by name
  std::map<std::string, const JobLayer*> by_name_;
  std::map<std::string, Role> roles_;  // by type
  std::map<std::string, Layer> made_;
  std::map<std::string, DataLayer> data_;
  std::vector<std::string> path_;  // layers that are being made, each an input of the one before
};

[[nodiscard]] Updater make_updater(const Host& host, const Job& job);
[[nodiscard]] std::vector<UpdaterGroup> make_updater_groups(const Host& host, const Job& job);

// Returns the reader called `name`; throws Failure if the job does not have it.
[[nodiscard]] const JobReader& reader_of(const Job& job, const std::string& name);

}  // namespace tenon::cli
