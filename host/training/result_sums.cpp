// Cost and metrics, summed over minibatches. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/utf8.h"
#include "core/attribute.h"
#include "core/error.h"
#include "host/training/training_loop.h"

namespace tenon::host {

ResultSums::ResultSums(const Machine& machine, Registry& registry) {
  for (const MetricUse& use : machine.metrics())
    metrics_.push_back({use.layer, &registry.layer(use.layer->type), std::vector<double>(use.state.size(), 0.0)});
  cost_names_ = machine.cost_names();
  if (cost_names_.size() < 2) cost_names_.clear();
  cost_sums_.resize(cost_names_.size());
}

void ResultSums::clear() {
  for (Metric& metric : metrics_) std::fill(metric.state.begin(), metric.state.end(), 0.0);
  std::fill(cost_sums_.begin(), cost_sums_.end(), 0.0);
  costs_known_ = true;
  cost_sum_ = 0;
  samples_ = 0;
}

void ResultSums::add(const Machine& machine) {
  for (Metric& metric : metrics_) {
    const std::vector<double> state = machine.metric_state(metric.layer);
    for (size_t i = 0; i < state.size(); ++i) metric.state[i] += state[i];
  }
  if (!cost_sums_.empty()) {
    const std::vector<double> costs = machine.costs();
    for (size_t i = 0; i < cost_sums_.size(); ++i) cost_sums_[i] += costs[i] * static_cast<double>(machine.samples());
  }
  cost_sum_ += machine.cost() * static_cast<double>(machine.samples());
  samples_ += machine.samples();
}

void ResultSums::add(const ResultSums& other) {
  const auto same = [](const Metric& a, const Metric& b) {
    return a.layer->type == b.layer->type && a.layer->attributes == b.layer->attributes &&
           a.state.size() == b.state.size();
  };
  if (!std::equal(metrics_.begin(), metrics_.end(), other.metrics_.begin(), other.metrics_.end(), same))
    fail(TN_INVALID, "the metrics to merge have other types or attributes");
  if (cost_sums_.size() != other.cost_sums_.size())
    fail(TN_INVALID, "the metrics to merge have another number of costs");
  for (size_t i = 0; i < metrics_.size(); ++i)
    for (size_t k = 0; k < metrics_[i].state.size(); ++k) metrics_[i].state[k] += other.metrics_[i].state[k];
  for (size_t i = 0; i < cost_sums_.size(); ++i) cost_sums_[i] += other.cost_sums_[i];
  cost_sum_ += other.cost_sum_;
  samples_ += other.samples_;
}

PassSums ResultSums::sums() const {
  PassSums result{cost_sum_, samples_, {}, costs_known_ ? cost_sums_ : std::vector<double>()};
  for (const Metric& metric : metrics_) result.metrics.push_back(metric.state);
  return result;
}

void ResultSums::set(const PassSums& sums) {
  if (sums.metrics.size() != metrics_.size())
    fail(TN_BAD_DATA, "sums of ", sums.metrics.size(), " metrics; expected ", metrics_.size());
  for (size_t i = 0; i < metrics_.size(); ++i)
    if (sums.metrics[i].size() != metrics_[i].state.size())
      fail(TN_BAD_DATA, "metric \"", metrics_[i].layer->name, "\": ", sums.metrics[i].size(), " sums; expected ",
           metrics_[i].state.size());
  if (!sums.costs.empty() && sums.costs.size() != cost_sums_.size())
    fail(TN_BAD_DATA, "sums of ", sums.costs.size(), " costs; expected ", cost_sums_.size());
  for (size_t i = 0; i < metrics_.size(); ++i) metrics_[i].state = sums.metrics[i];
  costs_known_ = !sums.costs.empty() || sums.samples == 0;  // a checkpoint of an earlier version has none
  if (!sums.costs.empty()) cost_sums_ = sums.costs;
  cost_sum_ = sums.cost;
  samples_ = sums.samples;
}

TestResult ResultSums::measured() const {
  TestResult result{cost(), samples(), 0, metrics(), {}};
  result.costs = costs(result.metrics);
  return result;
}

std::vector<MetricValue> ResultSums::costs(const std::vector<MetricValue>& metrics) const {
  if (!costs_known_) return {};
  const auto is_taken = [&](const std::string& name) {
    return name == "cost" ||
           std::any_of(metrics.begin(), metrics.end(), [&](const MetricValue& metric) { return metric.name == name; });
  };
  std::vector<MetricValue> values;
  for (size_t i = 0; i < cost_names_.size(); ++i)
    values.push_back({is_taken(cost_names_[i]) ? cost_names_[i] + ".cost" : cost_names_[i], mean(cost_sums_[i])});
  return values;
}

std::vector<MetricValue> ResultSums::metrics() const {
  struct Named {
    std::string layer;
    MetricValue metric;
  };
  std::vector<Named> all;
  for (const Metric& metric : metrics_) {
    std::vector<MetricValue> values;
    const AttributesView attributes(metric.type->description.attributes, metric.layer->attributes);
    const std::string who = "metric \"" + metric.layer->name + "\"";
    struct Results {
      uint32_t size;
      void* self;
    };
    const Loan<Results> results(metric.type->tags, &values, "metric's result", who);
    const tn_metric_result result = [](void* self, const char* name, double value) {
      const LoanUse use(self);
      auto* const list = use.object<std::vector<MetricValue>>();
      if (list != nullptr) list->push_back({name == nullptr ? "" : name, value});
    };
    ErrorSink sink(who, metric.type->tags);
    const tn_finalizer finalizer = {sizeof finalizer, static_cast<uint32_t>(metric.state.size()),
                                    attributes.get(), metric.state.data(),
                                    sink.get(),       result,
                                    results->self,    metric.type->table.user};
    sink.check(call_plugin(*metric.type, who, {Tag::kAny, "finalize"}, metric.type->table.finalize, &finalizer));
    std::set<std::string> names;
    for (MetricValue& value : values) {
      if (value.name.empty() || !base::is_utf8(value.name) || !names.insert(value.name).second)
        fail(TN_PLUGIN_FAULT, ComponentName{who},
             "finalize gives a value whose name is empty, not UTF-8 or not the only one");
      all.push_back({metric.layer->name, std::move(value)});
    }
  }
  std::vector<MetricValue> result;
  for (const Named& named : all) {
    const auto same_name = [&](const Named& other) { return other.metric.name == named.metric.name; };
    const bool unique = std::count_if(all.begin(), all.end(), same_name) == 1;
    result.push_back({unique ? named.metric.name : named.layer + "." + named.metric.name, named.metric.value});
  }
  return result;
}

}  // namespace tenon::host
