// Blocks of a job: what they expand to, and the message of each mistake. SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/blocks/block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/cli/cli.h"
#include "host/cli/job/job.h"
#include "tests/host/cli/job/refused.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Lines 1 to 18.
constexpr const char* kTower = R"([[block]]
name = "tower"
parameters = ["width"]
defaults = { act = "relu", label = "t" }
inputs = ["x"]
output = "sum"

[[block.layer]]
name = "fc"
type = "fc"
inputs = "x"
size = "{width}"
act = "{act}"

[[block.layer]]
name = "sum"
type = "add"
inputs = ["x", "fc"]
caption = "{label}: {width} {"

)";

Job parse(const std::string& text, const std::vector<std::string>& sets = {}) {
  return parse_job(text, "job.toml", sets);
}
std::string refused(const std::string& text, const std::vector<std::string>& sets = {}) {
  return refused_with(kBadConfig, [&] { (void)parse(text, sets); });
}
// Returns a layer of type "block".
std::string use(const std::string& keys, const std::string& name = "a", const std::string& block = "tower") {
  return "[[layer]]\nname = \"" + name + "\"\ntype = \"block\"\nblock = \"" + block + "\"\n" + keys + "\n";
}
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kTower;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}
std::vector<std::string> names_of(const Job& job) {
  std::vector<std::string> result;
  for (const JobLayer& layer : job.layers) result.push_back(layer.name);
  return result;
}
const JobLayer& layer(const Job& job, const std::string& name) {
  for (const JobLayer& each : job.layers)
    if (each.name == name) return each;
  throw std::runtime_error("no layer " + name);
}
template <typename Held>
Held attribute(const JobLayer& of, const std::string& name) {
  for (const Attribute& entry : of.attributes)
    if (entry.name == name) return std::get<Held>(entry.value.held());
  throw std::runtime_error("no attribute " + name);
}

TEST(Blocks, AUseBecomesTheLayersOfItsBlock) {
  const Job job = parse(kTower + use("inputs = \"pixel\"\nwidth = 8") + "[[layer]]\nname = \"b\"\ntype = \"t\"\n");
  EXPECT_THAT(names_of(job), ElementsAre("a.fc", "a.sum", "b"));
  EXPECT_THAT(layer(job, "a.fc").inputs, ElementsAre("pixel"));
  EXPECT_THAT(layer(job, "a.sum").inputs, ElementsAre("pixel", "a.fc"));
  EXPECT_EQ(attribute<int64_t>(layer(job, "a.fc"), "size"), 8);
  EXPECT_EQ(attribute<std::string>(layer(job, "a.fc"), "act"), "relu");
  EXPECT_EQ(attribute<std::string>(layer(job, "a.sum"), "caption"), "t: 8 {");
  EXPECT_EQ(layer(job, "a.fc").attributes.size(), 2u);
  EXPECT_EQ(layer(job, "a.fc").place, "job.toml:21: in block \"tower\" at job.toml:8");
  EXPECT_EQ(layer(job, "a.fc").places.at("size"), "job.toml:21: in block \"tower\" at job.toml:12");
  EXPECT_EQ(layer(job, "a.fc").inputs_place, "job.toml:21: in block \"tower\" at job.toml:11");
  ASSERT_EQ(job.blocks.size(), 1u);
  EXPECT_EQ(job.blocks.at("a").output, "a.sum");
}

TEST(Blocks, RepetitionsFeedEachOther) {
  const Job job = parse(kTower + use("inputs = [\"parts:1\"]\nrepeat = 3\nwidth = 4"));
  EXPECT_THAT(names_of(job), ElementsAre("a.0.fc", "a.0.sum", "a.1.fc", "a.1.sum", "a.2.fc", "a.2.sum"));
  EXPECT_THAT(layer(job, "a.0.sum").inputs, ElementsAre("parts:1", "a.0.fc"));
  EXPECT_THAT(layer(job, "a.2.sum").inputs, ElementsAre("a.1.sum", "a.2.fc"));
  EXPECT_EQ(job.blocks.at("a").output, "a.2.sum");
  EXPECT_EQ(job.blocks.at("a.0").output, "a.0.sum");
  EXPECT_THAT(names_of(parse(kTower + use("inputs = \"x\"\nrepeat = 1\nwidth = 4"))), ElementsAre("a.0.fc", "a.0.sum"));
}

TEST(Blocks, OnlyTheFirstInputIsFed) {
  const Job job = parse(
      "[[block]]\nname = \"b\"\ninputs = [\"x\", \"mask\"]\n[[block.layer]]\nname = \"l\"\ntype = \"t\"\n"
      "inputs = [\"mask\", \"x\"]\n" +
      use("inputs = [\"p\", \"m\"]\nrepeat = 2", "a", "b"));
  EXPECT_THAT(layer(job, "a.1.l").inputs, ElementsAre("m", "a.0.l"));
  EXPECT_EQ(job.blocks.at("a").output, "a.1.l") << "the last layer is the output by default";
}

TEST(Blocks, OptionalInputsAreLeftOut) {
  const Job job = parse(
      "[[block]]\nname = \"b\"\ninputs = [\"x\", \"mask\"]\n[[block.layer]]\nname = \"l\"\ntype = \"t\"\n"
      "inputs = [\"x\", \"\", \"mask\"]\n" +
      use("inputs = [\"p\", \"\"]", "a", "b") + use("inputs = [\"a\", \"m\"]", "c", "b"));
  EXPECT_THAT(layer(job, "a.l").inputs, ElementsAre("p", "", ""));
  EXPECT_THAT(layer(job, "c.l").inputs, ElementsAre("a", "", "m"));
}

TEST(Blocks, ParametersKeepTheirKind) {
  const char* block =
      "[[block]]\nname = \"b\"\nparameters = [\"p\"]\ninputs = \"x\"\n[[block.layer]]\nname = \"l\"\ntype = \"t\"\n"
      "inputs = \"x\"\nvalue = \"{p}\"\nshape = [2, \"{n}\"]\n[block.defaults]\nn = 7\n";
  const auto with = [&](const std::string& value) {
    return parse(block + use("inputs = \"y\"\np = " + value, "a", "b")).layers.at(0);
  };
  EXPECT_EQ(attribute<int64_t>(with("3"), "value"), 3);
  EXPECT_EQ(attribute<double>(with("3.0"), "value"), 3.0);
  EXPECT_EQ(attribute<bool>(with("true"), "value"), true);
  EXPECT_EQ(attribute<std::string>(with("\"3\""), "value"), "3");
  EXPECT_EQ(attribute<std::string>(with("\"{q}\""), "value"), "{q}") << "values are not searched for parameters";
  EXPECT_THAT(attribute<std::vector<int64_t>>(with("[1, 2]"), "value"), ElementsAre(1, 2));
  EXPECT_THAT(attribute<std::vector<int64_t>>(with("3"), "shape"), ElementsAre(2, 7));
  EXPECT_EQ(attribute<double>(with("{ part = 0.5 }"), "value.part"), 0.5);
}

TEST(Blocks, TextsTakeValuesAsText) {
  const auto with = [&](const std::string& value) {
    const Job job =
        parse(changed("{label}: {width} {", "{label}{{width}}{}{ x}") + use("inputs = \"y\"\nwidth = " + value));
    return attribute<std::string>(layer(job, "a.sum"), "caption");
  };
  EXPECT_EQ(with("3"), "t{3}{}{ x}");
  EXPECT_EQ(with("-0.1"), "t{-0.1}{}{ x}");
  EXPECT_EQ(with("false"), "t{false}{}{ x}");
  EXPECT_EQ(
      refused(kTower + use("inputs = \"y\"\nwidth = [1]")),
      "job.toml:21: in block \"tower\" at job.toml:19: \"{label}: {width} {\": the parameter \"width\" is a list, "
      "which cannot be a part of a text");
}

constexpr const char* kNested = R"(
[[block]]
name = "pair"
parameters = ["w", "n"]
inputs = ["y"]

[[block.layer]]
name = "left"
type = "block"
block = "tower"
inputs = "y"
repeat = "{n}"
width = "{w}"

[[block.layer]]
name = "join"
type = "join"
inputs = ["left", "y"]
)";

TEST(Blocks, BlocksContainBlocks) {
  const Job job = parse(std::string(kNested) + kTower + use("inputs = \"p\"\nrepeat = 2\nw = 5\nn = 2", "a", "pair"));
  EXPECT_THAT(names_of(job),
              ElementsAre("a.0.left.0.fc", "a.0.left.0.sum", "a.0.left.1.fc", "a.0.left.1.sum", "a.0.join",
                          "a.1.left.0.fc", "a.1.left.0.sum", "a.1.left.1.fc", "a.1.left.1.sum", "a.1.join"));
  EXPECT_THAT(layer(job, "a.1.left.0.fc").inputs, ElementsAre("a.0.join"));
  EXPECT_THAT(layer(job, "a.1.join").inputs, ElementsAre("a.1.left", "a.0.join"));
  EXPECT_EQ(job.blocks.at("a.1.left").output, "a.1.left.1.sum");
  EXPECT_EQ(attribute<int64_t>(layer(job, "a.1.left.1.fc"), "size"), 5);
  EXPECT_EQ(layer(job, "a.1.left.1.fc").place,
            "job.toml:39: in block \"pair\" at job.toml:7: in block \"tower\" at job.toml:26");
}

TEST(Blocks, ParametersAreSharedByName) {
  const auto shared = [](const Job& job, const std::string& name) {
    return attribute<std::string>(layer(job, name), "parameter_name");
  };
  const std::string twins = use("inputs = \"p\"\nrepeat = 2\nwidth = 4") +
                            use("inputs = \"q\"\nrepeat = 2\nwidth = 4\nparameter_name = \"a\"", "b");
  const Job two = parse(kTower + twins);  // a use shares with another one
  EXPECT_EQ(shared(two, "b.1.fc"), "a.1.fc");
  EXPECT_EQ(layer(two, "a.1.fc").attributes.size(), 2u) << "no parameter_name";
  // all repetitions share
  const Job one = parse(changed("size = ", "parameter_name = \"{label}.fc\"\nsize = ") + twins);
  EXPECT_EQ(shared(one, "a.0.fc"), "t.fc");
  EXPECT_EQ(shared(one, "b.1.fc"), "t.fc") << "as the layer itself says";
  const Job inner =
      parse(std::string(kNested) + kTower + use("inputs = \"p\"\nw = 5\nn = 2\nparameter_name = \"z\"", "a", "pair"));
  EXPECT_EQ(shared(inner, "a.left.1.fc"), "z.left.1.fc");
}

TEST(Blocks, SetReachesUsesAndTheirLayers) {
  const std::string job = kTower + use("inputs = \"p\"\nrepeat = 2\nwidth = 4");
  const Job set = parse(job, {"layer.\"a.1.fc\".size=9", "layer.a.width=6", "layer.a.repeat=3"});
  EXPECT_EQ(attribute<int64_t>(layer(set, "a.2.fc"), "size"), 6);
  EXPECT_EQ(attribute<int64_t>(layer(set, "a.1.fc"), "size"), 9);
  EXPECT_EQ(layer(set, "a.1.fc").places.at("size"), "--set layer.\"a.1.fc\".size=9");
  EXPECT_EQ(
      refused(job, {"layer.a.repeat=0"}),
      "--set layer.a.repeat=0: layer \"a\": key \"repeat\": expected an integer from 1 to 10000, got the integer 0");
  EXPECT_THAT(refused_with(kUsage, [&] { (void)parse(job, {"layer.\"a.1.fd\".size=9"}); }),
              HasSubstr("the job has no layer \"a.1.fd\"; did you mean \"a.1.fc\"?"));
}

// ---- mistakes of a use: the places of both

TEST(BlockMistakes, Parameters) {
  EXPECT_EQ(refused(kTower + use("inputs = \"p\"")),
            "job.toml:21: layer \"a\": parameter \"width\" of block \"tower\" at job.toml:1 is missing");
  EXPECT_EQ(
      refused(kTower + use("inputs = \"p\"\nwidht = 3")),
      "job.toml:26: layer \"a\": \"widht\" is no parameter of block \"tower\" at job.toml:1; did you mean \"width\"?");
  EXPECT_THAT(refused(kTower + use("inputs = \"p\"\nrepaet = 3\nwidth = 4")), HasSubstr("did you mean \"repeat\"?"));
}

TEST(BlockMistakes, Inputs) {
  EXPECT_EQ(refused(kTower + use("width = 3")),
            "job.toml:21: layer \"a\": got 0 inputs, expected the 1 of block \"tower\" at job.toml:1");
  EXPECT_EQ(refused(kTower + use("inputs = [\"p\", \"q\"]\nwidth = 3")),
            "job.toml:25: layer \"a\": got 2 inputs, expected the 1 of block \"tower\" at job.toml:1");
  EXPECT_THAT(
      refused("[[block]]\nname = \"b\"\n[[block.layer]]\nname = \"l\"\ntype = \"t\"\n" + use("repeat = 2", "a", "b")),
      HasSubstr("key \"repeat\" needs an input of block \"b\" at job.toml:1, which has none"));
}

TEST(BlockMistakes, Repeat) {
  const auto repeated = [](const std::string& number) {
    return refused(kTower + use("inputs = \"p\"\nwidth = 3\nrepeat = " + number));
  };
  for (const std::string number : {"0", "-1", "1000000000", "10001"})
    EXPECT_EQ(repeated(number),
              "job.toml:27: layer \"a\": key \"repeat\": expected an integer from 1 to 10000, got the "
              "integer " +
                  number);
  EXPECT_THAT(repeated("\"3\""), HasSubstr("expected an integer from 1 to 10000, got the text \"3\""));
  EXPECT_EQ(repeated("5001"), "job.toml:21: the blocks expand to more than 10000 layers");
  EXPECT_EQ(parse(kTower + use("inputs = \"p\"\nwidth = 3\nrepeat = 5000")).layers.size(), 10000u);
  EXPECT_THAT(
      refused(kTower + use("inputs = \"p\"\nwidth = 3\nrepeat = 5000") + "[[layer]]\nname = \"b\"\ntype = \"t\"\n"),
      HasSubstr("job.toml:28: the blocks expand to more than 10000 layers"));
}

// Returns blocks b1, b2 ... in each other: each has `copies` uses of the one before it, with these keys.
std::string tree(int depth, int copies, const std::string& keys, const std::string& parameters = "",
                 const std::string& leaf = "") {
  std::string text = "[[block]]\nname = \"b1\"\ninputs = \"x\"\n" + parameters +
                     "[[block.layer]]\nname = \"l\"\ntype = \"t\"\ninputs = \"x\"\n" + leaf;
  for (int i = 2; i <= depth; ++i) {
    text += "[[block]]\nname = \"b" + std::to_string(i) + "\"\ninputs = \"x\"\n" + parameters;
    for (int k = 0; k < copies; ++k)
      text += "[[block.layer]]\nname = \"l" + std::to_string(k) + "\"\ntype = \"block\"\nblock = \"b" +
              std::to_string(i - 1) + "\"\ninputs = \"x\"\n" + keys;
  }
  return text;
}

TEST(BlockMistakes, TooManyLayersAreFoundWithoutMakingAny) {
  EXPECT_EQ(refused(tree(3, 1, "repeat = 1000\n") + use("inputs = \"p\"\nrepeat = 1000", "a", "b3")),
            "job.toml:26: in block \"b3\" at job.toml:20: the blocks expand to more than 10000 layers");
  EXPECT_THAT(refused(tree(16, 1, "repeat = 10000\n") + use("inputs = \"p\"\nrepeat = 10000", "a", "b16")),
              HasSubstr("expand to more than 10000 layers"));
  EXPECT_THAT(refused(tree(16, 30, "") + use("inputs = \"p\"", "a", "b16")),
              AllOf(HasSubstr("in block \"b16\" at "), HasSubstr("expand to more than 10000 layers")));
}

TEST(BlockMistakes, TooLongTextsAreNotMade) {
  const std::string doubled = "t = \"{t}{t}{t}{t}{t}{t}{t}{t}\"\n";
  EXPECT_THAT(refused(tree(16, 1, doubled, "parameters = \"t\"\n", "caption = \"{t}\"\n") +
                      use("inputs = \"p\"\nt = \"" + std::string(100, 'x') + "\"", "a", "b16")),
              HasSubstr("the blocks expand to more than 256 MiB"));
  const std::string wide = "t = [\"{t}\", \"{t}\", \"{t}\", \"{t}\", \"{t}\", \"{t}\", \"{t}\", \"{t}\"]\n";
  EXPECT_THAT(refused(tree(16, 1, wide, "parameters = \"t\"\n", "caption = \"{t}\"\n") +
                      use("inputs = \"p\"\nt = 1", "a", "b16")),
              HasSubstr("the blocks expand to more than 256 MiB"));
}

// It would take a minute if names were compared all with all.
TEST(BlockMistakes, ALargeBlockIsReadFast) {
  std::string wide = "[[block]]\nname = \"b\"\ninputs = \"x\"\nlayer = [\n";
  for (int i = 0; i < 40'000; ++i) wide += "{ name = \"l" + std::to_string(i) + "\", type = \"t\", inputs = \"x\" },\n";
  EXPECT_THAT(refused(wide + "]\n" + use("inputs = \"p\"", "a", "b")),
              HasSubstr("the blocks expand to more than 10000 layers"));
}

// Values are lists in lists, 16 x 200 deep.
TEST(BlockMistakes, DeepValuesAreNoDanger) {
  // Each block puts the value into itself, so it gets far deeper than a file may nest values.
  const std::string deep = "t = " + std::string(30, '[') + "\"{t}\"" + std::string(30, ']') + "\n";
  EXPECT_THAT(
      refused(tree(16, 1, deep, "parameters = \"t\"\n", "note = \"{t}\"\n") + use("inputs = \"p\"\nt = 1", "a", "b16")),
      HasSubstr("layer \"a.l0.l0.l0.l0.l0.l0.l0.l0.l0.l0.l0.l0.l0.l0.l0.l\": key \"note\": expected true, false"));
}

TEST(BlockMistakes, Depth) {
  EXPECT_EQ(parse(tree(16, 1, "") + use("inputs = \"p\"", "a", "b16")).layers.size(), 1u);
  EXPECT_THAT(refused(tree(17, 1, "") + use("inputs = \"p\"", "a", "b17")),
              HasSubstr("blocks are nested more than 16 deep"));
  EXPECT_THAT(refused(tree(3000, 1, "")), HasSubstr("blocks are nested more than 16 deep"));
}

TEST(BlockMistakes, UnknownAndRecursiveBlocks) {
  EXPECT_EQ(refused(kTower + use("", "a", "towr")),
            "job.toml:24: layer \"a\": the job has no block \"towr\"; did you mean \"tower\"?");
  EXPECT_EQ(refused(use("")), "job.toml:4: layer \"a\": the job has no block \"tower\"");
  EXPECT_THAT(refused(kTower + std::string("[[layer]]\nname = \"a\"\ntype = \"block\"\n")),
              HasSubstr("job.toml:21: layer \"a\": key \"block\" is missing"));
  EXPECT_THAT(refused(std::string(kNested) + "[[layer]]\nname = \"a\"\ntype = \"t\"\n"),
              HasSubstr("job.toml:10: block \"pair\": layer \"left\": the job has no block \"tower\""));
  const auto inner = [](const std::string& name, const std::string& block) {
    return "[[block]]\nname = \"" + name + "\"\n[[block.layer]]\nname = \"l\"\ntype = \"block\"\nblock = \"" + block +
           "\"\n";
  };
  EXPECT_EQ(
      refused(inner("self", "self")),
      "job.toml:3: block \"self\": layer \"l\": the blocks form a cycle: \"self\" at job.toml:1 contains \"self\"");
  EXPECT_EQ(refused(inner("a", "b") + inner("b", "a")),
            "job.toml:9: block \"b\": layer \"l\": the blocks form a cycle: \"a\" at job.toml:1 contains \"b\" at "
            "job.toml:7 contains \"a\"");
  EXPECT_EQ(
      refused(changed("type = \"add\"", "type = \"{label}\"") + use("inputs = \"p\"\nwidth = 1\nlabel = \"block\"")),
      "job.toml:21: in block \"tower\" at job.toml:15: layer \"sum\": a parameter cannot make it a block");
}

TEST(BlockMistakes, Names) {
  EXPECT_EQ(refused(std::string(kTower) + kTower), "job.toml:21: block \"tower\": the name is taken; see job.toml:1");
  const std::string twice = use("inputs = \"p\"\nwidth = 4");
  EXPECT_EQ(refused(kTower + twice + twice), "job.toml:27: layer \"a\": the name is taken; see job.toml:21");
  EXPECT_EQ(refused(kTower + twice + "[[layer]]\nname = \"a\"\ntype = \"t\"\n"),
            "job.toml:27: layer \"a\": the name is taken; see job.toml:21");
  EXPECT_EQ(refused(kTower + twice + "[[layer]]\nname = \"a.fc\"\ntype = \"t\"\n"),
            "job.toml:27: layer \"a.fc\": the name is taken; see job.toml:21: in block \"tower\" at job.toml:8");
}

// ---- mistakes of a definition, whether it is used or not

TEST(BlockMistakes, Definitions) {
  const auto in = [](const std::string& from, const std::string& to) { return refused(changed(from, to)); };
  EXPECT_EQ(
      in("size = \"{width}\"", "size = \"{widht}\""),
      "job.toml:12: block \"tower\": layer \"fc\": the block has no parameter \"widht\"; did you mean \"width\"?");
  EXPECT_EQ(
      in("[\"width\"]", "[\"width\", \"depth\"]"),
      "job.toml:1: block \"tower\": no layer of the block uses the parameter \"depth\": no text has \"{depth}\" in it");
  EXPECT_EQ(in("[\"width\"]", "[\"width\", \"repeat\"]"),
            "job.toml:3: block \"tower\": parameter \"repeat\": the name is a key of every layer of type \"block\"");
  EXPECT_THAT(in("[\"width\"]", "[\"width\", \"act\"]"), HasSubstr("two parameters are called \"act\""));
  EXPECT_THAT(in("[\"width\"]", "[\"1th\"]"), HasSubstr("expected letters, digits and _"));
  EXPECT_EQ(in("inputs = \"x\"", "inputs = \"pixel\""),
            "job.toml:11: block \"tower\": layer \"fc\": input \"pixel\" is neither an input nor a layer of the block; "
            "known: fc, sum, x");
  EXPECT_THAT(in("inputs = \"x\"", "inputs = \"x:1\""), HasSubstr("input \"x:1\" is neither"));
  EXPECT_THAT(in("inputs = \"x\"", "inputs = \"{act}\""), HasSubstr("input \"{act}\" is neither"));
  EXPECT_THAT(
      in("name = \"sum\"", "name = \"s{act}\""),
      HasSubstr("job.toml:16: block \"tower\": layer \"s{act}\": key \"name\" takes no parameter of the block"));
  EXPECT_EQ(in("name = \"sum\"", "name = \"fc\""),
            "job.toml:15: block \"tower\": [[block.layer]]: the name \"fc\" is taken; see job.toml:8");
  EXPECT_THAT(in("name = \"sum\"", "name = \"x\""), HasSubstr("the name \"x\" is that of an input of the block"));
  EXPECT_THAT(in("name = \"sum\"\n", ""),
              HasSubstr("job.toml:15: block \"tower\": [[block.layer]]: key \"name\" is missing"));
  EXPECT_EQ(in("output = \"sum\"", "output = \"som\""),
            "job.toml:6: block \"tower\": key \"output\": the block has no layer \"som\"; did you mean \"sum\"?");
  EXPECT_THAT(in("inputs = [\"x\"]", "inputs = [\"x\", \"x\"]"),
              HasSubstr("job.toml:5: block \"tower\": two inputs are called \"x\""));
  EXPECT_THAT(in("output =", "ouput ="), HasSubstr("unknown key \"ouput\"; did you mean \"output\"?"));
  EXPECT_THAT(in("name = \"tower\"\n", ""), HasSubstr("job.toml:1: [[block]]: key \"name\" is missing"));
  EXPECT_THAT(refused("[[block]]\nname = \"b\"\n"), HasSubstr("block \"b\": key \"layer\" is missing"));
  EXPECT_THAT(refused("block = 3\n"),
              HasSubstr("job.toml:1: key \"block\": expected [[block]] tables, got the integer 3"));
}

}  // namespace
}  // namespace tenon_tests
