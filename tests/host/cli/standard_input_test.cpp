// Data from a pipe through the program: training, resuming and predictions. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/host/cli/program.h"

namespace tenon_tests {
namespace {

using testing::HasSubstr;

class StandardInputTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write("data.csv", "a,b,label\n1,2,x\n3,4,y\n5,6,x\n7,8,z\n");
    write("new.csv", "b,a\n2,1\n8,7\n");
    write("job.toml", R"(passes = 2
save = "m"
layer = [
  { name = "score", type = "fc", inputs = ["x"] },
  { name = "cost", type = "cross_entropy", inputs = ["score", "label"], from_logits = true },
]
updater = { type = "sgd" }
checkpoint = { folder = "checkpoints", every_passes = 1 }
[reader.train]
type = "csv"
files = ["-"]
columns = ["x = a, b: f32", "label: category"]
batch = 2
shuffle = true
)");
  }
};

TEST_F(StandardInputTest, TrainsAsFromAFile) {
  const Outcome piped = shell("cat data.csv | \"$TENON\" train job.toml");
  EXPECT_EQ(piped.exit, 0) << piped.error;
  const std::string model = read("m");
  ASSERT_EQ(shell("rm -r checkpoints m && \"$TENON\" train job.toml <data.csv").exit, 0);
  EXPECT_EQ(read("m"), model);
  const Outcome other = shell("head -n 3 data.csv | \"$TENON\" train job.toml --passes 3 --resume");
  EXPECT_EQ(other.exit, 78);
  EXPECT_THAT(other.error, HasSubstr("reader.samples: 4 in the checkpoint, 2 now"));
  EXPECT_EQ(shell("cat data.csv | \"$TENON\" train job.toml --passes 3 --resume").exit, 0);
}

TEST_F(StandardInputTest, PredictsForWhatItReads) {
  ASSERT_EQ(shell("cat data.csv | \"$TENON\" train job.toml").exit, 0);
  const Outcome file = run("infer job.toml --model m --output score --data new.csv");
  EXPECT_EQ(file.exit, 0) << file.error;
  const Outcome piped = shell("gzip -c new.csv | \"$TENON\" infer job.toml --model m --output score --data -");
  EXPECT_EQ(piped.exit, 0) << piped.error;
  EXPECT_EQ(piped.out, file.out);
  EXPECT_EQ(piped.error, "") << "nor a warning of the size that the job leaves out";
  EXPECT_THAT(run("infer job.toml --model m --output score --data -").error, HasSubstr("/dev/stdin: empty"));
}

}  // namespace
}  // namespace tenon_tests
