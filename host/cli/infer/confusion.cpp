// SPDX-License-Identifier: Apache-2.0
#include "host/cli/infer/confusion.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tenon/tenon_topology.hpp>

#include "host/cli/cli.h"
#include "host/cli/table.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

int64_t sum_at(const std::map<int64_t, int64_t>& sums, int64_t number) {
  const auto entry = sums.find(number);
  return entry == sums.end() ? 0 : entry->second;
}

std::string share(int64_t part, int64_t sum) {
  return sum == 0 ? "-" : shown(static_cast<double>(part) / static_cast<double>(sum));
}

// Prints the lines of a table as results.
void print_lines(const Table& table, Console& console) {
  std::ostringstream text;
  table.print(text);
  std::istringstream lines(text.str());
  for (std::string line; std::getline(lines, line);) console.line(line);
}

}  // namespace

Confusion::Confusion(const LabelledScores& pair)
    : label_(inspect(pair.label).name),
      scores_(inspect(pair.scores).name),
      classes_(pair.classes),
      names_(pair.names) {}

void Confusion::add(const Array& scores, const Array& labels) {
  const Numbers numbers(scores, ""), truth(labels, "");
  const int64_t rows = labels.count();
  const int64_t width = names_.numbers ? 1 : classes_;
  if (scores.count() != rows * width)
    throw Failure(kUsage, "--confusion: layer \"" + scores_ + "\" has " + std::to_string(scores.count() / width) +
                              " rows, and label \"" + label_ + "\" " + std::to_string(rows));
  for (int64_t row = 0; row < rows; ++row) {
    const double label = truth.value(row);
    if (!(label >= 0 && label < static_cast<double>(classes_))) continue;
    const auto number = static_cast<int64_t>(label);
    const int64_t predicted = prediction(numbers, row);
    ++counts_[{number, predicted}];
    ++labels_[number];
    ++predictions_[predicted];
  }
}

int64_t Confusion::prediction(const Numbers& scores, int64_t row) const {
  if (names_.numbers) return static_cast<int64_t>(scores.value(row));
  int64_t best = 0;
  for (int64_t i = 1; i < classes_; ++i)
    if (scores.value(row * classes_ + i) > scores.value(row * classes_ + best)) best = i;
  return best;
}

std::string Confusion::name_of(int64_t number) const {
  const std::string* const name = names_.find(number);
  return name == nullptr ? std::to_string(number) : *name;
}

int64_t Confusion::count(int64_t label, int64_t prediction) const {
  const auto entry = counts_.find({label, prediction});
  return entry == counts_.end() ? 0 : entry->second;
}

std::vector<std::pair<Confusion::Pair, int64_t>> Confusion::confusions() const {
  std::vector<std::pair<Pair, int64_t>> result(counts_.begin(), counts_.end());
  std::erase_if(result, [](const auto& entry) { return entry.first.first == entry.first.second; });
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return result;
}

void Confusion::print(Console& console) const {
  json event = {{"event", "confusion"}, {"pass", 0}, {"batch", 0}, {"cost", nullptr}, {"metrics", json::object()}};
  event.update({{"label", label_}, {"scores", scores_}, {"classes", classes_}});
  if (classes_ * classes_ <= kMostInJson) {
    event["names"] = json::array();
    event["counts"] = json::array();
    for (int64_t i = 0; i < classes_; ++i) {
      event["names"].push_back(name_of(i));
      event["counts"].push_back(json::array());
      for (int64_t k = 0; k < classes_; ++k) event["counts"].back().push_back(count(i, k));
    }
  } else {
    const auto pairs = confusions();
    event["confusions"] = json::array();
    for (size_t i = 0; i < std::min<size_t>(pairs.size(), kMostInJson); ++i)
      event["confusions"].push_back({{"label", name_of(pairs[i].first.first)},
                                     {"prediction", name_of(pairs[i].first.second)},
                                     {"count", pairs[i].second}});
    event["left_out"] = pairs.size() - event["confusions"].size();
  }
  console.event(event);
  classes_ <= kMostColumns ? print_matrix(console) : print_pairs(console);
}

void Confusion::print_matrix(Console& console) const {
  console.line("confusion of \"" + label_ + "\": a row for each label, a column for each prediction by \"" + scores_ +
               "\"");
  std::vector<std::string> headings = {"label"};
  for (int64_t k = 0; k < classes_; ++k) headings.push_back(">" + plain(name_of(k)));
  headings.insert(headings.end(), {">samples", ">recall"});
  Table table(headings);
  std::vector<std::string> precision = {"precision"};
  for (int64_t i = 0; i < classes_; ++i) {
    std::vector<std::string> row = {name_of(i)};
    for (int64_t k = 0; k < classes_; ++k) row.push_back(std::to_string(count(i, k)));
    row.push_back(std::to_string(sum_at(labels_, i)));
    row.push_back(share(count(i, i), sum_at(labels_, i)));
    table.row(row);
    precision.push_back(share(count(i, i), sum_at(predictions_, i)));
  }
  table.row(precision);
  print_lines(table, console);
}

void Confusion::print_pairs(Console& console) const {
  const auto pairs = confusions();
  console.line("confusion of \"" + label_ + "\" by \"" + scores_ + "\": the most frequent of " +
               std::to_string(pairs.size()) + " kinds, of " + std::to_string(classes_) + " classes");
  Table table({"label", "prediction", ">count", ">of its label"});
  for (size_t i = 0; i < std::min<size_t>(pairs.size(), kMostPairs); ++i) {
    const auto& [pair, times] = pairs[i];
    table.row(
        {name_of(pair.first), name_of(pair.second), std::to_string(times), share(times, sum_at(labels_, pair.first))});
  }
  print_lines(table, console);
}

}  // namespace tenon::cli
