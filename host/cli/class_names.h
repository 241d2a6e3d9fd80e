// The names of classes for the outputs of a saved model. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace tenon::cli {

// What an output is to the classes of a label. The texts belong to the list that was given.
struct ClassNames {
  const std::vector<std::string>* texts = nullptr;  // null: the output has nothing to do with named classes
  bool numbers = false;                             // its values are numbers of classes; else it has one per class
};

// Returns what each of `outputs` is. saved: the outputs of the model file. names: those of its data layers, which must
// outlive the result. The labels are the data layers with names that costs and metrics of the model read; the outputs
// are the scores that they read beside a label, and layers computed from these. Its class count says whose they are.
[[nodiscard]] std::vector<ClassNames> class_names(const Layers& outputs, const Layers& saved,
                                                  const std::vector<Names>& names);

}  // namespace tenon::cli
