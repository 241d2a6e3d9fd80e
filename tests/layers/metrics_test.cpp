// Metrics against plain counting, over one minibatch and over several. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <tenon/tenon.hpp>

#include "tests/layers/metered.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

TEST(AverageMetric, IsTheMeanOfAllElements) {
  EXPECT_NEAR(Metered("average", {}, 0, false)({{1, 2, 6}, {}}).at("average"), 3, 1e-7);
  EXPECT_NEAR(Metered("average", {}, 2, false)({{1, 2, 6, -3}, {}}).at("average"), 1.5, 1e-7);
  EXPECT_EQ(Metered("average", {}, 2, false)({}).at("average"), 0);
  const Batch many = draw(1, 999, 1, 1);
  double sum = 0;
  for (const float score : many.scores) sum += static_cast<double>(score);
  EXPECT_NEAR(Metered("average", {}, 0, false)({many.scores, {}}).at("average"), sum / 999, 1e-6);
}

TEST(RegressionMetrics, AreMeansOfErrors) {
  const Metered squared("mean_squared_error", {}, 0), absolute("mean_absolute_error", {}, 0);
  const Batch few = {{1, 2, 6}, {1, 4, 3}};
  EXPECT_NEAR(squared(few).at("mean_squared_error"), 13.0 / 3, 1e-6);
  EXPECT_NEAR(absolute(few).at("mean_absolute_error"), 5.0 / 3, 1e-6);
  EXPECT_EQ(squared({}).at("mean_squared_error"), 0);
  EXPECT_EQ(absolute({}).at("mean_absolute_error"), 0);
  for (const char* type :
       {"mean_squared_error", "mean_absolute_error", "r2", "correlation"})  // [samples, 1], [samples]
    EXPECT_EQ(Metered(type, {}, 1)(few), Metered(type, {}, 0)(few)) << type;
  const Batch many = draw(5, 999, 1, 3);
  double squares = 0, sizes = 0;
  for (size_t i = 0; i < 999; ++i) {
    const double difference = static_cast<double>(many.scores[i]) - static_cast<double>(many.labels[i]);
    squares += difference * difference;
    sizes += std::abs(difference);
  }
  for (const int threads : {1, 2, 8}) {
    const Metered other("mean_squared_error", {}, 0, true, threads);
    EXPECT_NEAR(other(many).at("mean_squared_error"), squares / 999, 1e-5);
    EXPECT_EQ(other(many), squared(many)) << threads << " threads";
  }
  EXPECT_NEAR(absolute(many).at("mean_absolute_error"), sizes / 999, 1e-5);
}

TEST(BinaryMetrics, AreThoseOfTheFourCounts) {
  const Batch many = draw(3, 999, 1, 2);
  for (const double threshold : {0.5, 0.3}) {
    double both = 0, named = 0, real = 0;
    for (size_t i = 0; i < 999; ++i) {
      const bool is_named = static_cast<double>(many.scores[i]) > threshold, is_real = many.labels[i] == 1;
      both += is_named && is_real ? 1 : 0, named += is_named ? 1 : 0, real += is_real ? 1 : 0;
    }
    const double wrong_named = named - both, missed = real - both, neither = 999 - named - missed;
    const Attributes at = {{"threshold", threshold}};
    for (const int columns : {0, 1})
      EXPECT_NEAR(Metered("binary_accuracy", at, columns)(many).at("binary_accuracy"), (both + neither) / 999, 1e-9);
    const double precision = both / named, recall = both / real;
    EXPECT_NEAR(Metered("f_beta", {{"threshold", threshold}, {"beta", 2.0}}, 0)(many).at("f_beta"),
                5 * precision * recall / (4 * precision + recall), 1e-9);
    EXPECT_NEAR(Metered("matthews_correlation", at, 0)(many).at("matthews_correlation"),
                (both * neither - wrong_named * missed) /
                    std::sqrt(named * real * (neither + wrong_named) * (neither + missed)),
                1e-9);
  }
  for (const char* type : {"binary_accuracy", "f_beta", "matthews_correlation"}) {
    EXPECT_EQ(Metered(type, {}, 0)({}).at(type), 0) << type;
    EXPECT_EQ(Metered(type, {}, 0)({{0.1F, 0.2F}, {1, 1}}).at(type), 0) << type;  // all are called false
  }
}

TEST(BinaryMetrics, CalibrationError) {
  // Bins of 0.5: two samples of 0.25 on the mean, none true; three of 0.8, two true.
  const Batch few = {{0.1F, 0.4F, 0.7F, 0.8F, 0.9F}, {0, 0, 1, 0, 1}};
  const Values one = Metered("calibration_error", {{"bins", 2}}, 0)(few);
  EXPECT_NEAR(one.at("calibration_error"), (2 * 0.25 + 3 * (0.8 - 2.0 / 3)) / 5, 1e-6);
  EXPECT_NEAR(one.at("max_calibration_error"), 0.25, 1e-6);
  EXPECT_EQ(Metered("calibration_error", {{"bins", 2}}, 1)(few), one);
  // Of classes: confidences 0.6, 0.9 and 0.5, of equal scores the first; right, wrong, right.
  const Values three = Metered("calibration_error", {{"bins", 10}},
                               3)({{0.6F, 0.3F, 0.1F, 0.05F, 0.05F, 0.9F, 0.5F, 0.5F, 0}, {0, 1, 0}});
  EXPECT_NEAR(three.at("calibration_error"), (0.4 + 0.9 + 0.5) / 3, 1e-6);
  EXPECT_NEAR(three.at("max_calibration_error"), 0.9, 1e-6);
  EXPECT_EQ(Metered("calibration_error", {}, 0)({}).at("calibration_error"), 0);
}

TEST(RegressionMetrics, Perplexity) {
  EXPECT_NEAR(Metered("perplexity", {}, 0, false)({{1, 2, 6}, {}}).at("perplexity"), std::exp(3.0), 1e-5);
  EXPECT_NEAR(Metered("perplexity", {}, 2, false)({{1, 2, 0, -1}, {}}).at("perplexity"), std::exp(0.5), 1e-6);
  EXPECT_EQ(Metered("perplexity", {}, 0, false)({}).at("perplexity"), 1);
}

TEST(ClassificationErrorMetric, CountsLabelsOutsideTheTop) {
  const Metered one("classification_error", {}, 4), two("classification_error", {{"top", 2}}, 4);
  const auto error = [](const Metered& metric, const Batch& batch) { return metric(batch).at("classification_error"); };
  const std::vector<float> scores{1, 4, 3, 2};
  for (const auto& [label, of_one, of_two] : {std::tuple{0, 1, 1}, {1, 0, 0}, {2, 1, 0}, {3, 1, 1}}) {
    EXPECT_EQ(error(one, {scores, {label}}), of_one);
    EXPECT_EQ(error(two, {scores, {label}}), of_two);
  }
  EXPECT_EQ(error(one, {{2, 2, 2, 2}, {0}}), 0);  // of equal scores the first
  EXPECT_EQ(error(one, {{2, 2, 2, 2}, {1}}), 1);
  EXPECT_EQ(error(two, {{2, 2, 2, 2}, {1}}), 0);
  EXPECT_EQ(error(one, {{NAN, 1, 0, 0}, {1}}), 1);  // with a NaN score every label is wrong
  EXPECT_EQ(error(one, {{NAN, 1, 0, 0}, {0}}), 1);
  EXPECT_EQ(error(one, {}), 0);
}

TEST(ClassificationErrorMetric, ManySamples) {
  const Batch batch = draw(2, 777, 10, 10);
  for (const int64_t top : {1, 3, 10}) {
    double wrong = 0;
    for (size_t i = 0; i < 777; ++i) {
      const float* scores = batch.scores.data() + i * 10;
      const float own = scores[batch.labels[i]];
      wrong += std::count_if(scores, scores + 10, [&](float score) { return score > own; }) >= top ? 1 : 0;
    }
    for (const int threads : {1, 2, 3, 8}) {
      const Metered metric("classification_error", {{"top", top}}, 10, true, threads);
      EXPECT_EQ(metric(batch).at("classification_error"), wrong / 777);
    }
  }
}

Values quality(double right, double named, double real) {
  const double precision = named > 0 ? right / named : 0, recall = real > 0 ? right / real : 0;
  return {{"precision", precision},
          {"recall", recall},
          {"f1", precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0}};
}
void expect_near(const Values& got, const Values& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, value] : expected) EXPECT_NEAR(got.at(name), value, 1e-12) << name;
}

TEST(TopKAccuracyMetric, IsTheOtherShare) {
  const Batch batch = draw(4, 333, 7, 7);
  for (const int64_t top : {1, 2, 7})
    EXPECT_NEAR(Metered("top_k_accuracy", {{"k", top}}, 7)(batch).at("top_k_accuracy"),
                1 - Metered("classification_error", {{"top", top}}, 7)(batch).at("classification_error"), 1e-12);
  EXPECT_EQ(Metered("top_k_accuracy", {{"k", 1}}, 4)({{NAN, 1, 0, 0}, {1}}).at("top_k_accuracy"), 0);
  EXPECT_EQ(Metered("top_k_accuracy", {}, 7)({}).at("top_k_accuracy"), 0);
}

// The classes that metrics count, with what each needs.
const std::vector<std::pair<std::string, Attributes>> kOfClasses = {
    {"accuracy", {}},
    {"classification_error", {{"top", 2}}},
    {"top_k_accuracy", {{"k", 3}}},
    {"macro_precision_recall", {}},
    {"mean_iou", {}},
    {"confusion_matrix", {{"classes", 5}}},
};

TEST(MetricsOfClasses, LabelsThatAreIgnoredDoNotCount) {
  for (const int64_t ignored : {-100, 2})
    for (auto [type, attributes] : kOfClasses) {
      const Batch all = draw(9, 300, 5, 5);
      Batch marked = all, kept;
      for (size_t i = 0; i < 300; ++i) {
        if (ignored < 0 && i % 3 == 0) marked.labels[i] = ignored;
        if (marked.labels[i] == ignored) continue;
        kept.scores.insert(kept.scores.end(), all.scores.begin() + 5 * i, all.scores.begin() + 5 * i + 5);
        kept.labels.push_back(all.labels[i]);
      }
      const Values expected = Metered(type, attributes, 5)(kept);
      EXPECT_NE(Metered(type, attributes, 5)(all), expected) << type;
      attributes.push_back({"ignore_index", ignored});
      EXPECT_EQ(Metered(type, attributes, 5)(marked), expected) << type;
      const Values none = Metered(type, attributes, 5)({{1, 2, 3, 4, 5}, {ignored}});
      for (const auto& [name, value] : none) EXPECT_EQ(value, 0) << type << " " << name;
    }
}

TEST(MetricsOfClasses, EachPositionCounts) {
  const Batch batch = draw(10, 300, 5, 5);
  for (const auto& [type, attributes] : kOfClasses)
    EXPECT_EQ(Metered(type, attributes, 5, true, 2, 3)(batch), Metered(type, attributes, 5)(batch)) << type;
}

TEST(ConfusionMatrixMetric, CountsEachPair) {
  const Batch batch = draw(6, 400, 4, 3);  // class 3 never occurs
  std::map<std::string, double> expected;
  std::vector<double> right(4), either(4);
  for (size_t i = 0; i < 400; ++i) {
    const float* scores = batch.scores.data() + 4 * i;
    const auto called = static_cast<size_t>(std::max_element(scores, scores + 4) - scores);
    const auto label = static_cast<size_t>(batch.labels[i]);
    ++expected[std::to_string(label) + "_as_" + std::to_string(called)];
    right[label] += label == called ? 1 : 0;
    ++either[label], either[called] += label == called ? 0 : 1;
  }
  const Values counts = Metered("confusion_matrix", {{"classes", 4}}, 4)(batch);
  ASSERT_EQ(counts.size(), 16U);
  for (const auto& [name, value] : counts) EXPECT_EQ(value, expected[name]) << name;
  double mean = 0;
  for (size_t k = 0; k < 4; ++k) mean += right[k] / either[k] / 4;
  EXPECT_NEAR(Metered("mean_iou", {}, 4)(batch).at("mean_iou"), mean, 1e-12);
  EXPECT_EQ(Metered("mean_iou", {}, 4)({{1, 0, 0, 0, 0, 1, 0, 0}, {0, 0}}).at("mean_iou"), 0.25);  // of 0 and 1 alone
  const Values odd = Metered("confusion_matrix", {{"classes", 2}}, 2)({{NAN, NAN, NAN, 1, 2, 2}, {1, 1, 1}});
  EXPECT_EQ(odd, (Values{{"0_as_0", 0}, {"0_as_1", 0}, {"1_as_0", 2 + 1}, {"1_as_1", 0}}));
  EXPECT_EQ(Metered("confusion_matrix", {{"classes", 2}}, 2)({}).at("1_as_1"), 0);
  EXPECT_EQ(Metered("mean_iou", {}, 2)({}).at("mean_iou"), 0);
}

TEST(PrecisionRecallMetric, OfTwo) {
  for (const int64_t columns : {0, 1}) {
    const Metered metric("precision_recall", {{"threshold", 0.3}}, columns);
    expect_near(metric({{0.9F, 0.4F, 0.31F, 0.1F, 0.2F}, {1, 0, 1, 1, 0}}), quality(2, 3, 3));
    expect_near(metric({{0.1F, 0.3F}, {1, 0}}), quality(0, 0, 1));
    expect_near(metric({}), quality(0, 0, 0));
  }
}

TEST(PrecisionRecallMetric, OfManyClasses) {
  for (const size_t classes : {2, 7, 40}) {
    const Batch batch = draw(3 + classes, 500, classes, static_cast<int64_t>(classes) - 1);  // the last never occurs
    std::vector<double> right(classes), named(classes), real(classes);
    for (size_t i = 0; i < 500; ++i) {
      const float* scores = batch.scores.data() + i * classes;
      const auto called = static_cast<size_t>(std::max_element(scores, scores + classes) - scores);
      const auto label = static_cast<size_t>(batch.labels[i]);
      ++named[called], ++real[label];
      if (called == label) ++right[label];
    }
    Values expected = {{"precision", 0}, {"recall", 0}, {"f1", 0}};
    for (size_t k = 0; k < classes; ++k)
      for (const auto& [name, value] : quality(right[k], named[k], real[k]))
        expected[name] += value / static_cast<double>(classes);
    expect_near(Metered("macro_precision_recall", {}, static_cast<int64_t>(classes))(batch), expected);
  }
  expect_near(Metered("macro_precision_recall", {}, 3)({}), quality(0, 0, 0));
}

TEST(AucMetric, OfAFew) {
  const Metered metric("auc", {}, 0);
  EXPECT_EQ(metric({{0.1F, 0.4F, 0.35F, 0.8F}, {0, 0, 1, 1}}).at("auc"), 0.75);
  EXPECT_EQ(metric({{0.1F, 0.4F, 0.35F, 0.8F}, {0, 0, 1, 1}}).at("auc_error"), 0);
  EXPECT_EQ(metric({{0.5F, 0.5F}, {0, 1}}).at("auc"), 0.5);
  EXPECT_EQ(metric({{0.5F, 0.5F}, {0, 1}}).at("auc_error"), 0.5);
  const Metered outside("auc", {{"low", 0.25}, {"high", 0.75}}, 0);
  EXPECT_EQ(outside({{-1, 2, NAN}, {0, 1, 0}}).at("auc"), 1);  // below low, above high, not a number
  EXPECT_EQ(metric({{0.5F}, {1}}).at("auc"), 0.5);
  EXPECT_EQ(metric({}).at("auc"), 0.5);
}

// Compares with a count over all pairs: the stated bound holds, and more bins reduce it.
TEST(AucMetric, KeepsItsBound) {
  Batch batch = draw(5, 600, 1, 2);
  for (size_t i = 0; i < batch.scores.size(); ++i)
    batch.scores[i] = 4 * (0.7F * batch.scores[i] + 0.3F * static_cast<float>(batch.labels[i])) - 2;
  double area = 0, pairs = 0;
  for (size_t i = 0; i < 600; ++i)
    for (size_t k = 0; k < 600; ++k) {
      if (batch.labels[i] != 1 || batch.labels[k] != 0) continue;
      ++pairs;
      area += batch.scores[i] > batch.scores[k] ? 1 : batch.scores[i] == batch.scores[k] ? 0.5 : 0;
    }
  double last = 1;
  for (const int64_t bins : {2, 10, 200, 1000}) {
    const Values values = Metered("auc", {{"bins", bins}, {"low", -2.0}, {"high", 2.0}}, 1)(batch);
    EXPECT_LE(std::abs(values.at("auc") - area / pairs), values.at("auc_error")) << bins;
    EXPECT_LT(values.at("auc_error"), last);
    last = values.at("auc_error");
  }
  EXPECT_LT(last, 1e-3);
}

// Writes an IDX file of bytes, shaped [samples] or [samples, columns].
void write_idx(const std::string& path, const std::vector<uint8_t>& values, uint32_t columns) {
  std::ofstream file(path, std::ios::binary);
  const auto big_endian = [&](uint32_t number) {
    for (const int shift : {24, 16, 8, 0}) file.put(static_cast<char>(number >> shift & 0xffU));
  };
  big_endian(0x0800U + (columns > 0 ? 2 : 1));
  big_endian(static_cast<uint32_t>(values.size()) / std::max(columns, 1U));
  if (columns > 0) big_endian(columns);
  for (const uint8_t value : values) file.put(static_cast<char>(value));
}

// The states of minibatches are added: a pass in pieces gives the same values as one minibatch.
TEST(Metrics, MergeOverMinibatches) {
  for (const auto& [type, columns] : std::map<std::string, uint32_t>{{"auc", 0},
                                                                     {"average", 3},
                                                                     {"classification_error", 3},
                                                                     {"correlation", 0},
                                                                     {"mean_iou", 3},
                                                                     {"r2", 0},
                                                                     {"macro_precision_recall", 3},
                                                                     {"precision_recall", 0}}) {
    std::mt19937_64 random(21);
    std::vector<uint8_t> scores(90 * std::max(columns, 1U)), labels(90);
    for (uint8_t& score : scores) score = static_cast<uint8_t>(random() % 256);
    for (uint8_t& label : labels) label = static_cast<uint8_t>(random() % 2);
    const tenon_tests::TemporaryFolder folder;
    const std::vector<std::string> files{folder.file("score"), folder.file("label")};
    write_idx(files[0], scores, columns);
    write_idx(files[1], labels, 0);
    const Host host({2, {tenon_tests::plugin_folder()}, nullptr, {}});
    DataOptions score, label;
    score.name = "score", score.dtype = TN_U8, score.scale = 1.0 / 256;
    if (columns > 0) score.shape = {columns};
    label.name = "label", label.dtype = TN_U8;
    Layers inputs{host.data(score)};
    if (type != "average") inputs.push_back(host.data(label));
    TrainOptions options;
    options.outputs = {host.layer(type, inputs, {}, "metric")};
    options.parameters = host.parameters(options.outputs, 1);
    Values whole;
    for (const int64_t size : {90, 7}) {
      options.reader =
          host.reader("idx", {{"files", files}, {"names", std::vector<std::string>{"score", "label"}}}).batch(size);
      Values values;
      for (const Metric& metric : tenon::test(options).metrics) values[metric.name] = metric.value;
      if (size == 90) whole = values;
      ASSERT_EQ(values.size(), whole.size());
      for (const auto& [name, value] : whole) EXPECT_NEAR(values.at(name), value, 1e-7) << type << " " << name;
    }
    EXPECT_FALSE(whole.empty());
  }
}

TEST(Metrics, MistakesAreNamed) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  const auto data = [&](const char* name, const std::vector<int64_t>& shape, tn_dtype dtype = TN_F32) {
    DataOptions options;
    options.name = name, options.dtype = dtype, options.shape = shape;
    return host.data(options);
  };
  const Layer x = data("x", {3}), wide = data("wide", {300}), label = data("label", {}, TN_I64);
  const Layer score = data("score", {});
  const auto message = [&](const std::string& type, const Layers& inputs, const Attributes& attributes,
                           tn_status code) {
    try {
      (void)host.layer(type, inputs, attributes, "bad");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(message("classification_error", {x, label}, {{"top", 4}}, TN_INVALID).find("above the 3 classes"),
            std::string::npos);
  EXPECT_NE(message("top_k_accuracy", {x, label}, {}, TN_INVALID).find("above the 3 classes"), std::string::npos);
  EXPECT_NE(message("confusion_matrix", {x, label}, {{"classes", 4}}, TN_INVALID).find("differs from the 3 classes"),
            std::string::npos);
  EXPECT_NE(message("mean_average_precision", {x, x}, {{"bins", 1000}}, TN_UNSUPPORTED).find("above 2048"),
            std::string::npos);
  EXPECT_NE(message("mean_average_precision", {x, x}, {{"low", 1.0}}, TN_INVALID).find("high"), std::string::npos);
  EXPECT_NE(message("r2", {x, score}, {}, TN_INVALID).find("[samples, 3]"), std::string::npos);
  EXPECT_NE(message("mean_iou", {score, label}, {}, TN_INVALID).find("[samples, ..., classes]"), std::string::npos);
  EXPECT_NE(message("mean_iou", {x, x}, {}, TN_INVALID).find("label"), std::string::npos);
  EXPECT_NE(message("precision_recall", {x, label}, {}, TN_INVALID).find("[samples, 3]"), std::string::npos);
  EXPECT_NE(message("auc", {x, label}, {}, TN_INVALID).find("one score for each sample"), std::string::npos);
  EXPECT_NE(message("auc", {score, label}, {{"low", 1.0}}, TN_INVALID).find("high"), std::string::npos);
  EXPECT_NE(message("macro_precision_recall", {wide, label}, {}, TN_UNSUPPORTED).find("at most 256"),
            std::string::npos);
  const Metered metric("precision_recall", {}, 0);
  EXPECT_THROW(metric({{0.5F}, {2}}), Error);
}

}  // namespace
}  // namespace tenon_tests
