// The job file: its values, and the message of each mistake. SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "host/cli/cli.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kJob = R"(passes = 3
seed = 7
save = "out/model.safetensors"
outputs = ["cost"]

[[layer]]
name = "hidden"
type = "fc"
inputs = ["pixel"]
size = 128
param.weight.decay_multiplier = 0.5

[[layer]]
name = "cost"
type = "cross_entropy"
inputs = ["hidden", "label"]
from_logits = true

[reader.train]
type = "idx"
files = ["a", "b"]
batch = 64
shuffle = true
slots.image = { layer = "pixel", scale = 0.5 }

[reader.test]
type = "idx"
files = ["c", "d"]

[updater]
type = "adam"
learning_rate = 1e-3
)";

Job parse(const std::string& text, const std::vector<std::string>& sets = {}) {
  return parse_job(text, "jobs/mlp.toml", sets);
}
// Returns kJob with `from` replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kJob;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}
template <typename Call>
std::string message(int exit, Call call) {
  try {
    call();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit(), exit) << failure.what();
    return failure.what();
  }
  ADD_FAILURE() << "no failure";
  return "";
}
std::string refused(const std::string& text, const std::vector<std::string>& sets = {}) {
  return message(kBadConfig, [&] { (void)parse(text, sets); });
}
std::string bad_set(const std::string& set) {
  return message(kUsage, [&] { (void)parse(kJob, {set}); });
}
template <typename Held>
Held attribute(const JobType& of, const std::string& name) {
  for (const Attribute& entry : of.attributes)
    if (entry.name == name) return std::get<Held>(entry.value.held());
  throw std::runtime_error("no attribute " + name);
}

TEST(JobTest, ReadsEverything) {
  const Job job = parse(kJob);
  EXPECT_EQ(job.training.passes, 3);
  EXPECT_EQ(job.seed, 7);
  EXPECT_EQ(job.threads, 0);
  EXPECT_EQ(job.save, "jobs/out/model.safetensors");
  EXPECT_THAT(job.outputs, ElementsAre("cost"));
  ASSERT_EQ(job.layers.size(), 2U);
  EXPECT_EQ(job.layers[0].name, "hidden");
  EXPECT_THAT(job.layers[0].inputs, ElementsAre("pixel"));
  EXPECT_EQ(attribute<int64_t>(job.layers[0], "size"), 128);
  EXPECT_EQ(attribute<double>(job.layers[0], "param.weight.decay_multiplier"), 0.5);
  EXPECT_EQ(job.layers[0].places.at("size"), "jobs/mlp.toml:10");
  EXPECT_EQ(job.layers[1].attributes.size(), 1U);
  EXPECT_TRUE(attribute<bool>(job.layers[1], "from_logits"));
  ASSERT_TRUE(job.train && job.test && job.updater);
  EXPECT_TRUE(job.train->shuffle);
  EXPECT_EQ(job.train->batch, 64);
  EXPECT_THAT(attribute<std::vector<std::string>>(*job.train, "files"), ElementsAre("a", "b"));
  EXPECT_EQ(job.train->slots[0].layer, "pixel");
  EXPECT_EQ(job.train->slots[0].scale, 0.5);
  EXPECT_EQ(job.updater->type, "adam");
  EXPECT_EQ(attribute<double>(*job.updater, "learning_rate"), 1e-3);
}

TEST(JobTest, ReadsUpdaterGroups) {
  const std::string groups =
      "[[updater_group]]\nparameters = [\"hidden.bias\", \"cost\"]\ntype = \"sgd\"\nlearning_rate = 0.5\n"
      "[[updater_group]]\nparameters = \"hidden\"\ntype = \"adam\"\nschedule = { type = \"cosine\", steps = 3 }\n";
  const Job job = parse(kJob + groups);
  ASSERT_EQ(job.updater_groups.size(), 2U);
  EXPECT_THAT(job.updater_groups[0].parameters, ElementsAre("hidden.bias", "cost"));
  EXPECT_EQ(job.updater_groups[0].type, "sgd");
  EXPECT_EQ(attribute<double>(job.updater_groups[0], "learning_rate"), 0.5);
  EXPECT_EQ(job.updater_groups[0].attributes.size(), 1U);
  EXPECT_THAT(job.updater_groups[1].parameters, ElementsAre("hidden"));
  EXPECT_EQ(attribute<std::string>(job.updater_groups[1], "schedule.type"), "cosine");
  EXPECT_TRUE(parse(kJob).updater_groups.empty());
  EXPECT_EQ(refused(kJob + std::string("[[updater_group]]\ntype = \"sgd\"\n")),
            "jobs/mlp.toml:33: [[updater_group]] 1: key \"parameters\" is missing");
  EXPECT_THAT(refused(kJob + std::string("[[updater_group]]\nparameters = \"hidden\"\n")),
              HasSubstr("key \"type\" is missing"));
  EXPECT_THAT(refused(kJob + std::string("[[updater_group]]\nparameters = []\ntype = \"sgd\"\n")),
              HasSubstr("key \"parameters\": expected at least one name"));
  EXPECT_THAT(refused(kJob + std::string("[updater_group]\nparameters = [\"hidden\"]\n")),
              HasSubstr("expected [[updater_group]] tables"));
}

TEST(JobTest, TestReaderTakesBatchAndSlotsFromTrain) {
  const Job job = parse(kJob);
  EXPECT_EQ(job.test->batch, 64);
  EXPECT_EQ(job.test->slots[0].scale, 0.5);
  EXPECT_FALSE(job.test->shuffle);
}

TEST(JobTest, UnknownKeysNameLineAndNearestKey) {
  EXPECT_EQ(refused(changed("passes", "pases")), "jobs/mlp.toml:1: unknown key \"pases\"; did you mean \"passes\"?");
  EXPECT_EQ(refused(changed("batch = 64", "bacth = 64")),
            "jobs/mlp.toml:22: [reader.train]: unknown key \"bacth\"; did you mean \"batch\"?");
  EXPECT_THAT(refused(changed("scale = 0.5", "scael = 0.5")), HasSubstr("slot \"image\": unknown key \"scael\"; did"));
  EXPECT_EQ(refused(changed("batch = 64", "batch = 64\n\"\" = 3")), "jobs/mlp.toml:23: [reader.train]: a key is empty");
  EXPECT_THAT(refused(changed("[updater]", "[updatre]")), HasSubstr("did you mean \"updater\"?"));
  EXPECT_THAT(refused(changed("[reader.test]", "[reader.tset]")), HasSubstr("did you mean \"test\"?"));
  EXPECT_THAT(refused("[[layr]]\nname = \"a\"\n"), HasSubstr("did you mean \"layer\"?"));
}

TEST(JobTest, WrongKindsNameKeyAndBoth) {
  EXPECT_EQ(refused(changed("passes = 3", "passes = \"3\"")),
            "jobs/mlp.toml:1: key \"passes\": expected an integer of at least 1, got the text \"3\"");
  EXPECT_THAT(refused(changed("passes = 3", "passes = 0")), HasSubstr("of at least 1, got the integer 0"));
  EXPECT_THAT(refused(changed("seed = 7", "seed = -1")), HasSubstr("of at least 0, got the integer -1"));
  EXPECT_THAT(refused(changed("shuffle = true", "shuffle = 0")), HasSubstr("key \"shuffle\""));
  EXPECT_THAT(refused(changed("shuffle = true", "shuffle = \"yes\"")), HasSubstr("expected true, false, or"));
  EXPECT_THAT(refused(changed("inputs = [\"pixel\"]", "inputs = [1]")), HasSubstr("expected a list of names"));
  EXPECT_THAT(refused(changed("size = 128", "size = 1979-05-27")),
              HasSubstr("\"size\": expected true, false, a number"));
  EXPECT_THAT(refused(changed("size = 128", "size = [1, \"a\"]")), HasSubstr("got a list"));
  EXPECT_THAT(refused(changed("scale = 0.5", "scale = 0")), HasSubstr("scale not 0"));
  EXPECT_THAT(refused("layer = 3"), HasSubstr("expected [[layer]] tables"));
}

TEST(JobTest, MissingKeys) {
  EXPECT_EQ(refused(changed("name = \"hidden\"\n", "")), "jobs/mlp.toml:6: [[layer]]: key \"name\" is missing");
  EXPECT_THAT(refused(changed("type = \"fc\"\n", "")), HasSubstr("layer \"hidden\": key \"type\" is missing"));
  EXPECT_THAT(refused(changed("batch = 64\n", "")), HasSubstr("[reader.train]: key \"batch\" is missing"));
  EXPECT_EQ(refused(""), "jobs/mlp.toml: key \"layer\" is missing");
}

TEST(JobTest, NamesMustDiffer) {
  EXPECT_THAT(refused(changed("name = \"cost\"", "name = \"hidden\"")),
              HasSubstr("layer \"hidden\": the name is taken; see jobs/mlp.toml:6"));
}

TEST(JobTest, OneScalePerDataLayer) {
  EXPECT_THAT(refused(std::string(kJob) + "[reader.test.slots]\nimage = \"pixel\"\n"),
              HasSubstr("scale, offset or layout of data layer \"pixel\" differ from jobs/mlp.toml:24"));
  EXPECT_THAT(refused(changed("slots.image =", "slots.other = \"pixel\"\nslots.image =")),
              HasSubstr("feed the same data layer \"pixel\""));
}

TEST(JobTest, Checkpoints) {
  const auto checkpoint = [](const std::string& keys) {
    return *parse_job(std::string(kJob) + "[checkpoint]\nfolder = \"saves\"\n" + keys, "jobs/mlp.toml", {}).checkpoint;
  };
  const CheckpointOptions plain = checkpoint("");
  EXPECT_EQ(plain.folder, "jobs/saves");
  EXPECT_EQ(plain.every_passes, 1);
  EXPECT_EQ(plain.every_batches, 0);
  EXPECT_EQ(plain.every_seconds, 0);
  EXPECT_EQ(plain.keep, 3);
  EXPECT_EQ(plain.best, "");
  EXPECT_EQ(checkpoint("every_batches = 7\n").every_batches, 7);
  EXPECT_EQ(checkpoint("every_batches = 7\n").every_passes, 0) << "only if no other key says when";
  EXPECT_EQ(checkpoint("every_seconds = 30\n").every_seconds, 30);
  EXPECT_EQ(checkpoint("every_seconds = 30\n").every_passes, 0);
  EXPECT_EQ(checkpoint("every_seconds = 0.5\nevery_passes = 2\n").every_passes, 2);
  EXPECT_EQ(checkpoint("keep = 9\n").keep, 9);
  EXPECT_FALSE(checkpoint("best = \"cost\"\n").best_is_highest);
  EXPECT_TRUE(checkpoint("best = \"auc\"\nmode = \"max\"\n").best_is_highest);
  EXPECT_FALSE(parse_job(kJob, "jobs/mlp.toml", {}).checkpoint);
  EXPECT_EQ(parse_job(kJob, "jobs/mlp.toml", {"checkpoint.folder=/x", "checkpoint.keep=2"}).checkpoint->keep, 2)
      << "--set may add the table";
}

TEST(JobTest, SyntaxErrorsNameTheLine) {
  EXPECT_THAT(refused("passes = 3\nseed = = 4\n"), HasSubstr("jobs/mlp.toml:2: "));
  EXPECT_THAT(refused("passes = 3\npasses = 4\n"), HasSubstr("jobs/mlp.toml:2: "));
  EXPECT_THAT(refused(std::string(100000, '[')), HasSubstr("jobs/mlp.toml:1: "));
  EXPECT_THAT(refused("a = " + std::string(100000, '[')), HasSubstr("jobs/mlp.toml:1: "));
  std::string deep = "x";
  for (int i = 0; i < 100000; ++i) deep += ".a";
  EXPECT_THAT(refused(deep + " = 1\n"), HasSubstr("jobs/mlp.toml:1: a key of more than 64 parts"));
  std::string quoted = "\"x\"";
  for (int i = 0; i < 100000; ++i) quoted += " . \"a\"";
  EXPECT_THAT(refused(quoted + " = 1\n"), HasSubstr("jobs/mlp.toml:1: a key of more than 64 parts"));
  quoted = "\"#\"";
  for (int i = 0; i < 100000; ++i) quoted += ".'two words='";
  EXPECT_THAT(refused(quoted + " = 1\n"), HasSubstr("jobs/mlp.toml:1: a key of more than 64 parts"));
  std::string prose = "# " + std::string(100, '.') + "\n# ";
  for (int i = 0; i < 100; ++i) prose += "It ends. ";
  EXPECT_EQ(parse(prose + "\n" + std::string(kJob)).training.passes, 3);
  EXPECT_THAT(refused("[[[a]]]"), HasSubstr("jobs/mlp.toml:1: "));
  EXPECT_THAT(refused("# \xC3\xA9\nx = '\xC3\xA9'\n\xC3\xA9 = 1\n"),
              HasSubstr("jobs/mlp.toml:3: a character outside ASCII"));
  EXPECT_THAT(refused("x = \"\"\"\n\\\"\xC3\xA9\n\"\"\" # \xC3\xA9\n\xFF"), HasSubstr("jobs/mlp.toml:4: "));
  EXPECT_THAT(refused("x = '''a'''''\n\xC3\xA9 = 1"), HasSubstr("jobs/mlp.toml:2: "));
  EXPECT_EQ(parse("\xEF\xBB\xBF# caf\xC3\xA9\n" + std::string(kJob)).training.passes, 3);
}

TEST(JobTest, Files) {
  EXPECT_THAT(message(kNotFound, [] { (void)load_job("/nowhere/job.toml", {}); }), HasSubstr("/nowhere/job.toml"));
  EXPECT_THAT(message(kIo, [] { (void)load_job(testing::TempDir(), {}); }), HasSubstr("job file"));
}

TEST(SetTest, Overrides) {
  const Job job =
      parse(kJob, {"passes=9", "layer.hidden.size=64", "layer.hidden.act=relu", "updater.learning_rate=0.25",
                   "reader.train.batch=8", "reader.train.slots.image.scale=2.0", "outputs=[\"hidden\"]",
                   "layer.cost.from_logits=false", "layer.hidden.param.bias.decay_multiplier=0", "save=b.safetensors"});
  EXPECT_EQ(job.training.passes, 9);
  EXPECT_EQ(attribute<int64_t>(job.layers[0], "size"), 64);
  EXPECT_EQ(attribute<std::string>(job.layers[0], "act"), "relu");
  EXPECT_EQ(attribute<int64_t>(job.layers[0], "param.bias.decay_multiplier"), 0);
  EXPECT_FALSE(attribute<bool>(job.layers[1], "from_logits"));
  EXPECT_EQ(attribute<double>(*job.updater, "learning_rate"), 0.25);
  EXPECT_EQ(job.train->batch, 8);
  EXPECT_EQ(job.train->slots[0].scale, 2);
  EXPECT_THAT(job.outputs, ElementsAre("hidden"));
  EXPECT_EQ(job.save, "jobs/b.safetensors");
  EXPECT_EQ(job.layers[0].places.at("size"), "--set layer.hidden.size=64");
}

TEST(SetTest, LaterOnesWin) { EXPECT_EQ(parse(kJob, {"passes=4", "passes=5"}).training.passes, 5); }

TEST(SetTest, BadPaths) {
  EXPECT_EQ(bad_set("layer.hiden.size=1"),
            "--set layer.hiden.size=1: the job has no layer \"hiden\"; did you mean \"hidden\"?");
  EXPECT_THAT(bad_set("updatre.type=sgd"), HasSubstr("no table \"updatre\"; did you mean \"updater\"?"));
  EXPECT_THAT(bad_set("updater_group.x.type=sgd"), HasSubstr("updater groups cannot be changed by --set"));
  EXPECT_THAT(bad_set("reader.tain.batch=1"), HasSubstr("did you mean \"train\"?"));
  EXPECT_THAT(bad_set("layer.hidden=1"), HasSubstr("expected layer.<name>.<key>=value"));
  EXPECT_THAT(bad_set("reader.train=1"), HasSubstr("expected reader.<name>.<key>=value"));
  EXPECT_THAT(bad_set("layer.hidden.size.x=1"), HasSubstr("\"layer.hidden.size\" is not a table"));
  EXPECT_THAT(refused(kJob, {"pases=3"}), HasSubstr("--set pases=3: unknown key \"pases\"; did you mean \"passes\"?"));
  EXPECT_THAT(refused(kJob, {"passes=0"}), HasSubstr("--set passes=0: key \"passes\""));
  EXPECT_EQ(
      refused(kJob, {"reader.test.slots.image.scale=2.0", "reader.test.slots.image.layer=pixel"}),
      "--set reader.test.slots.image.scale=2.0: [reader.test]: slot \"image\": scale, offset or layout of data layer "
      "\"pixel\" differ from jobs/mlp.toml:24");
}

TEST(SetTest, BadForm) {
  EXPECT_THAT(bad_set("passes"), HasSubstr("expected key=value"));
  EXPECT_THAT(bad_set("=3"), HasSubstr("expected key=value"));
  EXPECT_THAT(bad_set(""), HasSubstr("expected key=value"));
  bad_set("passes=");
  bad_set("passes=3x");
  bad_set("passes=[3");
  bad_set("a=1\nb=2");
  bad_set("[a]\nb=2");
  bad_set("a..b=1");
  bad_set("save=two words");
}

// ---- readers

constexpr const char* kParts = R"(
[[layer]]
name = "cost"
type = "cross_entropy"

[reader.train]
join = "compose"
batch = 8
shards = 4
shard = 3
prefetch = 0
choose = ["image", "truth"]
bucket = { slot = "words", window = 100, rows = 500 }
slots.words = { layer = "w", sequence = "sentence" }

[[reader.train.part]]
type = "idx"
files = ["a"]

[[reader.train.part]]
type = "text"
choose = { label = "truth" }
lines = 3
)";

std::string changed_parts(const std::string& from, const std::string& to) {
  std::string text = kParts;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(JobReader, PartsAndWrappers) {
  const JobReader reader = *parse(kParts).train;
  EXPECT_EQ(reader.join, "compose");
  EXPECT_EQ(reader.type, "");
  ASSERT_EQ(reader.parts.size(), 2u);
  EXPECT_EQ(reader.parts[0].type, "idx");
  EXPECT_TRUE(reader.parts[0].choose.empty());
  EXPECT_EQ(reader.parts[1].type, "text");
  EXPECT_THAT(reader.parts[1].choose, ElementsAre(std::pair<std::string, std::string>("label", "truth")));
  EXPECT_EQ(attribute<int64_t>(reader.parts[1], "lines"), 3);
  EXPECT_EQ(reader.choose.size(), 2u);
  EXPECT_EQ(reader.shards, 4);
  EXPECT_EQ(reader.shard, 3);
  EXPECT_EQ(reader.prefetch, 0);
  ASSERT_TRUE(reader.bucket);
  EXPECT_EQ(reader.bucket->slot, "words");
  EXPECT_EQ(reader.bucket->window, 100);
  EXPECT_EQ(reader.bucket->rows, 500);
  EXPECT_EQ(reader.slots.at(0).sequence, "sentence");

  const JobReader plain = *parse(kJob).train;
  EXPECT_EQ(plain.prefetch, kPrefetch);
  EXPECT_EQ(plain.shards, 1);
  EXPECT_FALSE(plain.bucket);
  EXPECT_TRUE(plain.parts.empty());
  EXPECT_EQ(parse(changed_parts("join = \"compose\"\n", "")).train->join, "chain");
}

TEST(JobReader, MistakesAreNamed) {
  const auto refused_parts = [](const std::string& from, const std::string& to) {
    return refused(changed_parts(from, to));
  };
  EXPECT_THAT(refused_parts("\"compose\"", "\"zip\""), HasSubstr("expected \"chain\", \"interleave\" or \"compose\""));
  EXPECT_THAT(refused_parts("shard = 3", "shard = 4"), HasSubstr("key \"shard\": expected an integer from 0 to 3"));
  EXPECT_THAT(refused_parts("shards = 4", "shards = 0"), HasSubstr("key \"shards\""));
  EXPECT_THAT(refused_parts("shards = 4\n", ""),
              HasSubstr("[reader.train]: key \"shard\" needs key \"shards\", which is missing"));
  EXPECT_THAT(refused_parts("prefetch = 0", "prefetch = 5000"), HasSubstr("from 0 to 4096"));
  EXPECT_THAT(refused_parts("prefetch = 0", "prefech = 0"), HasSubstr("did you mean \"prefetch\"?"));
  EXPECT_THAT(refused_parts("prefetch = 0", "files = [\"a\"]"), HasSubstr("[reader.train]: unknown key \"files\""));
  EXPECT_THAT(refused_parts("prefetch = 0", "drop_last = true"), HasSubstr("\"bucket\" and \"drop_last\""));
  EXPECT_THAT(refused_parts("window = 100", "windows = 100"),
              AllOf(HasSubstr("[reader.train]: bucket: "), HasSubstr("did you mean \"window\"?")));
  EXPECT_THAT(refused_parts("rows = 500", "rows = 0"), HasSubstr("key \"rows\""));
  EXPECT_THAT(refused_parts("slot = \"words\", ", ""), HasSubstr("key \"slot\" is missing"));
  EXPECT_THAT(refused_parts("[\"image\", \"truth\"]", "[]"), HasSubstr("at least one slot"));
  EXPECT_THAT(refused_parts("{ label = \"truth\" }", "{ label = 3 }"), HasSubstr("a new name for the slot"));
  EXPECT_THAT(refused_parts("type = \"text\"\n", ""), HasSubstr("[reader.train]: part 2: key \"type\" is missing"));
  EXPECT_EQ(refused_parts("lines = 3", "first_n = 3"),
            "jobs/mlp.toml:23: [reader.train]: part 2: key \"first_n\" applies to the whole reader: it belongs to "
            "[reader.train]");
  EXPECT_THAT(refused_parts("lines = 3", "slots.label = \"a\""),
              HasSubstr("part 2: key \"slots\" applies to the whole reader"));
  EXPECT_THAT(refused(changed("shuffle = true", "join = \"chain\"")), HasSubstr("[[reader.train.part]]"));
  EXPECT_THAT(refused(changed("shuffle = true", "part = 3")), HasSubstr("[[reader.train.part]] tables"));
}

}  // namespace
}  // namespace tenon_tests
