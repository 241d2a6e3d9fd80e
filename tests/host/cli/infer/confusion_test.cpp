// tenon test --confusion: which classes are taken for which. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ConfusionTest : public CallTest {
 protected:
  // A model that takes the class whose column is the largest.
  void train(const std::vector<std::string>& kinds, const std::string& label = "category",
             const std::string& layers = "") {
    std::string rows = header(kinds.size());
    for (size_t i = 0; i < kinds.size(); ++i) rows += row(i, kinds.size(), kinds[i]);
    write("train.csv", rows);
    write("job.toml", "save = \"m\"\nlayer = [" + layers +
                          "{ name = \"score\", type = \"scale_shift\", inputs = [\"x\"] }, "
                          "{ name = \"free\", type = \"fc\", inputs = [\"x\"], size = 1 }, "
                          "{ name = \"other\", type = \"square_error\", inputs = [\"free\", \"free\"] }, "
                          "{ name = \"cost\", type = \"cross_entropy\", inputs = [\"score\", \"kind\"], from_logits = "
                          "true }, { name = \"accuracy\", type = \"accuracy\", inputs = [\"score\", \"kind\"] }]\n"
                          "updater = { type = \"sgd\" }\n[reader.train]\ntype = \"csv\"\nfiles = [\"train.csv\"]\n"
                          "columns = [\"x = *: f32\", \"kind: " +
                          label + "\"]\nbatch = 2\n");
    done(run_train, {"job.toml"});
  }
  static std::string header(size_t count) {
    std::string result;
    for (size_t k = 0; k < count; ++k) result += "x" + std::to_string(k) + ",";
    return result + "kind\n";
  }
  static std::string row(size_t seen, size_t count, const std::string& kind) {
    std::string result;
    for (size_t k = 0; k < count; ++k) result += k == seen ? "1," : "0,";
    return result + kind + "\n";
  }
};

TEST_F(ConfusionTest, IsATableWithNames) {
  train({"cat", "dog", "fox"});
  // seen, label
  write("test.csv", header(3) + row(0, 3, "cat") + row(0, 3, "cat") + row(1, 3, "cat") + row(1, 3, "dog") +
                        row(2, 3, "dog") + row(0, 3, "fox"));
  const Outcome outcome = done(run_test, {"m", "--data", "test.csv", "--confusion"});
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 7U) << outcome.out;
  EXPECT_THAT(lines[0], HasSubstr("accuracy 0.5000"));
  EXPECT_EQ(lines[1], "confusion of \"kind\": a row for each label, a column for each prediction by \"score\"");
  EXPECT_EQ(lines[2], "label         cat     dog     fox  samples  recall");
  EXPECT_EQ(lines[3], "cat             2       1       0        3  0.6667");
  EXPECT_EQ(lines[4], "dog             0       1       1        2  0.5000");
  EXPECT_EQ(lines[5], "fox             1       0       0        1  0.0000");
  EXPECT_EQ(lines[6], "precision  0.6667  0.5000  0.0000");
  const std::vector<json> events =
      parsed(done(run_test, {"m", "--data", "test.csv", "--confusion", "--log-format", "json"}).out);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].at("event"), "confusion");
  EXPECT_EQ(events[1].at("names"), json({"cat", "dog", "fox"}));
  EXPECT_EQ(events[1].at("counts"), json({{2, 1, 0}, {0, 1, 1}, {1, 0, 0}}));
  EXPECT_EQ(done(run_test, {"job.toml", "--data", "test.csv", "--confusion"}).out.substr(lines[0].size()),
            outcome.out.substr(lines[0].size()));
  EXPECT_THAT(done(run_test, {"m", "--data", "test.csv"}).out, Not(HasSubstr("confusion")));
}

// Columns are aligned by characters, not by bytes.
TEST_F(ConfusionTest, NamesOfManyAlphabets) {
  train({"Käse", "сыр"});
  write("test.csv", header(2) + row(0, 2, "Käse") + row(0, 2, "сыр"));
  const std::vector<std::string> lines = lines_of(done(run_test, {"m", "--data", "test.csv", "--confusion"}).out);
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines[2], "label        Käse  сыр  samples  recall");
  EXPECT_EQ(lines[3], "Käse            1    0        1  1.0000");
  EXPECT_EQ(lines[4], "сыр             1    0        1  0.0000");
  EXPECT_EQ(lines[5], "precision  0.5000    -");
}

TEST_F(ConfusionTest, ClassesWithoutNamesAreNumbers) {
  train({"0", "1"}, "i32 < 2");
  write("test.csv", header(2) + row(0, 2, "1") + row(1, 2, "1"));
  const std::vector<std::string> lines = lines_of(done(run_test, {"m", "--data", "test.csv", "--confusion"}).out);
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines[2], "label           0       1  samples  recall");
  EXPECT_EQ(lines[3], "0               0       0        0       -");
  EXPECT_EQ(lines[4], "1               1       1        2  0.5000");
}

TEST_F(ConfusionTest, OfManyClassesTheMostFrequent) {
  std::vector<std::string> kinds;
  for (int i = 0; i < 40; ++i) kinds.push_back("k" + std::to_string(100 + i));
  train(kinds);
  std::string rows = header(40);
  for (int i = 0; i < 3; ++i) rows += row(7, 40, "k105");
  for (size_t i = 10; i < 39; ++i) rows += row(i, 40, kinds[i + 1]);
  write("test.csv", rows + row(7, 40, "k107"));
  const std::vector<std::string> lines = lines_of(done(run_test, {"m", "--data", "test.csv", "--confusion"}).out);
  ASSERT_EQ(lines.size(), 23U);
  EXPECT_EQ(lines[1], "confusion of \"kind\" by \"score\": the most frequent of 30 kinds, of 40 classes");
  EXPECT_EQ(lines[3], "k105   k107            3        1.0000");
  EXPECT_EQ(lines[4], "k111   k110            1        1.0000");
  const json event =
      parsed(done(run_test, {"m", "--data", "test.csv", "--confusion", "--log-format", "json"}).out).at(1);
  EXPECT_EQ(event.at("confusions").size(), 30U);
  EXPECT_EQ(event.at("confusions").at(0), json({{"label", "k105"}, {"prediction", "k107"}, {"count", 3}}));
  EXPECT_EQ(event.at("left_out"), 0);
}

TEST_F(ConfusionTest, NeedsScoresAndALabel) {
  train({"cat", "dog"});
  write("test.csv", header(2) + row(0, 2, "cat"));
  EXPECT_THAT(
      failure(kUsage, run_test, {"job.toml", "--data", "test.csv", "--confusion", "--set", "outputs=[\"other\"]"}),
      HasSubstr("--confusion: no cost or metric among the outputs"));
}

// The classes of a cost with parameters of its own are those that its layer for decoding finds.
TEST_F(ConfusionTest, OfDecodedSequences) {
  write("tags.csv", "id,x,tag\n1,1,O\n1,0,B\n2,0,B\n");
  const std::string reader =
      "type = \"csv\"\nfiles = [\"tags.csv\"]\nsequence_by = \"id\"\ncolumns = [\"x = x..x: f32\", \"tag: "
      "category\"]\nbatch = 2\nslots = { x = { sequence = \"s\" }, tag = { sequence = \"s\" } }\n";
  const auto with = [&](const std::string& decoding) {
    write("job.toml",
          "passes = 100\nsave = \"m\"\nlayer = [{ name = \"score\", type = \"fc\", inputs = [\"x\"], size = 2 "
          "}, { name = \"cost\", type = \"crf\", inputs = [\"score\", \"tag\"], parameter_name = \"chain\" }" +
              decoding + "]\nupdater = { type = \"adam\", learning_rate = 0.2 }\n[reader.train]\n" + reader);
    done(run_train, {"job.toml"});
    return call(run_test, {"m", "--data", "tags.csv", "--confusion", "--log-format", "json"});
  };
  const Outcome outcome =
      with(", { name = \"best\", type = \"crf_decoding\", inputs = [\"score\"], parameter_name = \"chain\" }");
  ASSERT_EQ(outcome.exit, kDone) << outcome.error;
  const json event = parsed(outcome.out).at(1);
  EXPECT_EQ(event.at("scores"), "best");
  EXPECT_EQ(event.at("names"), json({"B", "O"}));
  EXPECT_EQ(event.at("counts"), json({{2, 0}, {0, 1}}));
  EXPECT_EQ(with("").exit, kUsage);
}

TEST_F(ConfusionTest, OfRowsOfSequences) {
  write("tags.csv", "id,x1,x2,tag\n1,1,0,A\n1,0,1,B\n2,0,1,A\n");
  const std::string reader =
      "type = \"csv\"\nfiles = [\"tags.csv\"]\nsequence_by = \"id\"\ncolumns = [\"x = x1, x2: f32\", \"tag: "
      "category\"]\nbatch = 2\nslots = { x = { sequence = \"s\" }, tag = { sequence = \"s\" } }\n";
  write("job.toml",
        "save = \"m\"\nlayer = [{ name = \"score\", type = \"scale_shift\", inputs "
        "= [\"x\"] }, { name = \"p\", type = \"fc\", inputs = [\"score\"], size = 2 }, { name = \"cost\", type = "
        "\"cross_entropy\", inputs = [\"score\", \"tag\"], from_logits = true }, { name = \"more\", type = "
        "\"cross_entropy\", inputs = [\"p\", \"tag\"], from_logits = true }]\nupdater = { type = \"sgd\" }\n"
        "[reader.train]\n" +
            reader);
  done(run_train, {"job.toml"});
  const json event =
      parsed(done(run_test, {"m", "--data", "tags.csv", "--confusion", "--log-format", "json"}).out).at(1);
  EXPECT_EQ(event.at("counts"), json({{1, 1}, {0, 1}}));
}

}  // namespace
}  // namespace tenon_tests
