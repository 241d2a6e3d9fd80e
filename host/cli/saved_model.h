// The saved model that `tenon test` and `tenon infer` run. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/not_copied.h"
#include "host/cli/console.h"
#include "host/cli/job/topology.h"
#include "host/cli/model.h"
#include "host/cli/options.h"

namespace tenon::cli {

struct SavedModelArguments {
  std::string file;             // the job, or the model
  std::string model;            // of a job; "": where it saves
  std::string reader = "test";  // of a job
  std::vector<std::string> data;
  bool interactive = false;  // samples are typed: a model file needs no data
  JobOptions common;

  // Adds --model, --data, --reader and those of `common`. reader: what is done with the samples.
  void add_to(Options& options, const std::string& reader_help);
  // Takes the operands: the file, and behind --data further files of it.
  void take_operands(const Options& options);
};

// A model file with the layers of a job or, without a job, its own, and the reader of the samples: that of the job, or
// the one with which the model was trained, for the files of --data.
class SavedModel : base::NotCopied {
 public:
  // Throws Failure; kUsage if the model file does not say how its data is read.
  SavedModel(const SavedModelArguments& arguments, const Options& options);

  [[nodiscard]] const Host& host() const { return host_; }
  [[nodiscard]] const JobReader& source() const { return source_; }
  // The layers below are named as in a job, "parts" or "parts:1".
  [[nodiscard]] bool has_layer(const std::string& name) const;
  [[nodiscard]] Role role(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> layers() const;
  [[nodiscard]] std::vector<std::string> outputs() const;
  // Returns the costs and metrics among the outputs.
  [[nodiscard]] std::vector<std::string> measured() const;
  // Returns the layers that the costs among the outputs read.
  [[nodiscard]] std::vector<std::string> scored() const;
  // Returns a message that there is no such layer, with a suggestion.
  [[nodiscard]] std::string unknown(const std::string& name) const;
  // The job or the model file, for messages.
  [[nodiscard]] const std::string& place() const { return place_; }

  // Opens the reader, and returns the arguments for running these outputs on it; without a reader if a model file is
  // used interactively.
  [[nodiscard]] TrainOptions run(const std::vector<std::string>& outputs, Console& console);
  // The data layers that the outputs of the last run are computed from.
  [[nodiscard]] const std::vector<std::string>& needed() const { return needed_; }
  // The reader of the last run.
  [[nodiscard]] const OpenReader& open() const { return open_; }
  // Opens the samples of that run again, of other files if `source` has them.
  [[nodiscard]] OpenReader open_again(JobReader source) const;
  // The layers of the model file that the outputs of the last run are compared with, and what it knows of its data.
  [[nodiscard]] const Layers& saved() const { return topology_ ? topology_->saved() : model_->outputs; }
  [[nodiscard]] const std::vector<Names>& names() const { return names_; }
  // Calls `work`, which uses the layers, with the places of the job in its errors.
  template <typename Work>
  auto placed(const Work& work) const {
    return with_model(path_, [&] { return topology_ ? topology_->placed(work) : work(); });
  }

 private:
  // Returns a layer of the model file by name; none if it has no such layer.
  [[nodiscard]] std::optional<Layer> find(const std::string& name) const;
  // Sets the data layers that are needed, and gives their reader the files of --data.
  void take_needed(std::vector<std::string> needed);

  std::string place_;
  const bool is_job_, interactive_;
  std::vector<std::string> data_;  // of --data
  Job job_;
  Host host_;
  JobReader source_;
  std::string path_;  // of the model file
  OpenReader open_;
  std::optional<Topology> topology_;  // of a job
  std::optional<Model> model_;        // without a job
  std::vector<std::string> needed_;   // data layers of the last run
  std::vector<Names> names_;
};

}  // namespace tenon::cli
