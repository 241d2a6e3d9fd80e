// A model of sequences as one step: the layers from ids to scores, for one id of each row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/topology.h"
#include "host/layers/layer_factory.h"

namespace tenon::host {

using namespace core;

// A data layer of the step that has a value from outside: of each sample, computed once.
struct StepInput {
  LayerRef data;      // in the step
  LayerOutput value;  // outside; none: `initial` in all elements
  double initial = 0;
  LayerOutput next;  // of a memory: what the step leaves in it, else none
};

// What a layer of the step keeps of each row, for later rows of the same sequence.
struct StepHistory {
  LayerRef data;      // in the step: the values of earlier rows, of all sequences
  LayerOutput value;  // in the step: of the row
};

// A model from ids to scores, cut into what is computed for each sample and what is computed for each id. Layers of
// sequences that compute each row by itself, the insides of scans, and the steps that layer types offer become layers
// of the step, with the same parameters. Everything else must not depend on the ids.
struct StepModel {
  LayerRef ids;                   // in the step: [rows]
  LayerOutput scores;             // in the step: [rows, at least `vocabulary`]
  int64_t vocabulary = 0;         // ids lie below
  StepSources sources;            // of layers with a history or a position; others do not read them
  std::vector<StepInput> inputs;  // memories, and what the step reads from outside
  std::vector<StepHistory> histories;
  std::vector<LayerOutput> outside;  // the values of `inputs`
  std::vector<LayerOutput> outputs;  // of the step: the scores, what is left in the memories, what is kept

  // Makes the layers of the step; call it with the lock of [setup] calls. scores: [rows of the ids, vocabulary],
  // outside of scans. ids: the name of a data layer of one integer in each row of sequences. Errors name the layer that
  // cannot be in a step.
  static StepModel make(LayerFactory& factory, const LayerOutput& scores, const std::string& ids);
};

}  // namespace tenon::host
