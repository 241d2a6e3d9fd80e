// SPDX-License-Identifier: Apache-2.0
#include "host/training/validation.h"

#include <cmath>

#include "base/nearest.h"
#include "core/attribute.h"
#include "core/error.h"

namespace tenon::host {

std::optional<double> value_of(const std::string& name, const TestResult& measured) {
  if (name == "cost") return measured.cost;
  for (const std::vector<MetricValue>* const values : {&measured.costs, &measured.metrics})
    for (const MetricValue& value : *values)
      if (value.name == name) return value.value;
  return std::nullopt;
}

double compared(const std::string& name, const TestResult& measured) {
  return measured.samples == 0 ? NAN : value_of(name, measured).value_or(NAN);
}

void require_value(const std::string& name, const TestResult& measured, const char* where, const char* option) {
  if (value_of(name, measured)) return;
  std::vector<std::string> known = {"cost"};
  for (const std::vector<MetricValue>* const values : {&measured.costs, &measured.metrics})
    for (const MetricValue& value : *values) known.push_back(value.name);
  fail(TN_INVALID, SubjectName{option}, where, ": ", option, " is \"", name, "\", which the training does not have",
       base::suggestion(name, known));
}

std::string watched(const std::string& name, bool highest, bool of_test) {
  return text(of_test ? "test " : "", name, highest ? " max" : " min");
}

bool Best::take(double value) {
  if (!std::isfinite(value)) return false;
  const bool better = !value_ || (highest_ ? value > *value_ + min_delta_ : value < *value_ - min_delta_);
  if (better) value_ = value;
  return better;
}

EarlyStop::EarlyStop(const EarlyStopOptions& options, bool of_test)
    : options_(options),
      watched_(watched(options.metric, options.best_is_highest, of_test)),
      best_(options.best_is_highest, options.min_delta) {
  if (options.patience < 1)
    fail(TN_INVALID, SubjectName{"patience"}, "early_stop: patience is ", options.patience, "; expected at least 1");
  if (!std::isfinite(options.min_delta) || options.min_delta < 0)
    fail(TN_INVALID, SubjectName{"min_delta"}, "early_stop: min_delta is ", options.min_delta,
         "; expected a number of at least 0");
}

void EarlyStop::take(const TestResult& measured) {
  const bool better = best_.take(compared(options_.metric, measured));
  misses_ = better ? 0 : misses_ + 1;
}

void EarlyStop::set(const EarlyStopState& state) {
  if (state.watched != watched_) return;
  best_.set(state.best);
  misses_ = state.misses;
}

Tests::Tests(const LoopInputs& inputs, TestSchedule schedule) : inputs_(inputs), schedule_(schedule) {
  const auto check = [](const char* option, int64_t value) {
    if (value < 0) fail(TN_INVALID, SubjectName{option}, "test: ", option, " is ", value, "; expected at least 0");
  };
  check("every_passes", schedule_.every_passes);
  check("every_batches", schedule_.every_batches);
  if (schedule_.every_passes == 0 && schedule_.every_batches == 0) schedule_.every_passes = 1;
  try {  // before the training begins, not at the first test
    Feeder(inputs_.machine, inputs_.reader.slots(), inputs_.slot_map).check_names(*inputs_.machine.set());
  } catch (const Error& error) {
    throw error.with_context("test");
  }
}

void Tests::count_batch() {
  ++state_.batches;
  if (schedule_.every_batches > 0 && state_.batches >= schedule_.every_batches) state_.due = true;
}

void Tests::count_pass(int64_t passes_done) {
  if (schedule_.every_passes > 0 && passes_done % schedule_.every_passes == 0) state_.due = true;
}

std::optional<TestResult> Tests::run() {
  try {
    TestResult result = test(inputs_);
    if (result.samples == 0) fail(TN_BAD_DATA, "the reader has no samples");
    state_ = {};
    return result;
  } catch (const Error& error) {
    if (error.code() == TN_CANCELLED && inputs_.is_cancelled()) return std::nullopt;
    throw error.with_context("test");
  }
}

}  // namespace tenon::host
