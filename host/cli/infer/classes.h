// What the outputs of a model have to do with the classes of its labels. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace tenon::cli {

// What an output is to the classes of a label. The texts belong to the list that was given.
struct ClassNames {
  const std::vector<std::string>* texts = nullptr;  // null: the output has nothing to do with named classes
  bool numbers = false;                             // its values are numbers of classes; else it has one per class

  // Returns the name of a class; null if it has none.
  [[nodiscard]] const std::string* find(int64_t number) const {
    const bool has_name = texts != nullptr && number >= 0 && number < static_cast<int64_t>(texts->size());
    return has_name ? &(*texts)[static_cast<size_t>(number)] : nullptr;
  }
};

// Returns what each of `outputs` is. saved: the outputs of the model file. names: those of its data layers, which must
// outlive the result. The labels are the data layers with names that costs and metrics of the model read; the outputs
// are the scores that they read beside a label, and layers computed from these. Its class count says whose they are.
[[nodiscard]] std::vector<ClassNames> class_names(const Layers& outputs, const Layers& saved,
                                                  const std::vector<Names>& names);

// Scores with one number for each class, and the label with whose classes a cost or metric compares them.
struct LabelledScores {
  Layer scores, label;
  int64_t classes = 0;
  ClassNames names;  // of the label; numbers: `scores` are numbers of classes
};

// Returns one pair for each label that the costs and metrics among `outputs` read. The scores of a cost with parameters
// of its own, such as crf, do not say alone which class is predicted: in their place it has the numbers of classes that
// another layer of the model, such as crf_decoding, finds for them. Without one it has no pair.
// saved: the outputs of the model file.
[[nodiscard]] std::vector<LabelledScores> labelled_scores(const Layers& outputs, const Layers& saved,
                                                          const std::vector<Names>& names);

}  // namespace tenon::cli
