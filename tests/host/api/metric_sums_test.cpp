// Metrics over many minibatches of a hand-written loop, in the public API. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/tenon.hpp>
#include <tenon/tenon_updater.hpp>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::ElementsAre;

constexpr int64_t kSamples = 4;

class MetricSums : public testing::Test {
 protected:
  MetricSums() : host_(options()) {
    DataOptions score, label;
    score.name = "score", score.shape = {2};
    label.name = "label", label.dtype = TN_I32, label.index_limit = 2;
    const Layer scores = host_.data(score), labels = host_.data(label);
    const Layer line = host_.layer("fc", {scores}, {{"size", 2}}, "line");
    outputs_ = {host_.layer("cross_entropy", {line, labels}, {{"from_logits", true}}, "cost"),
                host_.layer("accuracy", {line, labels}, {}, "accuracy"),
                host_.layer("auc", {host_.layer("fc", {scores}, {{"size", 1}}, "chance"), labels},
                            {{"from_logits", true}}, "auc")};
    parameters_ = host_.parameters(outputs_, 3);
    machine_ = machine();
  }
  static HostOptions options() {
    HostOptions options;
    options.threads = 1;
    options.plugin_paths = {plugin_folder()};
    return options;
  }
  [[nodiscard]] Machine machine() const {
    MachineOptions options;
    options.max_samples = kSamples, options.training = true;
    return host_.machine(parameters_, outputs_, options);
  }
  struct Data {
    std::vector<float> scores;
    std::vector<int32_t> labels;
  };
  static Data data() { return {{1, 0, 0, 1, 2, 1, 0.5F, 3, -1, 4, 0, 0, 2, 5}, {0, 1, 1, 0, 1, 0, 0}}; }
  // Forward of `samples` samples of the data from `first` on.
  static void forward(const Machine& machine, size_t first, size_t samples) {
    const Data all = data();
    const auto count = static_cast<int64_t>(samples);
    machine.forward({{"score", {TN_F32, {count, 2}, all.scores.data() + 2 * first}},
                     {"label", {TN_I32, {count}, all.labels.data() + first}}});
  }
  [[nodiscard]] TestResult tested() const {
    struct Next {
      size_t at = 0;
      bool operator()(Sample& sample) {
        const Data all = data();
        if (at == all.labels.size()) {
          at = 0;
          return false;
        }
        sample.set("score", {all.scores[2 * at], all.scores[2 * at + 1]});
        sample.set("label", {all.labels[at]});
        ++at;
        return true;
      }
    };
    Schema schema = {{"score", TN_F32, {2}}, {"label", TN_I32, {}}};
    TrainOptions options;
    options.outputs = outputs_;
    options.parameters = parameters_;
    options.reader = host_.reader(schema, Next()).batch(kSamples);
    return tenon::test(options);
  }

  Host host_;
  Layers outputs_;
  Parameters parameters_;
  Machine machine_;
};

std::vector<std::string> names(const std::vector<Metric>& metrics) {
  std::vector<std::string> result;
  for (const Metric& metric : metrics) result.push_back(metric.name);
  return result;
}

TEST_F(MetricSums, AreThoseOfATest) {
  const Metrics metrics(machine_);
  EXPECT_EQ(metrics.read().samples, 0);
  EXPECT_EQ(metrics.read().cost, 0);
  forward(machine_, 0, 4);
  metrics.append(machine_);
  machine_.backward();
  forward(machine_, 4, 3);
  machine_.backward();
  metrics.append(machine_);
  const Metrics::Values values = metrics.read();
  const TestResult expected = tested();
  EXPECT_EQ(values.samples, 7);
  EXPECT_EQ(values.cost, expected.cost);
  ASSERT_EQ(names(values.metrics), names(expected.metrics));
  EXPECT_THAT(names(values.metrics), ElementsAre("accuracy", "auc", "auc_error"));
  for (size_t i = 0; i < values.metrics.size(); ++i) EXPECT_EQ(values.metrics[i].value, expected.metrics[i].value);
  EXPECT_GT(values.cost, 0);
}

// What tn_machine_costs, tn_machine_metrics and tn_test lend by thread, given to a function.
struct Measured {
  double cost = -1;
  int64_t samples = -1;
  std::vector<double> metrics;
  static void take(void* user, const tn_metrics_values* values) {
    auto& to = *static_cast<Measured*>(user);
    to = {values->cost, values->samples, {}};
    for (uint32_t i = 0; i < values->metrics_count; ++i) to.metrics.push_back(values->metrics[i].value);
  }
};

TEST_F(MetricSums, AreGivenToAFunction) {
  Measured measured;
  const auto measure = [&] {
    return tn_machine_measure(machine_.host(), machine_.handle(), &Measured::take, &measured, nullptr);
  };
  ASSERT_EQ(measure(), TN_OK);
  EXPECT_EQ(measured.samples, 0) << "before a forward";
  forward(machine_, 0, 4);
  ASSERT_EQ(measure(), TN_OK);
  EXPECT_EQ(measured.samples, 4);
  EXPECT_EQ(measured.cost, machine_.cost());
  ASSERT_EQ(measured.metrics.size(), machine_.metrics().size());
  for (size_t i = 0; i < measured.metrics.size(); ++i) EXPECT_EQ(measured.metrics[i], machine_.metrics()[i].value);
}

TEST_F(MetricSums, BeginAgainAfterAFlush) {
  const Metrics metrics(machine_), other(machine_);
  forward(machine_, 0, 4);
  metrics.append(machine_);
  other.append(machine_);
  metrics.flush();
  EXPECT_EQ(metrics.read().samples, 0);
  EXPECT_EQ(other.read().samples, 4) << "objects of one machine are independent";
  forward(machine_, 4, 2);
  metrics.append(machine_);
  const Metrics::Values values = metrics.read();
  EXPECT_EQ(values.samples, 2);
  EXPECT_EQ(values.cost, machine_.cost());
  EXPECT_EQ(values.metrics.at(0).value, machine_.metrics().at(0).value);
}

TEST_F(MetricSums, MergeAcrossMachines) {
  const Machine second = machine();
  const Metrics whole(machine_), first(machine_), other(second);
  for (const size_t begin : {0, 4}) {
    const size_t samples = begin == 0 ? 4 : 3;
    forward(machine_, begin, samples);
    whole.append(machine_);
    if (begin == 0) first.append(machine_);
  }
  forward(second, 4, 3);
  other.append(second);
  first.merge(other);
  const Metrics::Values merged = first.read(), expected = whole.read();
  EXPECT_EQ(merged.samples, 7);
  EXPECT_EQ(merged.cost, expected.cost);
  for (size_t i = 0; i < expected.metrics.size(); ++i) EXPECT_EQ(merged.metrics[i].value, expected.metrics[i].value);
  EXPECT_EQ(other.read().samples, 3) << "what is merged stays";
}

TEST_F(MetricSums, OfOtherMetricsAreNotMerged) {
  MachineOptions options;
  options.max_samples = kSamples;
  const Machine few = host_.machine(parameters_, {outputs_[0], outputs_[1]}, options);
  const Metrics metrics(machine_), fewer(few);
  forward(machine_, 0, 4);
  metrics.append(machine_);
  EXPECT_EQ(tn_metrics_merge(metrics.host(), metrics.handle(), fewer.handle(), nullptr), TN_INVALID);
  EXPECT_EQ(tn_metrics_merge(metrics.host(), metrics.handle(), metrics.handle(), nullptr), TN_INVALID);
  EXPECT_EQ(metrics.read().samples, 4);
}

TEST_F(MetricSums, OfAnEmptyMinibatchStay) {
  const Metrics metrics(machine_);
  forward(machine_, 0, 2);
  metrics.append(machine_);
  const double cost = metrics.read().cost;
  forward(machine_, 0, 0);
  metrics.append(machine_);
  EXPECT_EQ(metrics.read().samples, 2);
  EXPECT_EQ(metrics.read().cost, cost);
}

TEST_F(MetricSums, OutliveTheirMachine) {
  const Metrics metrics(machine_);
  forward(machine_, 0, 4);
  metrics.append(machine_);
  const tn_machine gone = machine_.handle();
  machine_ = Machine();
  EXPECT_EQ(metrics.read().samples, 4);
  EXPECT_EQ(metrics.read().metrics.size(), 3U);
  EXPECT_EQ(tn_metrics_append(metrics.host(), metrics.handle(), gone, nullptr), TN_MISUSE);
  const Machine next = machine();  // in the place of the first
  forward(next, 0, 4);
  EXPECT_EQ(tn_metrics_append(metrics.host(), metrics.handle(), next.handle(), nullptr), TN_INVALID);
  EXPECT_EQ(metrics.read().samples, 4);
}

TEST_F(MetricSums, RefuseOtherMachinesAndNoForward) {
  const Metrics metrics(machine_);
  const Machine other = machine();
  forward(other, 0, 1);
  tn_host* host = metrics.host();
  EXPECT_EQ(tn_metrics_append(host, metrics.handle(), other.handle(), nullptr), TN_INVALID);
  EXPECT_EQ(tn_metrics_append(host, metrics.handle(), machine_.handle(), nullptr), TN_MISUSE);
  EXPECT_EQ(tn_metrics_append(host, {77, 1}, machine_.handle(), nullptr), TN_MISUSE);
  EXPECT_EQ(tn_metrics_read(host, metrics.handle(), nullptr, nullptr, nullptr), TN_MISUSE);
  EXPECT_EQ(tn_metrics_create(host, machine_.handle(), nullptr, nullptr), TN_MISUSE);
  tn_metrics handle = {};
  EXPECT_EQ(tn_metrics_create(host, {77, 1}, &handle, nullptr), TN_MISUSE);
  ASSERT_EQ(tn_metrics_create(host, machine_.handle(), &handle, nullptr), TN_OK);
  EXPECT_EQ(tn_metrics_release(host, handle, nullptr), TN_OK);
  EXPECT_EQ(tn_metrics_flush(host, handle, nullptr), TN_MISUSE) << "stale";
  EXPECT_EQ(metrics.read().samples, 0);
}

}  // namespace
}  // namespace tenon_tests
