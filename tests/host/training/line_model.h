// A model of two parameters whose costs and gradients are exact, for tests of trainings.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;
using Floats = std::vector<float>;

inline Floats numbers(const Array& array) {
  const auto* data = static_cast<const float*>(array.data);
  return {data, data + array.count()};
}

// Calls `call`, which must throw an Error of this code; returns its message.
template <typename Call>
std::string refusal(Call call, tn_status code) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

// cost = weight * x + bias; with the first values 1 and 0, its mean over samples is the mean of x, the gradient of the
// bias is 1, and that of the weight the mean of x. Sample i has x = i.
class LineModel : public testing::Test {
 protected:
  static constexpr int64_t kSamples = 10, kBatch = 4;
  struct Count {
    double offset = 0;
    [[nodiscard]] static int64_t size() { return kSamples; }
    void read(int64_t index, Sample& sample) const { sample.set("x", {static_cast<double>(index) + offset}); }
  };

  LineModel() : host_({2, {tenon_tests::plugin_folder()}, nullptr, {}}) {
    host_.add_plugin(&test_layers());
    DataOptions x;
    x.name = "x", x.shape = {1};
    x_ = host_.data(x);
    line_ = host_.layer("fc", {x_}, {{"size", 1}}, "line");
    const Layer ones = host_.layer("scale_shift", {x_}, {{"scale", 0.0}, {"shift", 1.0}}, "ones");
    cost_ = host_.layer("test_cost", {line_, ones}, {}, "cost");
    average_ = host_.layer("average", {x_}, {}, "inputs");
  }

  [[nodiscard]] Reader samples(double offset = 0) const { return host_.reader({{"x", TN_F32, {1}}}, Count{offset}); }
  [[nodiscard]] Parameters parameters() const {
    Parameters made = host_.parameters({cost_}, 1);
    const Floats one = {1}, zero = {0};
    made.set("line.weight", {TN_F32, {1, 1}, one.data()});
    made.set("line.bias", {TN_F32, {1}, zero.data()});
    return made;
  }
  // Returns the options of a training that begins anew.
  [[nodiscard]] TrainOptions training(double rate = 0.125) const {
    TrainOptions options;
    options.outputs = {cost_, line_, average_};
    options.reader = samples().batch(kBatch);
    options.updater = host_.updater("sgd", {{"learning_rate", rate}, {"momentum", 0.5}});
    options.parameters = parameters();
    return options;
  }
  [[nodiscard]] static Floats values(const Parameters& of) {
    return {numbers(of.get("line.weight"))[0], numbers(of.get("line.bias"))[0]};
  }
  [[nodiscard]] static Floats values(const TrainOptions& options) { return values(options.parameters); }

  Host host_;
  Layer x_, line_, cost_, average_;
};

}  // namespace tenon_tests
