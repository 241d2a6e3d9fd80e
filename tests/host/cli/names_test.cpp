// Data whose classes, categories, labels or words have other numbers than in the training of a model: the program
// numbers them by name, or refuses the data. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/host/cli/program.h"

namespace tenon_tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Returns a table in which each kind has its own column of 1, so that a model learns all kinds.
std::string table(const std::vector<std::string>& kinds) {
  std::string result = "a,b,c,kind\n";
  for (const std::string& kind : kinds)
    result += std::string(kind == "cat" ? "1,0,0," : kind == "dog" ? "0,1,0," : "0,0,1,") + kind + "\n";
  return result;
}

std::string classifier(const std::string& reader, const std::string& layer = "") {
  return "passes = 30\nsave = \"model.safetensors\"\n" + layer + R"(
[[layer]]
name = "score"
type = "fc"
inputs = ["x"]
size = 3

[[layer]]
name = "cost"
type = "cross_entropy"
inputs = ["score", "kind"]
from_logits = true

[[layer]]
name = "accuracy"
type = "accuracy"
inputs = ["score", "kind"]

[[layer]]
name = "prediction"
type = "softmax"
inputs = ["score"]

[updater]
type = "adam"
learning_rate = 0.2

[reader.train]
batch = 3
)" + reader +
         "files = [\"train\"]\n[reader.test]\n" + reader + "files = [\"test\"]\n";
}

class NamesTest : public ProgramTest {
 protected:
  void train(const std::string& text, const std::string& train_data, const std::string& test_data) {
    write("job.toml", text);
    write("train", train_data);
    write("test", test_data);
  }
  // The test after the training, and a later test of the saved model, must have an accuracy of 1.
  void expect_right() {
    Outcome outcome = run("train job.toml");
    EXPECT_EQ(outcome.exit, 0) << outcome.error;
    EXPECT_THAT(outcome.out, HasSubstr("\ntest  ")) << outcome.error;
    EXPECT_THAT(outcome.out.substr(outcome.out.find("\ntest  ")), HasSubstr("accuracy 1.0")) << outcome.out;
    outcome = run("test job.toml");
    EXPECT_EQ(outcome.exit, 0) << outcome.error;
    EXPECT_THAT(outcome.out, HasSubstr("accuracy 1.0"));
    EXPECT_EQ(outcome.error, "");  // no warning about a different layer
  }
  // train and test must refuse other test data, train before the training begins. infer does not read labels.
  void expect_refused(const std::string& test_data, const std::string& why, const std::string& more = "") {
    write("test", test_data);
    for (const char* verb : {"train job.toml --save other.safetensors ", "test job.toml "}) {
      const Outcome outcome = run(verb + more);
      EXPECT_THAT(outcome.exit, testing::AnyOf(65, 78)) << verb << outcome.error;
      EXPECT_THAT(outcome.error, HasSubstr(why)) << verb;
      EXPECT_EQ(outcome.out, "") << verb;
    }
    EXPECT_FALSE(std::filesystem::exists(path("other.safetensors")));
  }
};

const char kCsv[] = "type = \"csv\"\ncolumns = [\"x = a, b, c: f32\", \"kind: category\"]\n";

TEST_F(NamesTest, Csv) {
  train(classifier(kCsv), table({"cat", "dog", "fox", "dog", "cat", "fox"}), table({"fox", "dog", "fox"}));
  expect_right();
  EXPECT_THAT(run("model show model.safetensors").out, HasSubstr("int32 []; 3 names: cat, dog, fox\n"));
  expect_refused(
      table({"fox", "fox", "dgo"}),
      "test: line 4: column \"kind\": \"dgo\" is not among the names that the model was trained with: \"cat\", "
      "\"dog\", \"fox\"; did you mean \"dog\"?");
  const Outcome unknown = run("test job.toml --set reader.test.unknown_category=true --set outputs='[\"cost\"]'");
  EXPECT_THAT(unknown.error, HasSubstr("from 0 to 3"));  // the reader has one more number, for unknown names
}

TEST_F(NamesTest, CsvWithAFileInAnotherOrder) {
  write("kinds.txt", "fox\ncat\ndog\n");
  std::string text = classifier(kCsv);
  text.replace(text.rfind("category"), 8, "category(kinds.txt)");
  train(text, table({"cat", "dog", "fox"}), table({"fox", "dog", "fox"}));
  expect_right();
  write("kinds.txt", "fox\ncat\nwolf\n");
  expect_refused(table({"fox"}), "kinds.txt: \"wolf\" is not among the names that the model was trained with");
}

TEST_F(NamesTest, SlotsThatFeedOtherLayers) {
  std::string text = classifier(kCsv);
  for (size_t at = 0; (at = text.find("kind: category", at)) != std::string::npos; at += 9)
    text.replace(at, 14, "kind: category\"]\nslots = { kind = \"truth\" } # [\"");
  for (size_t at = 0; (at = text.find("\"score\", \"kind\"", at)) != std::string::npos;)
    text.replace(at, 15, "\"score\", \"truth\"");
  train(text, table({"cat", "dog", "fox", "dog", "cat", "fox"}), table({"fox", "dog", "fox"}));
  expect_right();
}

TEST_F(NamesTest, PartsAndChosenSlots) {
  const std::string parts = R"(
[reader.test]
join = "compose"
choose = { x = "x", k = "kind" }
[[reader.test.part]]
type = "csv"
files = ["test"]
columns = ["x = a, b, c: f32", "kind: category"]
choose = ["x"]
[[reader.test.part]]
type = "csv"
files = ["test"]
columns = ["species = kind: category"]
choose = { species = "k" }
)";
  std::string text = classifier(kCsv);
  text = text.substr(0, text.find("[reader.test]")) + parts;
  train(text, table({"cat", "dog", "fox"}), table({"fox", "dog", "fox"}));
  expect_right();
}

TEST_F(NamesTest, PartsThatNumberOtherwise) {
  const std::string text = classifier("type = \"csv\"\ncolumns = [\"x = a, b, c: f32\", \"kind: category\"]\n");
  const std::string head = text.substr(0, text.find("[reader.train]"));
  write("one", table({"cat", "dog"}));
  write("two", table({"dog", "fox"}));
  write("job.toml", head + R"(
[reader.train]
batch = 1
[[reader.train.part]]
type = "csv"
files = ["one"]
columns = ["x = a, b, c: f32", "kind: category"]
[[reader.train.part]]
type = "csv"
files = ["two"]
columns = ["x = a, b, c: f32", "kind: category"]
)");
  const Outcome outcome = run("train job.toml");
  EXPECT_EQ(outcome.exit, 78);
  EXPECT_THAT(outcome.error,
              HasSubstr("slot \"kind\" of reader 2 has other names or columns than that of reader 1: \"fox\" is "
                        "not among the names that are known: \"cat\", \"dog\""));
}

TEST_F(NamesTest, TextWithLabelsAndWords) {
  const std::string layer = R"(
[[layer]]
name = "x"
type = "embedding"
inputs = ["words"]
vocabulary = 8
size = 8
reduce = "sum"
)";
  const std::string reader = "type = \"text\"\nlabelled = true\nslots.label = \"kind\"\n";
  train(classifier(reader, layer), "cat\tmiaow miaow purr\ndog\twoof woof woof woof\nfox\tyelp bark\n",
        "fox\tbark yelp bark quack\ndog\twoof woof\n");
  expect_right();
  expect_refused("fox\tyelp\nwolf\thowl\n",
                 "test: line 2: the label \"wolf\" is not among the names that the model was trained with: \"cat\", "
                 "\"dog\", \"fox\"");
  // The labels of an attribute and the words of a vocabulary are numbered by name, too.
  write("test", "fox\tbark yelp bark quack\ndog\twoof woof\n");
  EXPECT_THAT(run("test job.toml --set 'reader.test.labels=[\"fox\", \"dog\"]'").out, HasSubstr("accuracy 1.0"));
  write("words.txt", "woof\nyelp\nbark\n<unk>\n");
  EXPECT_THAT(run("test job.toml --set reader.test.vocabulary=words.txt").out, HasSubstr("accuracy 1.0"));
  write("words.txt", "woof\nyelp\nquack\n<unk>\n");
  const Outcome outcome = run("test job.toml --set reader.test.vocabulary=words.txt");
  EXPECT_EQ(outcome.exit, 78);
  EXPECT_THAT(outcome.error, HasSubstr("\"quack\" is not among the names that the model was trained with"));
}

TEST_F(NamesTest, Libsvm) {
  const std::string reader = "type = \"libsvm\"\nwidth = 3\nslots = { features = \"x\", label = \"kind\" }\n";
  std::string text = classifier(reader + "labels = [\"-1\", \"5\", \"2\"]\n");
  train(text, "-1 1:1\n5 2:1\n2 3:1\n", "2 3:1\n+5 2:1\n");
  expect_right();
  const auto accuracy_with = [&](const std::string& labels) {
    return run("test job.toml --set 'reader.test.labels=" + labels + "'").out;
  };
  EXPECT_THAT(accuracy_with("[\"2.0\", \"5\"]"), HasSubstr("accuracy 1.0"));
  EXPECT_THAT(accuracy_with("[\"2\", \"-1\", \"+5\"]"), HasSubstr("accuracy 1.0"));
  const Outcome outcome = run("test job.toml --set 'reader.test.labels=[\"2\", \"7\"]'");
  EXPECT_EQ(outcome.exit, 78);
  EXPECT_THAT(outcome.error,
              HasSubstr("\"7\" is not among the names that the model was trained with: \"-1\", \"5\", \"2\""));
}

// Without the attribute `labels`, the test data has the labels of the model.
TEST_F(NamesTest, LibsvmInheritsItsLabels) {
  const std::string reader = "type = \"libsvm\"\nwidth = 3\nslots = { features = \"x\", label = \"kind\" }\n";
  std::string text = classifier(reader);
  text.replace(text.find("type = \"libsvm\""), 15, "type = \"libsvm\"\nlabels = [\"-1\", \"5\", \"2\"]");
  train(text, "-1 1:1\n5 2:1\n2 3:1\n", "2 3:1\n+5 2:1\n");
  expect_right();
}

TEST_F(NamesTest, Images) {
  const std::string pixel =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const std::string make =
      "mkdir -p train/cat train/dog train/fox test/dog test/cat\n"
      "for to in train/cat train/dog train/fox test/dog; do echo " +
      pixel + " | base64 -d > $to/1.png; done\n";
  ASSERT_EQ(shell(make).exit, 0);
  std::string text = classifier(
      "type = \"images\"\nsize = [1, 1]\ncrop = \"none\"\nslots = { image = { layer = \"x\", scale = "
      "0.01 }, label = \"kind\" }\n",
      "");
  for (const char* name : {"train", "test"}) {
    const std::string files = std::string("files = [\"") + name + "\"]";
    text.replace(text.find(files), files.size(), std::string("folder = \"") + name + "\"");
  }
  write("job.toml", text);
  EXPECT_EQ(run("train job.toml").exit, 0) << run("train job.toml").error;
  EXPECT_EQ(run("test job.toml").error, "");
  ASSERT_EQ(shell("mkdir test/empty; mv train/fox test/fix; mkdir train/fox").exit, 0);
  const Outcome outcome = run("test job.toml");
  EXPECT_EQ(outcome.exit, 65);
  EXPECT_THAT(outcome.error,
              HasSubstr("the class folder \"fix\" is not among the names that the model was trained with: \"cat\", "
                        "\"dog\", \"fox\"; did you mean \"fox\"?"));
}

// A list of names that is too long to be stored is compared by its digest, before the training.
TEST_F(NamesTest, ManyWords) {
  const std::string layer = R"(
[[layer]]
name = "x"
type = "embedding"
inputs = ["words"]
vocabulary = 70000
size = 3
reduce = "sum"
)";
  std::string words;
  for (int i = 0; i < 66000; ++i) words += " w" + std::to_string(i);
  std::string text = classifier("type = \"text\"\nlabelled = true\nslots.label = \"kind\"\n", layer);
  train(text, "cat\tw1 w1" + words + "\ndog\tw2\nfox\tw3\n", "cat\tw2 w2" + words + "\n");
  text.replace(text.find("passes = 30"), 11, "passes = 1");
  write("job.toml", text);
  const Outcome outcome = run("train job.toml");
  EXPECT_EQ(outcome.exit, 78);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("slot \"words\": expected "), HasSubstr(", got 66001 names with SHA-256 "),
                                   HasSubstr("give the reader the names of the model, or the same vocabulary")));
  const std::string same = " --set reader.train.save_vocabulary=words.txt --set reader.test.vocabulary=words.txt";
  const Outcome good = run("train job.toml" + same);
  EXPECT_EQ(good.exit, 0) << good.error;
  EXPECT_EQ(run("test job.toml" + same).exit, 0);
  const Outcome shown = shell("sha256sum words.txt | cut -d' ' -f1; \"$TENON\" model show --json model.safetensors");
  EXPECT_THAT(shown.out, HasSubstr("\"sha256\": \"" + shown.out.substr(0, 64)));
  EXPECT_THAT(shown.out, Not(HasSubstr("w65000")));
}

}  // namespace
}  // namespace tenon_tests
