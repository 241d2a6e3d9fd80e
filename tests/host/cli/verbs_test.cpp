// The program's verbs on good input. SPDX-License-Identifier: Apache-2.0
#include "host/cli/verbs/verbs.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/host/cli/program.h"

namespace tenon_tests {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> result;
  for (std::string line; std::getline(in, line);) result.push_back(line);
  return result;
}

class VerbsTest : public ProgramTest {
 protected:
  Outcome done(const std::string& arguments) const {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit, 0) << arguments << "\n" << outcome.error;
    return outcome;
  }
  std::vector<json> events(const std::string& arguments) const {
    std::vector<json> result;
    for (const std::string& line : lines(done(arguments + " --log-format json").out)) {
      result.push_back(json::parse(line));
      for (const char* key : {"event", "pass", "batch", "cost", "metrics"})
        EXPECT_TRUE(result.back().contains(key)) << line;
    }
    return result;
  }
};

TEST_F(VerbsTest, TrainPrintsOneLineForEachPass) {
  const Outcome outcome = done("train job.toml");
  const std::vector<std::string> text = lines(outcome.out);
  ASSERT_EQ(text.size(), 6U) << outcome.out;
  EXPECT_THAT(text[0], testing::ContainsRegex("^pass 1/4  cost [0-9.]+  accuracy [0-9.]+  [0-9]+ samples/s$"));
  EXPECT_THAT(text[3], StartsWith("pass 4/4  cost "));
  EXPECT_EQ(text[4], "saved model.safetensors");
  EXPECT_THAT(text[5], testing::ContainsRegex("^test  cost [0-9.]+  accuracy [0-9.]+  \\(21 samples, [0-9.]+ s\\)$"));
  EXPECT_EQ(outcome.error, "") << "a bar is drawn on a terminal only";
}

TEST_F(VerbsTest, TrainLearns) {
  const std::vector<json> told = events("train job.toml --passes 30 --no-save");
  EXPECT_GT(told.back().at("test").at("metrics").at("accuracy").get<double>(), 0.95);
  EXPECT_LT(told.back().at("test").at("cost").get<double>(), 0.3);
}

TEST_F(VerbsTest, JsonEventsInOrder) {
  const std::vector<json> told = events("train job.toml --passes 2");
  std::vector<std::string> names;
  for (const json& event : told)
    if (event.at("event") != "end_iteration") names.push_back(event.at("event"));
  EXPECT_THAT(names, testing::ElementsAre("begin_training", "begin_pass", "end_pass", "begin_pass", "end_pass",
                                          "end_training", "saved", "test"));
  EXPECT_EQ(told.size(), names.size() + 16);  // 60 samples in minibatches of 8, twice
  EXPECT_EQ(told[2].at("event"), "end_iteration");
  EXPECT_EQ(told[2].at("pass"), 1);
  EXPECT_EQ(told[2].at("batch"), 1);
  EXPECT_EQ(told[2].at("samples"), 8);
  EXPECT_EQ(told[9].at("batch"), 8);
  EXPECT_EQ(told[9].at("samples"), 4);
  EXPECT_EQ(told[10].at("event"), "end_pass");
  EXPECT_EQ(told[10].at("samples"), 60);
}

TEST_F(VerbsTest, SameSeedSameFileForAnyNumberOfThreads) {
  done("train job.toml --save a.safetensors --threads 1");
  done("train job.toml --save b.safetensors --threads 2");
  done("train job.toml --save c.safetensors --seed 4");
  EXPECT_EQ(read("a.safetensors"), read("b.safetensors"));
  EXPECT_NE(read("a.safetensors"), read("c.safetensors"));
}

TEST_F(VerbsTest, WhatIsReadAheadChangesNothing) {
  done("train job.toml --save a.safetensors --set reader.train.prefetch=0");
  done("train job.toml --save b.safetensors --set reader.train.prefetch=7");
  done("train job.toml --save c.safetensors");
  EXPECT_EQ(read("a.safetensors"), read("b.safetensors"));
  EXPECT_EQ(read("a.safetensors"), read("c.safetensors"));
}

TEST_F(VerbsTest, ShardsAndPartsOfAReader) {
  done("train job.toml --passes 1");
  for (const char* shard : {"0", "1", "2"}) {
    const std::string sets = std::string(" --set reader.test.shards=3 --set reader.test.shard=") + shard;
    EXPECT_EQ(events("test job.toml" + sets).back().at("samples"), 7);
  }
  const auto joined = [this](const std::string& join) {
    const std::string train = R"(files = ["train-images", "train-labels"])", test = R"(["test-images", "test-labels"])";
    change("type = \"idx\"\n" + train, "join = \"" + join + "\"\npart = [{ type = \"idx\", " + train +
                                           " }, { type = \"idx\", files = " + test + " }]");
  };
  joined("chain");
  EXPECT_EQ(events("test job.toml --reader train").back().at("samples"), 81);
  joined("interleave");
  EXPECT_EQ(events("test job.toml --reader train").back().at("samples"), 81);
  joined("compose");
  EXPECT_THAT(run("train job.toml").error,
              HasSubstr("[reader.train]: compose: reader 1 (slots \"image\", \"label\") has 60 samples"));
}

TEST_F(VerbsTest, PathsOfTheJobAreRelativeToItsFile) {
  const Outcome outcome = done("train ../$(basename \"$PWD\")/job.toml --set save=other.safetensors --passes 1");
  EXPECT_THAT(outcome.out, HasSubstr("other.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(path("other.safetensors")));
  EXPECT_FALSE(std::filesystem::exists(path("model.safetensors")));
}

TEST_F(VerbsTest, TestAgreesWithTheTestAfterTraining) {
  const json after = events("train job.toml").back().at("test");
  EXPECT_EQ(events("test job.toml").back().at("test"), after);
  EXPECT_EQ(events("test job.toml --model model.safetensors --threads 2").back().at("test"), after);
  EXPECT_EQ(events("test job.toml --reader train").back().at("samples"), 60);
}

TEST_F(VerbsTest, TestEveryTellsOfTestsWhileTraining) {
  int tests = 0;
  for (const json& event : events("train job.toml --test-every 1 --no-save")) tests += event.at("event") == "test";
  EXPECT_EQ(tests, 4);
}

TEST_F(VerbsTest, InferPrintsEverySampleInOrder) {
  done("train job.toml --passes 30");
  const std::vector<std::string> text = lines(done("infer job.toml").out);
  ASSERT_EQ(text.size(), 21U);
  for (size_t i = 0; i < text.size(); ++i) {
    const json sample = json::parse(text[i]);
    EXPECT_EQ(sample.at("sample"), i);
    const auto probabilities = sample.at("prediction").get<std::vector<double>>();
    ASSERT_EQ(probabilities.size(), 3U);
    EXPECT_NEAR(probabilities[0] + probabilities[1] + probabilities[2], 1, 1e-5);
    EXPECT_GT(probabilities[i % 3], 0.5) << "sample " << i;
  }
  // infer ignores shuffle and drop_last.
  EXPECT_EQ(lines(done("infer job.toml --set reader.test.shuffle=true --set reader.test.drop_last=true").out), text);
}

TEST_F(VerbsTest, InferAsCsvAndOtherLayers) {
  done("train job.toml --passes 1");
  const std::vector<std::string> text =
      lines(done("infer job.toml --format csv --output cost --output score --set reader.test.first_n=2").out);
  ASSERT_EQ(text.size(), 3U);
  EXPECT_EQ(text[0], "sample,cost,score.0,score.1,score.2");
  EXPECT_THAT(text[1], StartsWith("0,"));
  EXPECT_EQ(std::count(text[1].begin(), text[1].end(), ','), 4);
}

TEST_F(VerbsTest, InferNeedsNoLabelsForAPrediction) {
  done("train job.toml --passes 1");
  const Outcome with = done("infer job.toml");
  const std::string unlabelled = " --set 'reader.test.files=[\"test-images\"]'";
  EXPECT_EQ(done("infer job.toml --output prediction" + unlabelled).out, with.out);
  EXPECT_EQ(done("infer job.toml" + unlabelled).out, with.out) << "infer does not compute costs and metrics by default";
  // Keys that [reader.test] takes over from [reader.train] may name slots that only [reader.train] has.
  const std::string renamed =
      unlabelled + " --set reader.train.slots.label=truth --set 'layer.cost.inputs=[\"score\", \"truth\"]'";
  EXPECT_EQ(done("infer job.toml" + renamed).out, with.out);
  EXPECT_THAT(run("test job.toml" + unlabelled).error,
              HasSubstr("input \"label\" is not a layer of the job, and no slot of [reader.test] feeds it"));
}

TEST_F(VerbsTest, InferTellsWhichSlotsItNeeds) {
  write("train.csv", "x,kind\n1,a\n2,b\n");
  write("test.csv", "x\n1\n");
  write("job.toml", R"(passes = 1
layer = [{ name = "score", type = "fc", inputs = ["x"], size = 2 },
         { name = "cost", type = "cross_entropy", inputs = ["score", "kind"], from_logits = true },
         { name = "prob", type = "softmax", inputs = ["score"] }]
updater = { type = "sgd", learning_rate = 0.1 }
reader.train = { type = "csv", files = "train.csv", columns = ["x: f32", "kind: category"], batch = 2 }
reader.test = { type = "csv", files = "test.csv", columns = ["x: f32", "kind: category"] }
)");
  done("train job.toml --save model --set 'reader.test.files=[\"train.csv\"]'");
  const std::string expected = done("infer job.toml --model model").out;
  EXPECT_EQ(done("infer job.toml --model model --set 'reader.test.columns=[\"x: f32\"]'").out, expected);
  const Outcome refused = run("infer job.toml --model model --set 'reader.test.columns=[\"x = y: f32\"]'");
  EXPECT_EQ(refused.exit, 78);
  EXPECT_THAT(refused.error,
              AllOf(HasSubstr("unknown column \"y\""), HasSubstr("; the outputs need only these slots: x\n")));
  EXPECT_THAT(run("test job.toml --model model").error, HasSubstr("; the outputs need only these slots: kind, x\n"));
}

TEST_F(VerbsTest, WarnsOfAJobUnlikeTheModel) {
  done("train job.toml --passes 1");
  const std::string warning = "warning: model.safetensors was saved with another layer ";
  for (const char* verb : {"test", "infer"}) {
    const auto told = [&](const std::string& sets) { return done(verb + (" job.toml" + sets)).error; };
    EXPECT_EQ(told(" --set layer.hidden.act=tanh"),
              warning + "\"hidden\": attribute \"act\" is \"relu\" there, and \"tanh\" in the job\n");
    EXPECT_EQ(told(" --set reader.train.slots.image.scale=0.5"),
              warning + "\"pixel\": scale is 0.00392156862745098 there, and 0.5 in the job\n");
    // No warning if the predictions stay the same: explicit defaults, keys of training, other outputs, another order.
    EXPECT_EQ(told(" --set layer.hidden.bias=true --set layer.hidden.drop_rate=0.5 --set "
                   "layer.hidden.param.weight.decay_multiplier=0.5"),
              "");
    EXPECT_EQ(told(" --set 'outputs=[\"prediction\", \"cost\"]'"), "");
  }
  EXPECT_EQ(done("infer job.toml --set layer.cost.label_smoothing=0.5").error, "") << "infer does not compute the cost";
  EXPECT_THAT(done("test job.toml --set layer.cost.label_smoothing=0.5").error,
              HasSubstr("\"cost\": attribute \"label_smoothing\" is not given there, and 0.5 in the job"));
  change("name = \"score\"\ntype = \"fc\"\ninputs = [\"hidden\"]",
         "name = \"middle\"\ntype = \"tanh\"\ninputs = [\"hidden\"]\n\n"
         "[[layer]]\nname = \"score\"\ntype = \"fc\"\ninputs = [\"middle\"]");
  EXPECT_EQ(done("infer job.toml").error,
            warning + "\"score\": inputs is [\"hidden\"] there, and [\"middle\"] in the job\n");
}

TEST_F(VerbsTest, SetChangesTheModel) {
  done("train job.toml --passes 1 --set layer.hidden.size=5 --set layer.hidden.act=tanh");
  EXPECT_THAT(done("model show model.safetensors").out, HasSubstr("[16,5]"));
}

TEST_F(VerbsTest, Plan) {
  const std::string text = done("plan job.toml").out;
  for (const char* part : {"hidden", "fc", "backward", "gradients", "arena", "state", "parameters"})
    EXPECT_THAT(text, HasSubstr(part));
  const json plan = json::parse(done("plan job.toml --json").out);
  EXPECT_EQ(plan.at("max_samples"), 8);
  EXPECT_TRUE(plan.at("training").get<bool>());
  const json& bytes = plan.at("bytes");
  EXPECT_EQ(bytes.at("state").get<int64_t>(), 2 * bytes.at("parameters").get<int64_t>()) << "Adam keeps two moments";
  EXPECT_EQ(bytes.at("machine").get<int64_t>(), bytes.at("control").get<int64_t>() + bytes.at("feeds").get<int64_t>() +
                                                    bytes.at("gradients").get<int64_t>() +
                                                    bytes.at("arena").get<int64_t>() +
                                                    bytes.at("workspace").get<int64_t>());
  EXPECT_FALSE(json::parse(done("plan job.toml --json --inference").out).at("training").get<bool>());
}

TEST_F(VerbsTest, PlanOfGradientsOfRows) {
  write("words.csv", "word,next\n0,1\n1,2\n2,0\n");
  write("job.toml", R"(
layer = [{ name = "vector", type = "embedding", inputs = ["word"], vocabulary = 1000, size = 8 },
         { name = "score", type = "fc", inputs = ["vector"], size = 3 },
         { name = "cost", type = "cross_entropy", inputs = ["score", "next"], from_logits = true }]
updater = { type = "sgd", learning_rate = 0.1 }
[reader.train]
type = "csv"
files = ["words.csv"]
columns = ["word:i32<1000", "next:i32<3"]
batch = 4
)");
  const json bytes = json::parse(done("plan job.toml --json").out).at("bytes");
  EXPECT_GT(bytes.at("row_sparse").get<int64_t>(), 0);
  int64_t sum = 0;
  for (const char* part : {"control", "feeds", "gradients", "arena", "workspace", "row_sparse"})
    sum += bytes.at(part).get<int64_t>();
  EXPECT_EQ(bytes.at("machine").get<int64_t>(), sum);
  EXPECT_THAT(done("plan job.toml").out,
              AllOf(testing::ContainsRegex("\nrow_sparse +" + std::to_string(bytes.at("row_sparse").get<int64_t>())),
                    HasSubstr("from \"control\" to \"row_sparse\"")));
}

TEST_F(VerbsTest, PluginsListAndInfo) {
  const std::string list = done("plugins list").out;
  for (const char* part : {"fc", "adam", "idx", "cpu"}) EXPECT_THAT(list, HasSubstr(part));
  EXPECT_GT(json::parse(done("plugins list --json").out).size(), 5U);
  const std::string info = done("plugins info fc").out;
  EXPECT_THAT(info, HasSubstr("size"));
  EXPECT_THAT(info, HasSubstr("required"));
  EXPECT_THAT(info, HasSubstr("param.<suffix>.sparse\n"));
  EXPECT_THAT(done("plugins info idx").out, HasSubstr("files"));
  EXPECT_THAT(done("plugins info lstm").out, HasSubstr("\n  tables: tenon.step/1\n")) << "it can generate";
  EXPECT_THAT(done("plugins info csv").out,
              AllOf(testing::ContainsRegex("\n  built with the draft [0-9a-f]+ of the table tenon.records/1\n"),
                    HasSubstr("\n  tables: tenon.pass/1 tenon.records/1\n")));
  EXPECT_EQ(json::parse(done("plugins info adam --json").out).at("status"), "found") << "described without loading";
}

// A component of a later version is shown with the reason, and the others of its plugin are described.
TEST_F(VerbsTest, RefusedComponentsAreListed) {
  const std::string folder = tenon_tests::test_plugin_folder() + "/newer";
  const std::string list = done("plugins list --plugins " + folder).out;
  EXPECT_THAT(list, testing::ContainsRegex("newer +1.2.3 +layers newer_good; kernels newer_good +"));
  EXPECT_THAT(list, HasSubstr("\nrefused:\n  "));
  EXPECT_THAT(list,
              HasSubstr("newer.so: layer \"newer_role\": its role 9 is unknown to this host, which offers version"));
  EXPECT_THAT(list, HasSubstr("newer.so: kernel \"whole\": its compute type int8 is unknown"));
  const std::string all = done("plugins info tenon.test.newer --plugins " + folder).out;
  for (const char* part : {"\nlayer newer_good\n", "\nlayer newer_kind is refused: its kind 12 of attribute \"tree\"",
                           "\nreader newer_traits is refused: its traits 4096", "\nkernel plain for layer newer_good",
                           "\nkernel long is refused: its chain of 9 layers is unknown"})
    EXPECT_THAT(all, HasSubstr(part));
  const std::string one = done("plugins info newer_role --plugins " + folder).out;
  EXPECT_THAT(one,
              AllOf(HasSubstr("\nlayer newer_role is refused: its role 9"), testing::Not(HasSubstr("newer_kind"))));
  const json plugin = json::parse(done("plugins list --json --plugins " + folder).out).at(0);
  EXPECT_EQ(plugin.at("refused").size(), 9U);
}

TEST_F(VerbsTest, ProvidersAreListed) {
  const std::string folder = path("folder");
  std::filesystem::create_directory(folder);
  std::filesystem::copy(tenon_tests::test_plugin_folder() + "/layers/rich.so", folder);
  EXPECT_THAT(done("plugins list --plugins folder").out, HasSubstr("; providers rich.gemm-1, rich.gemm-1"));
  EXPECT_THAT(done("plugins info tenon.test.rich --plugins folder").out,
              HasSubstr("\nprovider rich.gemm-1 of tenon.gemm/1 for device cpu, score -5\n"));
}

TEST_F(VerbsTest, ModelShow) {
  done("train job.toml --passes 1");
  const std::string text = done("model show model.safetensors").out;
  for (const char* part :
       {"verified", "hidden.weight", "[16,8]", "cross_entropy", "outputs: cost, accuracy, prediction"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_TRUE(json::parse(done("model show model.safetensors --json").out).at("verified").get<bool>());
}

TEST_F(VerbsTest, ModelShowTellsStorages) {
  write("words.txt", "a b\nb\n");
  write("tags.svm", "1 1:1\n0 2:1\n");
  write("job.toml", R"(
save = "model.safetensors"
layer = [{ name = "vector", type = "embedding", inputs = ["words"], vocabulary = 9, size = 2, reduce = "sum" },
         { name = "score", type = "fc", inputs = ["tags"], size = 2 },
         { name = "sum", type = "add", inputs = ["vector", "score"] },
         { name = "one", type = "fc", inputs = ["sum"], size = 1 },
         { name = "cost", type = "square_error", inputs = ["one", "label"] }]
updater = { type = "sgd", learning_rate = 0.1 }
[reader.train]
join = "compose"
batch = 2
slots.features = "tags"
part = [{ type = "text", files = ["words.txt"] }, { type = "libsvm", files = ["tags.svm"], width = 200 }]
)");
  done("train job.toml");
  const std::string text = done("model show model.safetensors").out;
  EXPECT_THAT(text, testing::ContainsRegex("\nwords +data +sequences of int32 \\[\\]"));
  EXPECT_THAT(text, testing::ContainsRegex("\ntags +data +sparse float32 \\[200\\]"));
  EXPECT_THAT(text, testing::ContainsRegex("\nlabel +data +float32 \\[\\]"));
}

TEST_F(VerbsTest, EveryVerbHasHelp) {
  for (const tenon::cli::Verb& verb : tenon::cli::kVerbs) {
    const Outcome outcome = done(std::string(verb.name) + " --help");
    EXPECT_THAT(outcome.out, StartsWith(std::string("usage: tenon ") + verb.name));
    EXPECT_THAT(done("--help").out, HasSubstr(std::string("  ") + verb.name));
  }
  EXPECT_THAT(done("version").out, testing::ContainsRegex("^tenon [0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT(done("plugins --help").out, HasSubstr("plugins info"));
}

// Verbs that are programs in folders of PATH.
class ExternalVerbs : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    add("found", "tenon-greet", "#!/bin/sh\necho \"hello $* of $TENON_PROGRAM\"\nexit 3\n");
  }
  void add(const std::string& folder, const std::string& name, const std::string& text) {
    std::filesystem::create_directories(path(folder));
    std::ofstream(path(folder) + "/" + name) << text;
    std::filesystem::permissions(path(folder) + "/" + name, std::filesystem::perms::owner_all);
  }
  // Runs the program with these folders of PATH before the others.
  Outcome with_path(const std::string& folders, const std::string& arguments) {
    return shell("PATH=\"" + folders + ":$PATH\" \"$TENON\" " + arguments);
  }
};

TEST_F(ExternalVerbs, GetTheArgumentsAndGiveTheExitCode) {
  const Outcome outcome = with_path(path("found"), "greet --loudly 'a b'");
  EXPECT_EQ(outcome.exit, 3) << outcome.error;
  EXPECT_THAT(outcome.out, testing::MatchesRegex("hello --loudly a b of /.*/tenon\n"));
}

TEST_F(ExternalVerbs, AreListedAndSuggested) {
  EXPECT_THAT(with_path(path("found"), "--help").out, HasSubstr("\n  greet "));
  EXPECT_THAT(with_path(path("found"), "--verbs").out, HasSubstr("\ngreet\n"));
  const Outcome wrong = with_path(path("found"), "gret");
  EXPECT_EQ(wrong.exit, 64);
  EXPECT_THAT(wrong.error, HasSubstr("unknown verb \"gret\"; did you mean \"greet\"?"));
}

TEST_F(ExternalVerbs, OfTwoWordsComeFirst) {
  add("found", "tenon-greet-all", "#!/bin/sh\necho \"all: $*\"\n");
  EXPECT_EQ(with_path(path("found"), "greet all friends").out, "all: friends\n");
  EXPECT_THAT(with_path(path("found"), "greet nobody").out, StartsWith("hello nobody"));
}

TEST_F(ExternalVerbs, OfTheTableCannotBeReplaced) {
  add("found", "tenon-version", "#!/bin/sh\necho other\n");
  EXPECT_THAT(with_path(path("found"), "version").out, StartsWith("tenon "));
}

TEST_F(ExternalVerbs, AreProgramsInAbsoluteFolders) {
  EXPECT_EQ(with_path("found", "greet").exit, 64) << "a relative folder";
  EXPECT_EQ(with_path(path("found") + "/none", "greet").exit, 64);
  std::filesystem::permissions(path("found") + "/tenon-greet", std::filesystem::perms::owner_read);
  EXPECT_EQ(with_path(path("found"), "greet").exit, 64) << "a file that is not executable";
  EXPECT_EQ(with_path(path("found"), "../found/tenon-greet").exit, 64);
}

TEST_F(ExternalVerbs, ThatAreMissingAreNamed) {
  const Outcome outcome = shell(
      "mkdir alone && cp \"$TENON\" alone && folder=$(dirname \"$TENON\") && "
      "LD_LIBRARY_PATH=\"$folder/../lib\" alone/tenon plugins check x.so");
  EXPECT_EQ(outcome.exit, 66);
  EXPECT_THAT(outcome.error, HasSubstr("\"plugins check\" is a program of its own, tenon-plugins-check, which is"));
}

TEST_F(VerbsTest, CostThatIsNotFinite) {
  const std::string wild = "train job.toml --set updater.type=sgd --set updater.learning_rate=1e30";
  const Outcome outcome = run(wild);
  EXPECT_EQ(outcome.exit, 78) << outcome.out;
  EXPECT_THAT(outcome.error, HasSubstr("warning: the cost of the last pass is not a finite number: nothing saved"));
  EXPECT_FALSE(std::filesystem::exists(path("model.safetensors")));
  EXPECT_EQ(run(wild + " --save kept.safetensors").exit, 78);
  EXPECT_TRUE(std::filesystem::exists(path("kept.safetensors")));
  // After a single update, only the cost of the test is not finite.
  const Outcome late = run(wild + " --passes 1 --set reader.train.batch=60");
  EXPECT_EQ(late.exit, 78) << late.out;
  EXPECT_THAT(late.error, HasSubstr("the cost on [reader.test] is not a finite number; model.safetensors is saved"));
}

// Returns a script that sends SIGTERM to a training of 1e9 passes after its second pass.
std::string interrupted(const std::string& options) {
  return "\"$TENON\" train job.toml --passes 1000000000 " + options +
         " >told & pid=$!\n"
         "for i in $(seq 600); do grep -q 'pass *2/' told && break; sleep 0.05; done\n"
         "kill -TERM $pid; wait $pid";
}

TEST_F(VerbsTest, InterruptedTrainingSavesNothingByItself) {
  const Outcome outcome = shell(interrupted(""));
  EXPECT_EQ(outcome.exit, 143) << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("interrupted in pass "));
  EXPECT_FALSE(std::filesystem::exists(path("model.safetensors")));
}

TEST_F(VerbsTest, InterruptedTrainingSavesWhereItIsTold) {
  const Outcome outcome = shell(interrupted("--save kept.safetensors"));
  EXPECT_EQ(outcome.exit, 143) << outcome.error;
  done("model show kept.safetensors");
  done("test job.toml --model kept.safetensors");
}

TEST_F(VerbsTest, PluginsNewMakesAProjectWithTheGivenNames) {
  const Outcome outcome = done("plugins new acme.soft_clip --kind updater --language c");
  EXPECT_THAT(outcome.out, StartsWith("made the updater acme.soft_clip in soft_clip"));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path("soft_clip")))
    names.push_back(entry.path().filename());
  EXPECT_THAT(names, testing::UnorderedElementsAre("CMakeLists.txt", "Makefile", "README.md", "job.toml", "points.csv",
                                                   "run.sh", "soft_clip.c", "test.sh", "testing.sh"));
  EXPECT_THAT(read("soft_clip/CMakeLists.txt"), HasSubstr("tenon_add_plugin(updaters soft_clip soft_clip.c)"));
  EXPECT_THAT(read("soft_clip/Makefile"), HasSubstr("plugins/updaters/soft_clip.so"));
  EXPECT_THAT(read("soft_clip/job.toml"), HasSubstr("type = \"acme.soft_clip\""));
}

TEST_F(VerbsTest, PluginsNewChangesNoFolderThatExists) {
  std::filesystem::create_directory(path("there"));
  for (const std::string folder : {"there", "absent/below"}) {
    const Outcome outcome = run("plugins new acme.clip --kind layer --language c++ --folder " + folder);
    EXPECT_EQ(outcome.exit, 74) << folder;
    EXPECT_THAT(outcome.error, HasSubstr("\"" + folder + "\""));
  }
  EXPECT_TRUE(std::filesystem::is_empty(path("there")));
}

TEST_F(VerbsTest, PluginsNewChecksNamesKindsAndLanguages) {
  const std::pair<const char*, const char*> wrong[] = {
      {"clip --kind layer --language c", "the name \"clip\": expected VENDOR.NAME"},
      {"Acme.clip --kind layer --language c", "the name \"Acme.clip\": expected"},
      {"acme.1d --kind layer --language c", "the name \"acme.1d\": expected"},
      {"acme.a.b --kind layer --language c", "the name \"acme.a.b\": expected"},
      {"acme. --kind layer --language c", "the name \"acme.\": expected"},
      {"tenon.clip --kind layer --language c", "the vendor tenon is that of Tenon's own plugins"},
      {"acme.clip --kind cost --language c", "--kind: expected one of layer, kernel"},
      {"acme.clip --kind lair --language c", "did you mean \"layer\"?"},
      {"acme.clip --language c", "--kind: expected one of"},
      {"acme.clip --kind layer", "--language: expected one of c, c++, rust"},
      {"acme.clip --kind layer --language go", "got \"go\""},
      {"acme.clip --kind device --language rust", "no template of a device in rust"},
  };
  for (const auto& [arguments, message] : wrong) {
    const Outcome outcome = run(std::string("plugins new ") + arguments);
    EXPECT_EQ(outcome.exit, 64) << arguments;
    EXPECT_THAT(outcome.error, HasSubstr(message)) << arguments;
  }
  EXPECT_FALSE(std::filesystem::exists(path("clip")));
}

}  // namespace
}  // namespace tenon_tests
