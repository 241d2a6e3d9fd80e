// tenon generate: texts of a trained job and of its model file, and the message of each mistake.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/host/cli/program.h"

namespace tenon_tests {

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kModel = R"(passes = 30
save = "model.safetensors"
[[layer]]
name = "vectors"
type = "embedding"
inputs = "words"
vocabulary = 12
size = 4
[[layer]]
name = "score"
type = "fc"
inputs = "cells"
size = 12
[[layer]]
name = "cost"
type = "cross_entropy"
inputs = ["score", "next"]
from_logits = true
[[scan]]
name = "cells"
inputs = { x = "vectors" }
memories = [{ name = "state", shape = 12, next = "step" }]
results = "step"
layer = [{ name = "step", type = "fc", inputs = ["x", "state"], size = 12, act = "tanh" }]
[reader.train]
type = "text"
files = ["lines.txt"]
begin = "<s>"
end = "</s>"
names = ["words", "next"]
slots.next = { sequence = "words" }
batch = 4
[updater]
type = "adam"
learning_rate = 0.05
)";
constexpr const char* kGenerate =
    "[generate]\nscores = \"score\"\nfrom_logits = true\nbegin = \"<s>\"\nend = \"</s>\"\n";

class GenerateTest : public ProgramTest {
 protected:
  void SetUp() override {
    write("lines.txt", "ab cd ef\ncd ab gh ef\nab cd ef\ncd ab gh ef\n");
    write("job.toml", std::string(kModel) + kGenerate);
    const Outcome trained = shell("$TENON train job.toml -q");
    ASSERT_EQ(trained.exit, 0) << trained.error;
  }
  std::string text(const std::string& arguments) {
    const Outcome made = shell("$TENON generate " + arguments);
    EXPECT_EQ(made.exit, 0) << made.error;
    return made.out;
  }
};

TEST_F(GenerateTest, TextsAreContinued) {
  EXPECT_EQ(text("job.toml --prompt 'cd ab'"), "cd ab gh ef\n");
  EXPECT_EQ(text("job.toml -p ab --method sample --temperature 0.1"), "ab cd ef\n");
  EXPECT_EQ(text("job.toml -p ab --max-length 2"), "ab cd\n");
  const char* const of_model = "model.safetensors --scores score --from-logits true --begin '<s>' --end '</s>' ";
  EXPECT_EQ(text(std::string(of_model) + "-p cd"), "cd ab gh ef\n");
  const std::string beams = text("job.toml -p ab -p cd --method beam --beam-size 3 --results 2");
  EXPECT_EQ(std::count(beams.begin(), beams.end(), '\n'), 4);
  EXPECT_THAT(beams, AllOf(HasSubstr("\tab cd ef\n"), HasSubstr("\tcd ab gh ef\n")));
  const json made = json::parse(text("job.toml -p ab --format json"));
  EXPECT_EQ(made.at("prompt"), "ab");
  EXPECT_EQ(made.at("results").at(0).at("text"), "ab cd ef");
  EXPECT_EQ(made.at("results").at(0).at("ids").size(), 3U);  // cd ef </s>
  EXPECT_LT(made.at("results").at(0).at("score").get<double>(), 0);
  const std::string draws = "job.toml --method sample --temperature 3 --results 8 --seed ";
  EXPECT_EQ(text(draws + "5"), text(draws + "5 --threads 1"));
  EXPECT_NE(text(draws + "5"), text(draws + "6"));
}

TEST_F(GenerateTest, CharactersNeedNoSpaces) {
  write("letters.txt", "a\nb\nc d\n");
  const std::string job = std::string(kModel) + kGenerate + "spaces = false\n";
  write("job.toml", job);
  const Outcome trained = shell(
      "$TENON train job.toml -q --set reader.train.split=characters --set 'reader.train.files=[\"letters.txt\"]'");
  ASSERT_EQ(trained.exit, 0) << trained.error;
  EXPECT_EQ(text("job.toml -p c"), "c d\n");
  const Outcome other = shell("$TENON generate job.toml -p cxd");
  EXPECT_EQ(other.exit, 64);
  EXPECT_THAT(other.error, HasSubstr("--prompt: \"xd\", at byte 2, begins with none of the names of \"words\""));
}

// A model that writes the line of a topic, and a reader of topics alone.
constexpr const char* kTopics = R"(passes = 40
save = "topics.safetensors"
[[layer]]
name = "start"
type = "embedding"
inputs = "topic"
vocabulary = 4
size = 12
reduce = "sum"
[[layer]]
name = "vectors"
type = "embedding"
inputs = "words"
vocabulary = 12
size = 4
[[layer]]
name = "score"
type = "fc"
inputs = "cells"
size = 12
[[layer]]
name = "cost"
type = "cross_entropy"
inputs = ["score", "next"]
from_logits = true
[[scan]]
name = "cells"
inputs = { x = "vectors" }
memories = [{ name = "state", initial = "start", next = "step" }]
results = "step"
layer = [{ name = "step", type = "fc", inputs = ["x", "state"], size = 12, act = "tanh" }]
[reader.train]
join = "compose"
part = [{ type = "text", files = ["topics.txt"], choose = { words = "topic" } },
        { type = "text", files = ["lines.txt"], begin = "<s>", end = "</s>", names = ["words", "next"] }]
slots.next = { sequence = "words" }
batch = 4
[updater]
type = "adam"
learning_rate = 0.05
[generate]
reader = "test"
scores = "score"
ids = "words"
from_logits = true
begin = "<s>"
end = "</s>"
)";

// Training has no use for it: it feeds no words.
constexpr char kAsked[] = R"(
[reader.test]
type = "text"
files = ["asked.txt"]
choose = { words = "topic" }
batch = 2
)";

TEST_F(GenerateTest, SamplesOfAReaderAreAnswered) {
  write("topics.txt", "red\nblue\nred\nblue\n");
  write("asked.txt", "blue\nred\nblue\n");
  write("topics.toml", kTopics);
  const Outcome trained = shell("$TENON train topics.toml -q");
  ASSERT_EQ(trained.exit, 0) << trained.error;
  write("topics.toml", std::string(kTopics) + kAsked);
  for (const char* const method : {"", " --method beam --beam-size 3", " --set reader.test.batch=1"}) {
    std::istringstream lines(text(std::string("topics.toml") + method));
    for (const char* const answer : {"cd ab gh ef", "ab cd ef", "cd ab gh ef"}) {
      std::string line;
      std::getline(lines, line);
      EXPECT_THAT(line, testing::EndsWith(std::string("\t") + answer)) << method;
    }
    EXPECT_EQ(lines.peek(), EOF) << method;
  }
  std::istringstream objects(text("topics.toml --format json"));
  for (int sample = 0; sample < 3; ++sample) {
    std::string line;
    std::getline(objects, line);
    const json made = json::parse(line);
    EXPECT_EQ(made.at("sample"), sample);
    EXPECT_EQ(made.at("results").size(), 1U);
    EXPECT_EQ(made.at("results").at(0).at("text"), sample == 1 ? "ab cd ef" : "cd ab gh ef");
  }
  const std::string draws = "topics.toml --method sample --temperature 4 --results 3 --seed ";
  EXPECT_EQ(text(draws + "5"), text(draws + "5 --set reader.test.batch=1"));
  EXPECT_NE(text(draws + "5"), text(draws + "6"));

  const auto refused = [&](const std::string& arguments, int exit, const std::string& message) {
    const Outcome made = shell("$TENON generate " + arguments);
    EXPECT_EQ(made.exit, exit) << arguments;
    EXPECT_EQ(made.out, "") << arguments;
    EXPECT_THAT(made.error, HasSubstr(message));
  };
  refused("topics.toml -p ab", 64, "--prompt: texts are written for the samples of --reader");
  refused("topics.toml --reader tests", 78, "the job has no [reader.tests]");
  refused("topics.toml --set reader.test.choose='{words=\"theme\"}'", 78,
          "[reader.test]: no slot feeds data layer \"topic\"");
  write("asked.txt", "\n");
  refused("topics.toml", 65, "[reader.test] gave no samples");
  refused("topics.safetensors --scores score --reader test", 64, "--reader: a model file has no readers");
  refused("job.toml --reader train", 64, "--reader: layer \"score\" reads nothing but the ids, \"words\"");
}

TEST_F(GenerateTest, LinesOfInputAreContinued) {
  const Outcome made =
      shell("printf 'ab\\nxy\\ncd ab\\n\\nab cd ef gh ab' | $TENON generate job.toml -i --max-length 5");
  EXPECT_EQ(made.exit, 0) << made.error;
  EXPECT_THAT(made.out, HasSubstr("ab cd ef\ncd ab gh ef\n"));
  EXPECT_EQ(std::count(made.out.begin(), made.out.end(), '\n'), 3);  // of the empty prompt, too
  EXPECT_THAT(made.error, AllOf(HasSubstr("\"xy\" is not among the names of \"words\""),
                                HasSubstr("the prompt of sample 0 has 5 ids")));
  // Each line has draws of its own, which the number of the line and the seed decide.
  const std::string draws = "$TENON generate job.toml -i --method sample --temperature 3 --seed 5";
  const Outcome one = shell("printf '\\n\\n\\n\\n' | " + draws), two = shell("printf '\\n\\n\\n\\n' | " + draws);
  EXPECT_EQ(one.out, two.out);
  const size_t end = one.out.find('\n') + 1;
  EXPECT_NE(one.out, one.out.substr(0, end) + one.out.substr(0, end) + one.out.substr(0, end) + one.out.substr(0, end));
  // What no prompt can mend ends the loop.
  const Outcome ended = shell("printf 'ab\\nab\\n' | $TENON generate job.toml -i --max-length 0");
  EXPECT_EQ(ended.exit, 78);
  EXPECT_THAT(ended.error, HasSubstr("option \"max_length\" is 0; expected at least 1"));
}

TEST_F(GenerateTest, MistakesAreNamed) {
  const auto refused = [&](const std::string& arguments, int exit, const std::string& message) {
    const Outcome made = shell("$TENON generate " + arguments);
    EXPECT_EQ(made.exit, exit) << arguments;
    EXPECT_EQ(made.out, "") << arguments;
    EXPECT_THAT(made.error, HasSubstr(message));
  };
  refused("job.toml -p xy", 64, "--prompt: \"xy\" is not among the names of \"words\"");
  refused("job.toml --end stop", 64, "--end: \"stop\" is not among the names of \"words\"");
  refused("job.toml --scores scor", 64, "--scores: no output of model.safetensors depends on a layer \"scor\"");
  refused("model.safetensors", 64, "--scores: name the layer that has the scores of the next id");
  refused("job.toml --ids word", 64,
          "--ids: layer \"score\" depends on no data layer \"word\"; did you mean \"words\"?");
  refused("job.toml --method best", 64, "--method: expected greedy, sample or beam, got \"best\"");
  refused("job.toml --temperature 0", 64, "--temperature: expected a number above 0, got 0");
  refused("job.toml --results 0", 64, "--results: expected a whole number from 1 on, got 0");
  refused("job.toml -p " + std::string(5000, 'x'), 64, "--prompt: \"" + std::string(40, 'x') + " ... ");
  refused("job.toml -i < .", 74, "cannot read standard input");
  refused("job.toml --format xml", 64, "--format: expected text or json, got \"xml\"");
  refused("job.toml -i -p ab", 64, "--interactive: prompts are read from standard input");
  refused("job.toml -i --format json", 64, "--interactive: expected the format text");
  refused("model.safetensors --set a=1", 64, "--set: a model file has no keys; expected a job");
  refused("model.safetensors --model x", 64, "--model: the operand is a model file already");
  refused("job.toml --method beam --end ''", 78, "option \"end_id\" is missing");
  refused("job.toml --max-length 0", 78, "option \"max_length\" is 0; expected at least 1");
  refused("job.toml -p 'ab cd' --max-length 2", 78, "the prompt of sample 0 has 2 ids");
  refused("job.toml --begin ''", 78, "the prompt of sample 0 is empty, and option \"begin_id\" is missing");
  refused("job.toml --set generate.scores=vectors", 78, "layer \"vectors\" (embedding): it has scores of 4 ids");
  refused("job.toml --set generate.top=1", 78, "[generate]: unknown key \"top\"");
  write("job.toml", std::string(kModel) + "[generate]\nfrom_logits = true\n");
  refused("job.toml", 78, "[generate]: key \"scores\" is missing");
  refused("none.safetensors --scores score", 66, "none.safetensors");
}

}  // namespace

}  // namespace tenon_tests
