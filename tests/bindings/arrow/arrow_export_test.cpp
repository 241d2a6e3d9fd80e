// Outputs as record batches of Arrow. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/tenon_predictor.hpp>

#include "tests/bindings/arrow/arrow_case.h"

namespace tenon_tests {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Reads a batch back as feeds.
class ArrowExport : public Arrow {
 protected:
  [[nodiscard]] Array again(const Layer& layer, ArrowSchema& schema, ArrowArray& batch) {
    feeds_ = std::make_unique<arrow::Feeds>(Layers{layer}, nullptr, schema, batch);
    schema.release(&schema);
    return feeds_->list()[0].values;
  }
  std::unique_ptr<arrow::Feeds> feeds_;
};

TEST_F(ArrowExport, WhatGoesOutComesIn) {
  ArrowSchema schema;
  ArrowArray batch;
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  arrow::export_batch({{"x", {TN_F32, {2, 3, 2}, numbers.data()}}}, schema, batch);
  EXPECT_STREQ(schema.children[0]->format, "+w:3");
  EXPECT_STREQ(schema.children[0]->children[0]->format, "+w:2");
  EXPECT_EQ(batch.length, 2);
  EXPECT_EQ(numbers_of<float>(again(data("x", TN_F32, {3, 2}), schema, batch)), numbers);

  const std::vector<int64_t> outer = {0, 1, 3}, inner = {0, 2, 2, 3};
  const std::vector<int32_t> words = {7, 8, 9};
  arrow::export_batch({{"x", Array::nested(TN_I32, {3}, words.data(), 2, outer.data(), inner.data())}}, schema, batch);
  const Array nested = again(data("x", TN_I32, {}, TN_RAGGED, 2), schema, batch);
  EXPECT_EQ(numbers_of<int32_t>(nested), words);
  EXPECT_EQ(offsets_of(nested), outer);
  EXPECT_EQ(offsets_of(nested, 1), inner);

  const std::vector<int64_t> offsets = {0, 0, 2}, ids = {1, 3};
  arrow::export_batch({{"x", Array::sparse(2, 4, offsets.data(), ids.data(), nullptr)}}, schema, batch);
  const Array sparse = again(data("x", TN_F32, {4}, TN_CSR), schema, batch);
  EXPECT_EQ(offsets_of(sparse), offsets);
  EXPECT_THAT(numbers_of<float>(sparse, 2), ElementsAre(1, 1));

  const std::vector<uint8_t> flags = {1, 0, 0, 1, 1, 0, 1, 0, 1};
  arrow::export_batch({{"x", {TN_BOOL, {9}, flags.data()}}}, schema, batch);
  EXPECT_EQ(numbers_of<uint8_t>(again(data("x", TN_BOOL), schema, batch)), flags);

  const std::vector<int16_t> classes = {1, 0, 1};
  arrow::export_batch({{"x", {TN_I16, {3}, classes.data()}, {"no", "yes"}}}, schema, batch);
  EXPECT_EQ(schema.children[0]->dictionary->format, std::string("U"));
  EXPECT_THAT(numbers_of<int64_t>(again(data("x", TN_I64), schema, batch)), ElementsAre(1, 0, 1));
  arrow::export_batch({}, schema, batch);
  EXPECT_EQ(batch.length, 0);
  schema.release(&schema), batch.release(&batch);
}

TEST_F(ArrowExport, MemoryIsLentUntilTheLastPartIsReleased) {
  ArrowSchema schema;
  ArrowArray batch;
  auto numbers = std::make_shared<std::vector<float>>(3, 1.5F);
  const std::weak_ptr<std::vector<float>> watched = numbers;
  const Array array{TN_F32, {3}, numbers->data()};
  arrow::export_batch({{"x", array}, {"y", array}}, schema, batch, std::move(numbers));
  EXPECT_EQ(batch.children[0]->buffers[1], array.data);
  ArrowArray moved = *batch.children[1];  // a consumer may take a child
  batch.children[1]->release = nullptr;
  batch.release(&batch), schema.release(&schema);
  EXPECT_EQ(batch.release, nullptr);
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(static_cast<const float*>(moved.buffers[1])[2], 1.5F);
  moved.release(&moved);
  EXPECT_TRUE(watched.expired());
}

TEST_F(ArrowExport, ArraysWithoutAFormAreRefused) {
  static int released = 0;
  released = 0;
  const auto refused = [&](const std::vector<arrow::Column>& columns, tn_status code, const char* why) {
    ArrowSchema schema = {};
    ArrowArray batch = {};
    const auto owner = std::shared_ptr<const void>(&released, [](const void*) { ++released; });
    const Error error = error_of([&] { arrow::export_batch(columns, schema, batch, owner); });
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(why));
    EXPECT_EQ(schema.release, nullptr);
    EXPECT_EQ(batch.release, nullptr);
    EXPECT_EQ(owner.use_count(), 1);
  };
  const std::vector<int64_t> numbers = {0, 5, 1, 3};
  refused({{"x", {TN_I64, {4}, numbers.data()}}, {"y", {TN_I64, {3}, numbers.data()}}}, TN_INVALID,
          "column \"y\" has 3 rows; column \"x\" has 4");
  refused({{"x", {TN_BF16, {4}, numbers.data()}}}, TN_UNSUPPORTED, "column \"x\" has elements of code 4 and 16 bits");
  refused({{"x", {TN_I64, {}, numbers.data()}}}, TN_INVALID, "expected samples");
  refused({{"x", {TN_I64, {-1}, numbers.data()}}}, TN_INVALID, "has the shape [-1]");
  refused({{"x", {TN_I64, {4}, nullptr}}}, TN_INVALID, "has no data");
  refused({{"x", {TN_I64, {4}, numbers.data()}, {"a", "b"}}}, TN_INVALID,
          "has the number 5, which none of its 2 names names");
  refused({{"x", {TN_I64, {2, 2}, numbers.data()}, {"a"}}}, TN_INVALID, "not of one integer for each sample");
  refused({{"x", Array::sequences(TN_I64, {3}, numbers.data(), 3, numbers.data())}}, TN_INVALID, "fall");
  Array strided{TN_I64, {2}, numbers.data()};
  strided.strides = {2};
  refused({{"x", strided}}, TN_UNSUPPORTED, "has strides");
}

TEST_F(ArrowExport, OutputsOfAPredictorAreABatch) {
  const Layer x = data("x", TN_F32, {2});
  const Layer sum = host_.layer("fc", {x}, {{"size", 3}}, "score");
  const Parameters parameters = host_.parameters({sum}, 1);
  PredictorOptions options;
  options.max_samples = 2;
  const Predictor predictor(parameters, {sum}, options);
  const arrow::Feeds fed = feeds({sum}, structs({vectors(2, floats({1, 2, 3, 4})).called("x")}), &parameters);
  ArrowSchema schema;
  ArrowArray batch;
  std::vector<float> expected;
  predictor.predict(fed.list(), [&](const std::vector<Array>& outputs) {
    expected = numbers_of<float>(outputs[0]);
    arrow::export_batch({{"score", outputs[0]}}, schema, batch);
  });
  EXPECT_EQ(batch.length, 2);
  EXPECT_EQ(numbers_of<float>(again(data("score", TN_F32, {3}), schema, batch)), expected);
}

}  // namespace

}  // namespace tenon_tests
