// Sizes that a job leaves to its reader: rows of an embedding, and outputs that a cost compares with a slot.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/host/cli/program.h"

namespace tenon_tests {
namespace {

using testing::HasSubstr;

class SizesTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write("words", "good\ta b\nbad\tc\nugly\tb\n");
    write("more", "b c\n\nd\n");
    write("job.toml", kJob);
  }
  std::string message(const std::string& arguments) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit, 78) << outcome.error;
    return outcome.error;
  }

  const std::string kJob = R"(passes = 1
save = "m"
layer = [
  { name = "vectors", type = "embedding", inputs = ["words"], size = 5, reduce = "mean" },
  { name = "score", type = "fc", inputs = ["vectors"] },
  { name = "cost", type = "cross_entropy", inputs = ["score", "label"], from_logits = true },
]
updater = { type = "sgd" }
reader.train = { type = "text", files = ["words"], labelled = true, batch = 2 }
)";
};

TEST_F(SizesTest, ThoseOfTheReader) {
  ASSERT_EQ(run("train job.toml").exit, 0) << run("train job.toml").error;
  const std::string shown = run("model show m").out;
  EXPECT_THAT(shown, HasSubstr("[4,5]")) << "<unk>, a, b and c";
  EXPECT_THAT(shown, HasSubstr("[5,3]")) << "bad, good and ugly";
  // Data without labels: the model has the size.
  const Outcome predicted = run("infer job.toml --model m --output score --data more");
  EXPECT_EQ(predicted.exit, 0) << predicted.error;
  EXPECT_EQ(std::count(predicted.out.begin(), predicted.out.end(), ','), 2 * 3) << predicted.out;
  EXPECT_EQ(run("test job.toml --model m --reader train").exit, 0);
  // Numbers of the job come first.
  ASSERT_EQ(run("train job.toml --save other --set layer.vectors.vocabulary=9 --set layer.score.size=4").exit, 0);
  EXPECT_THAT(run("model show other").out, HasSubstr("[9,5]"));
  EXPECT_THAT(run("model show other").out, HasSubstr("[5,4]"));
}

TEST_F(SizesTest, OfVectorsAndOfNumbers) {
  write("t.csv", "x,labels,y\n1,a;b,0.5\n2,,1\n3,c,2\n");
  const std::string csv =
      "reader.train = { type = \"csv\", files = [\"t.csv\"], batch = 2, columns = [\"x = x..x: f32\", \"labels: "
      "category list(;) multihot\", \"y: f32\"] }\nupdater = { type = \"sgd\" }\npasses = 1\nsave = \"m\"\n";
  write("job.toml", csv + R"(layer = [
  { name = "score", type = "fc", inputs = ["x"] },
  { name = "cost", type = "binary_cross_entropy", inputs = ["score", "labels"], from_logits = true },
  { name = "guess", type = "fc", inputs = ["x"] },
  { name = "error", type = "square_error", inputs = ["guess", "y"] },
])");
  ASSERT_EQ(run("train job.toml").exit, 0) << run("train job.toml").error;
  EXPECT_THAT(run("model show m").out, HasSubstr("[1,3]"));
  EXPECT_THAT(run("model show m").out, HasSubstr("[1,1]"));
  write("job.toml", csv + R"(layer = [
  { name = "score", type = "fc", inputs = ["x"] },
  { name = "cost", type = "binary_cross_entropy", inputs = ["score", "labels"], from_logits = true },
  { name = "error", type = "square_error", inputs = ["score", "y"] },
])");
  EXPECT_THAT(message("train job.toml"), HasSubstr("layer \"score\" (fc): attribute \"size\" is missing"))
      << "two costs that do not agree";
}

TEST_F(SizesTest, OfLabelsWithoutClasses) {
  write("t.csv", "x,whole,decimal\n1,0,0.0\n2,1,1.0\n");
  const auto job = [&](const std::string& label) {
    write("job.toml", R"(passes = 1
layer = [
  { name = "score", type = "fc", inputs = ["x"] },
  { name = "cost", type = "cross_entropy", inputs = ["score", ")" +
                          label + R"("], from_logits = true },
]
updater = { type = "sgd" }
reader.train = { type = "csv", files = ["t.csv"], batch = 2 }
)");
  };
  job("whole");
  EXPECT_THAT(
      message("train job.toml --no-save"),
      HasSubstr("attribute \"size\" is missing: expected an integer of at least 1; the reader does not know how "
                "many classes \"whole\" has: with csv \"whole: i32 < 10\" in columns says so"));
  job("decimal");
  EXPECT_THAT(message("train job.toml --no-save"),
              HasSubstr("the reader does not know how many classes \"decimal\" has: with csv \"decimal: i32 < 10\""));
  EXPECT_EQ(run("train job.toml --no-save --set 'reader.train.columns=[\"x\",\"decimal: i32 < 2\"]'").exit, 0);
}

TEST_F(SizesTest, ThatNobodyKnows) {
  std::string job = kJob;
  job.replace(job.find("[\"vectors\"]"), 11, "[\"hidden\"]");
  job.replace(job.find("  { name = \"score\""), 0, "  { name = \"hidden\", type = \"fc\", inputs = [\"vectors\"] },\n");
  write("job.toml", job);
  EXPECT_THAT(message("train job.toml"), HasSubstr("layer \"hidden\" (fc): attribute \"size\" is missing"));
}

}  // namespace
}  // namespace tenon_tests
