// Jobs with blocks in the verbs: plan --layers, train, test, infer; the same model as with layers written one by one.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/host/cli/program.h"
#include "tests/support/sanitized.h"

namespace tenon_tests {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kBlock = R"([[block]]
name = "residual"
parameters = ["width"]
inputs = ["x"]
[[block.layer]]
name = "fc"
type = "fc"
inputs = "x"
size = "{width}"
act = "tanh"
[[block.layer]]
name = "sum"
type = "add"
inputs = ["x", "fc"]

)";

class Expanded : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write("blocks.toml", kBlock);
    use("repeat = 2\nwidth = 8\n");
  }
  // Writes the job with a tower of blocks between its layers "hidden" and "score".
  void use(const std::string& keys) const {
    change("[[layer]]\nname = \"score\"\ntype = \"fc\"\ninputs = [\"hidden\"]",
           "[[layer]]\nname = \"tower\"\ntype = \"block\"\nblock = \"residual\"\ninputs = \"hidden\"\n" + keys +
               "\n[[layer]]\nname = \"score\"\ntype = \"fc\"\ninputs = [\"tower\"]");
    const std::string text = read("job.toml");
    const size_t at = text.find("\n[[layer]]");
    write("job.toml", text.substr(0, at) + "\n[include]\nfiles = \"blocks.toml\"\n" + text.substr(at));
  }
  // Runs the program, which must succeed.
  [[nodiscard]] Outcome done(const std::string& arguments) const {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit, 0) << arguments << "\n" << outcome.error;
    return outcome;
  }
  [[nodiscard]] json listing(const std::string& arguments = "job.toml") const {
    return json::parse(done("plan --layers --json " + arguments).out);
  }
};

TEST_F(Expanded, IsTheModelOfItsLayers) {
  const std::string place = "job.toml:15: in block \"residual\" at blocks.toml:";
  const json layers = listing().at("layers");
  const auto found = [&](const std::string& name) {
    for (const json& each : layers)
      if (each.at("name") == name) return each;
    return json();
  };
  EXPECT_EQ(found("tower.1.sum").at("place"), place + "11");
  EXPECT_EQ(found("score").at("inputs"), json({"tower.1.sum"}));
  (void)done("train job.toml --save blocks.safetensors");
  change("[[layer]]\nname = \"score\"\ntype = \"fc\"\ninputs = [\"hidden\"]", R"([[layer]]
name = "tower.0.fc"
type = "fc"
inputs = ["hidden"]
size = 8
act = "tanh"
[[layer]]
name = "tower.0.sum"
type = "add"
inputs = ["hidden", "tower.0.fc"]
[[layer]]
name = "tower.1.fc"
type = "fc"
inputs = ["tower.0.sum"]
size = 8
act = "tanh"
[[layer]]
name = "tower.1.sum"
type = "add"
inputs = ["tower.0.sum", "tower.1.fc"]
[[layer]]
name = "score"
type = "fc"
inputs = ["tower.1.sum"])");
  (void)done("train job.toml --save layers.safetensors");
  EXPECT_EQ(read("blocks.safetensors"), read("layers.safetensors")) << "byte by byte";
}

TEST_F(Expanded, ListsLayers) {
  const json listed = listing();
  EXPECT_EQ(listed.at("totals"), json({{"layers", 9},
                                       {"parameters", 8},
                                       {"values", 16 * 8 + 8 + 2 * (8 * 8 + 8) + 8 * 3 + 3},
                                       {"buffers", 0},
                                       {"buffer_values", 0}}));
  const json& layers = listed.at("layers");
  ASSERT_EQ(layers.size(), 11u) << "with two data layers";
  EXPECT_EQ(layers.at(0).at("type"), "data");
  const json& inner = layers.at(3);
  EXPECT_EQ(inner.at("name"), "tower.0.fc");
  EXPECT_EQ(inner.at("inputs"), json({"hidden"}));
  EXPECT_EQ(inner.at("outputs").at(0).at("shape"), "[samples, 8]");
  EXPECT_EQ(inner.at("parameters").at(0),
            json({{"name", "tower.0.fc.weight"}, {"shape", {8, 8}}, {"dtype", "float32"}, {"kind", "parameter"}}));
  EXPECT_EQ(inner.at("place"), "job.toml:15: in block \"residual\" at blocks.toml:5");
  const std::string text = done("plan --layers job.toml").out;
  EXPECT_THAT(text, AllOf(HasSubstr("weight [8, 8], bias [8] "),
                          HasSubstr(" 72  job.toml:15: in block \"residual\" at blocks.toml:5\n"),
                          HasSubstr("pixel        data "), HasSubstr("uint8 [4, 4]"),
                          HasSubstr("\n9 layers, 8 parameters of 307 values\n"), Not(HasSubstr("phase"))));
  // Layers that no output needs are shown, but not made.
  const std::string part = done("plan --layers --inference job.toml --set 'outputs=[\"hidden\"]'").out;
  EXPECT_THAT(part,
              AllOf(HasSubstr("not computed"), HasSubstr("2 parameters of 136 values"), Not(HasSubstr("label  data"))));
}

TEST_F(Expanded, ListsSharedParametersAndBuffersOnce) {
  use("repeat = 2\nwidth = 8\n\n[[layer]]\nname = \"twin\"\ntype = \"block\"\nblock = \"residual\"\ninputs = "
      "\"tower\"\n"
      "repeat = 2\nwidth = 8\nparameter_name = \"tower\"\n\n[[layer]]\nname = \"normal\"\ntype = \"batch_norm\"\n"
      "inputs = \"twin\"\n");
  const json listed = listing();
  EXPECT_EQ(listed.at("totals").at("parameters"), 10) << "those of the twin are those of the tower";
  EXPECT_GT(listed.at("totals").at("buffers"), 0);
  EXPECT_THAT(done("plan --layers job.toml").out,
              AllOf(HasSubstr("tower.1.fc.weight [8, 8], tower.1.fc.bias [8]"), HasSubstr(" buffers of ")));
}

TEST_F(Expanded, TrainsTestsInfersAndResumes) {
  const std::string saves = " --set checkpoint.folder=saves --set checkpoint.keep=9";
  (void)done("train job.toml --save whole.safetensors");
  (void)done("train job.toml --passes 2 --no-save" + saves);
  (void)done("train job.toml --resume --save resumed.safetensors" + saves);
  EXPECT_EQ(read("resumed.safetensors"), read("whole.safetensors"));
  EXPECT_THAT(done("test job.toml --model whole.safetensors").out, HasSubstr("accuracy"));
  const std::string told = done("infer job.toml --model whole.safetensors --output tower --output prediction").out;
  const json first = json::parse(told.substr(0, told.find('\n')));
  EXPECT_EQ(first.at("tower").size(), 8u);
  EXPECT_EQ(first.at("prediction").size(), 3u);
  EXPECT_THAT(run("infer job.toml --model whole.safetensors --output towr").error,
              HasSubstr("did you mean \"tower\"?"));
  // What a checkpoint fits is the model, whichever file a change was made in.
  write("blocks.toml", std::string(kBlock).replace(std::string(kBlock).find("tanh"), 4, "relu"));
  const Outcome other = run("train job.toml --resume --no-save" + saves);
  EXPECT_NE(other.exit, 0);
  EXPECT_THAT(other.error, HasSubstr("tower.0.fc"));
}

TEST_F(Expanded, ErrorsOfLayersNameBothFiles) {
  const Outcome wide = run("plan job.toml --set layer.tower.width=9");
  EXPECT_EQ(wide.exit, 78);
  EXPECT_THAT(wide.error,
              AllOf(HasSubstr("job.toml:15: in block \"residual\" at blocks.toml:11: layer \"tower.0.sum\""),
                    HasSubstr("[samples, 8]"), HasSubstr("[samples, 9]")));
  use("repeat = 2\nwidth = \"wide\"\n");
  EXPECT_THAT(run("train job.toml").error,
              HasSubstr("job.toml:15: in block \"residual\" at blocks.toml:9: layer \"tower.0.fc\""));
  write("blocks.toml", std::string(kBlock).replace(std::string(kBlock).find("act ="), 5, "atc ="));
  EXPECT_THAT(run("train job.toml").error,
              AllOf(HasSubstr("job.toml:15: in block \"residual\" at blocks.toml:10: layer \"tower.0.fc\""),
                    HasSubstr("did you mean \"act\"?")));
}

TEST_F(Expanded, OutputsMayBeBlocks) {
  use("repeat = 2\nwidth = 8\n");
  const std::string outputs = " --set 'outputs=[\"cost\", \"tower.0\"]'";
  EXPECT_EQ(listing("job.toml" + outputs).at("totals").at("layers"), 9);
  EXPECT_THAT(run("plan job.toml --set 'outputs=[\"cost\", \"tower.2\"]'").error,
              HasSubstr("the job has no layer \"tower.2\"; did you mean \"tower.0\"?"));
}

TEST_F(Expanded, TenThousandLayersAreListedAtOnce) {
  const json listed = listing("job.toml --set layer.tower.repeat=4997");
  EXPECT_EQ(listed.at("totals").at("layers"), 9999);
}

// The depth of a chain is not limited by the stack of the thread.
TEST_F(Expanded, AThousandLayersNeedASmallStack) {
  const unsigned stack = sanitized() ? 1024 : 256;  // KiB
  const Outcome outcome = shell("ulimit -s " + std::to_string(stack) +
                                "; exec \"$TENON\" train job.toml --passes 1 --set layer.tower.repeat=500");
  EXPECT_EQ(outcome.exit, 0) << outcome.error;
}

TEST_F(Expanded, TheExampleHasTwelveEqualBlocks) {
  for (const char* file : {"residual.toml", "residual_block.toml"})
    std::filesystem::copy(tenon_tests::source_folder() + "/examples/fashion_mnist/" + file, path(file));
  const std::string job =
      "residual.toml --set 'reader.train.files=[\"train-images\", \"train-labels\"]' "
      "--set 'reader.test.files=[\"test-images\", \"test-labels\"]' --set reader.train.batch=12";
  const json listed = listing(job);
  EXPECT_EQ(listed.at("totals").at("layers"), 12 * 4 + 5);
  EXPECT_EQ(listed.at("totals").at("parameters"), 12 * 6 + 4);
  const std::string told = done("train --log-format json --passes 12 " + job).out;
  const size_t last = told.rfind('\n', told.size() - 2);
  EXPECT_GT(json::parse(told.substr(last + 1)).at("test").at("metrics").at("accuracy"), 0.9) << told;
}

}  // namespace
}  // namespace tenon_tests
