// Machines in loops of the application: feeds that are widened or not used, gradients in and out.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <tenon/tenon_machine.hpp>

#include "tests/support/native_layers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Floats = std::vector<float>;
using Ids = std::vector<int64_t>;

template <typename Number = float>
std::vector<Number> numbers(const Array& array) {
  const auto* data = static_cast<const Number*>(array.data);
  return {data, data + array.count()};
}

template <typename Work>
Error error_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  return {TN_OK, "nothing was refused"};
}

class MachineCalls : public testing::Test {
 protected:
  Layer data(const char* name, tn_dtype dtype, const Ids& shape, int32_t storage = TN_DENSE, int64_t limit = -1) {
    DataOptions options;
    options.name = name, options.dtype = dtype, options.shape = shape, options.storage = storage;
    options.index_limit = limit;
    return host_.data(options);
  }
  Machine machine(const Parameters& parameters, const Layers& outputs, bool training = false, uint32_t flags = 0,
                  tn_dtype compute = TN_F32, const std::vector<std::string>& immutable = {}) {
    MachineOptions options;
    options.max_samples = 8, options.training = training, options.flags = flags, options.compute = compute;
    options.immutable_parameters = immutable;
    return host_.machine(parameters, outputs, options);
  }
  Machine machine(const Layer& output) { return machine(host_.parameters({output}, 1), {output}); }

  Host host_{HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}}};
};

// ---- feeds

TEST_F(MachineCalls, IgnoreUnusedFeedsOnRequest) {
  const Layer same = host_.layer("scale_shift", {data("pixels", TN_F32, {2})}, {{"scale", 2.0}}, "same");
  const Machine reader = machine(same);
  const Floats x = {1, 2, 3, 4};
  const Ids label = {1, 0};
  const std::vector<Feed> feeds = {{"pixels", {TN_F32, {2, 2}, x.data()}}, {"label", {TN_I64, {2}, label.data()}}};
  EXPECT_EQ(error_of([&] { reader.forward(feeds); }).code(), TN_NOT_FOUND);
  EXPECT_EQ(error_of([&] { forward(reader, feeds, 0); }).code(), TN_NOT_FOUND);
  forward(reader, feeds, TN_FORWARD_IGNORE_UNUSED);
  EXPECT_THAT(numbers(reader.output(same)), ElementsAre(2, 4, 6, 8));
  const Error missing = error_of([&] {
    forward(reader, {{"pixel", {TN_F32, {2, 2}, x.data()}}}, TN_FORWARD_IGNORE_UNUSED);
  });
  EXPECT_EQ(missing.code(), TN_INVALID);
  EXPECT_STREQ(missing.what(), "data layer \"pixels\" is not fed; \"pixel\" is no data layer of the machine");
  EXPECT_EQ(error_of([&] { forward(reader, feeds, 2); }).code(), TN_UNSUPPORTED);
}

TEST_F(MachineCalls, WidenFeeds) {
  const Layer ids = data("ids", TN_I64, {}, TN_DENSE, 10), x = data("x", TN_F32, {1}), wide = data("wide", TN_F64, {});
  const Layer table = host_.layer("embedding", {ids}, {{"vocabulary", 10}, {"size", 1}}, "table");
  const Layer same = host_.layer("scale_shift", {x}, {{"scale", 1.0}}, "same");
  const Parameters parameters = host_.parameters({table, same}, 1);
  const Machine reader = machine(parameters, {table, same, ids});
  const int32_t given[] = {3, 9, 0};
  const int16_t shorts[] = {-3, 200, 7};
  reader.forward({{"ids", {TN_I32, {3}, given}}, {"x", {TN_I16, {3, 1}, shorts}}});
  EXPECT_THAT(numbers<int64_t>(reader.output(ids)), ElementsAre(3, 9, 0));
  EXPECT_THAT(numbers(reader.output(same)), ElementsAre(-3, 200, 7));
  const Floats rows = numbers(parameters.get("table.weight"));
  EXPECT_THAT(numbers(reader.output(table)), ElementsAre(rows[3], rows[9], rows[0]));
  Array columns = {TN_I32, {2}, given};
  columns.strides = {2};
  reader.forward({{"ids", columns}, {"x", {TN_I16, {2, 1}, shorts}}});
  EXPECT_THAT(numbers<int64_t>(reader.output(ids)), ElementsAre(3, 0));
  // What is checked of the declared type is checked of the narrower one.
  const int8_t beyond[] = {3, 10, 0}, negative[] = {3, -1, 0};
  const Feed some = {"x", {TN_I16, {3, 1}, shorts}};
  EXPECT_THAT(error_of([&] {
                reader.forward({{"ids", {TN_I8, {3}, beyond}}, some});
              }).what(),
              HasSubstr("data layer \"ids\": sample 1 of the minibatch is 10; expected 0 to 9"));
  EXPECT_EQ(error_of([&] { reader.forward({{"ids", {TN_I8, {3}, negative}}, some}); }).code(), TN_BAD_DATA);
  // What could lose a value is refused.
  const Floats floats = {1, 2, 3};
  EXPECT_STREQ(error_of([&] {
                 reader.forward({{"ids", {TN_F32, {3}, floats.data()}}, some});
               }).what(),
               "data layer \"ids\": expected int64 [samples], got float32 [3]");
  const std::vector<double> doubles = {1, 2, 3};
  const Feed good = {"ids", {TN_I32, {3}, given}};
  EXPECT_EQ(error_of([&] { reader.forward({good, {"x", {TN_I32, {3, 1}, given}}}); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { reader.forward({good, {"x", {TN_F64, {3, 1}, doubles.data()}}}); }).code(), TN_INVALID);
  const Machine doubled = machine(host_.layer("scale_shift", {wide}, {{"scale", 1.0}}));
  doubled.forward({{"wide", {TN_F32, {3}, floats.data()}}});
}

TEST_F(MachineCalls, WidenSequencesAndReaders) {
  const Layer words = data("words", TN_I64, {}, TN_RAGGED, 5);
  const Layer table = host_.layer("embedding", {words}, {{"vocabulary", 5}, {"size", 1}}, "table");
  const Parameters parameters = host_.parameters({table}, 1);
  const Machine reader = machine(parameters, {words, table});
  const uint8_t ids[] = {4, 0, 1};
  const Ids ends = {0, 1, 1, 3};
  reader.forward({{"words", Array::sequences(TN_U8, {3}, ids, 3, ends.data())}});
  EXPECT_THAT(numbers<int64_t>(reader.output(words)), ElementsAre(4, 0, 1));
  // Readers feed like applications: a category is int32.
  const TemporaryFolder folder;
  std::ofstream(folder.file("data.csv")) << "animal\ncat\ndog\ncat\n";
  const Layer animal = data("animal", TN_I64, {}, TN_DENSE, 2);
  TrainOptions options;
  options.outputs = {host_.layer("embedding", {animal}, {{"vocabulary", 2}, {"size", 1}}, "animals")};
  options.parameters = host_.parameters(options.outputs, 1);
  const std::vector<std::string> files = {folder.file("data.csv")}, columns = {"animal: category"};
  options.reader = host_.reader("csv", {{"files", files}, {"columns", columns}}).batch(3);
  Floats found;
  infer(options, [&](const std::vector<Array>& outputs) {
    found = numbers(outputs[0]);
    return true;
  });
  const Floats rows = numbers(options.parameters.get("animals.weight"));
  EXPECT_THAT(found, ElementsAre(rows[0], rows[1], rows[0]));
}

// ---- gradients out

class Gradients : public MachineCalls {
 protected:
  static constexpr int64_t kSamples = 3;
  Gradients() {
    x_ = data("x", TN_F32, {2});
    y_ = data("y", TN_F32, {4});
    hidden_ = host_.layer("fc", {x_}, {{"size", 4}, {"act", "tanh"}}, "hidden");
    cost_ = host_.layer("square_error", {host_.layer("fc", {hidden_}, {{"size", 4}}, "score"), y_}, {}, "cost");
    parameters_ = host_.parameters({cost_}, 3);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 0.3F * static_cast<float>(i) - 0.7F;
    for (size_t i = 0; i < y.size(); ++i) y[i] = 0.1F * static_cast<float>(i % 5);
  }
  [[nodiscard]] std::vector<Feed> feeds() const {
    return {{"x", {TN_F32, {kSamples, 2}, x.data()}}, {"y", {TN_F32, {kSamples, 4}, y.data()}}};
  }

  Layer x_, y_, hidden_, cost_;
  Parameters parameters_;
  Floats x = Floats(kSamples * 2), y = Floats(kSamples * 4);
};

TEST_F(Gradients, OfDataLayersAreThoseOfDifferences) {
  const Machine trained = machine(parameters_, {cost_}, true, TN_MACHINE_DATA_GRADIENTS, TN_F64);
  trained.forward(feeds());
  trained.backward();
  const std::vector<double> exact = numbers<double>(data_gradient(trained, "x"));
  EXPECT_EQ(data_gradient(trained, "x").shape, (Ids{kSamples, 2}));
  const std::vector<double> of_y = numbers<double>(data_gradient(trained, "y"));
  for (size_t i = 0; i < x.size() + y.size(); ++i) {
    float& number = i < x.size() ? x[i] : y[i - x.size()];
    const float before = number;
    number = before + 0x1p-10F;
    trained.forward(feeds());
    double slope = trained.cost() / (double{number} - before);
    const double above = double{number} - before;
    const double high = trained.cost();
    number = before - 0x1p-10F;
    trained.forward(feeds());
    slope = (high - trained.cost()) / (above + (double{before} - number));
    number = before;
    EXPECT_NEAR(i < x.size() ? exact[i] : of_y[i - x.size()], slope, 1e-5) << i;
  }
  // In float32, where the data layer needs no conversion.
  const Machine single = machine(parameters_, {cost_}, true, TN_MACHINE_DATA_GRADIENTS);
  single.forward(feeds());
  single.backward();
  const Floats rounded = numbers(data_gradient(single, "x"));
  for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(rounded[i], exact[i], 1e-6) << i;
  // They do not change those of the parameters.
  const Machine plain = machine(parameters_, {cost_}, true);
  plain.forward(feeds());
  plain.backward();
  EXPECT_EQ(numbers(plain.gradient("hidden.weight")), numbers(single.gradient("hidden.weight")));
}

TEST_F(Gradients, OfDataLayersAreOfTheLastBackward) {
  const Machine trained = machine(parameters_, {cost_}, true, TN_MACHINE_DATA_GRADIENTS, TN_F32, {"hidden", "score"});
  const auto refusal = [&](const char* name) { return error_of([&] { (void)data_gradient(trained, name); }); };
  EXPECT_EQ(refusal("x").code(), TN_MISUSE);
  trained.forward(feeds());
  trained.backward();
  const Floats once = numbers(data_gradient(trained, "x"));
  trained.forward(feeds());
  EXPECT_EQ(refusal("x").code(), TN_MISUSE);
  trained.backward();
  EXPECT_EQ(numbers(data_gradient(trained, "x")), once);  // not added
  EXPECT_EQ(refusal("z").code(), TN_NOT_FOUND);
  EXPECT_EQ(error_of([&] { (void)data_gradient(machine(parameters_, {cost_}, true), "x"); }).code(), TN_MISUSE);
  EXPECT_EQ(error_of([&] { machine(parameters_, {cost_}, false, TN_MACHINE_DATA_GRADIENTS); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { machine(parameters_, {cost_}, true, 8); }).code(), TN_UNSUPPORTED);
  trained.forward({{"x", {TN_F32, {0, 2}, nullptr}}, {"y", {TN_F32, {0, 4}, nullptr}}});
  trained.backward();
  EXPECT_EQ(data_gradient(trained, "x").shape, (Ids{0, 2}));
}

TEST_F(Gradients, OfIntegersAreRefused) {
  const Layer ids = data("ids", TN_I64, {}, TN_DENSE, 4);
  const Layer cost = host_.layer("sum_cost", {host_.layer("embedding", {ids}, {{"vocabulary", 4}, {"size", 2}})});
  const Machine trained = machine(host_.parameters({cost}, 1), {cost}, true, TN_MACHINE_DATA_GRADIENTS);
  const Ids given = {1, 2};
  trained.forward({{"ids", {TN_I64, {2}, given.data()}}});
  trained.backward();
  EXPECT_THAT(error_of([&] { (void)data_gradient(trained, "ids"); }).what(),
              HasSubstr("only those of dense or ragged floats have one"));
}

// A pool reads the rows of a data layer without a layer between: neither its output nor its gradient is ragged.
TEST_F(Gradients, OfSequencesReachTheirRows) {
  const Layer rows = data("rows", TN_F32, {2}, TN_RAGGED);
  const Floats values = {1, 5, 3, -2, 2, 2};
  const Ids ends = {0, 2, 2, 3};
  const std::map<std::string, Floats> expected = {{"sum", {1, 1, 1, 1, 1, 1}},
                                                  {"mean", {0.5, 0.5, 0.5, 0.5, 1, 1}},
                                                  {"max", {0, 1, 1, 0, 1, 1}},
                                                  {"first", {1, 1, 0, 0, 1, 1}},
                                                  {"last", {0, 0, 1, 1, 1, 1}}};
  for (const auto& [kind, slopes] : expected) {
    const Layer pool = host_.layer("sequence_pool", {rows}, {{"kind", kind}}, "pool_" + kind);
    const Layer cost = host_.layer("sum_cost", {pool}, {}, "cost_" + kind);
    const Machine trained = machine(host_.parameters({cost}, 1), {cost, pool}, true, TN_MACHINE_DATA_GRADIENTS);
    trained.forward({{"rows", Array::sequences(TN_F32, {3, 2}, values.data(), 3, ends.data())}});
    const Array pooled = trained.output(pool);
    EXPECT_EQ(pooled.storage, TN_DENSE) << kind;
    EXPECT_EQ(pooled.shape, (Ids{3, 2})) << kind;
    trained.backward();
    const Array gradient = data_gradient(trained, "rows");
    EXPECT_EQ(gradient.storage, TN_RAGGED) << kind;
    EXPECT_EQ(gradient.samples, 3) << kind;
    EXPECT_EQ(Ids(gradient.offsets[0], gradient.offsets[0] + 4), ends) << kind;
    const Floats found = numbers(gradient);
    for (size_t i = 0; i < slopes.size(); ++i) EXPECT_FLOAT_EQ(found[i], slopes[i] / 3) << kind << " " << i;
  }
}

// A kernel without backward would be chosen if only parameters counted.
TEST_F(Gradients, OfDataLayersChooseKernelsWithBackward) {
  const NativeLayers kernels({"whole", "forward_only"});
  const Host host(HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}});
  host.add_plugin(&kernels.plugin());
  DataOptions options;
  options.name = "x", options.shape = {2};
  const Layer cost = host.layer("sum_cost", {host.layer("native_square", {host.data(options)})});
  MachineOptions wanted;
  wanted.max_samples = 8, wanted.training = true, wanted.flags = TN_MACHINE_DATA_GRADIENTS;
  const Machine trained = host.machine(host.parameters({cost}, 1), {cost}, wanted);
  trained.forward({feeds()[0]});
  trained.backward();
  const Floats slopes = numbers(data_gradient(trained, "x"));
  for (size_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(slopes[i], 2 * x[i] / kSamples) << i;
}

// ---- gradients in

// A model cut in two: the gradient of the second part's data layer is given to the first part's output.
TEST_F(Gradients, PassFromPartToPart) {
  const Machine whole = machine(parameters_, {cost_}, true, TN_MACHINE_DATA_GRADIENTS);
  whole.forward(feeds());
  whole.backward();
  const Layer cut = data("cut", TN_F32, {4});
  const Layer rest = host_.layer("square_error", {host_.layer("fc", {cut}, {{"size", 4}}, "score"), y_}, {}, "rest");
  const Machine second = machine(parameters_, {rest}, true, TN_MACHINE_DATA_GRADIENTS);
  const Machine first = machine(parameters_, {hidden_}, true, TN_MACHINE_GIVEN_GRADIENTS | TN_MACHINE_DATA_GRADIENTS);
  const Feed of_x = feeds()[0], of_y = feeds()[1];
  first.forward({of_x});
  const Floats between = numbers(first.output(hidden_));
  second.forward({{"cut", {TN_F32, {kSamples, 4}, between.data()}}, of_y});
  second.backward();
  backward_from(first, {{hidden_, data_gradient(second, "cut")}});
  EXPECT_EQ(numbers(first.gradient("hidden.weight")), numbers(whole.gradient("hidden.weight")));
  EXPECT_EQ(numbers(first.gradient("hidden.bias")), numbers(whole.gradient("hidden.bias")));
  EXPECT_EQ(numbers(data_gradient(first, "x")), numbers(data_gradient(whole, "x")));
  // A second one adds; an update takes the sum.
  const Floats once = numbers(first.gradient("hidden.bias"));
  first.forward({of_x});
  backward_from(first, {{hidden_, data_gradient(second, "cut")}});
  const Floats twice = numbers(first.gradient("hidden.bias"));
  for (size_t i = 0; i < once.size(); ++i) EXPECT_FLOAT_EQ(twice[i], 2 * once[i]);
}

TEST_F(Gradients, AreGivenForSeveralOutputs) {
  const Layer twice = host_.layer("scale_shift", {hidden_}, {{"scale", 2.0}}, "twice");
  const Machine given = machine(parameters_, {hidden_, twice, cost_}, true, TN_MACHINE_GIVEN_GRADIENTS);
  const Floats ones(kSamples * 4, 1), threes(kSamples * 4, 3), of_cost = {1, 1, 1};
  const Array one = {TN_F32, {kSamples, 4}, ones.data()}, three = {TN_F32, {kSamples, 4}, threes.data()};
  const Updater none = host_.updater("sgd", {{"learning_rate", 0.0}});
  const auto bias = [&](const std::vector<OutputGradient>& gradients) {
    given.forward(feeds());
    backward_from(given, gradients);
    Floats found = numbers(given.gradient("hidden.bias"));
    none.update(given);
    return found;
  };
  const Floats of_three = bias({{hidden_, three}}), of_both = bias({{hidden_, one}, {twice, one}});
  for (size_t i = 0; i < of_three.size(); ++i) EXPECT_FLOAT_EQ(of_both[i], of_three[i]);
  EXPECT_THAT(bias({}), testing::Each(0));
  // Of the values of a cost: as plain backward, times the samples.
  const Floats sum = bias({{cost_, {TN_F32, {kSamples}, of_cost.data()}}});
  const Machine wide = machine(parameters_, {hidden_}, true, TN_MACHINE_GIVEN_GRADIENTS, TN_F64);
  wide.forward({feeds()[0]});
  backward_from(wide, {{hidden_, three}});  // float32 widens to the compute type
  const std::vector<double> exact = numbers<double>(wide.gradient("hidden.bias"));
  for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(exact[i], of_three[i], 1e-5);
  const Machine plain = machine(parameters_, {cost_}, true);
  plain.forward(feeds());
  plain.backward();
  const Floats mean = numbers(plain.gradient("hidden.bias"));
  for (size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], mean[i] * kSamples, 1e-6);
}

TEST_F(Gradients, ThatDoNotFitAreRefused) {
  const Machine given = machine(parameters_, {hidden_}, true, TN_MACHINE_GIVEN_GRADIENTS);
  const Floats values(kSamples * 4, 1);
  const Array good = {TN_F32, {kSamples, 4}, values.data()};
  const auto refusal = [&](const std::vector<OutputGradient>& gradients) {
    return error_of([&] { backward_from(given, gradients); });
  };
  EXPECT_EQ(refusal({{hidden_, good}}).code(), TN_MISUSE);  // without a forward
  given.forward({feeds()[0]});
  EXPECT_EQ(error_of([&] { given.backward(); }).code(), TN_MISUSE);
  EXPECT_STREQ(refusal({{hidden_, {TN_F32, {kSamples, 3}, values.data()}}}).what(),
               "the gradient of layer \"hidden\": expected float32 [3, 4], got float32 [3, 3]");
  const std::vector<double> doubles(kSamples * 4, 1);
  EXPECT_EQ(refusal({{hidden_, {TN_F64, {kSamples, 4}, doubles.data()}}}).code(), TN_INVALID);
  EXPECT_EQ(refusal({{hidden_, {TN_F32, {kSamples, 4}, nullptr}}}).code(), TN_MISUSE);
  EXPECT_EQ(refusal({{hidden_, good}, {hidden_, good}}).code(), TN_INVALID);
  EXPECT_EQ(refusal({{cost_, good}}).code(), TN_NOT_FOUND);
  EXPECT_EQ(refusal({{hidden_, good}}).code(), TN_OK);  // nothing was changed
  EXPECT_EQ(refusal({{hidden_, good}}).code(), TN_MISUSE);
  const Machine plain = machine(parameters_, {cost_}, true);
  plain.forward(feeds());
  EXPECT_EQ(error_of([&] { backward_from(plain, {}); }).code(), TN_MISUSE);
  EXPECT_EQ(error_of([&] { machine(parameters_, {hidden_}, true); }).code(), TN_INVALID);
  const Layer ids = data("ids", TN_I64, {}, TN_DENSE, 4), bag = data("bag", TN_F32, {9}, TN_CSR);
  EXPECT_STREQ(error_of([&] {
                 machine(parameters_, {ids, bag}, true, TN_MACHINE_GIVEN_GRADIENTS);
               }).what(),
               "gradients can be given for outputs of dense or ragged floats alone; the outputs are \"ids\" (int64 "
               "[samples]), \"bag\" (sparse float32 [samples, 9])");
}

// A data layer, and a layer that is the data layer: a tile of one copy expands to its input.
TEST_F(Gradients, AreGivenForDataLayers) {
  const Layer tile = host_.layer("tile", {x_}, {{"copies", Ids{1}}}, "tile");
  const Floats values = {1, 2, 3, 4, 5, 6}, ones(kSamples * 4, 1);
  const Array given = {TN_F32, {kSamples, 2}, values.data()}, one = {TN_F32, {kSamples, 4}, ones.data()};
  const auto slopes = [&](const Layers& outputs, const std::vector<OutputGradient>& gradients, tn_dtype compute) {
    const uint32_t flags = TN_MACHINE_GIVEN_GRADIENTS | TN_MACHINE_DATA_GRADIENTS;
    const Machine made = machine(parameters_, outputs, true, flags, compute);
    made.forward({feeds()[0]});
    backward_from(made, gradients);
    const Array found = data_gradient(made, "x");
    if (found.dtype == TN_F32) return numbers(found);
    const std::vector<double> wide = numbers<double>(found);
    return Floats(wide.begin(), wide.end());
  };
  for (const tn_dtype compute : {TN_F32, TN_F64}) {  // in float64 hidden reads a converted x
    for (const Layer& output : {x_, tile}) {
      EXPECT_EQ(slopes({output}, {{output, given}}, compute), values);
      EXPECT_THAT(slopes({output}, {}, compute), testing::Each(0));
    }
    const Floats part = slopes({hidden_}, {{hidden_, one}}, compute);
    const Floats sum = slopes({hidden_, tile}, {{hidden_, one}, {x_, given}}, compute);
    for (size_t i = 0; i < values.size(); ++i) EXPECT_FLOAT_EQ(sum[i], part[i] + values[i]) << i;
  }
  const Machine plain = machine(parameters_, {tile}, true, TN_MACHINE_GIVEN_GRADIENTS);  // nothing depends on it
  plain.forward({feeds()[0]});
  EXPECT_EQ(error_of([&] { backward_from(plain, {{tile, given}}); }).code(), TN_OK);
}

TEST_F(Gradients, OfParametersCanBeSet) {
  const Machine trained = machine(parameters_, {cost_}, true);
  const Updater sgd = host_.updater("sgd", {{"learning_rate", 1.0}});
  const Floats bias = numbers(parameters_.get("hidden.bias")), weight = numbers(parameters_.get("score.weight"));
  const Floats given = {1, 2, -3, 4};
  set_gradient(trained, "hidden.bias", {TN_F32, {4}, given.data()});
  EXPECT_EQ(numbers(trained.gradient("hidden.bias")), given);
  EXPECT_THAT(numbers(trained.gradient("score.weight")), testing::Each(0));
  sgd.update(trained);
  Floats expected = bias;
  for (size_t i = 0; i < 4; ++i) expected[i] -= given[i];
  EXPECT_EQ(numbers(parameters_.get("hidden.bias")), expected);
  EXPECT_EQ(numbers(parameters_.get("score.weight")), weight);
  // It replaces what backward computed, and the next backward adds to it.
  trained.forward(feeds());
  trained.backward();
  const Floats computed = numbers(trained.gradient("hidden.bias")), other = numbers(trained.gradient("score.bias"));
  const int8_t narrow[] = {1, 2, -3, 4};
  set_gradient(trained, "hidden.bias", {TN_I8, {4}, narrow});
  EXPECT_EQ(numbers(trained.gradient("hidden.bias")), given);
  EXPECT_EQ(numbers(trained.gradient("score.bias")), other);
  trained.forward(feeds());
  trained.backward();
  const Floats sum = numbers(trained.gradient("hidden.bias"));
  for (size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(sum[i], computed[i] + given[i]);
}

TEST_F(Gradients, OfParametersAreSetWhereTheyExist) {
  const Layer ids = data("ids", TN_I64, {}, TN_DENSE, 4);
  const Layer cost = host_.layer(
      "sum_cost", {host_.layer("fc", {host_.layer("embedding", {ids}, {{"vocabulary", 4}, {"size", 2}}, "table")},
                               {{"size", 1}}, "top")});
  const Parameters set = host_.parameters({cost}, 1);
  const Machine trained = machine(set, {cost}, true, 0, TN_F32, {"top.bias"});
  const Floats values(8, 1);
  const auto refusal = [&](const char* name, const Array& array) {
    return error_of([&] { set_gradient(trained, name, array); });
  };
  EXPECT_EQ(refusal("table.weight", {TN_F32, {4, 2}, values.data()}).code(), TN_INVALID);
  EXPECT_EQ(refusal("top.bias", {TN_F32, {1}, values.data()}).code(), TN_NOT_FOUND);
  EXPECT_EQ(refusal("no.bias", {TN_F32, {1}, values.data()}).code(), TN_NOT_FOUND);
  EXPECT_STREQ(refusal("top.weight", {TN_F32, {1, 2}, values.data()}).what(),
               "the gradient of parameter \"top.weight\": expected float32 [2, 1], got float32 [1, 2]");
  EXPECT_EQ(refusal("top.weight", {TN_F32, {2, 1}, nullptr}).code(), TN_MISUSE);
  EXPECT_EQ(error_of([&] { (void)trained.gradient("top.weight"); }).code(), TN_MISUSE);  // none was set
  const Ids given = {1, 2};
  trained.forward({{"ids", {TN_I64, {2}, given.data()}}});
  trained.backward();
  host_.updater("sgd", {{"learning_rate", 0.0}}).update(trained);
  set_gradient(trained, "top.weight", {TN_F32, {2, 1}, values.data()});
  EXPECT_EQ(trained.sparse_gradient("table.weight").ids.count(), 0);
  const Machine plain = machine(set, {cost});
  EXPECT_EQ(error_of([&] { set_gradient(plain, "top.weight", {TN_F32, {2, 1}, values.data()}); }).code(), TN_MISUSE);
}

}  // namespace
}  // namespace tenon_tests
