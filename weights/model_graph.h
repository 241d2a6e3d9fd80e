// What a conversion of weights must know of a topology: its layers with parameters, and where its vectors were images
// or become some. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <tenon/tenon_topology.hpp>
#include <vector>

#include "weights/tensors.h"

namespace tenon::weights {

// A layer with parameters, or one of those that a block stands for. Layers that share them are one part.
struct Part {
  std::string name;                                 // the prefix of its parameters
  std::string type;                                 // of the layer that the prefix belongs to
  size_t layer = 0;                                 // in ModelGraph
  std::map<std::string, ParameterInfo> parameters;  // by the last part of the name: "weight"
};

// Elements in another order: the number in the source for each place; empty: they stay.
using Places = std::vector<int64_t>;

class ModelGraph {
 public:
  // An output of a layer. sizes: of one sample; those that vary are left out.
  struct Value {
    size_t layer;
    Sizes sizes;
    bool of_integers = false;
  };
  struct Node {
    std::string name, type;
    std::vector<Value> inputs;  // absent ones left out
    Sizes sizes;                // of output 0
    size_t rank = 0;            // of output 0, with the samples
  };

  explicit ModelGraph(const Layers& outputs);

  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  [[nodiscard]] const Node& node(size_t layer) const { return nodes_[layer]; }
  [[nodiscard]] Value output(size_t layer) const { return {layer, nodes_[layer].sizes}; }

  // Returns, for each element of a value flattened with channels last, its number where channels are first; empty if it
  // is not of images.
  [[nodiscard]] Places columns_in(const Value& value) const;
  // Returns the same for a vector that is reshaped to images, which layers of images read; empty for others.
  [[nodiscard]] Places columns_out(size_t layer) const;
  // Returns the data layers that the layers with a parameter read, directly or as whole numbers through other layers.
  [[nodiscard]] std::vector<std::string> data_of(const std::string& parameter) const;

 private:
  [[nodiscard]] Places concatenated(const std::vector<Value>& inputs) const;
  [[nodiscard]] bool is_image(size_t layer) const;
  [[nodiscard]] bool is_of_images(size_t layer) const;

  std::vector<Node> nodes_;                   // inputs first
  std::vector<std::vector<size_t>> readers_;  // of each layer
  std::vector<std::vector<std::string>> parameters_;
  std::vector<Part> parts_;
};

}  // namespace tenon::weights
