// Draws have the distribution that the options state. SPDX-License-Identifier: Apache-2.0
#include "host/generation/decoding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "core/error.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

constexpr size_t kVocabulary = 6;
const std::vector<double> kProbabilities = {0.05, 0.3, 0.1, 0.3, 0.25, 0};

std::vector<double> logarithms(const std::vector<double>& of) {
  std::vector<double> result;
  for (const double each : of) result.push_back(std::log(each));
  return result;
}

// Counts the first ids that are drawn with these options for many streams.
std::vector<double> drawn(DecodingOptions options, uint64_t streams) {
  options.method = Method::kSample, options.max_length = 1;
  const std::vector<double> log_p = logarithms(kProbabilities);
  std::vector<double> counts(kVocabulary, 0);
  for (uint64_t stream = 0; stream < streams; ++stream) {
    Search search(options, {1}, 1, stream, {});
    search.choose({search.candidates(0, log_p)});
    for (const Search::Result& each : search.results()) ++counts[static_cast<size_t>(each.ids.at(0))];
  }
  return counts;
}

// Pearson's statistic; `expected` may have any sum. An id that is not expected must not be drawn.
double chi_square(const std::vector<double>& counts, const std::vector<double>& expected) {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double sum = std::accumulate(expected.begin(), expected.end(), 0.0);
  double result = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double mean = expected[i] / sum * total;
    if (mean == 0)
      EXPECT_EQ(counts[i], 0) << i;
    else
      result += (counts[i] - mean) * (counts[i] - mean) / mean;
  }
  return result;
}

constexpr double kUnlikely = 20.5;  // is exceeded with a probability of 0.001 with 5 degrees of freedom

std::vector<double> raised(std::vector<double> of, double to) {
  for (double& each : of) each = std::pow(each, to);
  return of;
}

TEST(Decoding, DrawsHaveTheProbabilitiesOfTheModel) {
  DecodingOptions options;
  options.seed = 3;
  const std::vector<double> counts = drawn(options, 20000);
  EXPECT_LT(chi_square(counts, kProbabilities), kUnlikely);
  EXPECT_GT(chi_square(counts, {1, 1, 1, 1, 1, 1e-9}), 1000);  // the test can fail
  EXPECT_EQ(drawn(options, 50), drawn(options, 50));
  options.seed = 4;
  EXPECT_NE(drawn(options, 20000), counts);
  options.results = 20;  // draws of one sample are as independent as those of several
  EXPECT_LT(chi_square(drawn(options, 1000), kProbabilities), kUnlikely);
}

TEST(Decoding, TemperatureRaisesProbabilitiesToItsInverse) {
  for (const double temperature : {0.5, 2.0}) {
    DecodingOptions options;
    options.temperature = temperature;
    EXPECT_LT(chi_square(drawn(options, 20000), raised(kProbabilities, 1 / temperature)), kUnlikely);
  }
}

TEST(Decoding, TopKAndTopPLeaveTheMostProbableIds) {
  const auto expect = [](int64_t top_k, double top_p, const std::vector<double>& kept, double temperature = 1) {
    DecodingOptions options;
    options.top_k = top_k, options.top_p = top_p, options.temperature = temperature;
    EXPECT_LT(chi_square(drawn(options, 20000), raised(kept, 1 / temperature)), kUnlikely) << top_k << " " << top_p;
  };
  expect(1, 1, {0, 1, 0, 0, 0, 0});  // of equal ones the lowest
  expect(3, 1, {0, 0.3, 0, 0.3, 0.25, 0});
  expect(9, 1, kProbabilities);
  expect(0, 0.29, {0, 1, 0, 0, 0, 0});
  expect(0, 0.31, {0, 0.3, 0, 0.3, 0, 0});
  expect(0, 0.86, {0, 0.3, 0.1, 0.3, 0.25, 0});
  expect(3, 0.7, {0, 0.3, 0, 0.3, 0, 0});  // 0.6 of 0.85
  expect(3, 0.71, {0, 0.3, 0, 0.3, 0.25, 0});
  expect(0, 0.65, {0, 0.3, 0, 0.3, 0, 0}, 0.5);  // the share is that of the probabilities that the temperature makes
}

TEST(Decoding, ScoresBecomeLogarithmsOfProbabilities) {
  std::vector<double> made;
  const std::vector<float> logits = {0, 1000, -1000, 1, 2, 3};
  const ArrayView view{TN_F32, {2, 3}, logits.data()};
  ASSERT_TRUE(log_probabilities(view, 0, true, 3, made));
  EXPECT_EQ(made, (std::vector<double>{-1000, 0, -2000}));
  ASSERT_TRUE(log_probabilities(view, 1, true, 3, made));
  EXPECT_NEAR(made[0], 1 - std::log(std::exp(1) + std::exp(2) + std::exp(3)), 1e-12);
  ASSERT_TRUE(log_probabilities(view, 1, true, 1, made));
  EXPECT_EQ(made.size(), 1U);
  EXPECT_NEAR(made[0], 1 - std::log(std::exp(1) + std::exp(2) + std::exp(3)), 1e-12);
  const std::vector<double> probabilities = {0.25, 0, 0.75, 0, 0, 1 + 1e-7};
  const ArrayView shares{TN_F64, {2, 3}, probabilities.data()};
  ASSERT_TRUE(log_probabilities(shares, 0, false, 3, made));
  EXPECT_EQ(made[0], std::log(0.25));
  EXPECT_EQ(made[1], -std::numeric_limits<double>::infinity());
  ASSERT_TRUE(log_probabilities(shares, 1, false, 3, made));
  EXPECT_EQ(made[2], 0);  // rounding does not make a probability above 1
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& wrong :
       std::vector<std::vector<double>>{{0, nan}, {infinity, 0}, {-infinity, -infinity}}) {
    const ArrayView bad{TN_F64, {1, 2}, wrong.data()};
    EXPECT_FALSE(log_probabilities(bad, 0, true, 2, made));
  }
  for (const std::vector<double>& wrong :
       std::vector<std::vector<double>>{{0.5, nan}, {1.1, -0.1}, {0, 0}, {0.5, 0.4}}) {
    const ArrayView bad{TN_F64, {1, 2}, wrong.data()};
    EXPECT_FALSE(log_probabilities(bad, 0, false, 2, made));
  }
}

TEST(Decoding, LengthsAreDividedAsInThePaper) {
  EXPECT_EQ(length_divisor(0, 17), 1);
  EXPECT_EQ(length_divisor(0.6, 1), 1);
  EXPECT_NEAR(length_divisor(2, 7), 4, 1e-15);
}

}  // namespace

}  // namespace tenon_tests
