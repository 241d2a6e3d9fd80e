// Initial values from a model file, from tensors of other programs, and from word vectors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "host/cli/job/job.h"
#include "weights/tensors.h"

namespace tenon::cli {

// How the parameters of a file fit those of a job.
struct InitialFit {
  struct Pair {
    std::string from, to;  // the names in the file and in the job
  };
  std::vector<Pair> taken;
  std::vector<std::string> skipped;  // of the job
  std::vector<std::string> extra;    // of the file
  std::vector<std::string> faults;   // a line for each parameter of the job that is missing or has another shape
};

// Returns a tensor of a file, given with its name as `rename` leaves it, as it arrives in the job: with the name, shape
// and dtype of the parameter that it becomes. `fault`, if it has one, says why it cannot become that.
using Arrival = std::function<nlohmann::json(const nlohmann::json& tensor, const std::string& renamed)>;

// Compares two lists in the form of tn_parameters_describe. Throws Failure if a name of `init` is unknown.
[[nodiscard]] InitialFit fit(const JobInit& init, const nlohmann::json& file, const nlohmann::json& job,
                             const Arrival& arrival = {});

// The files of [init], opened: a model of Tenon is loaded, of other files the header is read.
class Initial {
 public:
  // Throws Failure and Error naming the file. `init` is borrowed.
  Initial(const Host& host, const JobInit& init);

  // Returns the names of the integers of data layers that a model of Tenon has.
  [[nodiscard]] std::vector<Names> names() const;
  // Gives the values to the parameters `to` of these outputs, and returns a line about each file: "4 parameters from
  // base.safetensors; skipped: score.bias". words: what the reader of the job knows of data layers. Throws Failure
  // listing all tensors of the file that do not fit, before any change.
  std::vector<std::string> give(const Parameters& to, const Layers& outputs, const std::vector<Names>& words) const;

 private:
  [[nodiscard]] InitialFit give_file(const Parameters& to, const Layers& outputs) const;
  [[nodiscard]] InitialFit give_tensors(const Parameters& to, const Layers& outputs) const;
  [[nodiscard]] std::string give_vectors(const JobVectors& vectors, const Parameters& to, const Layers& outputs,
                                         const std::vector<Names>& words) const;

  const JobInit& init_;
  std::optional<Model> model_;
  weights::TensorFile tensors_;  // unless there is a model
};

}  // namespace tenon::cli
