// The reader csv: what it derived from the data of the training stands in other data, and warnings.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <tenon/tenon.hpp>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Strings = std::vector<std::string>;
using Floats = std::vector<float>;

// The number belongs to the model: other data has that of the training, not its own.
class CsvModels : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_.file(name)) << text; }
  [[nodiscard]] tenon::Reader open(const std::string& file, const Strings& columns,
                                   const std::vector<tenon::Names>& like = {}) const {
    return host_.reader("csv", {{"files", Strings{file}}, {"columns", columns}}, folder_.path().string(), 0, 1, like);
  }
  [[nodiscard]] Floats numbers(const std::string& file, const Strings& columns,
                               const std::vector<tenon::Names>& like = {}) const {
    const tenon::Reader batches = open(file, columns, like).batch(100);
    const tenon::Array array = batches.next().at(0);
    const auto* const data = static_cast<const float*>(array.data);
    return {data, data + array.count()};
  }
  [[nodiscard]] std::string refusal(const std::string& file, const Strings& columns,
                                    const std::vector<tenon::Names>& like) const {
    try {
      (void)open(file, columns, like);
    } catch (const tenon::Error& error) {
      return error.what();
    }
    return "not refused";
  }
  static tenon::HostOptions options() {
    tenon::HostOptions result;
    result.threads = 1;
    result.plugin_paths = {plugin_folder()};
    return result;
  }

  const TemporaryFolder folder_;
  const tenon::Host host_{options()};
};

TEST_F(CsvModels, IsThatOfTheModel) {
  write("train.csv", "a,b\n1,10\n2,\n6,30\n");
  write("test.csv", "b,a\n,100\n7,\n");
  for (const char* const entry : {"x = a, b: f32 missing mean", "x = *: f32 missing mean", "x = a..b: missing mean"}) {
    const std::vector<tenon::Names> like = open("train.csv", {entry}).names();
    EXPECT_THAT(like.at(0).columns, ElementsAre("a (missing 3)", "b (missing 20)"));
    EXPECT_THAT(numbers("test.csv", {entry}, like), ElementsAre(100, 20, 3, 7)) << entry;
  }
  const Strings one = {"a: f32 missing median indicator"};
  EXPECT_THAT(numbers("test.csv", one, open("train.csv", one).names()), ElementsAre(100, 0, 2, 1));
  EXPECT_THAT(numbers("test.csv", one), ElementsAre(100, 0, 100, 1)) << "without a model";
  write("only.csv", "a,b\n,\n");
  EXPECT_THAT(numbers("only.csv", one, open("train.csv", one).names()), ElementsAre(2, 1));
  // A number that has no short form is the same again.
  write("thirds.csv", "a\n0.1\n0.2\n0.7\n0.3\n\"\"\n");
  const Strings mean = {"a: f32 missing mean"};
  EXPECT_EQ(numbers("only.csv", mean, open("thirds.csv", mean).names()).at(0), numbers("thirds.csv", mean).at(4));
}

// The labels of a vector are its elements.
TEST_F(CsvModels, LabelsOfVectors) {
  write("train.csv", "id,labels\n1,b;a\n2,\n3,c\n");
  write("test.csv", "labels\nc\n\"\"\n");
  write("wrong.csv", "labels\nd\n");
  const Strings columns = {"labels: category list(;) multihot"};
  const std::vector<tenon::Names> like = open("train.csv", columns).names();
  EXPECT_THAT(like.at(0).columns, ElementsAre("a", "b", "c"));
  EXPECT_THAT(numbers("test.csv", columns, like), ElementsAre(0, 0, 1, 0, 0, 0));
  EXPECT_THAT(refusal("wrong.csv", columns, like), HasSubstr("\"d\" is not among the names"));
}

TEST_F(CsvModels, OptionsAreThoseOfTheTraining) {
  write("train.csv", "a,b\n1,10\n2,\n6,30\n");
  const std::vector<tenon::Names> like = open("train.csv", {"x = a, b: f32 missing mean indicator"}).names();
  EXPECT_THAT(refusal("train.csv", {"x = a, b: f32 missing mean"}, like),
              HasSubstr("the model was trained with other options of these columns; it has: \"a (missing 3)\""));
  EXPECT_THAT(refusal("train.csv", {"x = a, b: f32"}, like), HasSubstr("the model was trained without the column"));
  EXPECT_THAT(refusal("train.csv", {"x = a: f32 missing mean indicator"}, like),
              HasSubstr("lacks the column \"b\", which the model was trained with"));
}

// Names of categories that the training ordered by frequency keep their numbers, and so does what is missing.
TEST_F(CsvModels, FrequentCategories) {
  write("train.csv", "c\nx\nz\nz\na\n");
  write("test.csv", "c,d\na,1\n,2\na,3\nx,4\n");
  const Strings columns = {"c: category missing frequent"};
  const std::vector<tenon::Names> like = open("train.csv", columns).names();
  const tenon::Reader batches = open("test.csv", columns, like).batch(100);
  const tenon::Array array = batches.next().at(0);
  const auto* const data = static_cast<const int32_t*>(array.data);
  EXPECT_EQ(std::vector<int32_t>(data, data + array.count()), (std::vector<int32_t>{1, 0, 1, 2}));
}

// Warnings.
TEST_F(CsvModels, HeadersThatLookWrong) {
  std::vector<std::string> lines;
  tenon::HostOptions with_log = options();
  with_log.log = [&](int level, const char* text) {
    if (level == 2) lines.emplace_back(text);
  };
  const tenon::Host host(with_log);
  const auto warnings = [&](const std::string& content, tenon::Attributes more = {}) {
    write("f", content);
    more.emplace_back("files", Strings{"f"});
    lines.clear();
    (void)host.reader("csv", more, folder_.path().string());
    return lines;
  };
  EXPECT_THAT(warnings("5.1,3.5\n4.9,3.0\n"),
              ElementsAre(HasSubstr("f: line 1 names the columns, but its fields are numbers: \"5.1\", \"3.5\"; if it "
                                    "is a record, set header = false")));
  EXPECT_THAT(warnings("\"0,5\";1\n2;3\n", {{"delimiter", ";"}, {"decimal", ","}}), ElementsAre(HasSubstr("\"0,5\"")));
  EXPECT_THAT(warnings("a,1\n4.9,3.0\n"), IsEmpty());
  EXPECT_THAT(warnings("5.1,3.5\n4.9,3.0\n", {{"header", false}}), IsEmpty());
  EXPECT_THAT(warnings("a;b;c\n1;2;3\n"),
              ElementsAre(HasSubstr("has one column; delimiter = \";\" makes 3 columns of the header \"a;b;c\"")));
  EXPECT_THAT(warnings("a;b;c\n1;2;3\n", {{"delimiter", ";"}}), IsEmpty());
  EXPECT_THAT(warnings("v\n1\n2\n", {{"window", 5}}),
              ElementsAre(HasSubstr("f: has no window of 5 rows and 0 behind them: the most rows of a group without a "
                                    "gap are 2")));
  EXPECT_THAT(warnings("v\n1\n2\n", {{"window", 2}}), IsEmpty());
}

}  // namespace
}  // namespace tenon_tests
