// Generates sequences of ids with a model that was trained on whole sequences. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/array_view.h"
#include "core/parameter_set.h"
#include "host/generation/decoding.h"
#include "host/generation/history.h"
#include "host/generation/row_values.h"
#include "host/generation/step_model.h"
#include "host/machine/machine.h"

namespace tenon::host {

using namespace core;

// The results of all samples, as ids of results of samples.
struct Generated {
  std::vector<int64_t> ids;
  std::vector<int64_t> samples{0};  // offsets into the results
  std::vector<int64_t> results{0};  // offsets into the ids
  std::vector<double> scores;       // of each result
};

struct GeneratorOptions {
  MachineOptions machine;  // not for training; max_samples: that are generated at once
  bool from_logits = false;
};

// What a generation is made from.
struct GenerationInput {
  std::vector<NamedArray> feeds;  // of the data layers outside of the step; prompts under the name of the ids
  UnknownFeeds unknown = UnknownFeeds::kRefused;
  std::vector<int64_t> streams;  // of draws, one for each sample; empty: the samples' numbers
  // Receives the ids of a sample as they are chosen, not with beam search; returns false to end all.
  std::function<bool(int64_t sample, int64_t result, int64_t id)> sink;
  std::function<bool()> poll;  // called before each step; returns false to end the run with TN_CANCELLED
};

// Two machines: one computes once for each sample what the steps read, the other one step for all rows. Rows of samples
// that are done leave the step. Results depend neither on the other samples nor on the number of threads.
class Generator {
 public:
  // Borrows the registry, `parallel`, of the machines, and `pool`, the same threads for work of the host's own. Call it
  // without the lock of [setup] calls.
  Generator(StepModel model, std::shared_ptr<ParameterSet> set, Registry& registry, std::shared_ptr<Device> device,
            const tn_parallel* parallel, const tn_parallel* pool, const GeneratorOptions& options);

  // As of Machine, for the next runs.
  void set_version(std::optional<uint64_t> version) { version_ = version; }
  // Checks everything before it generates.
  [[nodiscard]] Generated run(const DecodingOptions& decoding, const GenerationInput& input);

 private:
  // A part of the samples.
  struct Part {
    int64_t first = 0;
    std::vector<Search> searches;
    std::vector<ArrayView> outside;  // by StepModel::outside
  };
  // The rows of a step, of all searches one after the other.
  struct Rows {
    std::vector<int64_t> ids;
    std::vector<size_t> searches;  // of each row
    std::vector<size_t> parents;   // row of the step before
  };
  // What a data layer of the step is fed.
  struct FeedSource {
    enum class Kind { kIds, kPosition, kPast, kInput, kHistory };
    Kind kind = Kind::kIds;
    size_t number = 0;  // of StepModel::inputs or ::histories
  };

  [[nodiscard]] std::vector<std::vector<int64_t>> given_ids(const DecodingOptions& decoding, const NamedArray* prompts,
                                                            int64_t samples) const;
  [[nodiscard]] int64_t count_samples(const std::vector<ArrayView>& fed, const NamedArray* prompts) const;
  [[nodiscard]] Search search_of(int64_t sample, const DecodingOptions& decoding, const GenerationInput& input,
                                 std::vector<int64_t> given);
  void make_step(int64_t rows);
  [[nodiscard]] FeedSource source_of(const std::string& data_layer) const;
  void run_part(Part& part, const std::function<bool()>& poll);
  void check_length(const DecodingOptions& decoding) const;
  [[nodiscard]] static Rows rows_of(const std::vector<Search>& searches);
  void lay_out(const Part& part, const Rows& rows, bool first);
  [[nodiscard]] ArrayView array_of(const FeedSource& source, const Rows& rows) const;
  void forward(const Rows& rows);
  void keep();
  void choose(Part& part, const Rows& rows);
  static void add(Generated& to, const Search& search);

  StepModel model_;
  std::shared_ptr<ParameterSet> set_;
  Registry& registry_;
  std::shared_ptr<Device> device_;
  const tn_parallel *parallel_, *pool_;
  GeneratorOptions options_;
  std::unique_ptr<Machine> outside_;  // null: the step reads nothing from outside
  std::unique_ptr<Machine> step_;
  int64_t step_rows_ = 0;            // that step_ was made for
  std::vector<FeedSource> sources_;  // by number of the feed of step_
  std::vector<ArrayView> arrays_;    // the same
  std::vector<RowValues> values_;    // by StepModel::inputs
  History history_;                  // by StepModel::histories
  std::vector<int64_t> position_;    // of each row
  std::vector<size_t> laid_out_;     // the searches of the rows that values_ from outside belong to
  std::optional<uint64_t> version_;  // of the parameters
  bool stopped_ = false;             // by a sink
};

}  // namespace tenon::host
