// Blocks of layers of images equal the layers written out, to the bit. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "tests/layers/image_layer.h"

namespace tenon_tests {

using namespace tenon;

namespace {

constexpr int64_t kSamples = 3;

class ImageBlocks : public LayersOfImages {
 protected:
  using Names = std::map<std::string, std::string>;  // of a parameter of the block, without its layer: of the other

  // The outputs and gradients of a block and of the layers written out, with the same parameters, are equal bits.
  void expect_equal(const Layer& block, const Layer& written, const Names& names, const Shape& input) const {
    const Run of_block(host_, block, input), of_written(host_, written, input);
    for (const auto& [inner, other] : names) {
      const Array values = of_block.parameters.get("block." + inner);
      of_written.parameters.set(other, values);
    }
    of_block.run();
    of_written.run();
    EXPECT_EQ(of_block.output(), of_written.output());
    EXPECT_GT(of_block.output().size(), 0U);
    for (const auto& [inner, other] : names) {
      if (inner.find("moving") != std::string::npos) continue;  // buffers have no gradients
      EXPECT_EQ(numbers(of_block.machine.gradient("block." + inner)), numbers(of_written.machine.gradient(other)))
          << inner;
    }
  }

  // The parameters of a convolution without bias and its normalisation.
  static void add_names(Names& names, const std::string& number, bool normalised) {
    names["conv_" + number + ".weight"] = "conv_" + number + ".weight";
    if (!normalised) names["conv_" + number + ".bias"] = "conv_" + number + ".bias";
    if (!normalised) return;
    for (const std::string suffix : {".scale", ".shift", ".moving_mean", ".moving_variance"})
      names["norm_" + number + suffix] = "norm_" + number + suffix;
  }
  Layer convolved(const Layer& input, const std::string& number, Attributes attributes, bool normalised = true) const {
    attributes.push_back({"same", true});
    attributes.push_back({"bias", !normalised});
    const Layer made = host_.layer("conv", {input}, attributes, "conv_" + number);
    return normalised ? host_.layer("batch_norm", {made}, {}, "norm_" + number) : made;
  }

 private:
  static Values numbers(const Array& array) {
    const auto* const of = static_cast<const float*>(array.data);
    return {of, of + array.count()};
  }

  struct Run {
    Run(const Host& host, const Layer& layer, const Shape& shape) : top(layer), input(shape) {
      const Layer cost = host.layer("sum_cost", {host.layer("square", {layer}, {}, "square")}, {}, "cost");
      parameters = host.parameters({layer, cost}, 7);
      MachineOptions options;
      options.max_samples = kSamples;
      options.training = true;
      machine = host.machine(parameters, {layer, cost}, options);
    }
    void run() const {
      Shape all{kSamples};
      all.insert(all.end(), input.begin(), input.end());
      std::vector<float> values(
          static_cast<size_t>(std::accumulate(all.begin(), all.end(), int64_t{1}, std::multiplies<>())));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
      machine.forward({{"x", {TN_F32, all, values.data()}}});
      machine.backward();
    }
    [[nodiscard]] Values output() const { return numbers(machine.output(top)); }

    Layer top;
    Shape input;
    Parameters parameters;
    Machine machine;
  };
};

TEST_F(ImageBlocks, SimpleImageConvPool) {
  const Shape shape{7, 6, 2};
  const Layer x = data("x", shape);
  const Layer block = host_.layer("simple_img_conv_pool", {x},
                                  {{"filters", 3}, {"kernel", 3}, {"activation", "tanh"}, {"pool_kernel", 2}}, "block");
  const Layer made = host_.layer("conv", {x}, {{"filters", 3}, {"kernel", 3}}, "conv");
  const Layer pooled =
      host_.layer("pool", {host_.layer("tanh", {made}, {}, "tanh")}, {{"kind", "max"}, {"kernel", 2}}, "pooled");
  expect_equal(block, pooled, {{"weight", "conv.weight"}, {"bias", "conv.bias"}}, shape);
}

TEST_F(ImageBlocks, ImageConvGroup) {
  const Shape shape{5, 4, 2};
  const Layer x = data("x", shape);
  for (const bool normalised : {false, true}) {
    const Layer block = host_.layer("img_conv_group", {x},
                                    {{"filters", Shape{3, 2}},
                                     {"batch_norm", normalised},
                                     {"pool_kernel", 3},
                                     {"pool_stride", 1},
                                     {"pool_kind", "average"}},
                                    "block");
    Layer made = x;
    Names names;
    for (const auto& [number, filters] : {std::pair{"0", 3}, std::pair{"1", 2}}) {
      made = convolved(made, number, {{"filters", filters}, {"kernel", 3}}, normalised);
      made = host_.layer("relu", {made}, {}, std::string("relu_") + number);
      add_names(names, number, normalised);
    }
    made = host_.layer("pool", {made}, {{"kind", "average"}, {"kernel", 3}, {"stride", 1}}, "pooled");
    expect_equal(block, made, names, shape);
  }
}

TEST_F(ImageBlocks, ResidualBlock) {
  const Shape shape{5, 4, 2};
  const Layer x = data("x", shape);
  for (const int stride : {1, 2}) {
    const Layer block = host_.layer("residual_block", {x}, {{"filters", 2}, {"stride", stride}}, "block");
    Layer made = convolved(x, "0", {{"filters", 2}, {"kernel", 3}, {"stride", stride}});
    made = convolved(host_.layer("relu", {made}, {}, "relu"), "1", {{"filters", 2}, {"kernel", 3}});
    Names names;
    add_names(names, "0", true);
    add_names(names, "1", true);
    Layer shortcut = x;
    if (stride == 2) {
      shortcut = convolved(x, "3", {{"filters", 2}, {"kernel", 1}, {"stride", 2}});
      add_names(names, "3", true);
    }
    made = host_.layer("relu", {host_.layer("add", {made, shortcut}, {}, "sum")}, {}, "top");
    expect_equal(block, made, names, shape);
  }
}
TEST_F(ImageBlocks, Bottleneck) {
  const Shape shape{4, 4, 8};
  const Layer x = data("x", shape);
  const Layer block = host_.layer("residual_block", {x}, {{"filters", 2}, {"bottleneck", true}}, "block");
  Names names;
  for (const char* number : {"0", "1", "2"}) add_names(names, number, true);
  Layer made = convolved(x, "0", {{"filters", 2}, {"kernel", 1}});
  made = convolved(host_.layer("relu", {made}, {}, "relu_0"), "1", {{"filters", 2}, {"kernel", 3}});
  made = convolved(host_.layer("relu", {made}, {}, "relu_1"), "2", {{"filters", 8}, {"kernel", 1}});
  made = host_.layer("relu", {host_.layer("add", {made, x}, {}, "sum")}, {}, "top");
  expect_equal(block, made, names, shape);
}

// Nine of ten sums of a place are dropped, and the others are ten times as large: by a rate for all convolutions, or by
// that of the second.
TEST_F(ImageBlocks, DropRates) {
  const Layer x = data("x", {16, 16, 1});
  for (const std::vector<double>& rates : {std::vector<double>{0, 0.9}, std::vector<double>{0.9}}) {
    const Layer block = host_.layer("img_conv_group", {x},
                                    {{"filters", rates.size() == 2 ? Shape{1, 8} : Shape{8}},
                                     {"kernel", 1},
                                     {"activation", ""},
                                     {"drop_rates", rates},
                                     {"pool_kernel", 1}},
                                    "block");
    const Layer cost = host_.layer("sum_cost", {block}, {}, "cost");
    MachineOptions options;
    options.training = true;
    const Machine machine = host_.machine(host_.parameters({block, cost}, 1), {block, cost}, options);
    const std::vector<float> ones(256, 1);
    machine.forward({{"x", {TN_F32, {1, 16, 16, 1}, ones.data()}}});
    const auto* const values = static_cast<const float*>(machine.output(block).data);
    const auto zeros = static_cast<double>(std::count(values, values + 2048, 0.0F));
    EXPECT_NEAR(zeros / 2048, 0.9, 5 * std::sqrt(0.9 * 0.1 / 2048));
  }
  refuses("img_conv_group", {4, 4, 1},
          {{"filters", Shape{2, 2}}, {"drop_rates", std::vector<double>{0.5, 0.5, 0.5}}, {"pool_kernel", 2}},
          {"drop_rates", "3 numbers", "2 convolutions"});
}

TEST_F(ImageBlocks, MistakesAreNamed) {
  refuses("simple_img_conv_pool", {4}, {{"filters", 2}, {"kernel", 1}, {"pool_kernel", 1}},
          {"input", "[samples, space..., channels]", "4]"});
  refuses("simple_img_conv_pool", {4, 3, 1}, {{"filters", 2}, {"kernel", 4}, {"pool_kernel", 1}},
          {"kernel", "4", "dimension 2", "3", "4, 3, 1]"});
  refuses("simple_img_conv_pool", {4, 4, 1}, {{"filters", 2}, {"kernel", 3}, {"pool_kernel", 3}},
          {"pool_kernel", "3", "dimension 1", "2"});
  refuses("simple_img_conv_pool", {4, 4, 1}, {{"filters", 2}, {"kernel", Shape{1, 1, 1}}, {"pool_kernel", 3}},
          {"kernel", "3 numbers", "2 dimensions"});
  refuses("simple_img_conv_pool", {4, 4, 1},
          {{"filters", 2}, {"kernel", 1}, {"pool_kernel", 1}, {"activation", "relo"}}, {"relo"});
  refuses("img_conv_group", {4, 4, 1}, {{"filters", Shape{}}, {"pool_kernel", 2}}, {"filters", "0", "1 to 5"});
  refuses("img_conv_group", {4, 4, 1}, {{"filters", Shape(6, 1)}, {"pool_kernel", 2}}, {"filters", "6", "1 to 5"});
  refuses("img_conv_group", {4, 4, 1}, {{"filters", Shape{2}}, {"pool_kernel", 5}},
          {"pool_kernel", "5", "dimension 1", "4, 4, 1]"});
  refuses("residual_block", {4, 4, 1}, {{"filters", 2}, {"stride", 0}}, {"stride", "at least 1", "0"});
  refuses("residual_block", {4, 4, 1}, {{"filters", int64_t{1} << 62}, {"bottleneck", true}}, {"filters", "2^61"});
}

}  // namespace
}  // namespace tenon_tests
