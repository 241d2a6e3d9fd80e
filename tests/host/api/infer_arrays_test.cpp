// Inference on arrays of any number of samples, in parts. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/tenon_machine.hpp>

#include "tests/support/paths.h"
#include "tests/support/refused.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Floats = std::vector<float>;
using Ids = std::vector<int64_t>;

Floats numbers(const Array& array) {
  const auto* data = static_cast<const float*>(array.data);
  return {data, data + array.count()};
}

class InferArrays : public testing::Test {
 protected:
  static constexpr int64_t kSamples = 3;
  InferArrays() {
    x_ = data("x", TN_F32, {2});
    hidden_ = host_.layer("fc", {x_}, {{"size", 4}, {"act", "tanh"}}, "hidden");
    parameters_ = host_.parameters({hidden_}, 3);
  }
  Layer data(const char* name, tn_dtype dtype, const Ids& shape, int32_t storage = TN_DENSE, int64_t limit = -1) {
    DataOptions options;
    options.name = name, options.dtype = dtype, options.shape = shape, options.storage = storage;
    options.index_limit = limit;
    return host_.data(options);
  }
  [[nodiscard]] std::vector<Feed> feeds() const {
    return {{"x", {TN_F32, {kSamples, 2}, x.data()}}, {"y", {TN_F32, {kSamples, 2}, x.data()}}};
  }

  const Floats x = {1, -2, 0.5, 3, -1, 0.25};
  Host host_{HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}}};
  Layer x_, hidden_;
  Parameters parameters_;
};

TEST_F(InferArrays, InPartsOfAnySize) {
  MachineOptions whole;
  whole.max_samples = 8;
  const Machine reader = host_.machine(parameters_, {hidden_}, whole);
  reader.forward({feeds()[0]});
  const Floats expected = numbers(reader.output(hidden_));
  InferOptions options;
  options.outputs = {hidden_}, options.parameters = parameters_, options.feeds = feeds();
  EXPECT_EQ(refused([&] { infer_arrays(options); }).code(), TN_NOT_FOUND);  // y
  options.flags = TN_FORWARD_IGNORE_UNUSED;
  for (const int64_t most : {0, 1, 2, 3, 100}) {
    options.max_samples = most;
    const auto results = infer_arrays(options);
    EXPECT_EQ(results.at(0).shape, (Ids{kSamples, 4}));
    EXPECT_EQ(results[0].values, expected) << most;
  }
  options.max_samples = 2;
  std::vector<int64_t> firsts;
  infer_parts(options, [&](int64_t first, const std::vector<Array>& outputs) {
    firsts.push_back(first);
    EXPECT_EQ(outputs.at(0).shape, (Ids{first == 0 ? 2 : 1, 4}));
    return true;
  });
  EXPECT_THAT(firsts, ElementsAre(0, 2));
  infer_parts(options, [&](int64_t first, const std::vector<Array>&) {
    firsts.push_back(first);
    return false;
  });
  EXPECT_THAT(firsts, ElementsAre(0, 2, 0));
  EXPECT_THROW(infer_parts(options, [](int64_t, const std::vector<Array>&) -> bool { throw std::string(); }),
               std::string);
  options.feeds = {{"x", {TN_F32, {0, 2}, nullptr}}};
  EXPECT_EQ(infer_arrays(options).at(0).shape, (Ids{0, 4}));
  EXPECT_EQ(refused([&] { infer_arrays<double>(options); }).code(), TN_INVALID);
}

TEST_F(InferArrays, IntoResultsThatFit) {
  const std::vector<tn_layer> outputs = {hidden_.handle(), x_.handle()};
  const std::vector<Feed> given = feeds();
  const std::vector<tn_feed> list = detail::c_feeds(given);  // the first is that of x
  tn_infer_options options = {};
  options.size = sizeof options;
  options.outputs = outputs.data(), options.outputs_count = 2;
  options.parameters = parameters_.handle();
  options.feeds = list.data(), options.feeds_count = 1;
  tn_error error = {};
  error.size = sizeof error;
  std::vector<tn_array> results(2);
  const auto call = [&] { return tn_infer_arrays(host_.get(), &options, results.data(), &error); };
  ASSERT_EQ(call(), TN_OK) << error.message;
  EXPECT_EQ(results[0].dtype, TN_F32);
  EXPECT_EQ(results[0].rank, 2);
  EXPECT_EQ(results[0].shape[0], kSamples);
  EXPECT_EQ(results[0].shape[1], 4);
  Floats to(kSamples * 4, 77);
  results[0].data = to.data();
  results[0].shape[1] = 5;
  EXPECT_EQ(call(), TN_INVALID);
  EXPECT_STREQ(error.message, "the result of layer \"hidden\": expected float32 [3, 4], got float32 [3, 5]");
  EXPECT_THAT(to, testing::Each(77));
  results[0].shape[1] = 4;
  results[0].dtype = TN_F64;
  EXPECT_EQ(call(), TN_INVALID);
  results[0].dtype = TN_F32;
  ASSERT_EQ(call(), TN_OK) << error.message;  // the other one is not wanted
  EXPECT_EQ(results[1].data, nullptr);
  EXPECT_NE(to.back(), 77);
  EXPECT_EQ(tn_infer_arrays(host_.get(), &options, nullptr, &error), TN_MISUSE);
  EXPECT_EQ(tn_infer_parts(host_.get(), &options, nullptr, nullptr, &error), TN_MISUSE);
  options.max_samples = -1;
  EXPECT_EQ(call(), TN_INVALID);
  options.max_samples = 0, options.flags = 4;
  EXPECT_EQ(call(), TN_UNSUPPORTED);
  options.flags = 0, options.outputs_count = 0;
  EXPECT_EQ(call(), TN_INVALID);
}

TEST_F(InferArrays, OfAnyStorage) {
  const Layer words = data("words", TN_I64, {}, TN_RAGGED, 6), deep = data("deep", TN_F32, {2});
  DataOptions nested;
  nested.name = "nested", nested.dtype = TN_F32, nested.storage = TN_RAGGED, nested.levels = 2;
  const Layer inner = host_.data(nested), bag = data("bag", TN_F32, {7}, TN_CSR);
  const auto pool = [&](const Layer& of, const char* level) {
    return host_.layer("sequence_pool", {of}, {{"kind", "sum"}, {"level", level}});
  };
  const Layer table = host_.layer("embedding", {words}, {{"vocabulary", 6}, {"size", 3}}, "table");
  const Layer sparse = host_.layer("fc", {bag}, {{"size", 2}}, "sparse");
  InferOptions options;
  options.outputs = {pool(table, "sequence"), pool(inner, "sample"), sparse, deep};
  options.parameters = host_.parameters(options.outputs, 1);
  const Ids ids = {5, 0, 1, 2, 3, 4, 0}, ends = {0, 2, 2, 3, 6, 7};
  const Ids outer = {0, 1, 3, 3, 4, 6}, rows = {0, 2, 3, 3, 5, 6, 8};
  const Floats values = {1, 2, 3, 4, 5, 6, 7, 8}, matrix = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const Ids columns = {0, 6, 2, 1, 3, 5, 4};
  Array transposed = {TN_F32, {5, 2}, matrix.data()};
  transposed.strides = {1, 5};
  options.feeds = {{"words", Array::sequences(TN_I64, {7}, ids.data(), 5, ends.data())},
                   {"nested", Array::nested(TN_F32, {8}, values.data(), 5, outer.data(), rows.data())},
                   {"bag", Array::sparse(5, 7, ends.data(), columns.data(), values.data())},
                   {"deep", transposed}};
  const auto whole = infer_arrays(options);
  EXPECT_THAT(whole[1].values, ElementsAre(3, 3, 0, 9, 21));  // nested: rows 0-1; 2; none; 3-4; 5-7
  EXPECT_THAT(whole[3].values, ElementsAre(1, 6, 2, 7, 3, 8, 4, 9, 5, 10));
  for (const int64_t most : {1, 2, 3, 4}) {
    options.max_samples = most;
    const auto parts = infer_arrays(options);
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(parts[i].shape, whole[i].shape) << i;
      EXPECT_EQ(parts[i].values, whole[i].values) << i;
    }
  }
  // Everything is checked first, by the numbers of the whole arrays.
  Ids wrong = ids;
  wrong[6] = 6;
  options.feeds[0] = {"words", Array::sequences(TN_I64, {7}, wrong.data(), 5, ends.data())};
  bool called = false;
  const auto count = [&](int64_t, const std::vector<Array>&) { return called = true; };
  EXPECT_THAT(refused([&] { infer_parts(options, count); }).what(), HasSubstr("row 6 of the minibatch is 6"));
  const Ids falling = {0, 2, 1, 3, 6, 7};
  options.feeds[0] = {"words", Array::sequences(TN_I64, {7}, ids.data(), 5, falling.data())};
  EXPECT_EQ(refused([&] { infer_parts(options, count); }).code(), TN_INVALID);
  EXPECT_FALSE(called);
  options.outputs = {table};
  EXPECT_THAT(refused([&] { infer_parts(options, count); }).what(), HasSubstr("\"nested\""));  // not of this model
  options.flags = TN_FORWARD_IGNORE_UNUSED;
  options.feeds[0] = {"words", Array::sequences(TN_I64, {7}, ids.data(), 5, ends.data())};
  EXPECT_THAT(refused([&] { infer_parts(options, count); }).what(),
              HasSubstr("expected a dense output with one entry for each sample"));
}

}  // namespace
}  // namespace tenon_tests
