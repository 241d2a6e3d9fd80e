// tenon test and tenon infer on data of another form than that of the training: columns in another order, no labels,
// records that are left out. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class NewData : public CallTest {
 protected:
  void SetUp() override {
    CallTest::SetUp();
    write("job.toml", job("type = \"csv\"\ncolumns = [\"x = *: f32\", \"kind: category\"]\nfiles = [\"train.csv\"]\n"));
    write("train.csv", table("a,b,c,kind", [](int i) {
            return number(i, 1) + "," + number(i, 2) + "," + number(i, 3) + "," + kind(i);
          }));
  }
  static std::string job(const std::string& reader, const std::string& input = "x") {
    return R"(passes = 30
seed = 1
save = "model"
layer = [{ name = "score", type = "fc", inputs = [")" +
           input + R"("], size = 2 },
         { name = "cost", type = "cross_entropy", inputs = ["score", "kind"], from_logits = true },
         { name = "accuracy", type = "accuracy", inputs = ["score", "kind"] }]
updater = { type = "adam", learning_rate = 0.1 }
[reader.train]
batch = 8
)" + reader;
  }
  static std::string number(int i, int column) { return std::to_string(std::sin(i * 7 + column * column)); }
  static std::string kind(int i) { return std::sin(i * 7 + 1) > std::sin(i * 7 + 4) ? "left" : "right"; }
  template <typename Row>
  static std::string table(const std::string& header, Row row) {
    std::string result = header + "\n";
    for (int i = 0; i < 40; ++i) result += row(i) + "\n";
    return result;
  }
  static std::vector<json> infer(Arguments more) {
    more.insert(more.begin(), "job.toml");
    return parsed(done(run_infer, more).out);
  }
  static std::vector<int64_t> samples(const std::vector<json>& told) {
    std::vector<int64_t> result;
    for (const json& each : told) result.push_back(each.at("sample"));
    return result;
  }
};

TEST_F(NewData, ColumnsHaveTheOrderOfTheModel) {
  done(run_train, {"job.toml"});
  const std::string expected = done(run_test, {"job.toml", "--reader", "train"}).out;
  const std::vector<json> scores = infer({"--reader", "train", "--output", "score"});
  write("turned.csv", table("c,kind,a,id,b", [](int i) {
          return number(i, 3) + "," + kind(i) + "," + number(i, 1) + "," + std::to_string(i) + "," + number(i, 2);
        }));
  const std::string files = "reader.test.files=[\"turned.csv\"]";
  const Outcome tested = done(run_test, {"job.toml", "--set", files});
  EXPECT_EQ(tested.out.substr(tested.out.find("cost")), expected.substr(expected.find("cost")));
  EXPECT_THAT(tested.out, HasSubstr("accuracy 1.0000"));
  EXPECT_EQ(infer({"--set", files, "--output", "score"}), scores);
  EXPECT_THAT(done(run_train, {"job.toml", "--set", files}).out, HasSubstr("accuracy 1.0000"))
      << "the test at the end of a training";
  EXPECT_THAT(done(run_model_show, {"model"}).out, HasSubstr("; 3 columns: a, b, c"));
  write("fewer.csv", "a,c,kind\n1,2,left\n");
  EXPECT_THAT(failure(kBadConfig, run_infer, {"job.toml", "--output", "score", "--data", "fewer.csv"}),
              HasSubstr("the files have no column \"b\", which the model was trained with"));
}

TEST_F(NewData, OfATrainingThatResumes) {
  write("job.toml", read("job.toml") + "\n[checkpoint]\nfolder = \"saves\"\n");
  done(run_train, {"job.toml", "--passes", "2"});
  done(run_train, {"job.toml", "--passes", "3", "--resume"});
  write("train.csv", table("c,b,a,kind", [](int i) {
          return number(i, 3) + "," + number(i, 2) + "," + number(i, 1) + "," + kind(i);
        }));
  EXPECT_THAT(failure(kBadConfig, run_train, {"job.toml", "--passes", "4", "--resume"}),
              HasSubstr("the data of the reader has changed"));
  EXPECT_THAT(failure(kBadConfig, run_train, {"job.toml", "--passes", "4", "--resume-inexact"}),
              HasSubstr("column 0 is \"c\" and is known as \"a\""));
}

TEST_F(NewData, NeedsNoLabels) {
  done(run_train, {"job.toml"});
  write("new.csv", "c,b,a\n1,2,3\n-1,0,1\n");
  const std::vector<json> told = infer({"--output", "score", "--data", "new.csv"});
  EXPECT_EQ(told.size(), 2U);
  EXPECT_EQ(infer({"--output", "score", "--set", "reader.test.files=[\"new.csv\"]"}), told);
  EXPECT_EQ(infer({"--output", "score", "--data", "new.csv", "new.csv"}).size(), 4U);
  EXPECT_EQ(infer({"new.csv", "--output", "score", "--data", "new.csv"}).size(), 4U);
  write("unknown.csv", "c,b,a,kind\n1,2,3,up\n-1,0,1,\n");
  EXPECT_EQ(infer({"--output", "score", "--data", "unknown.csv"}), told) << "labels are neither read nor checked";
  EXPECT_THAT(failure(kBadConfig, run_infer, {"job.toml", "--output", "cost", "--data", "new.csv"}),
              HasSubstr("unknown column \"kind\""));
  EXPECT_THAT(failure(kUsage, run_infer, {"job.toml", "new.csv", "--output", "score"}),
              HasSubstr("unexpected \"new.csv\""));
  EXPECT_THAT(failure(kNotFound, run_infer, {"job.toml", "--output", "score", "--data", "missing.csv"}),
              HasSubstr("missing.csv"));
}

TEST_F(NewData, DataDoesNotTakeOverWhatDividesTheSamples) {
  std::string text = read("job.toml");
  write("job.toml", text.insert(text.find("batch"), "shuffle = true\nhold_out = 0.25\nfirst_n = 20\n"));
  done(run_train, {"job.toml"});
  EXPECT_EQ(infer({"--output", "score", "--data", "train.csv"}).size(), 40U);
  EXPECT_EQ(infer({"--output", "score", "--set", "reader.test.files=[\"train.csv\"]"}).size(), 40U);
  EXPECT_EQ(infer({"--output", "score", "--set", "reader.test.held_out=true"}).size(), 10U);
}

TEST_F(NewData, LibsvmAndTextNeedNoLabels) {
  std::string svm, unlabelled, words, lines;
  for (int i = 0; i < 10; ++i) {
    const std::string entries = "1:" + number(i, 1) + (i == 3 ? " 5:1" : "");
    svm += std::to_string(i % 2) + " " + entries + "\n";
    unlabelled += "1:" + number(i, 1) + "\n";
  }
  write("train.svm", svm);
  write("new.svm", unlabelled);
  write("job.toml",
        job("type = \"libsvm\"\nclasses = 2\nfiles = [\"train.svm\"]\nslots = { label = \"kind\" }\n", "features"));
  done(run_train, {"job.toml"});
  EXPECT_EQ(infer({"--output", "score", "--data", "new.svm"}).size(), 10U) << "the ids of the file are smaller";
}

TEST_F(NewData, SamplesAreTheRecordsOfTheFile) {
  done(run_train, {"job.toml"});
  write("gaps.csv", "name,a,b,c,number\nx,1,2,3,12\ny,,2,3,7\n\n\"z, \"\"w\"\"\",1,2,3,007\n,4,5,6,1e3\n");
  const std::vector<json> told = infer({"--output", "score", "--data", "gaps.csv", "--set", "reader.train.missing=skip",
                                        "--with", "name", "--with", "number"});
  EXPECT_THAT(samples(told), ElementsAre(0, 3, 4));
  EXPECT_EQ(told.at(1).at("name"), "z, \"w\"");
  EXPECT_EQ(told.at(0).at("number"), 12);
  EXPECT_EQ(told.at(1).at("number"), "007") << "not a number of JSON";
  const Outcome outcome = done(run_infer, {"job.toml", "--output", "score", "--data", "gaps.csv", "--set",
                                           "reader.train.missing=skip", "--with", "name", "--format", "csv"});
  EXPECT_THAT(lines_of(outcome.out).at(0), StartsWith("sample,name,score.left,score.right"));
  EXPECT_THAT(lines_of(outcome.out).at(2), StartsWith("3,\"z, \"\"w\"\"\","));
  EXPECT_THAT(outcome.error, HasSubstr("2 records are left out"));
  EXPECT_THAT(failure(kUsage, run_infer,
                      {"job.toml", "--output", "score", "--data", "gaps.csv", "--set", "reader.train.missing=skip",
                       "--with", "nam"}),
              HasSubstr("the data has no column \"nam\"; known: \"name\", \"a\""));
  EXPECT_THAT(failure(kUsage, run_infer, {"job.toml", "--output", "score", "--data", "train.csv", "--with", "score"}),
              HasSubstr("--with: the output has \"score\" already"));
}

// JSON is UTF-8; a text with other bytes would be the same as many others.
TEST_F(NewData, CopiedTextsAreNotChanged) {
  done(run_train, {"job.toml"});
  write("latin1.csv", "name,a,b,c\nx,1,2,3\nCaf\xe9,4,5,6\n");
  const Arguments given = {"job.toml", "--output", "score", "--data", "latin1.csv", "--with", "name"};
  EXPECT_THAT(call(run_infer, given).error,
              AllOf(HasSubstr("sample 1: the text of \"name\" is not UTF-8"), HasSubstr("encoding")));
  EXPECT_EQ(call(run_infer, given).exit, kBadData);
  Arguments as_csv = given,
            converted = {"--set", "reader.train.encoding=latin1", "--output", "score", "--data", "latin1.csv", "--with",
                         "name"};
  as_csv.insert(as_csv.end(), {"--format", "csv"});
  EXPECT_THAT(lines_of(done(run_infer, as_csv).out).at(2), StartsWith("1,Caf\xe9,"));
  EXPECT_EQ(infer(converted).at(1).at("name"), "Café");
}

TEST_F(NewData, LinesOfATextAreCounted) {
  write("train.txt", "good\tI liked it\nbad\tI left early\n\ngood\tnice end\n");
  write("new.txt", "I liked it\n\nI left early\n   \nnice end\n");
  std::string text =
      job("type = \"text\"\nlabelled = true\nfiles = [\"train.txt\"]\nslots = { label = \"kind\" }\n", "t");
  text.insert(
      text.find("layer = [") + 9,
      "{ name = \"t\", type = \"embedding\", inputs = [\"words\"], vocabulary = 60, size = 4, reduce = \"mean\" },\n");
  write("job.toml", text);
  done(run_train, {"job.toml"});
  const std::vector<json> told = infer({"--output", "score", "--data", "new.txt", "--with", "line"});
  EXPECT_THAT(samples(told), ElementsAre(0, 2, 4));
  EXPECT_EQ(told.at(2).at("line"), "nice end");
  const std::vector<json> labelled = infer({"--output", "score", "--data", "train.txt"});
  EXPECT_THAT(samples(labelled), ElementsAre(0, 1, 3));
  for (size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i].at("score"), labelled[i].at("score"));
}

// What the training data has where values are missing is in the model; a file whose first record would be lost is
// warned of, once.
TEST_F(NewData, MissingValuesAndWarnings) {
  write("job.toml", job("type = \"csv\"\ncolumns = [\"x = *: f32 missing mean\", \"kind: category\"]\nfiles = "
                        "[\"*.csv\"]\n"));
  write("train.csv", "a,b,kind\n1,10,left\n2,,right\n6,30,left\n");
  EXPECT_THAT(done(run_train, {"job.toml"}).error, Not(HasSubstr("warning: ")));
  write("other.txt", "b,a\n20,3\n,3\n20,\n");
  const std::vector<json> scores = infer({"--data", "other.txt", "--output", "score"});
  ASSERT_EQ(scores.size(), 3u);
  EXPECT_EQ(scores[1].at("score"), scores[0].at("score")) << "20 is the mean of b";
  EXPECT_EQ(scores[2].at("score"), scores[0].at("score")) << "3 is the mean of a";
  write("job.toml", job("type = \"csv\"\ncolumns = [\"x = *: f32\", \"kind = \\\"7\\\": category\"]\nfiles = "
                        "[\"numbers.csv\"]\n"));
  write("numbers.csv", "1,2,7\n3,4,8\n5,6,9\n");
  const std::string warned = done(run_train, {"job.toml"}).error;
  const std::string text =
      "warning: numbers.csv: line 1 names the columns, but its fields are numbers: \"1\", \"2\", \"7\"";
  EXPECT_THAT(warned, HasSubstr(text));
  EXPECT_EQ(warned.find("line 1 names", warned.find(text) + text.size()), std::string::npos);
}

}  // namespace
}  // namespace tenon_tests
