// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

int64_t size_of(char letter) { return letter == 'i' ? 3 : letter == 'j' ? 4 : 2; }

int64_t elements(const std::string& letters) {
  int64_t product = 1;
  for (const char letter : letters) product *= size_of(letter);
  return product;
}

// The places in a sample of each value, by one term of the sum after the other: all values of all letters.
std::vector<size_t> places(const std::string& value, const std::string& letters) {
  std::vector<size_t> result;
  for (int64_t term = 0; term < elements(letters); ++term) {
    std::map<char, int64_t> indices;
    int64_t rest = term, place = 0;
    for (const char letter : letters) indices[letter] = rest % size_of(letter), rest /= size_of(letter);
    for (const char letter : value) place = place * size_of(letter) + indices[letter];
    result.push_back(static_cast<size_t>(place));
  }
  return result;
}

LayerCase einsum(const std::string& equation, const std::vector<std::string>& inputs, const std::string& output) {
  LayerCase layer;
  layer.type = "einsum";
  layer.attributes = {{"equation", equation}};
  layer.samples = {1, 2, 7};
  std::string letters;
  for (const std::string& input : inputs) {
    layer.inputs.emplace_back();
    for (const char letter : input) {
      layer.inputs.back().shape.push_back(size_of(letter));
      if (letters.find(letter) == std::string::npos) letters += letter;
    }
  }
  for (const char letter : output) layer.output_shape.push_back(size_of(letter));
  std::vector<std::vector<size_t>> factors;
  for (const std::string& input : inputs) factors.push_back(places(input, letters));
  const std::vector<size_t> sums = places(output, letters);
  layer.formula = [=](const FormulaArguments& a) {
    const auto width = static_cast<size_t>(elements(output));
    std::vector<double> y(static_cast<size_t>(a.samples) * width);
    for (size_t sample = 0; sample < static_cast<size_t>(a.samples); ++sample)
      for (size_t term = 0; term < sums.size(); ++term) {
        double product = 1;
        for (size_t i = 0; i < inputs.size(); ++i)
          product *= a.inputs[i][sample * static_cast<size_t>(elements(inputs[i])) + factors[i][term]];
        y[sample * width + sums[term]] += product;
      }
    return y;
  };
  return layer;
}

TEST(Einsum, OfMatrices) {
  EXPECT_GT(check_layer(einsum("ij,jk->ik", {"ij", "jk"}, "ik")), 0);
  EXPECT_GT(check_layer(einsum(" ji , kj -> ki ", {"ji", "kj"}, "ki")), 0);
  EXPECT_GT(check_layer(einsum("ji,jk", {"ji", "jk"}, "ik")), 0);
  EXPECT_GT(check_layer(einsum("ij,j->i", {"ij", "j"}, "i")), 0);
  EXPECT_GT(check_layer(einsum("i,ij", {"i", "ij"}, "j")), 0);
}
TEST(Einsum, WithABatch) {
  EXPECT_GT(check_layer(einsum("bij,bjk->bik", {"bij", "bjk"}, "bik")), 0);
  EXPECT_GT(check_layer(einsum("ibj,kbj->bik", {"ibj", "kbj"}, "bik")), 0);
  EXPECT_GT(check_layer(einsum("bji,bkj->kib", {"bji", "bkj"}, "kib")), 0);
}
TEST(Einsum, ElementByElement) {
  EXPECT_GT(check_layer(einsum("ij,ij->ij", {"ij", "ij"}, "ij")), 0);
  EXPECT_GT(check_layer(einsum("ij,ji->i", {"ij", "ji"}, "i")), 0);
  EXPECT_GT(check_layer(einsum("ij,ij", {"ij", "ij"}, "")), 0);
  EXPECT_GT(check_layer(einsum("ji,i->ij", {"ji", "i"}, "ij")), 0);
  EXPECT_GT(check_layer(einsum("i,ji->ij", {"i", "ji"}, "ij")), 0);
  EXPECT_GT(check_layer(einsum(",i->i", {"", "i"}, "i")), 0);
}
TEST(Einsum, OuterProductsAndSums) {
  EXPECT_GT(check_layer(einsum("i,j->ij", {"i", "j"}, "ij")), 0);
  EXPECT_GT(check_layer(einsum("ij,k->kj", {"ij", "k"}, "kj")), 0);
  EXPECT_GT(check_layer(einsum("ij,jk->", {"ij", "jk"}, "")), 0);
}
TEST(Einsum, OfOneInput) {
  EXPECT_GT(check_layer(einsum("ij->ji", {"ij"}, "ji")), 0);
  EXPECT_GT(check_layer(einsum("ijk->j", {"ijk"}, "j")), 0);
  EXPECT_GT(check_layer(einsum("ba", {"ba"}, "ab")), 0);
}
TEST(Einsum, OfSeveralInputs) {
  EXPECT_GT(check_layer(einsum("ij,jk,kl->il", {"ij", "jk", "kl"}, "il")), 0);
  EXPECT_GT(check_layer(einsum("i,iA,i->A", {"i", "iA", "i"}, "A")), 0);
}
TEST(Einsum, OnRowsOfSequences) { EXPECT_GT(check_layer(on_rows(einsum("ab,b->a", {"ab", "b"}, "a"), 1)), 0); }

TEST(Einsum, MistakesAreNamed) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  const auto data = [&](const char* name, const std::vector<int64_t>& shape) {
    DataOptions options;
    options.name = name, options.dtype = TN_F32, options.shape = shape;
    return host.data(options);
  };
  const Layer x = data("x", {3, 4}), y = data("y", {5, 2});
  const auto expect = [&](const std::string& equation, const Layers& inputs, const std::string& part,
                          tn_status code = TN_INVALID) {
    try {
      (void)host.layer("einsum", inputs, {{"equation", equation}}, "bad");
      ADD_FAILURE() << equation << " is accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("bad"), std::string::npos) << error.what();
    }
  };
  expect("ij,jk->ik", {x, y}, "\"jk\", has the length 5 along j, which is 4 in an input before it");
  expect("ij,jk->ik", {x, y}, "(expected float [samples, 4, 2], got float [samples, 5, 2])");
  expect("ij,jk->ik", {x}, "has 2 terms for 1 inputs");
  expect("i->i", {x}, "must have 1 dimensions after the samples");
  expect("ij->ik", {x}, "the letter k in the output and in no input");
  expect("i2->i", {x}, "the character \"2\"");
  expect("ij->i->j", {x}, "the character \"-\"");
  expect("ii->i", {x}, "the letter i twice in \"ii\"; diagonals", TN_UNSUPPORTED);
  expect("ij->ii", {x}, "the letter i twice", TN_UNSUPPORTED);
  expect("...i,ij->j", {x, y}, "has an ellipsis", TN_UNSUPPORTED);
  expect("", {x}, "must have 0 dimensions");
}

}  // namespace
}  // namespace tenon_tests
