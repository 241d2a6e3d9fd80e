// SPDX-License-Identifier: Apache-2.0
#include "new_job/table/layers.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "vocabulary.h"

namespace tenon::new_job {

namespace {

constexpr int64_t kMostOneHot = 10;  // categories of a column

// Writes the logarithms of the numbers of "tails".
void write_tails(JobText& job, const std::vector<const Column*>& columns, bool indicators) {
  std::vector<std::string> units;
  for (const Column* const column : columns) units.push_back(toml_number(column->unit));
  units.insert(units.end(), indicators ? columns.size() : 0, "1.0");
  job.layer(
      std::string("A usual size of each column of \"tails\"") + (indicators ? ", and 1 for their indicators." : "."),
      "tail_units", "constant", {"tails"}, {{"value", "[" + base::joined(units) + "]"}});
  job.layer("Logarithms, with the sign of the number: what is ten times as large is not ten times as important.",
            "tail_logs", "formula", {"tails", "tail_units"}, {{"formula", toml_text("sign(x) * log1p(abs(x) / y)")}});
}

// Writes the standardisation of all numbers. Returns its output.
std::string write_units(JobText& job, const Roles& roles) {
  std::vector<std::string> inputs;
  if (!roles.with(Role::kNumber).empty()) inputs.emplace_back("numbers");
  if (!roles.with(Role::kGap).empty()) inputs.emplace_back("gaps");
  if (const auto tails = roles.with(Role::kTail); !tails.empty()) {
    write_tails(job, tails, roles.tails_have_gaps());
    inputs.emplace_back("tail_logs");
  }
  for (const Column* const date : roles.with(Role::kDate)) inputs.push_back(date->slot);
  if (inputs.empty()) return "";
  if (inputs.size() > 1) job.layer("", "columns", "concat", inputs);
  job.layer("Every column with mean 0 and deviation 1; the key fit finds both in the training data.", "units",
            "standardize", {inputs.size() > 1 ? "columns" : inputs[0]});
  job.layer("Numbers far from the mean move nearer: at most 3 deviations remain.", "near", "formula", {"units"},
            {{"formula", toml_text("x / sqrt(1 + x * x / 9)")}});
  return "near";
}

// Returns the length of the vectors of so many categories.
int64_t vector_size(int64_t names) {
  return std::clamp(static_cast<int64_t>(std::lround(1.6 * std::pow(static_cast<double>(names), 0.56))), int64_t{4},
                    int64_t{32});
}

// Writes the layer that makes numbers of a category, a list or a text. Returns its name.
std::string write_names(JobText& job, const Column& column) {
  const std::string name =
      column.slot + (column.role == Role::kCategory && column.names <= kMostOneHot ? "_one_hot" : "_vector");
  const std::string rows = std::to_string(column.names);
  if (column.role == Role::kCategory && column.names <= kMostOneHot) {
    job.layer("A number for each category, and one for all others.", name, "one_hot", {column.slot},
              {{"classes", rows}});
    return name;
  }
  const bool one = column.role == Role::kCategory;
  constexpr int64_t kTextSize = 32;
  std::vector<std::pair<std::string, std::string>> attributes = {
      {"vocabulary", rows},
      {"size", std::to_string(column.role == Role::kText ? kTextSize : vector_size(column.names))}};
  if (!one) attributes.emplace_back("reduce", "\"mean\"");
  // Vectors that start small and are left out now and then are learned by heart for fewer rows.
  attributes.emplace_back("scale", "0.1");
  attributes.emplace_back("drop_rate", "0.3");
  const std::string what = column.role == Role::kText ? "word" : "category";
  job.layer("A trained vector for each " + what + (one ? ", and one for all others." : "; of a row their mean."), name,
            "embedding", {column.slot}, attributes);
  return name;
}

// Writes the fully connected layers. Returns the last one.
std::string write_hidden(JobText& job, const std::string& input, int64_t rows) {
  const int64_t size = rows < 2000 ? 64 : 256;
  job.layer(
      "The network. A larger size or more layers may learn more from more rows; drop_rate is what keeps it from "
      "learning rows by heart.",
      "hidden1", "fc", {input}, {{"size", std::to_string(size)}, {"act", "\"relu\""}, {"drop_rate", "0.15"}});
  job.layer("", "hidden2", "fc", {"hidden1"},
            {{"size", std::to_string(size)}, {"act", "\"relu\""}, {"drop_rate", "0.15"}});
  job.layer("The score reads the columns past the network, too: what is linear needs no network.", "wide", "concat",
            {"hidden2", input});
  return "wide";
}

void write_classes(JobText& job, const Target& target, const std::string& input) {
  const size_t classes = target.count();
  job.layer("", "score", "fc", {input}, {{"size", std::to_string(classes)}});
  const auto& counts = target.counts;
  const bool unequal = counts.front().second > 4 * counts.back().second;
  const std::string rare = "The rarest class, " + files::quoted(counts.back().first) + ", has " +
                           counted(counts.back().second, "row") +
                           ". If it matters as much as the others, weigh it by class_weights (examples/tabular).";
  job.layer(unequal ? rare : "", "cost", "cross_entropy", {"score", "label"}, {{"from_logits", "true"}});
  job.layer("The probabilities of the classes, and the number of the most probable one; tenon infer prints its name.",
            "prediction", "softmax", {"score"});
  job.layer("", "class", "argmax", {"score"});
  job.layer("Guessing " + files::quoted(counts.front().first) + " for every row would be right in " +
                per_cent(counts.front().second, target.rows) + ".",
            "accuracy", "accuracy", {"score", "label"});
  if (classes == 2) {
    job.layer("", "chance", "slice", {"prediction"}, {{"start", "1"}, {"length", "1"}});
    const std::vector<std::string> order = files::in_order({counts[0].first, counts[1].first});
    job.layer(
        "How well the probability of " + files::quoted(order[1]) + " sorts the rows: 0.5 is guessing, 1 is perfect.",
        "auc", "auc", {"chance", "label"});
  } else {
    job.layer("The means over the classes, rare ones included.", "quality", "macro_precision_recall",
              {"prediction", "label"});
  }
}

void write_quantity(JobText& job, const Target& target, const std::string& input) {
  const NumberStatistics& numbers = target.column->numbers;
  const double deviation = numbers.deviation();
  job.layer("", "score", "fc", {input}, {{"size", "1"}});
  job.layer("The network learns the target with mean 0 and deviation 1; this is it in its own units.", "prediction",
            "scale_shift", {"score"}, {{"scale", toml_number(deviation)}, {"shift", toml_number(numbers.mean)}});
  job.layer("The squared error as a share of the variance: predicting the mean for every row would cost 1.", "cost",
            "square_error", {"prediction", "label"}, {{"coefficient", toml_number(1 / (deviation * deviation))}});
  job.layer("The share of the variance that is explained: 0 is predicting the mean, 1 is perfect.", "r2", "r2",
            {"prediction", "label"});
  job.layer("", "error", "mean_absolute_error", {"prediction", "label"});
}

}  // namespace

std::vector<std::string> fitted_layers(const Roles& roles) {
  for (const Role role : {Role::kNumber, Role::kGap, Role::kTail, Role::kDate})
    if (!roles.with(role).empty()) return {"units"};
  return {};
}

std::vector<std::string> outputs_of(const Target& target) {
  if (!target.classes) return {"cost", "r2", "error", "prediction"};
  return {"cost", "accuracy", target.count() == 2 ? "auc" : "quality", "prediction", "class"};
}

void write_layers(JobText& job, const Target& target, const Roles& roles, int64_t rows) {
  std::vector<std::string> parts;
  if (const std::string numbers = write_units(job, roles); !numbers.empty()) parts.push_back(numbers);
  for (const Column& column : roles.columns)
    if (column.role == Role::kCategory || column.role == Role::kList || column.role == Role::kText)
      parts.push_back(write_names(job, column));
  if (parts.size() > 1) job.layer("", "x", "concat", parts);
  const std::string hidden = write_hidden(job, parts.size() > 1 ? "x" : parts[0], rows);
  return target.classes ? write_classes(job, target, hidden) : write_quantity(job, target, hidden);
}

}  // namespace tenon::new_job
