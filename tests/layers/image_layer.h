// Windows by what a job states, and mistakes, for tests of layers over images. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/definitions/image_reference.h"
#include "tests/layers/layers_on_a_host.h"
#include "tests/support/layer_check.h"

namespace tenon_tests {

namespace reference = tenon::check::reference;
using Values = std::vector<double>;
using Shape = std::vector<int64_t>;

// One dimension of a window; what is added before and after is stated, since tests do not compute it as layers do.
struct Along {
  int64_t images, kernel, stride = 1, before = 0, after = 0, dilation = 1;
};

inline tn_window window_of(const std::vector<Along>& dimensions) {
  tn_window window = {};
  window.size = sizeof window;
  for (const Along& along : dimensions) {
    const int32_t i = window.rank++;
    window.images[i] = along.images;
    window.kernel[i] = along.kernel;
    window.stride[i] = along.stride;
    window.dilation[i] = along.dilation;
    window.before[i] = along.before;
    window.after[i] = along.after;
  }
  return window;
}

// [sizes..., channels] of one sample.
inline Shape images_of(const tn_window& window, int64_t channels) {
  Shape shape(window.images, window.images + window.rank);
  shape.push_back(channels);
  return shape;
}
inline Shape places_of(const tn_window& window, int64_t channels) {
  Shape shape;
  for (int32_t i = 0; i < window.rank; ++i) shape.push_back(tn_window_places(&window, i));
  shape.push_back(channels);
  return shape;
}

// A layer of one input; minibatches of one and of an odd number of samples.
inline LayerCase image_case(const std::string& type, const Attributes& attributes, const Shape& input,
                            const Shape& output, const Formula& formula) {
  LayerCase layer;
  layer.type = type;
  layer.attributes = attributes;
  layer.inputs = {{input}};
  layer.output_shape = output;
  layer.formula = formula;
  layer.samples = {1, 3};
  return layer;
}

class LayersOfImages : public LayersOnAHost {
 protected:
  // Every text, and the name of the layer, is in the message that refuses a layer over images of shape `input`.
  void refuses(const std::string& type, const Shape& input, const Attributes& attributes,
               const std::vector<std::string>& texts) const {
    const std::string message = mistake(type, {data("x", input)}, attributes);
    for (const std::string& text : texts) EXPECT_NE(message.find(text), std::string::npos) << text << " in " << message;
    EXPECT_NE(message.find("\"bad\""), std::string::npos) << message;
  }
};

}  // namespace tenon_tests
