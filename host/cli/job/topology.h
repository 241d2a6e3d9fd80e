// The layers of a job. Failures name the place in the job.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <tenon/tenon_cond.hpp>
#include <tenon/tenon_scan.hpp>
#include <vector>

#include "host/cli/job/reader.h"

namespace tenon::cli {

enum class Role : int { kLayer, kCost, kMetric };

// The layers of a job. Each is made on first use, together with its inputs.
class Topology {
 public:
  // The slots of `reader` are the data layers. `open` may be filled later, before the first layer is made.
  Topology(const Host& host, const Job& job, const JobReader& reader, const OpenReader& open);

  // Sets the outputs of a saved model, before the first layer is made. A layer gets the attributes that the job does
  // not give from the layer of the same name and type in that model.
  void set_saved(Layers outputs) { saved_ = std::move(outputs); }
  [[nodiscard]] const Layers& saved() const { return saved_; }
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
  [[nodiscard]] std::set<std::string> inputs_of(std::vector<std::string> left) const;
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
    bool channels_first = false;
  };

  struct Output {
    const JobLayer* layer = nullptr;
    uint32_t number = 0;
    bool whole = false;  // the name is that of the layer or of a block, without a number
  };

  // A layer that waits for its inputs to be made.
  struct Waiting {
    const JobLayer* layer;
    size_t checked = 0;  // number of inputs that are made or fed
  };

  [[noreturn]] void rethrow(const Error& error) const;
  // Returns a null layer for an unknown name.
  [[nodiscard]] Output find(const std::string& name) const;
  // The names of the outputs of a type, none if there is no such type.
  [[nodiscard]] std::vector<std::string> output_names(const std::string& type) const;
  [[nodiscard]] bool reads_cost(const std::string& name) const;
  Layer layer(const Output& output, const Place& user);
  Layer whole(const JobLayer& wanted);
  Layer make(const JobLayer& layer);
  Layer make_part(const JobLayer& layer, const Layers& inputs);
  Layer make_cond_part(const JobLayer& layer, const Layers& inputs);
  // Returns the value of a missing attribute that the reader knows: how many ids or classes a slot of the layer has, or
  // the size of an output that a cost compares with a slot. None for other errors.
  [[nodiscard]] std::optional<int64_t> value_for(const JobLayer& layer, const Error& error) const;
  [[nodiscard]] std::optional<int64_t> size_for(const JobLayer& layer) const;
  // Returns, for an error of a layer or of its cost, how a label becomes one of classes; else "".
  [[nodiscard]] std::string label_hint(const JobLayer& layer, const Error& error) const;
  // Returns the slot that feeds an input; null if none does.
  [[nodiscard]] const Slot* slot_of(const std::string& input) const;
  void find_saved(const JobLayer& layer);
  // Returns the output of a layer that an input names; a null layer if a slot feeds it, or nothing.
  [[nodiscard]] Output source_of(const std::string& input) const;
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
  std::map<const JobScan*, Step> steps_;  // of scans that have begun
  std::map<const JobCond*, Cond> conds_;  // that have begun
  std::map<std::string, DataLayer> data_;
};

}  // namespace tenon::cli
