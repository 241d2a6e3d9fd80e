// Several shards that one machine of a device computes one after another: the bits of as many devices, of which each
// computes one. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/host/training/team_job.h"
#include "tests/support/far.h"

namespace tenon_tests {

namespace {

using testing::HasSubstr;
using Names = std::vector<std::string>;

Layers dense(const Host& host) {
  const DenseModel model(host);
  return {model.cost, model.accuracy};
}
Layers sequences(const Host& host) { return {SequenceModel(host).cost}; }

// Returns the message of the error of `read`; "" if there is none.
std::string read_error(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

class Lanes : public testing::Test {
 protected:
  // What a training has in the end: costs and metrics of each minibatch, parameters and buffers.
  [[nodiscard]] Bytes trained(const Job& job, const Names& devices, uint32_t shards) const {
    TrainOptions options;
    options.outputs = job.model(*host_);
    options.parameters = host_->parameters(options.outputs, 1);
    options.updater = host_->updater("adam", job.updater);
    options.reader = host_->reader(schema(), Samples()).shuffle(5).batch(11);  // the last of a pass has 3 samples
    options.passes = job.passes;
    options.seed = 7;
    options.compute = job.compute;
    options.devices = devices;
    options.shards = shards;
    Bytes result;
    options.handler = [&](const Event& event) {
      if (event.kind() != TN_END_ITERATION) return;
      add(result, event.cost());
      for (const Metric& metric : event.metrics()) add(result, metric.value);
    };
    if (job.change) job.change(options, *host_, 0);
    tenon::train(options);
    add_parameters(result, options.parameters);
    return result;
  }
  void expect_bits_of_devices(const Job& job) const {
    for (const uint32_t shards : {2U, 3U, 7U, 8U}) {
      const Bytes one_each = trained(job, Names(shards, "cpu:0"), 0);
      for (const Names& devices : {Names{"cpu:0"}, Names{"cpu:0", "cpu:0"}, Names{"far:0"}, Names{"far:0", "far:1"}})
        EXPECT_EQ(trained(job, devices, shards), one_each)
            << shards << " shards on " << devices.size() << " devices, " << devices.front();
    }
  }

  FarHost host_;
};

TEST_F(Lanes, DenseModelsHaveTheBitsOfDevices) { expect_bits_of_devices({dense}); }

TEST_F(Lanes, RowSparseGradientsAndSequencesHaveTheBitsOfDevices) { expect_bits_of_devices({sequences}); }

TEST_F(Lanes, WideNumbersHaveTheBitsOfDevices) { expect_bits_of_devices({dense, 0, TN_F64}); }

TEST_F(Lanes, SkippedStepsHaveTheBitsOfDevices) {
  expect_bits_of_devices({dense, 0, TN_BF16, {{"learning_rate", 1e30}}});
}

TEST_F(Lanes, TestsHaveTheBitsOfDevices) {
  Job job{dense};
  job.change = [](TrainOptions& options, const Host& host, int64_t) {
    options.test = TestOptions{host.reader(schema(), Samples()).batch(9), {}, {}, 0, 2};
  };
  expect_bits_of_devices(job);
}

TEST_F(Lanes, OutputsOfOneShardAfterAnotherAreNotKept) {
  Job job{dense};
  std::string refused;
  job.change = [&refused](TrainOptions& options, const Host& host, int64_t) {
    const DenseModel model(host);
    options.outputs = model.outputs();
    options.handler = [&refused, hidden = model.hidden](const Event& event) {
      if (event.kind() != TN_END_ITERATION) return;
      EXPECT_GT(event.machine().cost(), 0);
      refused = read_error([&] { static_cast<void>(event.machine().output(hidden)); });
    };
  };
  static_cast<void>(trained(job, {"cpu:0"}, 4));
  EXPECT_THAT(refused, HasSubstr("the output of layer \"hidden\" is not kept"));
  static_cast<void>(trained(job, {"cpu:0", "cpu:0"}, 2));
  EXPECT_EQ(refused, "");
}

}  // namespace

}  // namespace tenon_tests
