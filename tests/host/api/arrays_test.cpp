// Arrays of an application: any strides, and memory of the host alone. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <tenon/tenon.hpp>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Numbers = std::vector<float>;
using Shape = std::vector<int64_t>;

constexpr int32_t kCuda = 2;  // kDLCUDA

class Arrays : public testing::Test {
 protected:
  Layer data(const char* name, tn_dtype dtype, const Shape& shape, int32_t storage = TN_DENSE, int64_t limit = -1) {
    DataOptions options;
    options.name = name, options.dtype = dtype, options.shape = shape, options.storage = storage;
    options.index_limit = limit;
    return host_.data(options);
  }
  Machine machine(const Layer& output) {
    MachineOptions options;
    options.max_samples = 8;
    return host_.machine(host_.parameters({output}, 1), {output}, options);
  }
  template <typename Work>
  static Error error_of(const Work& work) {
    try {
      work();
    } catch (const Error& error) {
      return error;
    }
    return {TN_OK, "nothing was refused"};
  }
  static Numbers numbers(const Array& array) {
    const auto* values = static_cast<const float*>(array.data);
    return {values, values + array.count()};
  }
  static Array strided(const Shape& shape, const float* data, const Shape& strides) {
    Array array = {TN_F32, shape, data};
    array.strides = strides;
    return array;
  }

  Host host_{HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}}};
};

TEST_F(Arrays, OfAnyStridesAreFed) {
  const Layer x = data("x", TN_F32, {2, 3});
  const Layer same = host_.layer("scale_shift", {x}, {{"scale", 1.0}}, "same");
  const Machine reader = machine(same);
  Numbers memory(64);
  std::iota(memory.begin(), memory.end(), 0.0F);
  const struct {
    Shape strides;
    int64_t first;  // the place of the element of indices 0
  } cases[] = {
      {{6, 3, 1}, 0},    // row-major
      {{1, 8, 2}, 0},    // samples innermost
      {{16, 4, 1}, 3},   // gaps after rows and samples
      {{-6, 3, 1}, 12},  // samples from the last
      {{6, -3, -1}, 5},  // rows and columns from the last
      {{0, 3, 1}, 7},    // every sample the same
      {{0, 0, 0}, 9},    // one number
      {{1, 1, 1}, 0},    // overlapping windows
      {{6, 3, 2}, 1},
  };
  for (const auto& each : cases) {
    reader.forward({{"x", strided({3, 2, 3}, memory.data() + each.first, each.strides)}});
    const Array got = reader.output(same);
    EXPECT_EQ(got.shape, (Shape{3, 2, 3}));
    const Numbers values = numbers(got);
    for (int64_t i = 0; i < 18; ++i) {
      const int64_t at = each.first + i / 6 * each.strides[0] + i / 3 % 2 * each.strides[1] + i % 3 * each.strides[2];
      EXPECT_EQ(values[static_cast<size_t>(i)], static_cast<float>(at)) << testing::PrintToString(each.strides);
    }
  }
  for (const int64_t unused : {int64_t{-100}, INT64_MIN, INT64_MAX}) {  // the stride of one sample
    reader.forward({{"x", strided({1, 2, 3}, memory.data(), {unused, 3, 1})}});
    EXPECT_THAT(numbers(reader.output(same)), ElementsAre(0, 1, 2, 3, 4, 5));
    reader.forward({{"x", strided({1, 2, 3}, memory.data(), {unused, 3, 2})}});
    EXPECT_THAT(numbers(reader.output(same)), ElementsAre(0, 2, 4, 3, 5, 7));
  }
  reader.forward({{"x", strided({0, 2, 3}, nullptr, {-100, 7, 1})}});
  EXPECT_EQ(reader.output(same).shape, (Shape{0, 2, 3}));
}

TEST_F(Arrays, OfStridedIntegersAreChecked) {
  const Layer ids = data("ids", TN_I32, {2}, TN_DENSE, 10);
  const Layer table = host_.layer("embedding", {ids}, {{"vocabulary", 10}, {"size", 1}}, "table");
  const Machine reader = machine(table);
  const std::vector<int32_t> memory = {0, 99, 2, 99, 4, 99, 10, 99};
  Array array = {TN_I32, {2, 2}, memory.data()};
  array.strides = {2, 2};
  reader.forward({{"ids", array}});  // 0 2; 2 4: the numbers between are not read
  array.shape = {3, 2};
  const Error refused = error_of([&] { reader.forward({{"ids", array}}); });
  EXPECT_EQ(refused.code(), TN_BAD_DATA);
  EXPECT_THAT(refused.what(), HasSubstr("data layer \"ids\": sample 2 of the minibatch is 10"));
  array.strides = {-2, 2};  // 0 2 after 2 4
  array.shape = {2, 2};
  array.data = memory.data() + 2;
  reader.forward({{"ids", array}});
}

TEST_F(Arrays, OfStridedRowsAreFed) {
  const Layer x = data("x", TN_F32, {2}, TN_RAGGED);
  const Layer last = host_.layer("sequence_pool", {x}, {{"kind", "last"}}, "last");
  const Machine reader = machine(last);
  const Numbers columns = {1, 2, 3, 4, 5, 10, 20, 30, 40, 50};  // rows {1, 10}, {2, 20} ... by columns
  const Shape offsets = {0, 2, 5};
  Array array = Array::sequences(TN_F32, {5, 2}, columns.data(), 2, offsets.data());
  array.strides = {1, 5};
  reader.forward({{"x", array}});
  EXPECT_THAT(numbers(reader.output(last)), ElementsAre(2, 20, 5, 50));
  array.strides = {-1, 5};  // the rows from the last
  array.data = columns.data() + 4;
  reader.forward({{"x", array}});
  EXPECT_THAT(numbers(reader.output(last)), ElementsAre(4, 40, 1, 10));
}

TEST_F(Arrays, OfEntriesHaveNoStrides) {
  const Layer x = data("x", TN_F32, {4}, TN_CSR);
  const Machine reader = machine(host_.layer("fc", {x}, {{"size", 1}}, "out"));
  const Shape offsets = {0, 1}, ids = {2};
  const float one = 1;
  Array array = Array::sparse(1, 4, offsets.data(), ids.data(), &one);
  reader.forward({{"x", array}});
  array.strides = {4, 1};
  const Error refused = error_of([&] { reader.forward({{"x", array}}); });
  EXPECT_EQ(refused.code(), TN_INVALID);
  EXPECT_THAT(refused.what(), AllOf(HasSubstr("data layer \"x\""), HasSubstr("with strides")));
  array.strides = {1};
  EXPECT_THAT(error_of([&] { reader.forward({{"x", array}}); }).what(), HasSubstr("2 dimensions has 1 strides"));
}

TEST_F(Arrays, OfOtherDevicesAreRefused) {
  const Layer x = data("x", TN_F32, {1});
  const Layer same = host_.layer("relu", {x}, {}, "same");
  const Machine reader = machine(same);
  const float one = 1;
  Array array = {TN_F32, {1, 1}, &one};
  EXPECT_EQ(array.device_type, 1);
  for (const int32_t host : {0, 1}) {
    array.device_type = host;
    reader.forward({{"x", array}});
  }
  const Array got = reader.output(same);
  EXPECT_EQ(got.device_type, 1);
  EXPECT_EQ(got.device_id, 0);
  EXPECT_TRUE(got.strides.empty());
  const auto refused = [&](int32_t type, int32_t id, const char* said) {
    array.device_type = type, array.device_id = id;
    const Error error = error_of([&] { reader.forward({{"x", array}}); });
    EXPECT_EQ(error.code(), TN_UNSUPPORTED);
    EXPECT_EQ(error.subject(), "x");
    EXPECT_THAT(error.what(), AllOf(HasSubstr("data layer \"x\""), HasSubstr(said)));
  };
  refused(kCuda, 3, "device 3 of type 2 (cuda)");
  refused(1, 1, "device 1 of type 1 (cpu)");
  refused(0, -1, "device -1 of type 0");
  refused(77, 0, "device 0 of type 77 (unknown)");
  EXPECT_THAT(numbers(reader.output(same)), ElementsAre(1)) << "a refused feed changes nothing";
}

// What a later version may say there, this one cannot do.
TEST_F(Arrays, ReservedMembersAreNull) {
  const Machine reader = machine(host_.layer("relu", {data("x", TN_F32, {1})}, {}, "same"));
  float one = 1;
  tn_feed feed = {};
  feed.name = "x";
  feed.values.dtype = TN_F32, feed.values.rank = 2, feed.values.data = &one;
  feed.values.shape[0] = feed.values.shape[1] = 1;
  EXPECT_EQ(tn_machine_forward(reader.host(), reader.handle(), &feed, 1, nullptr), TN_OK);
  for (void*& reserved : feed.values.reserved) {
    reserved = &one;
    EXPECT_EQ(tn_machine_forward(reader.host(), reader.handle(), &feed, 1, nullptr), TN_UNSUPPORTED);
    reserved = nullptr;
  }
}

TEST_F(Arrays, OfParametersHaveStridesToo) {
  const Layer line = host_.layer("fc", {data("x", TN_F32, {3})}, {{"size", 2}, {"bias", false}}, "line");
  const Parameters parameters = host_.parameters({line}, 1);
  const Numbers columns = {1, 2, 3, 10, 20, 30};
  parameters.set("line.weight", strided({3, 2}, columns.data(), {1, 3}));
  const Array got = parameters.get("line.weight");
  EXPECT_THAT(numbers(got), ElementsAre(1, 10, 2, 20, 3, 30));
  EXPECT_EQ(got.device_type, 1);
  EXPECT_TRUE(got.strides.empty());
  Array elsewhere = strided({3, 2}, columns.data(), {});
  elsewhere.device_type = kCuda;
  EXPECT_EQ(error_of([&] { parameters.set("line.weight", elsewhere); }).code(), TN_UNSUPPORTED);
}

// A reader and a map that give samples of their own layout, through the C tables.
struct Columns {
  Numbers memory = {1, 2, 3, 10, 20, 30};
  int64_t strides[2] = {1, 3};
  int64_t offsets[3] = {0, 1, 3};
  bool ended = false;

  static tn_status next(void* user, int64_t, tn_array* values, int64_t* count, tn_error*) {
    auto& self = *static_cast<Columns*>(user);
    *count = self.ended ? 0 : 2;
    self.ended = !self.ended;
    EXPECT_EQ(values[0].device_type, 1);
    EXPECT_EQ(values[0].strides, nullptr);
    values[0].data = self.memory.data();  // {1, 10}, {2, 20}
    values[0].strides = self.strides;
    values[1].data = self.memory.data() + 2;  // rows from the last: {3, 30}, {2, 20}, {1, 10}
    values[1].strides = self.backward;
    values[1].shape[0] = 3;
    values[1].offsets[0] = self.offsets;
    return TN_OK;
  }
  static tn_status map(void* user, const tn_array*, uint32_t, int64_t samples, tn_array* outputs, uint32_t, tn_error*) {
    auto& self = *static_cast<Columns*>(user);
    EXPECT_EQ(samples, 2);
    outputs[0].data = self.memory.data() + 1;
    outputs[0].strides = self.none;  // 2 for every sample
    return TN_OK;
  }
  int64_t backward[2] = {-1, 3};
  int64_t none[1] = {0};
};

TEST_F(Arrays, OfReadersHaveStridesToo) {
  Columns columns;
  const int64_t two = 2;
  tn_slot x = {}, y = {};
  x.size = y.size = sizeof x;
  x.dtype = y.dtype = TN_F32;
  x.rank = y.rank = 1;
  x.shape = y.shape = &two;
  x.index_limit = y.index_limit = -1;
  x.name = "x", y.name = "y";
  y.storage = TN_RAGGED, y.levels = 1;
  const tn_slot* slots[] = {&x, &y};
  tn_source_options options = {};
  options.size = sizeof options;
  options.slots_count = 2;
  options.slots = slots;
  options.samples = -1;
  options.user = &columns;
  options.next = &Columns::next;
  tn_error error = {};
  error.size = sizeof error;
  tn_reader reader = {};
  ASSERT_EQ(tn_reader_create_from(host_.get(), &options, &reader, &error), TN_OK) << error.message;
  ASSERT_EQ(tn_reader_batch(host_.get(), reader, 2, 0, &reader, &error), TN_OK) << error.message;
  tn_array values[2] = {};
  ASSERT_EQ(tn_reader_next(host_.get(), reader, values, 2, &error), TN_OK) << error.message;
  EXPECT_EQ(values[0].device_type, 1);
  EXPECT_EQ(values[0].strides, nullptr);
  const auto* given = static_cast<const float*>(values[0].data);
  EXPECT_THAT(Numbers(given, given + 4), ElementsAre(1, 10, 2, 20));
  given = static_cast<const float*>(values[1].data);
  EXPECT_THAT(Numbers(given, given + 6), ElementsAre(3, 30, 2, 20, 1, 10));
  EXPECT_THAT(std::vector<int64_t>(values[1].offsets[0], values[1].offsets[0] + 3), ElementsAre(0, 1, 3));
  ASSERT_EQ(tn_reader_next(host_.get(), reader, values, 2, &error), TN_END);
  y.rank = 0, y.storage = TN_DENSE, y.levels = 0;
  tn_map_options mapped = {};
  mapped.size = sizeof mapped;
  mapped.slots_count = 1;
  mapped.slots = slots + 1;
  mapped.user = &columns;
  mapped.map = &Columns::map;
  ASSERT_EQ(tn_reader_map(host_.get(), reader, &mapped, &reader, &error), TN_OK) << error.message;
  ASSERT_EQ(tn_reader_next(host_.get(), reader, values, 1, &error), TN_OK) << error.message;
  given = static_cast<const float*>(values[0].data);
  EXPECT_THAT(Numbers(given, given + 2), ElementsAre(2, 2));
}

// Elements of less than 8 bits share bytes: nothing that crosses the interface has them.
TEST_F(Arrays, OfLessThanAByteForEachElementAreRefused) {
  constexpr tn_dtype kInt4 = TN_DTYPE(0, 4);
  EXPECT_THAT(error_of([&] { (void)data("x", kInt4, {2}); }).what(), HasSubstr("int4"));
  const Machine reader = machine(host_.layer("relu", {data("x", TN_U8, {2})}, {}, "same"));
  const uint8_t byte = 0;
  const Error fed = error_of([&] { reader.forward({{"x", {kInt4, {1, 2}, &byte}}}); });
  EXPECT_EQ(fed.code(), TN_UNSUPPORTED);
  EXPECT_THAT(fed.what(), AllOf(HasSubstr("data layer \"x\""), HasSubstr("int4")));
  const Schema schema = {{"bits", TN_DTYPE(1, 1), {8}}};
  const auto none = [](Sample&) { return false; };
  EXPECT_THAT(error_of([&] { (void)host_.reader(schema, none); }).what(),
              AllOf(HasSubstr("slot \"bits\""), HasSubstr("uint1")));
}

}  // namespace
}  // namespace tenon_tests
