// Layers, topologies and sets of parameters as data: tenon_topology.h and tenon_topology.hpp.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <tenon/tenon_topology.hpp>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Extents = std::vector<int64_t>;

class TopologyCalls : public testing::Test {
 protected:
  TopologyCalls() {
    DataOptions pixels, words;
    pixels.name = "pixels", pixels.dtype = TN_U8, pixels.shape = {2, 3}, pixels.scale = 0.5, pixels.offset = -1;
    words.name = "words", words.dtype = TN_I64, words.storage = TN_RAGGED, words.index_limit = 9;
    pixels_ = host_.data(pixels);
    words_ = host_.data(words);
    hidden_ = host_.layer("fc", {pixels_}, {{"size", 4}, {"act", "relu"}}, "hidden");
    table_ = host_.layer("embedding", {words_}, {{"vocabulary", 9}, {"size", 2}}, "table");
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
  static Extents extents(const OutputInfo& info) {
    Extents result;
    for (const tn_dimension& dimension : info.shape) result.push_back(dimension.extent);
    return result;
  }
  static std::vector<float> values(const Parameters& set, const std::string& name) {
    const Array array = set.get(name);
    const auto* const data = static_cast<const float*>(array.data);
    return {data, data + array.count()};
  }

  Host host_{HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}}};
  Layer pixels_, words_, hidden_, table_;
};

TEST_F(TopologyCalls, TellWhatALayerIs) {
  const LayerInfo info = inspect(hidden_);
  EXPECT_EQ(info.name, "hidden");
  EXPECT_EQ(info.type, "fc");
  EXPECT_EQ(info.role, "layer");
  EXPECT_NE(info.plugin, "");
  EXPECT_EQ(info.output, 0U);
  EXPECT_EQ(info.inputs, 1U);
  EXPECT_EQ(info.outputs, 1U);
  EXPECT_EQ(info.parameters, 2U);
  EXPECT_EQ(inspect(pixels_).type, "data");
  EXPECT_EQ(inspect(pixels_).plugin, "");
  const Layer cost = host_.layer("square_error", {hidden_, hidden_});
  EXPECT_EQ(inspect(cost).role, "cost");
}

TEST_F(TopologyCalls, GiveInputsAsHandles) {
  const std::optional<Layer> read = input(hidden_, 0);
  ASSERT_TRUE(read);
  EXPECT_EQ(inspect(*read).name, "pixels");
  // The handle works as any other: a model cut at it.
  const Layer other = host_.layer("fc", {*read}, {{"size", 1}}, "other");
  EXPECT_EQ(inspect(*input(other, 0)).name, "pixels");
  const Layer parts = host_.layer("split", {hidden_}, {{"sizes", Extents{1, 3}}}, "parts");
  const Layer second = parts.output(1);
  EXPECT_EQ(inspect(second).output, 1U);
  EXPECT_EQ(inspect(second).name, "parts");
  EXPECT_EQ(inspect(*input(second, 0)).name, "hidden");
  const Layer reader = host_.layer("fc", {second}, {{"size", 1}}, "reader");
  EXPECT_EQ(inspect(*input(reader, 0)).output, 1U);
  const Error refused = error_of([&] { (void)input(hidden_, 1); });
  EXPECT_EQ(refused.code(), TN_NOT_FOUND);
  EXPECT_STREQ(refused.what(), "layer \"hidden\" has no input 1; it has 1");
  EXPECT_EQ(refused.subject(), "hidden");
}

TEST_F(TopologyCalls, TellShapesTypesAndStorage) {
  const OutputInfo dense = inspect_output(hidden_, 0);
  EXPECT_EQ(dense.dtype, TN_COMPUTE);
  EXPECT_EQ(dense.storage, TN_DENSE);
  EXPECT_EQ(extents(dense), (Extents{-1, 4}));
  EXPECT_EQ(dense.shape[0].symbol, TN_DIMENSION_SAMPLES);
  EXPECT_EQ(dense.shape[0].factor, 1);
  EXPECT_EQ(dense.shape[1].symbol, TN_DIMENSION_FIXED);
  const OutputInfo bytes = inspect_output(pixels_, 0);
  EXPECT_EQ(bytes.dtype, TN_U8);
  EXPECT_EQ(extents(bytes), (Extents{-1, 2, 3}));
  const OutputInfo rows = inspect_output(table_, 0), ids = inspect_output(words_, 0);
  EXPECT_EQ(rows.storage, TN_RAGGED);
  EXPECT_EQ(rows.levels, 1U);
  EXPECT_EQ(extents(rows), (Extents{-1, 2}));
  EXPECT_GE(rows.shape[0].symbol, TN_DIMENSION_ROWS);
  EXPECT_EQ(rows.shape[0].symbol, ids.shape[0].symbol);
  const Error refused = error_of([&] { (void)inspect_output(hidden_, 1); });
  EXPECT_EQ(refused.code(), TN_NOT_FOUND);
  EXPECT_STREQ(refused.what(), "layer \"hidden\" has no output 1; it has 1");
}

TEST_F(TopologyCalls, GiveAttributes) {
  std::map<std::string, Value::Held> found;
  for (const Attribute& attribute : attributes(hidden_)) found[attribute.name] = attribute.value.held();
  EXPECT_EQ(std::get<int64_t>(found.at("size")), 4);
  EXPECT_EQ(std::get<std::string>(found.at("act")), "relu");  // of the host, as given
  EXPECT_EQ(std::get<bool>(found.at("bias")), true);          // a default
  const Layer parts = host_.layer("split", {hidden_}, {{"sizes", Extents{1, 3}}}, "parts");
  found.clear();
  for (const Attribute& attribute : attributes(parts)) found[attribute.name] = attribute.value.held();
  EXPECT_EQ(std::get<Extents>(found.at("sizes")), (Extents{1, 3}));
  EXPECT_EQ(tn_layer_attributes(host_.get(), hidden_.handle(), nullptr, nullptr, nullptr), TN_MISUSE);
}

TEST_F(TopologyCalls, GiveParametersOfLayersAndSets) {
  const ParameterInfo weight = parameter(hidden_, 0);
  EXPECT_EQ(weight.name, "hidden.weight");
  EXPECT_EQ(weight.shape, (Extents{6, 4}));
  EXPECT_EQ(weight.dtype, TN_F32);
  EXPECT_FALSE(weight.buffer);
  EXPECT_EQ(parameter(hidden_, 1).name, "hidden.bias");
  EXPECT_EQ(error_of([&] { (void)parameter(hidden_, 2); }).code(), TN_NOT_FOUND);
  const std::vector<ParameterInfo> all = entries(host_.parameters({hidden_, table_}, 1));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].name, "hidden.weight");
  EXPECT_EQ(all[2].name, "table.weight");
  EXPECT_EQ(all[2].shape, (Extents{9, 2}));
  const Parameters set = host_.parameters({hidden_}, 1);
  tn_parameter_info info = {};
  info.size = sizeof info;
  EXPECT_EQ(tn_parameters_entry(set.host(), set.handle(), 2, &info, nullptr), TN_NOT_FOUND);
  info.size = 0;
  EXPECT_EQ(tn_parameters_entry(set.host(), set.handle(), 0, &info, nullptr), TN_MISUSE);
}

TEST_F(TopologyCalls, GiveDataLayersAsTheyWereMade) {
  const Layers found = data_layers({hidden_, table_});
  ASSERT_EQ(found.size(), 2U);
  const DataOptions pixels = inspect_data(found[0]), words = inspect_data(found[1]);
  EXPECT_EQ(pixels.name, "pixels");
  EXPECT_EQ(pixels.dtype, TN_U8);
  EXPECT_EQ(pixels.shape, (Extents{2, 3}));
  EXPECT_EQ(pixels.scale, 0.5);
  EXPECT_EQ(pixels.offset, -1);
  EXPECT_EQ(words.name, "words");
  EXPECT_EQ(words.storage, TN_RAGGED);
  EXPECT_EQ(words.levels, 1U);
  EXPECT_EQ(words.index_limit, 9);
  EXPECT_EQ(words.sequence, "words");
  const Error refused = error_of([&] { (void)inspect_data(hidden_); });
  EXPECT_EQ(refused.code(), TN_INVALID);
  EXPECT_STREQ(refused.what(), "layer \"hidden\" (fc) is no data layer");
}

TEST_F(TopologyCalls, AreWrittenAndReadWithoutValues) {
  const Layer parts = host_.layer("split", {hidden_}, {{"sizes", Extents{1, 3}}}, "parts");
  const std::string text = topology({parts.output(1), table_});
  const Layers made = read_topology(host_, text);
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(inspect(made[0]).name, "parts");
  EXPECT_EQ(inspect(made[0]).output, 1U);
  EXPECT_EQ(topology(made), text);
  // Another host reads it, too.
  const Host other(HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}});
  const Layers again = read_topology(other, text);
  EXPECT_EQ(topology(again), text);
  EXPECT_EQ(values(other.parameters(again, 5), "hidden.weight"),
            values(host_.parameters({parts.output(1), table_}, 5), "hidden.weight"));
}

TEST_F(TopologyCalls, RefuseBadText) {
  const auto refusal = [&](const std::string& text) { return error_of([&] { (void)read_topology(host_, text); }); };
  for (const std::string text : {"", "{", "7", "[]", "{\"version\":1}", "{} x", "\0"})
    EXPECT_EQ(refusal(text).code(), TN_BAD_DATA) << text;
  EXPECT_THAT(refusal(std::string(40, '[') + std::string(40, ']')).what(), HasSubstr("nested too deeply"));
  const std::string whole = topology({hidden_});
  for (size_t length = 0; length < whole.size(); length += 7)
    EXPECT_EQ(refusal(whole.substr(0, length)).code(), TN_BAD_DATA) << length;
  json changed = json::parse(whole);
  changed["layers"][1]["type"] = "no_such_type";
  EXPECT_EQ(refusal(changed.dump()).code(), TN_NOT_FOUND);
  changed = json::parse(whole);
  changed["layers"][1]["attributes"]["size"] = -4;
  EXPECT_EQ(refusal(changed.dump()).code(), TN_BAD_DATA);
  EXPECT_THAT(refusal(changed.dump()).what(), HasSubstr("size"));
  changed = json::parse(whole);
  changed["layers"][1]["inputs"][0] = "nothing";
  EXPECT_THAT(refusal(changed.dump()).what(), HasSubstr("\"nothing\" is used before it is described"));
  uint32_t count = 1;
  EXPECT_EQ(tn_topology_read(host_.get(), nullptr, 0, nullptr, &count, nullptr), TN_MISUSE);
  EXPECT_EQ(tn_topology_read(host_.get(), whole.data(), whole.size(), nullptr, nullptr, nullptr), TN_MISUSE);
  EXPECT_EQ(tn_topology_read(host_.get(), whole.data(), whole.size(), nullptr, &count, nullptr), TN_MISUSE);
  count = 0;
  EXPECT_EQ(tn_topology_read(host_.get(), whole.data(), whole.size(), nullptr, &count, nullptr), TN_NEED_CAPACITY);
  EXPECT_EQ(count, 1U);
}

// ---- copying

class Copies : public TopologyCalls {
 protected:
  Copies() {
    const Layer encoder = host_.layer("fc", {pixels_}, {{"size", 4}}, "encoder");
    from_ = host_.parameters({encoder, host_.layer("fc", {encoder}, {{"size", 3}}, "head")}, 1);
    to_ = host_.parameters({hidden_, host_.layer("fc", {hidden_}, {{"size", 5}}, "head")}, 2);
  }
  Parameters from_, to_;
};

TEST_F(Copies, ByNameWithRenamesAndSkips) {
  const std::vector<float> kept = values(to_, "head.weight");
  const json report = json::parse(copy(to_, from_, {{{"encoder", "hidden"}}, {"head"}}));
  EXPECT_EQ(values(to_, "hidden.weight"), values(from_, "encoder.weight"));
  EXPECT_EQ(values(to_, "head.weight"), kept);
  EXPECT_EQ(report["copied"].size(), 2U);
  EXPECT_EQ(report["copied"][0], (json{{"name", "hidden.weight"}, {"from", "encoder.weight"}}));
  EXPECT_EQ(report["skipped"], (json{"head.weight", "head.bias"}));
  EXPECT_TRUE(report["missing"].empty());
  EXPECT_TRUE(report["reshaped"].empty());
  EXPECT_TRUE(report["extra"].empty());
}

TEST_F(Copies, ChangeNothingUnlessAllFits) {
  const std::vector<float> kept = values(to_, "hidden.weight");
  const Error refused = error_of([&] { copy(to_, from_, {{{"encoder", "hidden"}}}); });
  EXPECT_EQ(refused.code(), TN_INVALID);
  EXPECT_THAT(refused.what(), AllOf(HasSubstr("head.weight: expected float32 [4, 5], got float32 [4, 3]"),
                                    HasSubstr("head.bias: expected float32 [5], got float32 [3]")));
  EXPECT_EQ(values(to_, "hidden.weight"), kept);
  const Error missing = error_of([&] { copy(to_, from_, {{}, {"head"}}); });
  EXPECT_THAT(missing.what(), AllOf(HasSubstr("hidden.weight: missing"), HasSubstr("encoder.bias")));
}

TEST_F(Copies, InPartReportWhatIsLeftOut) {
  CopyOptions options;
  options.partial = true;
  json report = json::parse(copy(to_, from_, options));
  EXPECT_TRUE(report["copied"].empty());
  EXPECT_EQ(report["missing"], (json{"hidden.weight", "hidden.bias"}));
  EXPECT_EQ(report["extra"], (json{"encoder.bias", "encoder.weight"}));
  EXPECT_EQ(report["reshaped"][0],
            (json{{"name", "head.weight"}, {"from", "head.weight"}, {"shape", {4, 5}}, {"from_shape", {4, 3}}}));
  options.renames = {{"encoder", "hidden"}};
  report = json::parse(copy(to_, from_, options));
  EXPECT_EQ(report["copied"].size(), 2U);
  EXPECT_EQ(values(to_, "hidden.weight"), values(from_, "encoder.weight"));
}

TEST_F(Copies, RefuseWrongNames) {
  const auto refusal = [&](const CopyOptions& options) { return error_of([&] { copy(to_, from_, options); }); };
  EXPECT_EQ(refusal({{{"encodr", "hidden"}}}).code(), TN_NOT_FOUND);
  EXPECT_THAT(refusal({{{"encodr", "hidden"}}}).what(), HasSubstr("copied from has no parameter \"encodr\""));
  EXPECT_THAT(refusal({{{"encoder", "hiddn"}}}).what(), HasSubstr("copied to has no parameter \"hiddn\""));
  EXPECT_THAT(refusal({{}, {"had"}}).what(), HasSubstr("options.skip: the set that is copied to has no"));
  EXPECT_THAT(refusal({{{"encoder", "head"}}}).what(), HasSubstr("both become \"head."));
  EXPECT_EQ(error_of([&] { copy(to_, to_); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { copy(to_, host_.declare({hidden_})); }).code(), TN_MISUSE);
  tn_copy_options options = {};
  options.size = sizeof options;
  options.flags = 6;
  EXPECT_EQ(tn_parameters_copy(to_.host(), to_.handle(), from_.handle(), &options, nullptr, nullptr, nullptr),
            TN_UNSUPPORTED);
  options.flags = 0;
  options.skip_count = 1;
  EXPECT_EQ(tn_parameters_copy(to_.host(), to_.handle(), from_.handle(), &options, nullptr, nullptr, nullptr),
            TN_MISUSE);
}

}  // namespace
}  // namespace tenon_tests
