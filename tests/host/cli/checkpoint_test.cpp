// tenon train with [checkpoint] and --resume. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>

#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using testing::UnorderedElementsAre;

class CheckpointTest : public CallTest {
 protected:
  void SetUp() override {
    CallTest::SetUp();
    write("job.toml", job() + table("every_batches = 3"));
  }
  static std::string table(const std::string& keys) { return "\n[checkpoint]\nfolder = \"saves\"\n" + keys + "\n"; }
  // The model of the job without checkpoints.
  [[nodiscard]] std::string uninterrupted(const std::string& from = job()) const {
    write("plain.toml", from);
    done(run_train, {"plain.toml", "--save", "plain.safetensors"});
    return read("plain.safetensors");
  }
  [[nodiscard]] std::vector<std::string> saves() const {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(path("saves")))
      names.push_back(entry.path().filename().string());
    return names;
  }
  static Outcome train(Arguments arguments) {
    arguments.insert(arguments.begin(), "job.toml");
    return done(run_train, arguments);
  }
  // Interrupts the training after minibatch 5 of the first pass.
  static Outcome interrupt(int signal = SIGTERM) {
    return interrupted(run_train, {"job.toml", "--log-format", "json"}, signal, "{\"batch\":5,");
  }
  [[nodiscard]] std::string refused(int exit, const std::string& from, const std::string& to, Arguments more) const {
    std::string text = job() + table("every_batches = 3");
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    write("job.toml", text.replace(at, from.size(), to));
    more.insert(more.begin(), "job.toml");
    return failure(exit, run_train, more);
  }
};

// ---- going on

TEST_F(CheckpointTest, AnInterruptedTrainingResumesToTheSameModel) {
  const std::string expected = uninterrupted();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) {
    fs::remove_all(path("saves"));
    const Outcome stopped = interrupt(signal);
    EXPECT_EQ(stopped.exit, kSignalled + signal);
    EXPECT_THAT(stopped.error, HasSubstr("interrupted in pass 1, batch 5: the last checkpoint is saves/checkpoint-0-5."
                                         "safetensors"));
    EXPECT_FALSE(exists("model.safetensors"));
    const Outcome resumed = train({"--resume"});
    EXPECT_THAT(resumed.out, HasSubstr("resumed from saves/checkpoint-0-5.safetensors: 0 passes, 5 batches of the next"
                                       "\n"));
    EXPECT_EQ(read("model.safetensors"), expected);
    fs::remove(path("model.safetensors"));
  }
}

// Names of the readers' own files and of everything else stay as they are: shuffling within a buffer, reading ahead,
// dropout, sequences of the same job.
TEST_F(CheckpointTest, ShuffleBufferPrefetchAndDropoutResumeToTheSameModel) {
  std::string text = job();
  const auto replace = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
  };
  write_images("train", 60);
  replace("size = 8\n", "size = 8\ndrop_rate = 0.3\n");
  replace("shuffle = true\n", "shuffle = 20\nprefetch = 3\nfirst_n = 50\ndrop_last = true\n");
  const std::string expected = uninterrupted(text);
  write("job.toml", text + table("every_batches = 3"));
  interrupt();
  train({"--resume"});
  EXPECT_EQ(read("model.safetensors"), expected);
}

TEST_F(CheckpointTest, UpdaterGroupsResumeToTheSameModel) {
  const std::string group =
      "\n[[updater_group]]\nparameters = [\"hidden\"]\ntype = \"sgd\"\nmomentum = 0.9\nlearning_rate = 0.1\n";
  const std::string expected = uninterrupted(job() + group);
  EXPECT_NE(expected, uninterrupted());
  write("job.toml", job() + group + table("every_batches = 3"));
  interrupt();
  train({"--resume"});
  EXPECT_EQ(read("model.safetensors"), expected);
  write("job.toml", job() + table("every_batches = 3"));
  EXPECT_THAT(failure(kBadConfig, run_train, {"job.toml", "--resume"}), HasSubstr("updater.groups: in the checkpoint"));
}

TEST_F(CheckpointTest, MistakesInUpdaterGroupsNameTheGroup) {
  const std::string group = "\n[[updater_group]]\ntype = \"sgd\"\n";
  write("job.toml", job() + group + "parameters = [\"hiden\"]\n");
  EXPECT_THAT(failure(kBadConfig, run_train, {"job.toml"}),
              ContainsRegex("job.toml:[0-9]+: updater group 1: the machine trains no parameter \"hiden\""));
  write("job.toml", job() + group + "parameters = [\"hidden\"]\nmomentun = 1\n");
  EXPECT_THAT(failure(kBadConfig, run_train, {"job.toml"}),
              AllOf(HasSubstr("job.toml:52: [[updater_group]] 1: "), HasSubstr("did you mean \"momentum\"?")));
}

// A pod or a unit of systemd has one command for the first start and for all others.
TEST_F(CheckpointTest, OneCommandServesEveryStart) {
  const std::string expected = uninterrupted();
  const std::string anew = "nothing to resume in saves: the training begins anew\n";
  for (const char* option : {"--resume", "--resume-inexact"}) {
    fs::remove_all(path("saves"));
    EXPECT_THAT(train({option, "--passes", "1"}).out, HasSubstr(anew)) << "no folder";
    const Outcome second = train({option});
    EXPECT_THAT(second.out, AllOf(HasSubstr("resumed from saves/checkpoint-1-0"), testing::Not(HasSubstr(anew))));
    EXPECT_EQ(read("model.safetensors"), expected);
    fs::remove_all(path("saves"));
    fs::create_directory(path("saves"));
    EXPECT_THAT(train({option, "--passes", "1"}).out, HasSubstr(anew)) << "an empty folder";
  }
  fs::remove_all(path("saves"));
  const std::vector<json> told = parsed(train({"--resume", "--passes", "1", "--log-format", "json"}).out);
  EXPECT_EQ(told.at(0).at("event"), "begin_training");
  EXPECT_FALSE(told.at(0).contains("path"));
  EXPECT_EQ(train({"--resume", "--passes", "2", "--log-format", "json"}).exit, kDone);
}

// Names that only look like those of checkpoints.
TEST_F(CheckpointTest, OtherFilesAreNothingToResume) {
  fs::create_directory(path("saves"));
  for (const char* name : {"checkpoint-old.safetensors", "checkpoint-1-2.safetensors~", "xcheckpoint-1-2.safetensors",
                           ".checkpoint-1-2.safetensors.0123abcd-7-0.tmp", "checkpoint-01-2.safetensors"})
    write(std::string("saves/") + name, "x");
  EXPECT_THAT(train({"--resume", "--passes", "1"}).out, HasSubstr("nothing to resume in saves"));
}

TEST_F(CheckpointTest, AKilledFirstStartBeginsAnew) {
  const std::string expected = uninterrupted();
  const Outcome killed = shell(
      "\"$TENON\" train job.toml --resume --passes 1000000 --set checkpoint.every_batches=1000000 >out & pid=$!\n"
      "until grep -q 'pass   *3/' out; do sleep 0.01; done; kill -9 $pid; wait $pid; ls -A saves >left");
  EXPECT_EQ(killed.exit, 0) << killed.error;
  EXPECT_EQ(read("left"), ".training.lock\n");
  EXPECT_THAT(train({"--resume"}).out, HasSubstr("nothing to resume"));
  EXPECT_EQ(read("model.safetensors"), expected);
  EXPECT_FALSE(exists("saves/.training.lock"));
}

// A save that was killed leaves its temporary file until the training starts again.
TEST_F(CheckpointTest, LeftoversOfAKilledSaveGoAtTheNextStart) {
  const Outcome killed = shell(
      "\"$TENON\" train job.toml --passes 1000000 --set checkpoint.every_batches=1 >out & pid=$!\n"
      "for try in $(seq 500); do\n"
      "  until ls -A saves 2>&1 | grep -q '[.]tmp$'; do :; done; kill -STOP $pid\n"
      "  if ls -A saves | grep -q '[.]tmp$'; then break; fi; kill -CONT $pid\n"
      "done; kill -9 $pid; wait $pid; ls -A saves | grep -c '[.]tmp$'");
  EXPECT_EQ(killed.out, "1\n") << killed.error;
  done(run_train, {"job.toml", "--resume", "--passes", "1"});
  for (const std::string& name : saves()) EXPECT_THAT(name, StartsWith("checkpoint-"));
}

TEST_F(CheckpointTest, TwoTrainingsDoNotShareAFolder) {
  write("other.toml", read("job.toml"));
  const Outcome both = shell(
      "\"$TENON\" train job.toml --seed 3 --passes 1000000 >out & one=$!\n"
      "until grep -q 'pass   *2/' out; do sleep 0.01; done\n"
      "\"$TENON\" train other.toml --seed 4 --save other.safetensors; echo $?\n"
      "\"$TENON\" train other.toml --seed 4 --resume --save other.safetensors; echo $?\n"
      "kill -TERM $one; wait $one; echo $?");
  EXPECT_EQ(both.out, "74\n74\n143\n");
  EXPECT_THAT(both.error, ContainsRegex("saves: a training has its folder alone: saves/.training.lock: process [0-9]+ "
                                        "holds this lock"));
  train({"--resume", "--passes", "1"});  // all files are of one training
}

TEST_F(CheckpointTest, ResumeFromNamesACheckpoint) {
  const std::string expected = uninterrupted();
  train({"--set", "checkpoint.keep=100"});
  for (const char* name : {"checkpoint-0-3", "checkpoint-0-6", "checkpoint-2-5", "checkpoint-4-0"}) {
    fs::remove(path("model.safetensors"));
    train({"--resume-from", std::string("saves/") + name + ".safetensors", "--set", "checkpoint.keep=100"});
    EXPECT_EQ(read("model.safetensors"), expected) << name;
  }
}

TEST_F(CheckpointTest, PassesCountFromTheBeginning) {
  const std::string expected = uninterrupted();
  train({"--passes", "2"});
  const Outcome rest = train({"--resume"});
  EXPECT_EQ(read("model.safetensors"), expected);
  EXPECT_THAT(rest.out,
              AllOf(HasSubstr("resumed from saves/checkpoint-2-0.safetensors: 2 passes, 0 batches of the next"),
                    HasSubstr("pass 3/4"), HasSubstr("pass 4/4"), testing::Not(HasSubstr("pass 2/4"))));
  fs::remove(path("model.safetensors"));
  train({"--resume"});
  EXPECT_EQ(read("model.safetensors"), expected) << "no pass is left";
}

// Its model is not that of so many passes.
TEST_F(CheckpointTest, ACheckpointBeyondThePassesIsTold) {
  train({"--set", "checkpoint.keep=100"});
  const std::string warning =
      "warning: the checkpoint is beyond the number of passes, 2: nothing is trained, and the "
      "model is that of the checkpoint\n";
  for (const char* name : {"saves/checkpoint-2-5.safetensors", "saves/checkpoint-4-0.safetensors"})
    EXPECT_EQ(train({"--passes", "2", "--resume-from", name}).error, warning) << name;
  EXPECT_EQ(train({"--passes", "4", "--resume-from", "saves/checkpoint-4-0.safetensors"}).error, "");
}

TEST_F(CheckpointTest, EventsNameTheFiles) {
  train({"--passes", "1"});
  const std::vector<json> told = parsed(train({"--resume", "--passes", "2", "--log-format", "json"}).out);
  EXPECT_EQ(told.at(0).at("event"), "begin_training");
  EXPECT_EQ(told.at(0).at("path"), "saves/checkpoint-1-0.safetensors");
  EXPECT_EQ(told.at(0).at("pass"), 1);
  EXPECT_EQ(told.at(0).at("batch"), 0);
  std::vector<std::string> places;
  for (const json& event : told)
    if (event.at("event") == "checkpoint")
      places.push_back(event.at("path").get<std::string>() + " " + event.at("pass").dump() + " " +
                       event.at("batch").dump());
  EXPECT_THAT(places,
              testing::ElementsAre("saves/checkpoint-1-3.safetensors 2 3", "saves/checkpoint-1-6.safetensors 2 6",
                                   "saves/checkpoint-2-0.safetensors 2 8"));
}

// The lines of a resumed pass are those of the whole pass, except for the speed.
TEST_F(CheckpointTest, SeveralCostsAreReportedByName) {
  const std::string penalty =
      "\n[[layer]]\nname = \"zeros\"\ntype = \"scale_shift\"\ninputs = [\"score\"]\nscale = 0.0\n"
      "\n[[layer]]\nname = \"small\"\ntype = \"square_error\"\ninputs = [\"score\", \"zeros\"]\ncoefficient = 0.001\n";
  write("job.toml", job() + penalty + table("best = \"small\"\nmode = \"min\"") +
                        "\n[early_stop]\nmetric = \"cost.cost\"\nmode = \"min\"\npatience = 9\n");
  const Outcome told = train({});
  EXPECT_THAT(told.out, ContainsRegex("pass 4/4  cost [0-9.e-]+  cost.cost [0-9.e-]+  small [0-9.e-]+  accuracy "));
  EXPECT_THAT(told.out, ContainsRegex("\ntest  cost [0-9.e-]+  cost.cost [0-9.e-]+  small [0-9.e-]+  accuracy "));
  EXPECT_TRUE(exists("saves/best.safetensors"));
  EXPECT_THAT(done(run_test, {"job.toml"}).out, HasSubstr("  small "));
  const std::vector<json> tested = parsed(done(run_test, {"job.toml", "--log-format", "json"}).out);
  const json& result = tested.at(0);
  EXPECT_NEAR(result.at("costs").at("cost.cost").get<double>() + result.at("costs").at("small").get<double>(),
              result.at("cost").get<double>(), 1e-6);
  EXPECT_EQ(result.at("test").at("costs"), result.at("costs"));
}

TEST_F(CheckpointTest, ThePassOfAResumeIsReportedAsAWhole) {
  const auto without_speed = [](const Outcome& outcome) {
    std::vector<std::string> result;
    for (const std::string& line : lines_of(outcome.out))
      if (line.rfind("pass", 0) == 0) result.push_back(line.substr(0, line.rfind("  ")));
    return result;
  };
  write("plain.toml", job());
  const std::vector<std::string> expected = without_speed(done(run_train, {"plain.toml", "--no-save"}));
  ASSERT_EQ(expected.size(), 4U);
  interrupt();
  EXPECT_EQ(without_speed(train({"--resume"})), expected);
}

TEST_F(CheckpointTest, ACheckpointIsAModel) {
  write("job.toml", job() + table("best = \"accuracy\"\nmode = \"max\""));
  train({});
  for (const char* name : {"saves/checkpoint-4-0.safetensors", "saves/best.safetensors"}) {
    const Outcome tested = done(run_test, {"job.toml", "--model", name});
    EXPECT_THAT(tested.out, HasSubstr("accuracy"));
    done(run_infer, {"job.toml", "--model", name});
    EXPECT_THAT(done(run_model_show, {name}).out, HasSubstr("tenon.checkpoint/record"));
  }
  const Outcome inferred = done(run_infer, {"job.toml", "--model", "saves/checkpoint-4-0.safetensors"});
  EXPECT_EQ(inferred.out, done(run_infer, {"job.toml"}).out);
}

// ---- refusals

TEST_F(CheckpointTest, AnotherTrainingIsRefusedWithAllDifferences) {
  train({"--passes", "1"});
  const std::string message =
      refused(kBadConfig, "size = 8\n", "size = 9\n",
              {"--resume", "--seed", "4", "--set", "updater.learning_rate=0.1", "--set", "reader.train.batch=7"});
  EXPECT_THAT(message, AllOf(HasSubstr("saves/checkpoint-1-0.safetensors: the checkpoint is of another training; "),
                             HasSubstr("topology.layers.hidden.attributes.size: 8 in the checkpoint, 9 now"),
                             HasSubstr("seed: 3 in the checkpoint, 4 now"),
                             HasSubstr("reader.batch: 8 in the checkpoint, 7 now"),
                             HasSubstr("updater.attributes.learning_rate: 0.05 in the checkpoint, 0.1 now")));
}

TEST_F(CheckpointTest, WhatDoesNotChangeTheResultMayDiffer) {
  const std::string expected = uninterrupted();
  train({"--passes", "1"});
  train({"--resume", "--threads", "3", "--set", "reader.train.prefetch=0", "--set", "checkpoint.every_batches=1"});
  EXPECT_EQ(read("model.safetensors"), expected);
}

TEST_F(CheckpointTest, OtherDataIsRefused) {
  train({"--passes", "1"});
  write_images("train", 59);
  EXPECT_THAT(failure(kBadConfig, run_train, {"job.toml", "--resume"}),
              HasSubstr("reader.samples: 60 in the checkpoint, 59 now"));
}

TEST_F(CheckpointTest, ADamagedCheckpointNamesTheOneBefore) {
  const std::string expected = uninterrupted();
  interrupt();
  ASSERT_THAT(saves(), UnorderedElementsAre("checkpoint-0-3.safetensors", "checkpoint-0-5.safetensors"));
  write("saves/checkpoint-0-5.safetensors", read("saves/checkpoint-0-5.safetensors") + "x");
  const std::string message = failure(kBadData, run_train, {"job.toml", "--resume"});
  EXPECT_THAT(message, EndsWith("; the checkpoint before it is saves/checkpoint-0-3.safetensors"));
  EXPECT_EQ(saves().size(), 2U);
  train({"--resume-from", "saves/checkpoint-0-3.safetensors"});
  EXPECT_EQ(read("model.safetensors"), expected);
}

// The checkpoint before it would not help: the data are compared with it, too.
TEST_F(CheckpointTest, DamagedDataDoNotAccuseTheCheckpoint) {
  std::string rows = "x,y\n";
  for (int i = 0; i < 60; ++i) rows += "0.5,0.25\n";
  write("train.csv", rows);
  write("job.toml", R"(passes = 2
layer = [{ name = "fit", type = "fc", inputs = ["x"], size = 1 },
         { name = "cost", type = "square_error", inputs = ["fit", "y"] }]
updater = { type = "sgd", learning_rate = 0.1 }
[reader.train]
type = "csv"
files = ["train.csv"]
columns = ["x: f32", "y: f32"]
batch = 8
)" + table("every_batches = 3"));
  train({"--no-save"});
  rows[rows.find("0.25")] = 'z';
  write("train.csv", rows);
  const std::string message = failure(kBadData, run_train, {"job.toml", "--resume", "--passes", "3"});
  EXPECT_THAT(message, HasSubstr("train.csv: line 2: column \"y\""));
  EXPECT_THAT(message, testing::Not(HasSubstr("checkpoint")));
}

TEST_F(CheckpointTest, AFolderOfAnotherTrainingIsRefused) {
  train({"--passes", "1"});
  EXPECT_THAT(failure(kBadConfig, run_train, {"job.toml"}),
              HasSubstr("saves: the folder has checkpoints of another training, the newest is "
                        "checkpoint-1-0.safetensors; resume from them, remove them or use another folder"));
}

TEST_F(CheckpointTest, ResumingNeedsACheckpoint) {
  EXPECT_THAT(failure(kNotFound, run_train, {"job.toml", "--resume-from", "absent"}), HasSubstr("absent"));
  write("job.toml", job());
  for (const char* option : {"--resume", "--resume-inexact", "--resume-from=x"})
    EXPECT_THAT(failure(kBadConfig, run_train, {"job.toml", option}),
                HasSubstr("job.toml: resuming needs the table [checkpoint], which is missing"));
  EXPECT_THAT(failure(kUsage, run_train, {"job.toml", "--resume-from="}), HasSubstr("--resume-from"));
}

TEST_F(CheckpointTest, WrongKeysNameTheLine) {
  const auto wrong = [&](const std::string& keys) {
    write("job.toml", job() + "\n[checkpoint]\n" + keys);
    const std::string message = failure(kBadConfig, run_train, {"job.toml"});
    EXPECT_THAT(message, StartsWith("job.toml:"));
    return message;
  };
  EXPECT_THAT(wrong("every_passes = 1\n"), HasSubstr("[checkpoint]: key \"folder\""));
  EXPECT_THAT(wrong("folder = \"\"\n"), HasSubstr("folder"));
  EXPECT_THAT(wrong("folder = 3\n"), HasSubstr("folder"));
  EXPECT_THAT(wrong("folder = \"s\"\nevery_batch = 1\n"), HasSubstr("did you mean \"every_batches\"?"));
  for (const char* key : {"every_batches", "every_passes", "keep"})
    for (const char* value : {"0", "-1", "1.5", "\"x\""})
      EXPECT_THAT(wrong("folder = \"s\"\n" + std::string(key) + " = " + value + "\n"), HasSubstr(key));
  for (const char* value : {"0", "-1.0", "nan", "inf", "true"})
    EXPECT_THAT(wrong("folder = \"s\"\nevery_seconds = " + std::string(value) + "\n"), HasSubstr("every_seconds"));
  EXPECT_THAT(wrong("folder = \"s\"\nkeep = 1000001\n"), HasSubstr("keep"));
  EXPECT_THAT(wrong("folder = \"s\"\nbest = \"cost\"\nmode = \"lowest\"\n"), HasSubstr("\"min\" or \"max\""));
  EXPECT_THAT(wrong("folder = \"s\"\nmode = \"min\"\n"), HasSubstr("key \"mode\" needs key \"best\""));
  EXPECT_THAT(wrong("folder = \"s\"\nbest = \"accuracy\"\n"), HasSubstr("metric \"accuracy\" needs key \"mode\""));
  EXPECT_FALSE(exists("s"));
  write("job.toml", job() + table("best = \"acuracy\"\nmode = \"max\""));
  EXPECT_THAT(failure(kBadConfig, run_train, {"job.toml"}), HasSubstr("did you mean \"accuracy\"?"));
}

// ---- the disk

TEST_F(CheckpointTest, AFullDiskLeavesTheLastCheckpoint) {
  const std::string expected = uninterrupted();
  train({"--passes", "2"});
  const std::string before = read("saves/checkpoint-2-0.safetensors");
  const size_t files = saves().size();
  const Outcome full = shell("ulimit -f 4; exec \"$TENON\" train job.toml --resume");
  EXPECT_EQ(full.exit, kIo) << full.error;
  EXPECT_THAT(full.error, HasSubstr("saves/checkpoint-2-3.safetensors: cannot write it: "));
  EXPECT_EQ(saves().size(), files) << "no partial file";
  EXPECT_EQ(read("saves/checkpoint-2-0.safetensors"), before);
  train({"--resume"});
  EXPECT_EQ(read("model.safetensors"), expected);
}

}  // namespace

}  // namespace tenon_tests
