// Jobs with [[cond]]: experts that a predicate or integers choose, blocks inside, plans, saved models, and the message
// of each mistake. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/host/cli/program.h"

namespace tenon_tests {

namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

constexpr const char* kModel = R"(passes = 100
seed = 3
[[layer]]
name = "cost"
type = "square_error"
inputs = ["expert", "truth"]
[reader.train]
type = "csv"
files = ["table.csv"]
columns = ["positive: f32", "features = a, b: f32", "truth = truth..truth: f32"]
batch = 8
[reader.test]
type = "csv"
files = ["table.csv"]
columns = ["positive: f32", "features = a, b: f32", "truth = truth..truth: f32"]
[updater]
type = "adam"
learning_rate = 0.05
)";
constexpr const char* kCond = R"([[cond]]
name = "expert"
predicate = "positive"
inputs = { x = "features" }
[cond.then]
results = "sum"
layer = [{ name = "sum", type = "fc", inputs = "x", size = 1 }]
[cond.else]
results = "deep"
layer = [{ name = "deep", type = "block", block = "twice", inputs = "x" }]
[[block]]
name = "twice"
inputs = "in"
layer = [{ name = "one", type = "fc", inputs = "in", size = 4, act = "tanh" },
         { name = "two", type = "fc", inputs = "one", size = 1 }]
)";

class CondJob : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    std::string table = "positive,a,b,truth\n";
    for (int i = 0; i < 32; ++i) {
      const double a = i * 0.03, b = (i * 7 % 10) * 0.1;
      table += std::to_string(i % 2) + "," + std::to_string(a) + "," + std::to_string(b) + "," +
               std::to_string(i % 2 == 1 ? a + b : -a) + "\n";
    }
    write("table.csv", table);
  }
  [[nodiscard]] std::string refused(const std::string& from, const std::string& to, int exit = 78) const {
    std::string cond = kCond;
    const size_t at = cond.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    write("cond.toml", std::string(kModel) + cond.replace(at, from.size(), to));
    const Outcome outcome = run("plan cond.toml");
    EXPECT_EQ(outcome.exit, exit) << outcome.out;
    return outcome.error;
  }
};

TEST_F(CondJob, ExpertsAreTrainedPlannedSavedAndRestored) {
  write("cond.toml", std::string(kModel) + kCond);
  const Outcome layers = run("plan --layers cond.toml");
  EXPECT_EQ(layers.error, "");
  EXPECT_THAT(layers.out, AllOf(ContainsRegex("expert.rows +choose_rows +positive"),
                                ContainsRegex("expert.then.sum +fc +expert.then.x"),
                                ContainsRegex("expert.else.deep.two +fc"), ContainsRegex("expert +cond .*cond.toml")));
  const Outcome trained = run("train cond.toml --save model.safetensors");
  EXPECT_EQ(trained.exit, 0) << trained.error;
  EXPECT_THAT(trained.out, ContainsRegex("pass 100/100  cost [0-9.]+e-0"));
  EXPECT_THAT(run("model show model.safetensors").out, AllOf(HasSubstr("expert.then.sum"), HasSubstr("cond_input")));
  const Outcome inferred = run("infer cond.toml --model model.safetensors --output expert");
  EXPECT_EQ(inferred.error, "");
  EXPECT_THAT(inferred.out, HasSubstr("{\"sample\":31,\"expert\":["));
}

TEST_F(CondJob, IntegersChooseBranchesAndBranchesLieInBranches) {
  write("cond.toml", std::string(kModel) + R"([[cond]]
name = "expert"
choice = "positive"
inputs = { x = "features" }
branch = [{ results = "inner" },
          { results = "sum", layer = [{ name = "sum", type = "fc", inputs = "x", size = 1 }] }]
[[cond]]
name = "inner"
predicate = "expert.0.x"
inputs = { x = "expert.0.x" }
then = { results = "one", layer = [{ name = "one", type = "fc", inputs = "x", size = 1 }] }
else = { results = "two", layer = [{ name = "two", type = "fc", inputs = "x", size = 1 }] }
)");
  const std::string columns = R"(.columns=["positive: i32 < 2", "features = a..a: f32", "truth = truth..truth: f32"]')";
  const Outcome outcome =
      run("train cond.toml --no-save --passes 1 --set 'reader.train" + columns + " --set 'reader.test" + columns);
  EXPECT_EQ(outcome.exit, 0) << outcome.error;
}

TEST_F(CondJob, MistakesHaveTheirPlaces) {
  EXPECT_THAT(refused("results = \"sum\"", "results = [\"sum\", \"x\"]"),
              HasSubstr("cond \"expert\": branch \"else\": has 1 results; the first branch has 2"));
  EXPECT_THAT(refused("size = 1 }]\n[cond.else]", "size = 2 }]\n[cond.else]"),
              AllOf(HasSubstr("cond.toml:"), HasSubstr("cond \"expert\": result 0 is [samples, 2] of layer "
                                                       "\"expert.then.sum\" (fc) in branch 0")));
  EXPECT_THAT(refused("predicate = \"positive\"", "predicate = \"features\""),
              AllOf(HasSubstr("cond.toml:"), HasSubstr("must have one number for each sample or row")));
  EXPECT_THAT(refused("predicate = \"positive\"", ""), HasSubstr("cond \"expert\": key \"predicate\" is missing"));
  EXPECT_THAT(refused("predicate = \"positive\"", "predicate = \"positive\"\nchoice = \"positive\""),
              HasSubstr("has the keys \"predicate\" and \"choice\""));
  EXPECT_THAT(refused("[cond.else]", "[cond.otherwise]"), HasSubstr("cond \"expert\": key \"else\" is missing"));
  EXPECT_THAT(refused("{ x = \"features\" }", "{ x = \"featres\" }"), HasSubstr("did you mean \"features\"?"));
  EXPECT_THAT(refused("{ x = \"features\" }", "{ sum = \"features\" }"),
              HasSubstr("branch \"then\": the name \"sum\" of an input is that of a layer of the branch"));
  EXPECT_THAT(refused("inputs = \"x\", size = 1 }]\n[cond.else]", "inputs = \"sum\", size = 1 }]\n[cond.else]"),
              HasSubstr("the layers form a cycle"));
  EXPECT_THAT(
      refused("[[cond]]", "[[layer]]\nname=\"late\"\ntype=\"fc\"\nsize=1\ninputs=\"expert.then.sum\"\n[[cond]]"),
      HasSubstr("layer \"expert.then.sum\" (fc)"));
  EXPECT_THAT(refused("results = \"deep\"", ""), HasSubstr("branch \"else\": key \"results\" is missing"));
}

}  // namespace

}  // namespace tenon_tests
