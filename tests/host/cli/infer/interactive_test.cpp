// tenon infer --interactive: an answer for each line. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>
#include <iostream>

#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class InteractiveTest : public CallTest {
 protected:
  void write_job(const std::string& layers, const std::string& reader) {
    write("job.toml", "passes = 40\nseed = 1\nsave = \"m\"\nlayer = [" + layers +
                          "{ name = \"cost\", type = \"cross_entropy\", inputs = [\"score\", \"kind\"], from_logits = "
                          "true }, { name = \"pick\", type = \"argmax\", inputs = [\"score\"] }]\n"
                          "updater = { type = \"adam\", learning_rate = 0.1 }\n[reader.train]\nbatch = 2\n" +
                          reader);
    done(run_train, {"job.toml"});
  }
  void train_on_tables() {
    write("train.csv", "a,the size,b,which\n1,0,0,fox\n0,1,2,dog\n2,0,1,fox\n0,3,2,dog\n");
    write_job(
        "{ name = \"all\", type = \"concat\", inputs = [\"x\", \"y\"] }, "
        "{ name = \"y\", type = \"reshape\", shape = [1], inputs = [\"size\"] }, "
        "{ name = \"score\", type = \"fc\", inputs = [\"all\"], size = 2 }, ",
        "type = \"csv\"\nfiles = [\"train.csv\"]\n"
        "columns = [\"x = a, b: f32\", \"size = the size: f32\", \"kind = which: category\"]\n");
  }
  static Outcome answer(const std::string& typed, const Arguments& arguments = {}) {
    std::istringstream lines(typed);
    std::streambuf* const before = std::cin.rdbuf(lines.rdbuf());
    Arguments all = {"m", "--interactive"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    Outcome outcome = call(run_infer, all);
    std::cin.rdbuf(before);
    std::cin.clear();
    return outcome;
  }
};

TEST_F(InteractiveTest, RowsHaveTheColumnsOfTheModel) {
  train_on_tables();
  const Outcome outcome = answer("3,0,0\n\n0,2,3\n");
  EXPECT_EQ(outcome.exit, kDone) << outcome.error;
  const std::vector<json> told = parsed(outcome.out);
  ASSERT_EQ(told.size(), 2U) << outcome.error;
  EXPECT_EQ(told[0].at("name"), "fox");
  EXPECT_EQ(told[1].at("name"), "dog");
  EXPECT_EQ(told[1].at("sample"), 1);
  write("new.csv", "a,b,the size\n3,0,0\n0,2,3\n");
  EXPECT_EQ(parsed(done(run_infer, {"m", "--data", "new.csv"}).out), told);
}

TEST_F(InteractiveTest, AHeaderMayBeTyped) {
  train_on_tables();
  const Outcome outcome = answer("the size,id,b,a\n0,7,0,3\n3,8,2,0\n");
  const std::vector<json> told = parsed(outcome.out);
  ASSERT_EQ(told.size(), 2U) << outcome.error;
  EXPECT_EQ(told[0].at("name"), "fox");
  EXPECT_EQ(told[1].at("name"), "dog");
}

// What the reader makes of a column is not asked for: whether it is missing, the parts of a date.
TEST_F(InteractiveTest, ColumnsAreThoseOfTheData) {
  write("train.csv", "when,mass (kg),which\n2024-01-31,1,fox\n2024-07-01,,dog\n2024-01-02,5,fox\n2024-07-03,4,dog\n");
  write_job(
      "{ name = \"all\", type = \"concat\", inputs = [\"when\", \"mass\"] }, "
      "{ name = \"score\", type = \"fc\", inputs = [\"all\"], size = 2 }, ",
      "type = \"csv\"\nfiles = [\"train.csv\"]\ncolumns = [\"when: date month day\", \"mass = mass (kg): f32 "
      "missing mean indicator\", \"kind = which: category\"]\n");
  const Outcome outcome = answer("2023-01-05,\n2023-07-01,3\n");
  const std::vector<json> told = parsed(outcome.out);
  ASSERT_EQ(told.size(), 2U) << outcome.error;
  EXPECT_EQ(told[0].at("name"), "fox");
  EXPECT_EQ(told[1].at("name"), "dog");
}

// The files of the training are in another encoding than a terminal.
TEST_F(InteractiveTest, WhatIsTypedIsUtf8) {
  write("train.csv",
        "title\nGr\xf6\xdf"
        "e,b,which\n1,0,f\xfc"
        "r\n0,1,wider\n3,0,f\xfc"
        "r\n0,2,wider\n");
  write_job("{ name = \"score\", type = \"fc\", inputs = [\"x\"], size = 2 }, ",
            "type = \"csv\"\nfiles = [\"train.csv\"]\nencoding = \"latin1\"\nskip_lines = 1\n"
            "columns = [\"x = *: f32\", \"kind = which: category\"]\n");
  const Outcome outcome = answer("4,0\n");
  ASSERT_EQ(parsed(outcome.out).size(), 1U) << outcome.error;
  EXPECT_EQ(parsed(outcome.out).at(0).at("name"), "für");
  EXPECT_EQ(parsed(answer("b,Größe\n4,0\n").out).at(0).at("name"), "wider");
}

TEST_F(InteractiveTest, ErrorsDoNotEndIt) {
  train_on_tables();
  const Outcome outcome = answer("3,x,0\n1\n3,0,0\n\"3,0\n1,2,3,4\n0,2,3\n");
  EXPECT_EQ(outcome.exit, kDone);
  EXPECT_EQ(parsed(outcome.out).size(), 2U);
  EXPECT_EQ(parsed(outcome.out).at(0).at("sample"), 2) << "every line counts";
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("sample 0: "), HasSubstr("\"x\""), HasSubstr("sample 1: "),
                                   HasSubstr("sample 3: "), HasSubstr("sample 4: ")));
  EXPECT_THAT(outcome.error, Not(HasSubstr("/tenon-"))) << "no name of a temporary folder";
}

TEST_F(InteractiveTest, AsCsv) {
  train_on_tables();
  EXPECT_EQ(answer("3,0,0\n0,2,3\n", {"--format", "csv"}).out, "sample,pick\n0,fox\n1,dog\n");
  for (const Arguments& wrong :
       {Arguments{"--output-file", "p"}, Arguments{"--format", "npy", "--output-file", "p.npy"},
        Arguments{"--data", "train.csv"}, Arguments{"--with", "a"}})
    EXPECT_EQ(answer("3,0,0\n", wrong).exit, kUsage);
}

TEST_F(InteractiveTest, LinesOfText) {
  write("train.txt", "fox\tred and quick\ndog\tbig and slow\n");
  write_job(
      "{ name = \"t\", type = \"embedding\", inputs = [\"words\"], vocabulary = 20, size = 4, reduce = \"mean\" }, "
      "{ name = \"score\", type = \"fc\", inputs = [\"t\"], size = 2 }, ",
      "type = \"text\"\nfiles = [\"train.txt\"]\nlabelled = true\nslots = { label = \"kind\" }\n");
  const Outcome outcome = answer("quick red\nslow\n");
  const std::vector<json> told = parsed(outcome.out);
  ASSERT_EQ(told.size(), 2U) << outcome.error;
  EXPECT_EQ(told[0].at("name"), "fox");
  EXPECT_EQ(told[1].at("name"), "dog");
}

// A PNG file of one grey pixel, with the rest of its data and the checksum.
std::string picture(const char (&rest)[12]) {
  return std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0\x3a\x7e\x9b\x55", 33) +
         std::string("\0\0\0\x0aIDAT\x78\x9c\x63", 11) + std::string(rest, 11) +
         std::string("\0\0\0\0IEND\xae\x42\x60\x82", 12);
}

TEST_F(InteractiveTest, PicturesByPath) {
  for (const char* folder : {"photos/dark", "photos/light"}) std::filesystem::create_directories(folder);
  write("photos/dark/1.png", picture("\x60\x00\x00\x00\x02\x00\x01\x48\xaf\xa4\x71"));
  write("photos/light/1.png", picture("\xf8\x0f\x00\x01\x01\x01\x00\xb1\x38\xf6\x14"));
  write_job(
      "{ name = \"flat\", type = \"reshape\", inputs = [\"image\"], shape = [-1] }, "
      "{ name = \"score\", type = \"fc\", inputs = [\"flat\"], size = 2 }, ",
      "type = \"images\"\nfolder = \"photos\"\nsize = [2, 2]\nchannels = 1\n"
      "slots = { image = { scale = 0.004 }, label = \"kind\" }\n");
  const Outcome outcome = answer("photos/light/1.png\nnone.png\n" + path("photos/dark/1.png") + "\njob.toml\n");
  EXPECT_EQ(outcome.exit, kDone);
  const std::vector<json> told = parsed(outcome.out);
  ASSERT_EQ(told.size(), 2U) << outcome.error;
  EXPECT_EQ(told[0].at("name"), "light");
  EXPECT_EQ(told[1].at("name"), "dark");
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("sample 1: \"none.png\" is not a file"), HasSubstr("sample 3: ")));
}

}  // namespace
}  // namespace tenon_tests
