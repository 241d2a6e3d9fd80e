// Jobs with [[scan]]: a step of an LSTM trains like the layer, blocks inside, plans, saved models, and the message of
// each mistake. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <iterator>
#include <regex>

#include "tests/host/cli/program.h"

namespace tenon_tests {

namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

// The model reads "states" and "states:1", results and last values of sequences "vectors".
constexpr const char* kModel = R"(passes = 3
seed = 3
[[layer]]
name = "vectors"
type = "embedding"
inputs = "words"
vocabulary = 9
size = 4
[[layer]]
name = "score"
type = "fc"
inputs = "states:1"
size = 2
[[layer]]
name = "cost"
type = "cross_entropy"
inputs = ["score", "label"]
from_logits = true
[reader.train]
type = "text"
files = ["lines.txt"]
labelled = true
labels = ["bad", "good"]
split = "words"
batch = 4
[reader.test]
type = "text"
files = ["lines.txt"]
labelled = true
split = "words"
[updater]
type = "sgd"
learning_rate = 0.5
)";
constexpr const char* kLayer = R"([[layer]]
name = "states"
type = "lstm"
inputs = "vectors"
size = 3
)";
constexpr const char* kScan = R"([[scan]]
name = "states"
inputs = { x = "vectors" }
memories = [{ name = "h", shape = 3, next = "step" }, { name = "c", shape = [3], next = "step:1" }]
results = "step"
[[scan.layer]]
name = "gates"
type = "fc"
inputs = ["x", "h"]
size = 12
[[scan.layer]]
name = "step"
type = "lstm_step"
inputs = ["gates", "c"]
)";

class ScanJob : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write("lines.txt", "good\tfine not bad\nbad\tbad not fine\ngood\tI say fine not bad\nbad\tno\n");
  }
  // The costs that a training prints.
  [[nodiscard]] std::string trained(const std::string& arguments) const {
    const Outcome outcome =
        shell("\"$TENON\" train " + arguments + " | sed 's/ [0-9.]* samples.*//; s/ *[0-9.]* s.*//'");
    EXPECT_EQ(outcome.exit, 0) << outcome.error;
    return outcome.out;
  }
  // Writes the job with kScan, in which `from` is replaced.
  void write_changed(const std::string& from, const std::string& to) const {
    std::string scan = kScan;
    const size_t at = scan.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write("scan.toml", std::string(kModel) + scan.replace(at, from.size(), to));
  }
  [[nodiscard]] std::string refused(const std::string& from, const std::string& to, int exit = 78) const {
    write_changed(from, to);
    const Outcome outcome = run("plan scan.toml");
    EXPECT_EQ(outcome.exit, exit) << outcome.out;
    return outcome.error;
  }
};

TEST_F(ScanJob, AStepTrainsLikeTheLayer) {
  write("layer.toml", std::string(kModel) + kLayer);
  write("scan.toml", std::string(kModel) + kScan +
                         "[init]\nfile = \"first.safetensors\"\n[init.rename]\n\"states.weight\" = "
                         "\"states.gates.weight\"\n\"states.bias\" = \"states.gates.bias\"\n"
                         "\"states.recurrent_weight\" = \"states.gates.weight_1\"\n");
  ASSERT_EQ(run("train layer.toml --passes 1 --set updater.learning_rate=0 --save first.safetensors").exit, 0);
  const std::string layer = trained("layer.toml --no-save --set init=first.safetensors");
  EXPECT_THAT(layer, ContainsRegex("cost 0\\."));
  EXPECT_EQ(trained("scan.toml --no-save"), layer);
}

TEST_F(ScanJob, IsPlannedSavedAndRestored) {
  write("scan.toml", std::string(kModel) + kScan);
  const Outcome layers = run("plan --layers scan.toml");
  EXPECT_EQ(layers.error, "");
  EXPECT_THAT(layers.out, AllOf(ContainsRegex("states.x +scan_input +vectors +\\[rows[0-9]+, 4\\]"),
                                ContainsRegex("states.gates +fc +states.x, states.h +\\[rows[0-9]+, 12\\]"),
                                ContainsRegex("states +scan .*scan.toml:[0-9]+")));
  EXPECT_THAT(run("plan --json scan.toml").out, HasSubstr("\"loop\":"));
  ASSERT_EQ(run("train scan.toml --save model.safetensors --set checkpoint.folder=saves").exit, 0);
  EXPECT_THAT(run("model show model.safetensors").out, AllOf(HasSubstr("states.gates"), HasSubstr("scan_memory")));
  const Outcome inferred = run("infer scan.toml --model model.safetensors --output score");
  EXPECT_EQ(inferred.error, "");
  EXPECT_THAT(inferred.out, HasSubstr("{\"sample\":3,\"score\":["));
  const Outcome resumed =
      run("train scan.toml --save model.safetensors --set checkpoint.folder=saves --resume --passes 4");
  EXPECT_EQ(resumed.exit, 0) << resumed.error;
}

TEST_F(ScanJob, BlocksAndLayersFromOutsideAreInside) {
  write("scan.toml", std::string(kModel) + R"([[layer]]
name = "mean"
type = "sequence_pool"
inputs = "vectors"
kind = "mean"
[[scan]]
name = "states"
reverse = true
inputs = { x = "vectors" }
memories = [{ name = "h", initial = "mean", next = "deep" }]
results = "deep"
layer = [{ name = "sum", type = "add", inputs = ["x", "h", "mean"] },
         { name = "deep", type = "block", block = "twice", inputs = "sum" }]
[[block]]
name = "twice"
inputs = "in"
layer = [{ name = "one", type = "fc", inputs = "in", size = 4, act = "tanh", parameter_name = "shared" },
         { name = "two", type = "fc", inputs = "one", size = 4, act = "tanh", parameter_name = "shared" }]
)");
  const Outcome outcome = run("train scan.toml --no-save");
  EXPECT_EQ(outcome.exit, 0) << outcome.error;
}

// The second line of each user is a visit with nothing in it, which leaves what is known as it is.
TEST_F(ScanJob, AScanInAScan) {
  write("visits.txt", "1 qid:1 1:1 3:1\n0 qid:1\n1 qid:1 2:1\n0 qid:2 1:1 2:1\n1 qid:2\n1 qid:2 3:1\n");
  write("users.toml", R"(passes = 2
layer = [{ name = "vectors", type = "embedding", inputs = "ids", vocabulary = 3, size = 4 },
         { name = "score", type = "fc", inputs = "users", size = 1 },
         { name = "cost", type = "square_error", inputs = ["score", "label"] }]
[[scan]]
name = "users"
inputs = { visit = "vectors" }
memories = [{ name = "known", shape = 4, next = "clicks" }]
results = "clicks"
[[scan]]
name = "clicks"
inputs = { click = "users.visit" }
memories = [{ name = "state", initial = "users.known", next = "after" }]
layer = [{ name = "after", type = "fc", inputs = ["click", "state"], size = 4, act = "tanh" }]
[reader.train]
type = "libsvm"
files = ["visits.txt"]
width = 3
sparse_lists = true
batch = 2
slots.ids = { sequence = "query" }
slots.values = { sequence = "query" }
slots.label = { sequence = "query" }
[updater]
type = "sgd"
learning_rate = 0.1
)");
  const Outcome trained = run("train users.toml --save users.safetensors --check");
  EXPECT_EQ(trained.exit, 0) << trained.error;
  EXPECT_THAT(trained.out, ContainsRegex("pass 2/2 +cost [0-9]"));
  EXPECT_THAT(run("plan users.toml").out, ContainsRegex("backward +clicks.after.* loop 2, loop 3: gemm"));
  EXPECT_THAT(run("plan --json users.toml").out, HasSubstr("\"around\":"));
  const Outcome inferred = run("infer users.toml --reader train --model users.safetensors --output users");
  EXPECT_EQ(inferred.exit, 0) << inferred.error;
  const std::regex same("\"users\":\\[(\\[[^\\]]+\\]),\\1,\\[");
  const std::sregex_iterator found(inferred.out.begin(), inferred.out.end(), same);
  EXPECT_EQ(std::distance(found, std::sregex_iterator()), 2) << inferred.out;
}

// Four lines in minibatches of two: the last line of each sample goes on where its first one ended.
TEST_F(ScanJob, MemoriesAreCarriedInPasses) {
  const std::string carried = "name = \"h\", shape = 3, carry = true";
  write_changed("name = \"h\", shape = 3", carried);
  const std::string options = " --save m.safetensors --set checkpoint.folder=saves --set reader.train.batch=2";
  const Outcome whole = run("train scan.toml --passes 4" + options);
  EXPECT_EQ(whole.exit, 0) << whole.error;
  EXPECT_THAT(run("plan --layers scan.toml").out, ContainsRegex("states.h +scan_memory"));
  std::filesystem::remove_all(path("saves"));
  ASSERT_EQ(run("train scan.toml --passes 2" + options).exit, 0);
  const Outcome resumed = run("train scan.toml --passes 4 --resume" + options);
  EXPECT_EQ(resumed.exit, 0) << resumed.error;
  const auto last_cost = [](const std::string& out) {
    const size_t at = out.find("cost", out.find("pass 4/4"));
    return out.substr(at, out.find("  ", at + 6) - at);
  };
  EXPECT_EQ(last_cost(resumed.out), last_cost(whole.out));
  // What is carried belongs to the samples of a minibatch, so that their number may change between two passes alone.
  std::filesystem::remove_all(path("saves"));
  ASSERT_EQ(run("train scan.toml --passes 1 --set checkpoint.every_batches=1" + options).exit, 0);
  const std::string other =
      "train scan.toml --passes 2 --resume-with reader.train.batch=4 --resume-from saves/checkpoint-";
  EXPECT_THAT(
      run(other + "0-1.safetensors" + options).error,
      HasSubstr("reader.batch differs within a pass, after 1 minibatches, from each of which layers carry states"));
  EXPECT_EQ(run(other + "1-0.safetensors" + options).exit, 0);
  write("scan.toml", std::string(kModel) + kScan);
  std::filesystem::remove_all(path("saves"));
  const Outcome without = run("train scan.toml --passes 4" + options);
  EXPECT_EQ(without.exit, 0) << without.error;
  EXPECT_NE(last_cost(without.out), last_cost(whole.out));
  EXPECT_THAT(refused("name = \"h\", shape = 3", carried + ", initial = 0.5"),
              HasSubstr("memory \"states.h\" is carried from minibatch to minibatch and has an initial value"));
  EXPECT_THAT(refused("name = \"h\", shape = 3", carried + ", initial = \"vectors\""),
              HasSubstr("memory \"h\": has the keys \"carry\" and \"initial\""));
}

TEST_F(ScanJob, MistakesHaveTheirPlaces) {
  EXPECT_THAT(refused("next = \"step\"", "next = \"gates\""),
              HasSubstr("scan.toml:34: scan \"states\": memory \"states.h\" holds [steps of \"words\", 3] and is left "
                        "layer \"states.gates\" (fc), [steps of \"words\", 12]"));
  EXPECT_THAT(refused("inputs = [\"x\", \"h\"]", "inputs = [\"x\", \"step\"]"),
              AllOf(HasSubstr("scan.toml:"), HasSubstr("the layers form a cycle: \"states.step\" needs "
                                                       "\"states.gates\" needs \"states.step\"")));
  EXPECT_THAT(refused("inputs = [\"x\", \"h\"]", "inputs = [\"vectors\", \"h\"]"),
              HasSubstr("expected float [rows of \"words\" at the steps of \"words\", 4], got float [steps of"));
  EXPECT_THAT(refused("[[scan]]", "[[layer]]\nname=\"late\"\ntype=\"fc\"\nsize=1\ninputs=\"states.step\"\n[[scan]]"),
              HasSubstr("layer \"states.step\" (lstm_step)"));
  EXPECT_THAT(refused("{ x = \"vectors\" }", "{ x = \"vectrs\" }"), HasSubstr("did you mean \"vectors\"?"));
  EXPECT_THAT(refused("{ x = \"vectors\" }", "{ h = \"vectors\" }"),
              HasSubstr("layer \"states.h\": the name is taken"));
  EXPECT_THAT(refused("shape = 3, ", ""), HasSubstr("scan \"states\": memory \"h\": key \"shape\" is missing"));
  EXPECT_THAT(refused("results = \"step\"", "result = \"step\""), HasSubstr("did you mean \"results\"?"));
  EXPECT_THAT(
      refused("results = \"step\"", "results = \"vectors\""),
      HasSubstr("scan \"states\": result layer \"vectors\" (embedding) has float [rows of \"words\" at the steps"));
  EXPECT_THAT(refused("name = \"c\"", "name = \"h\""),
              HasSubstr("layer \"states.h\": the name is taken; see scan.toml"));
}

}  // namespace

}  // namespace tenon_tests
