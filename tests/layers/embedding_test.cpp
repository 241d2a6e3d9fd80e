// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Values = std::vector<double>;
using Shape = std::vector<int64_t>;

LayerCase embedding(const Shape& ids, int64_t vocabulary, int64_t size, const std::string& reduce) {
  LayerCase layer;
  layer.type = "embedding";
  layer.attributes = {{"vocabulary", vocabulary}, {"size", size}, {"reduce", reduce}};
  layer.inputs = {{ids, vocabulary}};
  layer.output_shape = reduce == "none" ? ids : Shape{};
  layer.output_shape.push_back(reduce == "concat" ? ids[0] * size : size);
  layer.formula = [=](const FormulaArguments& a) {
    const Values& table = a.parameters.at("weight");
    const auto d = static_cast<size_t>(size);
    const bool joins = reduce == "sum" || reduce == "mean";
    const size_t bag = joins ? static_cast<size_t>(ids[0]) : 1;
    Values y(a.inputs[0].size() / bag * d, 0.0);
    for (size_t i = 0; i < a.inputs[0].size(); ++i)
      for (size_t k = 0; k < d; ++k)
        y[i / bag * d + k] +=
            table[static_cast<size_t>(a.inputs[0][i]) * d + k] / (reduce == "mean" ? static_cast<double>(bag) : 1.0);
    return y;
  };
  return layer;
}

// Small vocabularies, so that ids occur several times and their gradients are added.
TEST(Embedding, OfIds) {
  EXPECT_GT(check_layer(embedding({}, 5, 3, "none")), 0);
  EXPECT_GT(check_layer(embedding({1}, 1, 1, "none")), 0);
  EXPECT_GT(check_layer(embedding({4}, 11, 7, "none")), 0);
  EXPECT_GT(check_layer(embedding({2, 3}, 11, 2, "none")), 0);
}
TEST(Embedding, OfBags) {
  for (const char* reduce : {"sum", "mean", "concat"})
    for (const int64_t bag : {1, 5}) {
      EXPECT_GT(check_layer(embedding({bag}, 9, 7, reduce)), 0);
      EXPECT_GT(check_layer(embedding({bag}, 3, 1, reduce)), 0);
    }
}

// ---- bags of variable size

// The case that adds the rows of a table for the ids of each bag, divided by their number for the mean.
LayerCase embedding_of_sequences(uint32_t levels, int64_t vocabulary, int64_t size, const std::string& reduce) {
  LayerCase layer = embedding({}, vocabulary, size, "none");
  layer.attributes = {{"vocabulary", vocabulary}, {"size", size}, {"reduce", reduce}};
  layer.inputs[0].sequence = "words";
  layer.inputs[0].levels = levels;
  layer.output_rows = reduce == "none" || levels == 2;
  if (reduce == "none") return layer;
  const Formula vectors = layer.formula;
  layer.formula = [=](const FormulaArguments& a) {
    const Values rows = vectors(a);
    const std::vector<int64_t>& ends = a.offsets[0].back();
    const auto d = static_cast<size_t>(size);
    Values y((ends.size() - 1) * d, 0.0);
    for (size_t bag = 0; bag + 1 < ends.size(); ++bag)
      for (auto row = static_cast<size_t>(ends[bag]); row < static_cast<size_t>(ends[bag + 1]); ++row)
        for (size_t k = 0; k < d; ++k)
          y[bag * d + k] +=
              rows[row * d + k] / (reduce == "mean" ? static_cast<double>(ends[bag + 1] - ends[bag]) : 1.0);
    return y;
  };
  return layer;
}

LayerCase embedding_of_sparse(int64_t width, int64_t vocabulary, int64_t size, bool weighted,
                              const std::string& reduce) {
  LayerCase layer;
  layer.type = "embedding";
  layer.attributes = {{"vocabulary", vocabulary}, {"size", size}, {"reduce", reduce}};
  layer.inputs = {{{width}, 0, 0.5, 2}};
  layer.inputs[0].sparse = true;
  layer.inputs[0].weighted = weighted;
  layer.output_shape = {size};
  layer.formula = [=](const FormulaArguments& a) {
    const Values& table = a.parameters.at("weight");
    const auto d = static_cast<size_t>(size), w = static_cast<size_t>(width);
    Values y(static_cast<size_t>(a.samples) * d, 0.0);
    for (size_t i = 0; i < static_cast<size_t>(a.samples); ++i) {
      double whole = 0;
      for (size_t j = 0; j < w; ++j) whole += a.inputs[0][i * w + j];
      for (size_t j = 0; j < w; ++j)
        for (size_t k = 0; k < d; ++k)
          y[i * d + k] += a.inputs[0][i * w + j] * table[j * d + k] / (reduce == "mean" && whole != 0 ? whole : 1.0);
    }
    return y;
  };
  return layer;
}

TEST(Embedding, OfSequences) {
  for (const char* reduce : {"none", "sum", "mean"})
    for (const uint32_t levels : {1U, 2U}) {
      EXPECT_GT(check_layer(embedding_of_sequences(levels, 5, 3, reduce)), 0);
      EXPECT_GT(check_long_sequences(embedding_of_sequences(levels, 5, 3, reduce)), 0);
    }
}

TEST(Embedding, OfSparseBags) {
  for (const char* reduce : {"sum", "mean"})
    for (const bool weighted : {true, false}) {
      EXPECT_GT(check_layer(embedding_of_sparse(5, 5, 3, weighted, reduce)), 0);
      EXPECT_GT(check_layer(embedding_of_sparse(8, 11, 2, weighted, reduce)), 0);
    }
  EXPECT_GT(check_long_sequences(embedding_of_sparse(8, 11, 2, true, "mean")), 0);
}

// If each row has a fixed number of ids, the row is the bag.
TEST(Embedding, OfBagsInSequences) {
  for (const char* reduce : {"sum", "concat"}) {
    LayerCase layer = embedding({3}, 5, 2, reduce);
    layer.inputs[0].sequence = "words";
    layer.output_rows = true;
    EXPECT_GT(check_layer(layer), 0);
  }
}

class EmbeddingOnAHost : public testing::Test {
 protected:
  Layer data(const Shape& shape, tn_dtype dtype = TN_I32) {
    DataOptions options;
    options.name = "ids", options.dtype = dtype, options.shape = shape;
    return host_.data(options);
  }
  std::string refusal(const Layer& ids, const Attributes& attributes) {
    try {
      (void)host_.layer("embedding", {ids}, attributes, "words");
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  Values first_values(const Attributes& attributes) {
    const Layer layer = host_.layer("embedding", {data({})}, attributes, "words");
    const Parameters parameters = host_.parameters({layer}, 7);
    const Array table = parameters.get("words.weight");
    const auto* values = static_cast<const float*>(table.data);
    return {values, values + table.count()};
  }
  Host host_{HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}}};
};

TEST_F(EmbeddingOnAHost, IdsOfAnyIntegerType) {
  for (const tn_dtype dtype : {TN_U8, TN_I8, TN_I16, TN_I32, TN_I64}) {
    const Layer layer =
        host_.layer("embedding", {data({2}, dtype)}, {{"vocabulary", 4}, {"size", 2}, {"reduce", "sum"}}, "words");
    const Parameters parameters = host_.parameters({layer}, 1);
    const float table[] = {1, 2, 4, 8, 16, 32, 64, 128};
    parameters.set("words.weight", {TN_F32, {4, 2}, table});
    MachineOptions options;
    const Machine machine = host_.machine(parameters, {layer}, options);
    // The bytes of 3 and 1, little-endian, in elements of any width.
    uint8_t ids[16] = {};
    const auto width = static_cast<size_t>(tn_dtype_bytes(dtype));
    ids[0] = 3, ids[width] = 1;
    machine.forward({{"ids", {dtype, {1, 2}, ids}}});
    const auto* y = static_cast<const float*>(machine.output(layer).data);
    EXPECT_EQ(y[0], 68);
    EXPECT_EQ(y[1], 136);
  }
}

TEST_F(EmbeddingOnAHost, StartsAsTold) {
  const auto deviation = [](const Values& values) {
    double sum = 0;
    for (const double value : values) sum += value * value;
    return std::sqrt(sum / static_cast<double>(values.size()));
  };
  const auto largest = [](const Values& values) {
    double most = 0;
    for (const double value : values) most = std::max(most, std::abs(value));
    return most;
  };
  const auto of = [](Attributes more) {
    more.insert(more.begin(), {{"vocabulary", 400}, {"size", 25}});
    return more;
  };
  EXPECT_NEAR(deviation(first_values(of({}))), 0.2, 0.01);
  EXPECT_GT(largest(first_values(of({}))), 0.5);
  EXPECT_NEAR(deviation(first_values(of({{"scale", 3.0}}))), 3, 0.1);
  const Values uniform = first_values(of({{"initializer", "uniform"}, {"scale", 3.0}}));
  EXPECT_NEAR(deviation(uniform), std::sqrt(3.0), 0.05);
  EXPECT_LE(largest(uniform), 3);
  EXPECT_EQ(largest(first_values(of({{"scale", 0.0}}))), 0);
}

// The gradient of a shared table is the sum over all lookups: here, how often and with what weight each row was read.
TEST_F(EmbeddingOnAHost, OneTableForLayersOfOneName) {
  host_.add_plugin(&test_layers());
  const Attributes attributes = {{"vocabulary", 6}, {"size", 2}, {"parameter_name", "table"}};
  Attributes mean = attributes;
  mean.push_back({"reduce", "mean"});
  const Layer one = host_.layer("embedding", {data({})}, attributes);
  DataOptions bag, weight;
  bag.name = "bag", bag.dtype = TN_I64, bag.shape = {4};
  weight.name = "weight", weight.dtype = TN_F32, weight.shape = {2};
  const Layer other = host_.layer("embedding", {host_.data(bag)}, mean);
  const Layer cost = host_.layer("test_cost", {host_.layer("add", {one, other}), host_.data(weight)}, {}, "cost");
  const Parameters parameters = host_.parameters({cost}, 1);
  const std::string listed = parameters.describe();
  EXPECT_EQ(listed.find("table.weight"), listed.rfind("table.weight")) << listed;
  EXPECT_EQ(parameters.get("table.weight").shape, (Shape{6, 2}));
  MachineOptions options;
  options.max_samples = 2;
  options.training = true;
  const Machine machine = host_.machine(parameters, {cost}, options);
  const int32_t ids[] = {5, 1};
  const int64_t bags[] = {1, 1, 0, 5, 2, 2, 2, 2};
  const float ones[] = {1, 1, 1, 1};
  machine.forward({{"ids", {TN_I32, {2}, ids}}, {"bag", {TN_I64, {2, 4}, bags}}, {"weight", {TN_F32, {2, 2}, ones}}});
  machine.backward();
  const Values reads = {0.25, 1.5, 1, 0, 0, 1.25};  // the cost is the mean of two samples
  const auto* gradient = static_cast<const float*>(machine.gradient("table.weight").data);
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(gradient[i], reads[i / 2] / 2) << i;
}

TEST_F(EmbeddingOnAHost, IdsOutsideTheTableAreRefused) {
  const Layer layer = host_.layer("embedding", {data({})}, {{"vocabulary", 4}, {"size", 2}}, "words");
  MachineOptions options;
  const Machine machine = host_.machine(host_.parameters({layer}, 1), {layer}, options);
  for (const int32_t id : {4, -1}) {
    try {
      machine.forward({{"ids", {TN_I32, {1}, &id}}});
      ADD_FAILURE() << id;
    } catch (const Error& error) {
      const std::string said = error.what();
      EXPECT_NE(said.find("ids"), std::string::npos) << said;
      EXPECT_NE(said.find(std::to_string(id)), std::string::npos) << said;
      EXPECT_NE(said.find("words"), std::string::npos) << said;
    }
  }
}

TEST_F(EmbeddingOnAHost, RefusalsNameThePort) {
  const std::string floats = refusal(data({2}, TN_F32), {{"vocabulary", 4}, {"size", 2}});
  EXPECT_NE(floats.find("ids"), std::string::npos) << floats;
  for (const Shape& shape : {Shape{}, Shape{2, 3}}) {
    const std::string bag = refusal(data(shape), {{"vocabulary", 4}, {"size", 2}, {"reduce", "sum"}});
    EXPECT_NE(bag.find("[samples, n]"), std::string::npos) << bag;
    EXPECT_NE(bag.find(shape.empty() ? "[samples]" : "[samples, 2, 3]"), std::string::npos) << bag;
  }
  DataOptions options;
  options.name = "words", options.storage = TN_CSR, options.shape = {5};
  const Layer sparse = host_.data(options);
  const std::string alone = refusal(sparse, {{"vocabulary", 5}, {"size", 2}});
  EXPECT_NE(alone.find("must be sum or mean"), std::string::npos) << alone;
  const std::string wide = refusal(sparse, {{"vocabulary", 4}, {"size", 2}, {"reduce", "sum"}});
  EXPECT_NE(wide.find("wider than the vocabulary of 4"), std::string::npos) << wide;
  const std::string deep = refusal(data({1, 1, 1, 1, 1, 1, 1}), {{"vocabulary", 4}, {"size", 2}});
  EXPECT_NE(deep.find("at most 7"), std::string::npos) << deep;
  EXPECT_NE(refusal(data({}), {{"size", 2}}).find("vocabulary"), std::string::npos);
}

}  // namespace
}  // namespace tenon_tests
