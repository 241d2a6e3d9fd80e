// SPDX-License-Identifier: Apache-2.0
#include "host/cli/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

namespace tenon::cli {

namespace {

using nlohmann::json;

json metrics_json(const std::vector<Metric>& metrics) {
  json result = json::object();
  for (const Metric& metric : metrics) result[metric.name] = number(metric.value);
  return result;
}

// Adds each of several costs to an object that has their sum.
void add_costs(json& object, const std::vector<Metric>& costs) {
  if (!costs.empty()) object["costs"] = metrics_json(costs);
}

std::string rate_text(int64_t samples, double seconds) {
  return seconds > 0 ? std::to_string(std::llround(static_cast<double>(samples) / seconds)) + " samples/s" : "";
}

// Returns what differs from the checkpoint that a training resumes from.
std::vector<std::string> changes_of(const Event& event) {
  std::vector<std::string> result;
  std::istringstream lines(event.changes());
  for (std::string line; std::getline(lines, line);) result.push_back(line);
  return result;
}

const char* reason_text(uint32_t reason) {
  return reason == TN_REASON_PASSES   ? "passes"
         : reason == TN_REASON_CANCEL ? "cancel"
         : reason == TN_REASON_EARLY  ? "early"
                                      : "handler";
}

}  // namespace

std::string shown(const double* cost, const std::vector<Metric>& costs, const std::vector<Metric>& metrics) {
  std::string result = cost == nullptr ? "" : "  cost " + shown(*cost);
  for (const std::vector<Metric>* const values : {&costs, &metrics})
    for (const Metric& value : *values) result += "  " + value.name + " " + shown(value.value);
  return result;
}

Report::Report(Console& console, int64_t passes, int64_t samples)
    : console_(console), passes_(passes), samples_(samples) {}

std::string Report::pass_label(int64_t pass) const {
  const std::string of = std::to_string(passes_);
  const std::string number = std::to_string(pass);
  return "pass " + std::string(of.size() - std::min(of.size(), number.size()), ' ') + number + "/" + of;
}

std::string Report::position() const {
  return "pass " + std::to_string(pass_ + 1) + ", batch " + std::to_string(batches_done_);
}

void Report::tell(const Event& told) {
  switch (told.kind()) {
    case TN_BEGIN_TRAINING:
      begin_training(told);
      break;
    case TN_BEGIN_PASS:
      pass_ = told.pass();
      batches_done_ = told.batch();  // 0 unless the training resumes within the pass
      pass_samples_ = told.samples();
      pass_cost_ = told.cost() * static_cast<double>(told.samples());
      event("begin_pass", told, false);
      break;
    case TN_END_ITERATION:
      end_iteration(told);
      break;
    case TN_END_PASS:
      end_pass(told);
      break;
    case TN_CHECKPOINT:
      checkpoint_ = told.checkpoint();
      event("checkpoint", told, false);
      break;
    case TN_END_TRAINING:
      event("end_training", told, true);
      break;
    default:
      break;
  }
}

void Report::begin_training(const Event& told) {
  passes_done_ = pass_ = told.pass();
  batches_done_ = told.batch();
  event("begin_training", told, false);
  if (!told.checkpoint().empty())
    console_.line("resumed from " + told.checkpoint() + ": " + std::to_string(told.pass()) + " passes, " +
                  std::to_string(told.batch()) + " batches of the next");
  for (const std::string& change : changes_of(told)) console_.line("changed " + change);
  if (told.pass() > passes_ || (told.pass() == passes_ && told.batch() > 0))
    console_.warn("the checkpoint is beyond the number of passes, " + std::to_string(passes_) +
                  ": nothing is trained, and the model is that of the checkpoint");
}

void Report::end_iteration(const Event& told) {
  batches_done_ = std::max(batches_done_, told.batch() + 1);  // in the bounded mode others compute minibatches, too
  pass_samples_ += told.samples();
  pass_cost_ += told.cost() * static_cast<double>(told.samples());
  if (!std::isfinite(told.cost()) && !warned_) {
    console_.warn("the cost is not a finite number since " + position() +
                  "; with --check-finite a training ends at the first such number and names its layer");
    warned_ = true;
  }
  event("end_iteration", told, true);
  if (!console_.bar_is_due()) return;
  const auto done = static_cast<double>(pass_samples_);
  const auto whole = static_cast<double>(samples_);
  std::string after = "cost " + shown(pass_cost_ / done) + "  " + rate_text(pass_samples_, told.seconds());
  if (samples_ > 0 && told.seconds() > 0) {
    const double left = whole * static_cast<double>(passes_ - told.pass()) - done;
    after += "  ETA " + shown_seconds(std::max(left, 0.0) * told.seconds() / done);
  }
  console_.bar(pass_label(told.pass() + 1), samples_ > 0 ? done / whole : -1, after);
}

void Report::end_pass(const Event& told) {
  batches_done_ = told.batch();
  passes_done_ = told.pass() + 1;
  cost_ = told.cost();
  event("end_pass", told, true);
  console_.line(pass_label(passes_done_) + shown(&cost_, told.costs(), told.metrics()) + "  " +
                rate_text(told.samples(), told.seconds()));
  if (told.skipped() > 0)
    console_.line(std::to_string(told.skipped()) + " steps so far were skipped: their gradients were not finite");
  check(told.metrics(), "pass " + std::to_string(passes_done_));
}

void Report::check(const std::vector<Metric>& metrics, const std::string& where) {
  for (const Metric& metric : metrics)
    if (!std::isfinite(metric.value) && !warned_ && warned_of_.insert(metric.name).second)
      console_.warn("the metric \"" + metric.name + "\" is not a finite number in " + where);
}

// Passes and batches count from 1 here, as in the lines for people.
void Report::event(const char* name, const Event& told, bool with_result) {
  if (!console_.json()) return;
  const bool in_iteration = told.kind() == TN_END_ITERATION;
  json object = {{"event", name},
                 {"pass", told.kind() == TN_BEGIN_TRAINING ? passes_done_ : told.pass() + 1},
                 {"batch", in_iteration ? told.batch() + 1 : batches_done_},
                 {"samples", told.samples()},
                 {"cost", with_result ? number(told.cost()) : json(nullptr)},
                 {"metrics", with_result ? metrics_json(told.metrics()) : json::object()},
                 {"seconds", number(told.seconds())},
                 {"learning_rate", number(told.scheduled_rate())}};
  if (with_result) add_costs(object, told.costs());
  if (told.skipped() > 0) object["skipped"] = told.skipped();
  if (told.repeated() > 0) object["repeated"] = told.repeated(), object["torn"] = told.torn();
  if (told.kind() == TN_BEGIN_TRAINING) object["passes"] = passes_;
  if (!told.changes().empty()) object["changes"] = changes_of(told);
  if (told.kind() == TN_END_TRAINING) object["reason"] = reason_text(told.reason());
  if (!told.checkpoint().empty()) object["path"] = told.checkpoint();
  console_.event(object);
}

void Report::test(const TestResult& result, int64_t passes_done, const std::string& label, bool has_cost) {
  const json cost = has_cost ? number(result.cost) : json(nullptr);
  json test = {{"cost", cost}, {"metrics", metrics_json(result.metrics)}};
  add_costs(test, result.costs);
  json object = {{"event", "test"},
                 {"pass", passes_done},
                 {"batch", 0},
                 {"samples", result.samples},
                 {"seconds", number(result.seconds)},
                 {"test", test}};
  object.update(test);
  console_.event(object);
  console_.line(label + shown(has_cost ? &result.cost : nullptr, result.costs, result.metrics) + "  (" +
                std::to_string(result.samples) + " samples, " + shown_seconds(result.seconds) + ")");
  check(result.metrics, "the test");
}

void Report::saved(const std::string& path, const std::optional<BestMeasurement>& best, const std::string& watched) {
  json object = {{"event", "saved"}, {"pass", passes_done_},      {"batch", 0},
                 {"cost", nullptr},  {"metrics", json::object()}, {"path", path}};
  std::string line = "saved " + path;
  if (best) {
    object["best"] = {{"pass", best->pass}, {"value", number(best->value)}, {"watched", watched}};
    line += ": the best, " + watched + " " + shown(best->value) + " after pass " + std::to_string(best->pass);
  }
  console_.event(object);
  console_.line(line);
}

}  // namespace tenon::cli
