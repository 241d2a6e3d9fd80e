// A perceptron and readers for Fashion-MNIST, made with the public API. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <tenon/tenon.hpp>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

inline const std::string kFashion = "/usr/share/datasets/fashion-mnist/";

inline Host make_host(int threads, const tn_allocator* allocator = nullptr) {
  return Host(HostOptions{threads, {tenon_tests::plugin_folder()}, allocator, {}});
}

struct Perceptron {
  Layer image, label, prediction, cost, accuracy;
  [[nodiscard]] Layers outputs() const { return {cost, accuracy}; }
};

// A perceptron of 784 inputs, `hidden` units with act = "relu", and 10 classes.
inline Perceptron perceptron(const Host& host, int64_t hidden = 128) {
  Perceptron model;
  DataOptions image;
  image.name = "image";
  image.dtype = TN_U8;
  image.shape = {28, 28};
  image.scale = 1.0 / 255;
  model.image = host.data(image);
  DataOptions label;
  label.name = "label";
  label.dtype = TN_U8;
  model.label = host.data(label);
  const Layer inner = host.layer("fc", {model.image}, {{"size", hidden}, {"act", "relu"}}, "hidden");
  model.prediction = host.layer("fc", {inner}, {{"size", 10}}, "prediction");
  model.cost = host.layer("cross_entropy", {model.prediction, model.label}, {{"from_logits", true}}, "cost");
  model.accuracy = host.layer("accuracy", {model.prediction, model.label}, {}, "accuracy");
  return model;
}

inline Reader fashion(const Host& host, const std::string& prefix, int64_t samples, int64_t batch, uint64_t seed) {
  return host
      .reader("idx", {{"files", std::vector<std::string>{kFashion + prefix + "-images-idx3-ubyte.gz",
                                                         kFashion + prefix + "-labels-idx1-ubyte.gz"}},
                      {"names", std::vector<std::string>{"image", "label"}}})
      .first_n(samples)
      .shuffle(seed)
      .batch(batch);
}

}  // namespace tenon_tests
