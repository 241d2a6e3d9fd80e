// tenon infer prints the names of classes beside their numbers, and above the columns of their scores.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/host/cli/program.h"

namespace tenon_tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string layer(const std::string& name, const std::string& type, const std::string& inputs,
                  const std::string& more = "") {
  return "[[layer]]\nname = \"" + name + "\"\ntype = \"" + type + "\"\ninputs = [" + inputs + "]\n" + more;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + "\"";
}

class ClassNamesTest : public ProgramTest {
 protected:
  // A model of `classes` classes that the columns x1, x2 ... of ones show; kind is the label, and other a second one.
  void train(const std::vector<std::string>& kinds, const std::string& layers = "") {
    const std::string size = std::to_string(kinds.size());
    std::string head, rows;
    for (size_t i = 0; i < kinds.size(); ++i) {
      head += "x" + std::to_string(i) + ",";
      for (size_t k = 0; k < kinds.size(); ++k) rows += i == k ? "1," : "0,";
      rows += quoted(kinds[i]) + "," + quoted(kinds[i] + "?") + "\n";
    }
    write("data", head + "kind,other\n" + rows);
    const std::string reader =
        "type = \"csv\"\nfiles = [\"data\"]\ncolumns = [\"x = *: f32\", \"kind: category\", "
        "\"other: category\"]\nbatch = 20\n";
    write("job.toml", "passes = 200\nsave = \"m\"\noutputs = [\"cost\", \"p\", \"pick\"]\n" +
                          layer("hidden", "fc", "\"x\"", "size = " + size + "\n") +
                          layer("score", "fc", "\"hidden\"", "size = " + size + "\n") +
                          layer("cost", "cross_entropy", "\"score\", \"kind\"", "from_logits = true\n") +
                          layer("p", "softmax", "\"score\"") + layer("pick", "argmax", "\"p\"") +
                          layer("best", "top_k", "\"p\"", "k = 2\n") + layer("double", "add", "\"p\", \"p\"") + layers +
                          "[updater]\ntype = \"adam\"\nlearning_rate = 0.2\n[reader.train]\n" + reader +
                          "[reader.test]\n" + reader);
    const Outcome outcome = run("train job.toml");
    ASSERT_EQ(outcome.exit, 0) << outcome.error;
  }
  std::string infer(const std::string& arguments) {
    const Outcome outcome = run("infer job.toml " + arguments);
    EXPECT_EQ(outcome.exit, 0) << outcome.error;
    return outcome.out;
  }
};

const std::vector<std::string> kTen = {"10", "2", "1", "3", "4", "5", "6", "7", "8", "9"};

TEST_F(ClassNamesTest, NumberedClasses) {
  train(kTen);
  EXPECT_THAT(run("model show m").out, HasSubstr("10 names: 1, 2, 3"));
  EXPECT_THAT(infer("--output pick"), AllOf(HasSubstr("{\"sample\":0,\"pick\":9,\"name\":\"10\"}\n"),
                                            HasSubstr("{\"sample\":1,\"pick\":1,\"name\":\"2\"}\n"),
                                            HasSubstr("{\"sample\":2,\"pick\":0,\"name\":\"1\"}\n")));
  EXPECT_THAT(infer("--output pick --format csv"), testing::StartsWith("sample,pick\n0,10\n1,2\n2,1\n3,3\n"));
  EXPECT_THAT(infer("--output best:1"), HasSubstr("{\"sample\":0,\"best:1\":[9,"));
  EXPECT_THAT(infer("--output best:1"), HasSubstr("\"name\":[\"10\",\""));
  EXPECT_THAT(infer("--output pick --output best:1"), AllOf(HasSubstr("\"pick\":9,\"pick.name\":\"10\",\"best:1\":[9,"),
                                                            HasSubstr("\"best:1.name\":[\"10\",")));
  for (const char* scores : {"p", "score"})
    EXPECT_THAT(infer(std::string("--format csv --output ") + scores),
                testing::StartsWith("sample," + std::string(scores) + ".1," + scores + ".2," + scores + ".3,"));
}

// Layers of as many numbers that score no classes, and other numbers.
TEST_F(ClassNamesTest, OtherOutputsHaveNoNames) {
  train(kTen, layer("place", "argmax", "\"x\""));
  EXPECT_THAT(infer("--format csv --output hidden"), testing::StartsWith("sample,hidden.0,hidden.1,"));
  EXPECT_THAT(infer("--output p --output best"), Not(HasSubstr("name")));
  EXPECT_THAT(infer("--output place"), Not(HasSubstr("name")));
  EXPECT_THAT(infer("--format csv --output best"), testing::StartsWith("sample,best.0,best.1\n"));
}

TEST_F(ClassNamesTest, NamesAreQuoted) {
  train({"a,b", "\"c\"", "d"});
  EXPECT_THAT(infer("--output pick --format csv"), HasSubstr("sample,pick\n0,\"a,b\"\n1,\"\"\"c\"\"\"\n2,d\n"));
  EXPECT_THAT(infer("--output p --format csv"), testing::StartsWith("sample,\"p.\"\"c\"\"\",\"p.a,b\",p.d\n"));
  EXPECT_THAT(infer("--output pick"), AllOf(HasSubstr("\"name\":\"a,b\"}"), HasSubstr("\"name\":\"\\\"c\\\"\"}")));
}

// Two labels with equally many classes: each score has the names of its own label.
TEST_F(ClassNamesTest, TwoLabels) {
  train({"cat", "dog", "fox"}, layer("score2", "fc", "\"x\"", "size = 3\n") +
                                   layer("cost2", "cross_entropy", "\"score2\", \"other\"", "from_logits = true\n") +
                                   layer("pick2", "argmax", "\"score2\""));
  const std::string both = "--set outputs='[\"cost\", \"cost2\"]'";
  ASSERT_EQ(run("train job.toml " + both).exit, 0);
  EXPECT_THAT(infer("--output pick"), HasSubstr("{\"sample\":0,\"pick\":0,\"name\":\"cat\"}"));
  EXPECT_THAT(infer("--output pick2"), HasSubstr("\"name\":\"cat?\"}"));
  EXPECT_THAT(infer("--format csv --output score2"), testing::StartsWith("sample,score2.cat?,score2.dog?,"));
}

TEST_F(ClassNamesTest, TagsOfRows) {
  write("data", "id,x,tag\n1,1,O\n1,0,B\n2,0,B\n");
  const std::string reader =
      "type = \"csv\"\nfiles = [\"data\"]\nsequence_by = \"id\"\ncolumns = [\"x = x..x: f32\", \"tag: "
      "category\", \"id\"]\nbatch = 2\nslots = { x = { sequence = \"s\" }, tag = { sequence = \"s\" } }\n";
  write("job.toml",
        "passes = 100\nsave = \"m\"\noutputs = [\"cost\", \"best\"]\n" + layer("score", "fc", "\"x\"", "size = 2\n") +
            layer("cost", "crf", "\"score\", \"tag\"", "parameter_name = \"chain\"\n") +
            layer("best", "crf_decoding", "\"score\"", "parameter_name = \"chain\"\n") +
            "[updater]\ntype = \"adam\"\nlearning_rate = 0.2\n[reader.train]\n" + reader + "[reader.test]\n" + reader);
  const Outcome outcome = run("train job.toml");
  ASSERT_EQ(outcome.exit, 0) << outcome.error;
  EXPECT_EQ(infer(""),
            "{\"sample\":0,\"best\":[1,0],\"name\":[\"O\",\"B\"]}\n{\"sample\":1,\"best\":[0],\"name\":[\"B\"]}\n");
}

// Labels in Latin-1 were trained without their names, and no other data could be tested.
TEST_F(ClassNamesTest, LabelsInLatin1) {
  train({"a", "b"});
  write("data", "x0,x1,kind,other\n1,0,Caf\xE9,1\n0,1,th\xE9,2\n");
  const Outcome refused = run("train job.toml");
  EXPECT_EQ(refused.exit, 65) << refused.error;
  EXPECT_THAT(refused.error, HasSubstr("line 2: column \"kind\": \"Caf?\" is not UTF-8; encoding = \"latin1\""));
  const std::string latin1 = " --set 'reader.train.encoding=\"latin1\"' --set 'reader.test.encoding=\"latin1\"'";
  ASSERT_EQ(run("train job.toml" + latin1).exit, 0);
  EXPECT_THAT(infer("--output pick" + latin1), HasSubstr("\"name\":\"Caf\xC3\xA9\"}"));
  write("data", "x0,x1,kind,other\n1,0,Caf\xC3\xA9,1\n0,1,th\xC3\xA9,2\n");
  EXPECT_THAT(infer("--output pick"), HasSubstr("\"name\":\"Caf\xC3\xA9\"}"));
}

TEST_F(ClassNamesTest, NamesThatTheModelCannotHold) {
  std::string table = "x,word,kind\n";
  for (int i = 0; i < 65'537; ++i) table += "1,w" + std::to_string(i) + ",0\n";
  write("data", table);
  write("job.toml", "passes = 1\nsave = \"m\"\n" +
                        layer("e", "embedding", "\"word\"", "vocabulary = 65537\nsize = 1\n") +
                        layer("score", "fc", "\"e\"", "size = 2\n") +
                        layer("cost", "cross_entropy", "\"score\", \"kind\"", "from_logits = true\n") +
                        "[updater]\ntype = \"sgd\"\n[reader.train]\ntype = \"csv\"\nfiles = [\"data\"]\nbatch = 4096\n"
                        "columns = [\"word: category\", \"kind: i32 < 2\"]\n");
  const Outcome outcome = run("train job.toml");
  EXPECT_EQ(outcome.exit, 0) << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("warning: the 65537 names of \"word\" are not stored in the model"));
}

}  // namespace
}  // namespace tenon_tests
