// Images that are fed with the channels first. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <tenon/tenon.hpp>
#include <tenon/tenon_topology.hpp>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::HasSubstr;
using Numbers = std::vector<float>;
using Shape = std::vector<int64_t>;

class Layout : public testing::Test {
 protected:
  Layer data(const Shape& shape, tn_dtype dtype = TN_F32, uint32_t layout = TN_CHANNELS_FIRST,
             int32_t storage = TN_DENSE) {
    DataOptions options;
    options.name = "image", options.shape = shape, options.dtype = dtype, options.layout = layout;
    options.storage = storage;
    return host_.data(options);
  }
  Machine machine(const Layer& output) {
    MachineOptions options;
    options.max_samples = 8;
    return host_.machine(host_.parameters({output}, 1), {output}, options);
  }
  Layer same(const Layer& of) { return host_.layer("scale_shift", {of}, {{"scale", 1.0}}, "same"); }
  template <typename Work>
  static std::string message_of(const Work& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was refused";
  }
  static Numbers numbers(const Array& array) {
    const auto* values = static_cast<const float*>(array.data);
    return {values, values + array.count()};
  }

  Host host_{HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}}};
};

// [samples, channels, ...] to [samples, ..., channels], by the definition.
Numbers channels_last(const Numbers& from, int64_t samples, int64_t channels, int64_t places) {
  Numbers result;
  for (int64_t n = 0; n < samples; ++n)
    for (int64_t place = 0; place < places; ++place)
      for (int64_t c = 0; c < channels; ++c)
        result.push_back(from[static_cast<size_t>((n * channels + c) * places + place)]);
  return result;
}

TEST_F(Layout, FeedsAreConverted) {
  for (const Shape& shape : {Shape{3, 4, 5}, Shape{3, 20}, Shape{3, 2, 2, 5}, Shape{1, 4, 15}}) {
    Shape output{2};
    output.insert(output.end(), shape.begin() + 1, shape.end());
    output.push_back(shape[0]);
    Numbers values(static_cast<size_t>(std::accumulate(output.begin(), output.end(), int64_t{1}, std::multiplies<>())));
    std::iota(values.begin(), values.end(), 0.0F);
    const int64_t places = static_cast<int64_t>(values.size()) / 2 / shape[0];
    const Layer last = same(data(shape));
    const Machine reader = machine(last);
    Array fed = {TN_F32, shape, values.data()};
    fed.shape.insert(fed.shape.begin(), 2);
    reader.forward({{"image", fed}});
    EXPECT_EQ(reader.output(last).shape, output);
    EXPECT_EQ(numbers(reader.output(last)), channels_last(values, 2, shape[0], places));
    // Bytes are widened on the way, and strides are followed: here samples are innermost.
    const Layer of_bytes = same(data(shape, TN_U8));
    const Machine narrow = machine(of_bytes);
    std::vector<uint8_t> bytes(values.size());
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i % (bytes.size() / 2) * 2 + i / (bytes.size() / 2)] = static_cast<uint8_t>(i);
    Array strided = {TN_U8, fed.shape, bytes.data()};
    strided.strides.assign(fed.shape.size(), 2);
    strided.strides[0] = 1;
    for (size_t i = fed.shape.size() - 1; i > 1; --i) strided.strides[i - 1] = strided.strides[i] * fed.shape[i];
    narrow.forward({{"image", strided}});
    EXPECT_EQ(numbers(narrow.output(of_bytes)), channels_last(values, 2, shape[0], places));
  }
}

TEST_F(Layout, IsAPropertyOfTheModel) {
  const Layer image = data({3, 4, 5}, TN_U8), output = same(image);
  EXPECT_EQ(inspect_data(image).layout, uint32_t{TN_CHANNELS_FIRST});
  EXPECT_EQ(inspect_data(image).shape, (Shape{3, 4, 5}));
  EXPECT_EQ(inspect_data(data({3, 4, 5}, TN_U8, TN_CHANNELS_LAST)).layout, uint32_t{TN_CHANNELS_LAST});
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "model.safetensors").string();
  host_.parameters({output}, 1).save({output}, path);
  const Model loaded = host_.load(path);
  const DataOptions again = inspect_data(*loaded.outputs.at(0).find("image"));
  EXPECT_EQ(again.layout, uint32_t{TN_CHANNELS_FIRST});
  EXPECT_EQ(again.shape, (Shape{3, 4, 5}));
  const std::string json = topology({output});
  EXPECT_THAT(json, HasSubstr(R"("layout":"channels_first")"));
  std::string wrong = json;
  wrong.replace(wrong.find("channels_first"), 14, "channels_third");
  EXPECT_THAT(message_of([&] { read_topology(host_, wrong); }), HasSubstr("layout \"channels_third\""));
}

TEST_F(Layout, ErrorsNameLayerAndShapes) {
  const Machine reader = machine(same(data({3, 4, 5})));
  const Numbers values(120);
  EXPECT_THAT(
      message_of([&] {
        reader.forward({{"image", Array{TN_F32, {2, 4, 5, 3}, values.data()}}});
      }),
      HasSubstr(
          "data layer \"image\": expected float32 [samples, 3, 4, 5] (channels first), got float32 [2, 4, 5, 3]"));
  EXPECT_THAT(message_of([&] { data({3}); }),
              HasSubstr("data layer \"image\": channels first are for dense images, [channels, height, width]; it is "
                        "fed dense [3]"));
  EXPECT_THAT(message_of([&] { data({3, 4, 5}, TN_F32, TN_CHANNELS_FIRST, TN_RAGGED); }), HasSubstr("fed ragged"));
  EXPECT_THAT(message_of([&] {
                data({3, 4, 5}, TN_F32, 7);
              }),
              HasSubstr("options.layout is 7; expected TN_CHANNELS_LAST or TN_CHANNELS_FIRST"));
}

}  // namespace
}  // namespace tenon_tests
