// What `tenon new job` refuses, and what it says. SPDX-License-Identifier: Apache-2.0
#include <string>

#include "tests/new_job/new_job.h"

namespace tenon_tests {

namespace {

using testing::HasSubstr;

class Mistakes : public NewJobTest {
 protected:
  void SetUp() override {
    NewJobTest::SetUp();
    table("t.csv", "height,weight,grade,id", 40, [](uint64_t i) {
      return std::to_string(i % 11) + "," + std::to_string(drawn(i)) + "," + std::to_string(i % 5) + ",n" +
             std::to_string(i);
    });
  }
  static std::string refused(int exit, Arguments arguments) {
    arguments.insert(arguments.end(), {"--output", "new.toml"});
    return failure(exit, run_new_job, arguments);
  }
};

TEST_F(Mistakes, Columns) {
  EXPECT_THAT(
      refused(kUsage, {"t.csv"}),
      HasSubstr("expected --target COLUMN, what the model is to predict; the columns are: height, weight, grade, id"));
  EXPECT_THAT(refused(kUsage, {"t.csv", "--target", "wieght"}),
              HasSubstr("--target: the table has no column \"wieght\"; did you mean \"weight\"?"));
  EXPECT_THAT(refused(kUsage, {"t.csv", "--target", "weight", "--leave-out", "hight"}),
              HasSubstr("--leave-out: the table has no column \"hight\"; did you mean \"height\"?"));
  EXPECT_THAT(refused(kUsage, {"t.csv", "--target", "weight", "--leave-out", "weight"}), HasSubstr("is the target"));
  const std::string none =
      refused(kBadConfig, {"t.csv", "--target", "weight", "--leave-out", "height", "--leave-out", "grade"});
  EXPECT_THAT(none, HasSubstr("no column is left to predict \"weight\" from"));
  EXPECT_THAT(none, HasSubstr("\"id\": it has 40 different texts in 40 rows"));
}

TEST_F(Mistakes, SeveralFilesNameTheOneAtFault) {
  table("u.csv", "height,grade", 3, [](uint64_t i) { return std::to_string(i) + ",1"; });
  EXPECT_THAT(refused(kBadData, {"t.csv", "u.csv", "--target", "grade"}),
              testing::StartsWith("u.csv: its header has no column \"weight\", unlike that of t.csv"));
  write("cut.csv", std::string("\x1f\x8b\x08\0\0\0\0\0\0\3...", 13));
  EXPECT_THAT(refused(kBadData, {"t.csv", "cut.csv", "--target", "grade"}),
              testing::StartsWith("cut.csv: damaged gzip"));
}

TEST_F(Mistakes, Targets) {
  EXPECT_THAT(
      refused(kUsage, {"t.csv", "--target", "grade"}),
      HasSubstr("the target \"grade\" has 5 different whole numbers, from 0 to 4: classes or a quantity? Say --task"));
  EXPECT_THAT(refused(kBadConfig, {"t.csv", "--target", "id"}), HasSubstr("40 different values in 40 rows"));
  EXPECT_THAT(refused(kBadConfig, {"t.csv", "--target", "id", "--task", "regression"}),
              HasSubstr("a quantity needs numbers, but it has 40 other values, such as \"n0\"; see --task"));
  table("inf.csv", "x,y", 60,
        [](uint64_t i) { return std::to_string(i % 7) + "," + (i == 3 ? "inf" : std::to_string(i)); });
  EXPECT_THAT(refused(kBadConfig, {"inf.csv", "--target", "y"}), HasSubstr("it has 1 other value, such as \"inf\""));
  table("far.csv", "x,y", 60, [](uint64_t i) { return std::to_string(i % 7) + ",1e" + std::to_string(i); });
  EXPECT_THAT(refused(kBadConfig, {"far.csv", "--target", "y"}), HasSubstr("reaches 1e+59, too far for float32"));
  table("one.csv", "x,y", 20, [](uint64_t i) { return std::to_string(i) + ",same"; });
  EXPECT_THAT(refused(kBadData, {"one.csv", "--target", "y"}),
              HasSubstr("has one value, \"same\", in all 20 rows: there is nothing to learn"));
  table("none.csv", "x,y", 20, [](uint64_t i) { return std::to_string(i) + ","; });
  EXPECT_THAT(refused(kBadData, {"none.csv", "--target", "y"}), HasSubstr("is missing in all 20 rows"));
  table("few.csv", "x,y", 4, [](uint64_t i) { return std::to_string(i) + "," + std::to_string(i % 2); });
  EXPECT_THAT(refused(kBadData, {"few.csv", "--target", "y"}),
              HasSubstr("is there in 4 rows, of 4; expected at least 10"));
}

TEST_F(Mistakes, Files) {
  EXPECT_THAT(refused(kNotFound, {"absent.csv", "--target", "y"}),
              HasSubstr("absent.csv: there is no such file or folder"));
  write("empty.csv", "");
  EXPECT_THAT(refused(kBadData, {"empty.csv", "--target", "y"}), HasSubstr("empty.csv: is empty"));
  write("header.csv", "x,y\n");
  EXPECT_THAT(refused(kBadData, {"header.csv", "--target", "y"}), HasSubstr("has a header and no records"));
  std::string text = "x,y\n";
  for (int i = 0; i < 30; ++i) text += "1,2\n";
  write("damaged.csv", text + "1,2,3\n");
  EXPECT_THAT(refused(kBadData, {"damaged.csv", "--target", "y"}),
              HasSubstr("damaged.csv: line 32: expected 2 fields, as in the first line, got 3"));
  write("twice.csv", "x,x\n1,2\n");
  EXPECT_THAT(refused(kBadData, {"twice.csv", "--target", "x"}), HasSubstr("two columns are named \"x\""));
  write("wide.csv", std::string("x\0\0\0y\0", 6) + std::string(20, '\0'));
  EXPECT_EQ(call(run_new_job, {"wide.csv", "--target", "y"}).exit, kBadData);
  write("other.csv", "a,b\n1,2\n");
  EXPECT_THAT(refused(kBadData, {"t.csv", "other.csv", "--target", "weight"}),
              HasSubstr("other.csv: its header has no column \"height\""));
}

TEST_F(Mistakes, Options) {
  EXPECT_THAT(refused(kUsage, {"t.csv", "--target", "weight", "--task", "cluster"}),
              HasSubstr("expected classification or regression"));
  EXPECT_THAT(refused(kUsage, {"t.csv", "--target", "weight", "--hold-out", "1.5"}),
              HasSubstr("--hold-out: expected a fraction"));
  EXPECT_THAT(refused(kUsage, {"t.csv", "--target", "weight", "--hold-out", "0.001"}),
              HasSubstr("leaves 0 rows for tests"));
  EXPECT_THAT(refused(kUsage, {"t.csv", "--target", "weight", "--seed", "-1"}), HasSubstr("--seed"));
  EXPECT_THAT(refused(kUsage, {"t.csv", ".", "--target", "weight"}), HasSubstr("is one of several"));
}

TEST_F(Mistakes, AFileThatIsThereStays) {
  write("new.toml", "# mine\n");
  EXPECT_THAT(refused(kIo, {"t.csv", "--target", "weight"}),
              HasSubstr("new.toml exists already and is not overwritten"));
  EXPECT_EQ(read("new.toml"), "# mine\n");
  EXPECT_EQ(call(run_new_job, {"t.csv", "--target", "weight", "--output", "no/folder.toml"}).exit, kIo);
  EXPECT_EQ(done(run_new_job, {"t.csv", "--target", "weight"}).exit, kDone);
  EXPECT_TRUE(exists("t.toml"));
}

}  // namespace

}  // namespace tenon_tests
