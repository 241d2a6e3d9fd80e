// Lists of names: texts and digests, allowed differences, and their form in a model file.
// SPDX-License-Identifier: Apache-2.0
#include "core/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/attribute.h"
#include "core/error.h"
#include "core/topology.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Texts = std::vector<std::string>;

NamesRef made(const Texts& texts) { return names_of({texts.begin(), texts.end()}, TN_INVALID, "test"); }
std::string difference(const Texts& told, int64_t limit, const Texts& known) {
  return tenon::core::difference(*made(told), limit, *made(known));
}
Texts numbered(int64_t count, const std::string& before = "w") {
  Texts texts;
  for (int64_t i = 0; i < count; ++i) texts.push_back(before + std::to_string(i));
  return texts;
}

TEST(Names, AreKeptWithTheDigestOfTheirFile) {
  const NamesRef names = made({"cat", "dog", "fox"});
  EXPECT_EQ(names->count, 3);
  EXPECT_THAT(names->texts, ElementsAre("cat", "dog", "fox"));
  EXPECT_EQ(names->sha256, "8e76b6a6605f605c34f56edf5c5134eb7ac7a80b591303dedf3df1eff42ebc93");  // by sha256sum
  EXPECT_EQ(made({}), nullptr);
}

TEST(Names, ManyAndLongOnesAndBytesAreKnownByDigest) {
  EXPECT_EQ(made(numbered(kMostNames))->texts.size(), static_cast<size_t>(kMostNames));
  const NamesRef many = made(numbered(kMostNames + 1));
  EXPECT_EQ(many->count, kMostNames + 1);
  EXPECT_THAT(many->texts, IsEmpty());
  EXPECT_EQ(made({std::string(kMostNameBytes, 'x')})->texts.size(), 1u);
  EXPECT_THAT(made({std::string(kMostNameBytes, 'x'), "y"})->texts, IsEmpty());
  EXPECT_THAT(made({"caf\xe9", "bar"})->texts, IsEmpty());
}

TEST(Names, ATextThatIsThereTwice) {
  try {
    made({"a", "b", "a"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "test: duplicate name \"a\"");
  }
}

TEST(Names, MustHaveTheNumbersThatAreKnown) {
  const Texts known = {"cat", "dog", "fox"};
  EXPECT_EQ(difference(known, 3, known), "");
  EXPECT_EQ(difference(known, 4, known), "");           // number 3 is unnamed in both lists
  EXPECT_EQ(difference({"cat", "dog"}, 2, known), "");  // the last class has no samples here
  EXPECT_EQ(difference({"cat", "dog"}, 3, known), "2 has no name, and is known as \"fox\"");
  EXPECT_EQ(difference({"cat", "dog"}, -1, known), "2 has no name, and is known as \"fox\"");
  EXPECT_EQ(difference({"dog", "fox"}, 2, known), "0 is \"dog\" and is known as \"cat\"");
  EXPECT_EQ(difference({"cat", "fox", "dog"}, 3, known), "1 is \"fox\" and is known as \"dog\"");
  EXPECT_EQ(difference({"cat", "dog", "fxo"}, 3, known),
            "\"fxo\" is not among the names that are known: \"cat\", \"dog\", \"fox\"; did you mean \"fox\"?");
  EXPECT_EQ(difference({"cat", "dog", "fox", "elephant"}, 4, known),
            "\"elephant\" is not among the names that are known: \"cat\", \"dog\", \"fox\"");
  const std::string many = difference({"nothing like it"}, 1, numbered(1000));
  EXPECT_THAT(many, HasSubstr("\"w19\", ..."));
}

TEST(Names, OfWhichOnlyDigestsAreKnown) {
  const Texts known = numbered(kMostNames + 1);
  EXPECT_EQ(difference(known, -1, known), "");
  Texts changed = known;
  std::swap(changed[0], changed[1]);
  EXPECT_THAT(difference(changed, -1, known), HasSubstr("expected 65537 names with SHA-256 " + made(known)->sha256 +
                                                        ", got 65537 names with SHA-256 " + made(changed)->sha256));
  EXPECT_NE(difference({"w0"}, 1, known), "");
}

TEST(Names, InJson) {
  const NamesRef names = made({"a\nb", "\"", "\xc3\xa9"});
  const nlohmann::json whole = to_json(*names, true), digest = to_json(*names, false);
  EXPECT_EQ(whole, nlohmann::json({"a\nb", "\"", "\xc3\xa9"}));
  EXPECT_EQ(digest, nlohmann::json({{"count", 3}, {"sha256", names->sha256}}));
  EXPECT_TRUE(names_from_json(whole)->same(*names));
  EXPECT_EQ(names_from_json(whole)->texts, names->texts);
  EXPECT_TRUE(names_from_json(digest)->same(*names));
  EXPECT_EQ(names_from_json(nlohmann::json::array()), nullptr);
  for (const char* bad :
       {R"(["a", "a"])", R"(["a", 1])", R"("a")", "5", "null", R"({"count": 2})", R"({"count": -1, "sha256": "x"})",
        R"({"count": 1.5, "sha256": "x"})", R"({"count": 1, "sha256": 5})"}) {
    try {
      (void)names_from_json(nlohmann::json::parse(bad));
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_BAD_DATA) << bad;
    }
  }
}

TEST(Names, OfColumnsAreComparedInOrder) {
  const auto of = [](const Texts& columns) {
    Names names;
    names.columns = made(columns);
    return names;
  };
  const Names known = of({"a", "b"});
  EXPECT_EQ(difference(of({"a", "b"}), -1, known), "");
  EXPECT_EQ(difference(Names(), -1, known), "") << "unknown columns are not compared";
  EXPECT_EQ(difference(known, -1, Names()), "");
  EXPECT_EQ(difference(of({"b", "a"}), -1, known), "column 0 is \"b\" and is known as \"a\"");
  EXPECT_EQ(difference(of({"a"}), -1, known), "expected 2 columns, got 1");
  Names classes = *made({"cat"});
  classes.columns = made({"b"});
  EXPECT_EQ(difference(*made({"cat"}), -1, classes), "") << "and the names are";
  EXPECT_THAT(difference(*made({"dog"}), -1, classes), testing::HasSubstr("\"dog\""));
  const Texts many = numbered(kMostNames + 1);
  Texts turned = many;
  std::swap(turned[0], turned[1]);
  EXPECT_EQ(difference(of(many), -1, of(many)), "");
  EXPECT_THAT(difference(of(turned), -1, of(many)), testing::HasSubstr("65537 columns with SHA-256"));
}

TEST(Names, OfColumnsAreInTheFileOfAModel) {
  Topology topology;
  auto layer = std::make_shared<Layer>();
  layer->name = "x";
  layer->type = "data";
  auto& source = layer->host_part.emplace<DataSource>();
  source.dtype = TN_F32;
  source.shape = {2};
  topology.layers.push_back(layer);
  topology.outputs.push_back({layer, 0});
  auto names = std::make_shared<Names>();
  names->columns = made({"a", "b"});
  const nlohmann::json json = topology.to_json({{"x", names}});
  EXPECT_FALSE(json.at("layers")[0].contains("names"));
  const NamesRef read = names_of_topology(json).at("x");
  EXPECT_EQ(read->columns->texts, (Texts{"a", "b"}));
  EXPECT_EQ(read->dtype, TN_F32);
  EXPECT_EQ(read->shape, std::vector<int64_t>{2});
  nlohmann::json bad = json;
  bad.at("layers")[0]["columns"] = 1;
  EXPECT_THROW((void)names_of_topology(bad), Error);
}

// Long lists of many data layers do not exceed a common limit in the header of a model file: later lists are stored
// as digests.
TEST(Names, OfOneFileAreBoundedTogether) {
  DataNames names;
  Topology topology;
  for (int i = 0; i < 9; ++i) {
    auto layer = std::make_shared<Layer>();
    layer->name = "data" + std::to_string(i);
    layer->type = "data";
    auto& source = layer->host_part.emplace<DataSource>();
    source.dtype = TN_I32;
    topology.layers.push_back(layer);
    names[layer->name] = made({std::string(kMostNameBytes - 1, static_cast<char>('a' + i)), "x"});
  }
  topology.outputs.push_back({topology.layers.back(), 0});
  const nlohmann::json json = topology.to_json(names);
  EXPECT_TRUE(json.at("layers")[7].at("names").is_array());
  EXPECT_TRUE(json.at("layers")[8].at("names").is_object());
  const DataNames read = names_of_topology(json);
  ASSERT_EQ(read.size(), 9u);
  for (const auto& [layer, list] : read) EXPECT_TRUE(list->same(*names.at(layer))) << layer;
  EXPECT_FALSE(topology.to_json().at("layers")[0].contains("names"));
}

}  // namespace
}  // namespace tenon_tests
