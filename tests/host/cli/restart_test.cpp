// tenon train --resume-with, and [save_best]. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class RestartTest : public CallTest {
 protected:
  static constexpr const char* kSaves = "\n[checkpoint]\nfolder = \"saves\"\nevery_batches = 3\nkeep = 100\n";

  void SetUp() override {
    CallTest::SetUp();
    write("job.toml", job() + kSaves);
  }
  static Outcome train(Arguments arguments = {}) {
    arguments.insert(arguments.begin(), "job.toml");
    return done(run_train, arguments);
  }
  static std::vector<json> events(const std::string& name, Arguments arguments = {}) {
    arguments.insert(arguments.end(), {"--log-format", "json"});
    std::vector<json> result;
    for (const json& event : parsed(train(arguments).out))
      if (event.at("event") == name) result.push_back(event);
    return result;
  }
  [[nodiscard]] static std::string refused(Arguments arguments, int exit = kBadConfig) {
    arguments.insert(arguments.begin(), "job.toml");
    return failure(exit, run_train, arguments);
  }
  static double cost_of(const std::string& model) {
    return parsed(done(run_test, {"job.toml", "--model", model, "--log-format", "json"}).out).at(0).at("cost");
  }
  // Adds a table to the job.
  void with(const std::string& tables) const { write("job.toml", read("job.toml") + "\n" + tables); }
};

// ---- --resume-with

TEST_F(RestartTest, AChangeIsReportedAndStays) {
  train({"--passes", "2"});
  EXPECT_THAT(refused({"--resume", "--set", "updater.learning_rate=0.001"}), HasSubstr("is of another training"));
  const Outcome resumed = train({"--resume-with", "updater.learning_rate=0.001", "--passes", "3"});
  EXPECT_THAT(resumed.out, HasSubstr("resumed from saves/checkpoint-2-0.safetensors: 2 passes, 0 batches of the next\n"
                                     "changed updater.attributes.learning_rate: 0.05 in the checkpoint, 0.001 now\n"));
  // The same command again: nothing is changed, and nothing is reported.
  const Outcome again = train({"--resume-with", "updater.learning_rate=0.001"});
  EXPECT_THAT(again.out, AllOf(HasSubstr("resumed from saves/checkpoint-3-0"), Not(HasSubstr("changed"))));
  EXPECT_THAT(refused({"--resume"}), HasSubstr("learning_rate: 0.001 in the checkpoint, 0.05 now"));
  EXPECT_THAT(done(run_model_show, {"saves/checkpoint-4-0.safetensors"}).out,
              HasSubstr("checkpoint-2-0: updater.attributes.learning_rate: 0.05 in the checkpoint, 0.001 now"));
}

// One command for the first start and all others, interrupted in any place, gives the model of the job with that value.
TEST_F(RestartTest, OneCommandServesEveryStart) {
  train({"--set", "updater.learning_rate=0.01", "--save", "whole.safetensors"});
  fs::remove_all(path("saves"));
  const Arguments command = {"job.toml", "--resume-with", "updater.learning_rate=0.01", "--log-format", "json"};
  EXPECT_EQ(interrupted(run_train, command, SIGTERM, "{\"batch\":5,").exit, kSignalled + SIGTERM);
  EXPECT_EQ(interrupted(run_train, command, SIGTERM, "{\"batch\":7,").exit, kSignalled + SIGTERM);
  done(run_train, command);
  EXPECT_EQ(read("model.safetensors"), read("whole.safetensors"));
}

TEST_F(RestartTest, EventsHaveTheChanges) {
  train({"--passes", "1"});
  const json began = events("begin_training", {"--resume-with", "updater.learning_rate=0.5", "--resume-with",
                                               "updater.schedule={type=\"cosine\",steps=9,end=0.1}", "--resume-with",
                                               "reader.train.batch=20", "--passes", "2"})
                         .at(0);
  EXPECT_THAT(began.at("changes").get<std::vector<std::string>>(),
              ElementsAre("reader.batch: 8 in the checkpoint, 20 now",
                          "updater.attributes.learning_rate: 0.05 in the checkpoint, 0.5 now",
                          HasSubstr("schedule.end"), HasSubstr("schedule.steps"), HasSubstr("schedule.type")));
  EXPECT_FALSE(
      events("begin_training", {"--resume", "--set", "updater.learning_rate=0.5", "--set",
                                "updater.schedule={type=\"cosine\",steps=9,end=0.1}", "--set", "reader.train.batch=20"})
          .at(0)
          .contains("changes"));
}

// A key without a value takes that of the job, which may have been edited.
TEST_F(RestartTest, KeysOfAnEditedJob) {
  with("[[updater_group]]\nparameters = [\"hidden\"]\ntype = \"sgd\"\nmomentum = 0.9\nlearning_rate = 0.1\n");
  train({"--passes", "1"});
  std::string text = read("job.toml");
  text.replace(text.find("learning_rate = 0.1"), 19, "learning_rate = 0.2");
  write("job.toml", text);
  EXPECT_THAT(refused({"--resume-with", "updater.learning_rate"}),
              HasSubstr("updater.groups[0].attributes.learning_rate"));
  EXPECT_THAT(train({"--resume-with", "updater_group.learning_rate"}).out,
              HasSubstr("changed updater.groups[0].attributes.learning_rate: 0.1 in the checkpoint, 0.2 now"));
  EXPECT_THAT(refused({"--resume-with", "updater_group.learning_rate=0.3"}, kUsage),
              HasSubstr("updater groups cannot be changed by --set"));
}

TEST_F(RestartTest, FromACertainCheckpoint) {
  train({"--set", "checkpoint.keep=100"});
  const Outcome resumed = train({"--resume-from", "saves/checkpoint-0-6.safetensors", "--resume-with",
                                 "reader.train.batch=7", "--set", "checkpoint.folder=others"});
  EXPECT_THAT(resumed.out, HasSubstr("changed reader.batch: 8 in the checkpoint, 7 now"));
  EXPECT_THAT(resumed.out, HasSubstr("pass 1/4"));
  EXPECT_TRUE(exists("others/checkpoint-4-0.safetensors"));
}

TEST_F(RestartTest, WrongKeysAreRefused) {
  train({"--passes", "1"});
  for (const char* key : {"layer.hidden.size=9", "seed=4", "updater.beta1=0.5", "reader.train.shuffle=3", "lr"})
    EXPECT_THAT(refused({"--resume-with", key}), HasSubstr("which a resume cannot change")) << key;
  EXPECT_THAT(refused({"--resume-with", "updater.learning_rat=1"}), HasSubstr("learning_rat"));
  EXPECT_THAT(refused({"--resume-with", "=1"}, kUsage), HasSubstr("--resume-with: expected KEY or KEY=VALUE"));
  EXPECT_THAT(refused({"--resume-with", "reader.train.batch=0"}), HasSubstr("batch"));
  EXPECT_THAT(refused({"--resume-with", "updater.learning_rate=-1"}), HasSubstr("learning_rate"));
  // A folder of another job stays one.
  EXPECT_THAT(refused({"--resume-with", "updater.learning_rate=0.5", "--set", "layer.hidden.size=9"}),
              AllOf(HasSubstr("is of another training"), HasSubstr("size: 8 in the checkpoint, 9 now"),
                    Not(HasSubstr("learning_rate"))));
  write("job.toml", job());
  EXPECT_THAT(refused({"--resume-with", "reader.train.batch=7"}), HasSubstr("resuming needs the table [checkpoint]"));
}

// ---- [save_best]

TEST_F(RestartTest, TheBestIsSaved) {
  with("[save_best]\nmetric = \"cost\"\nmode = \"max\"\n");  // one of the first tests
  std::vector<double> costs;
  const std::vector<json> told = parsed(train({"--log-format", "json"}).out);
  for (const json& event : told)
    if (event.at("event") == "test") costs.push_back(event.at("cost"));
  ASSERT_EQ(costs.size(), 5U) << "each pass, and that of the saved model";
  const auto highest = std::max_element(costs.begin(), costs.begin() + 4);
  EXPECT_EQ(costs.back(), *highest) << "the last test is that of the saved values";
  EXPECT_EQ(cost_of("model.safetensors"), *highest);
  const json& saved = told.at(told.size() - 2);
  EXPECT_EQ(saved.at("event"), "saved");
  EXPECT_EQ(saved.at("best").at("value"), *highest);
  EXPECT_EQ(saved.at("best").at("watched"), "test cost");
  EXPECT_EQ(saved.at("best").at("pass"), highest - costs.begin() + 1);
  fs::remove_all(path("saves"));
  EXPECT_THAT(train().out, HasSubstr("saved model.safetensors: the best, test cost "));
}

// Without a test the passes are measured, and without a table of checkpoints the values are kept in memory.
TEST_F(RestartTest, TheBestOfPassesAndInMemory) {
  write("job.toml", job() + "\n[save_best]\nmetric = \"accuracy\"\nmode = \"min\"\n");
  const std::string with_test = train().out;
  EXPECT_THAT(with_test, HasSubstr("the best, test accuracy "));
  std::string text = job();
  text.erase(text.find("[reader.test]"), text.find("[updater]") - text.find("[reader.test]"));
  write("job.toml", text + "\n[save_best]\nmode = \"max\"\n");
  EXPECT_THAT(train().out, EndsWith(" after pass 1\n"));
  const std::string best = read("model.safetensors");
  write("job.toml", text);
  train({"--passes", "1"});
  EXPECT_EQ(read("model.safetensors"), best) << "the highest cost is that of the first pass";
}

// What [early_stop] watches is the default.
TEST_F(RestartTest, EarlyStoppingSaysWhatIsBest) {
  with("[early_stop]\nmetric = \"accuracy\"\nmode = \"max\"\npatience = 2\n[save_best]\n");
  const Outcome outcome = train({"--passes", "50"});
  EXPECT_THAT(outcome.out, HasSubstr("saved model.safetensors: the best, test accuracy "));
  fs::remove_all(path("saves"));
  EXPECT_THAT(train({"--passes", "50", "--set", "save_best.metric=cost"}).out, HasSubstr("the best, test cost "));
}

TEST_F(RestartTest, TheBestIsThatOfTheUninterruptedTraining) {
  const std::string tables = "[save_best]\nmode = \"max\"\n[average]\nwindow = 5\nsave = \"averaged.safetensors\"\n";
  with(tables);
  train();
  const std::string model = read("model.safetensors"), averaged = read("averaged.safetensors");
  ASSERT_NE(model, averaged);
  for (const char* when :
       {"{\"batch\":2,", "\"event\":\"end_pass\"", "\"event\":\"test\"", "\"pass\":3", "\"pass\":4"}) {
    fs::remove_all(path("saves"));
    fs::remove(path("averaged.safetensors"));
    const Outcome stopped = interrupted(run_train, {"job.toml", "--log-format", "json"}, SIGINT, when);
    EXPECT_EQ(stopped.exit, kSignalled + SIGINT) << stopped.error;
    train({"--resume"});
    EXPECT_EQ(read("model.safetensors"), model) << when;
    EXPECT_EQ(read("averaged.safetensors"), averaged) << when;
  }
  train({"--resume", "--save", "again.safetensors"});
  EXPECT_EQ(read("again.safetensors"), model) << "no pass is left";
}

TEST_F(RestartTest, EndsWithoutAWholeTraining) {
  with("[save_best]\nmode = \"max\"\n");
  const Arguments json_log = {"job.toml", "--log-format", "json", "--save", "so_far.safetensors"};
  Outcome stopped = interrupted(run_train, json_log, SIGINT, "{\"batch\":2,\"cost\"");
  EXPECT_EQ(stopped.exit, kSignalled + SIGINT);
  EXPECT_THAT(stopped.error, HasSubstr("saving what was trained so far")) << "nothing was measured";
  fs::remove_all(path("saves"));
  stopped = interrupted(run_train, json_log, SIGINT, "\"pass\":3");
  EXPECT_THAT(stopped.error, HasSubstr("saving the best so far"));
  EXPECT_EQ(cost_of("so_far.safetensors"), parsed(stopped.out).back().at("best").at("value"));
  // A training whose cost is not finite in the end has had a good model before.
  fs::remove_all(path("saves"));
  const Outcome diverged = call(run_train, {"job.toml", "--set", "updater.type=sgd", "--set",
                                            "updater.learning_rate=1e30", "--set", "save_best.mode=min"});
  EXPECT_EQ(diverged.exit, kBadConfig);
  EXPECT_THAT(diverged.error, HasSubstr("the cost of the last pass is not a finite number"));
}

TEST_F(RestartTest, MistakesInTheTableAreRefused) {
  const auto table = [&](const std::string& keys) {
    write("job.toml", job() + "\n[save_best]\n" + keys);
    return refused({});
  };
  EXPECT_THAT(table("metric = \"accuracy\"\n"), AllOf(HasSubstr("[save_best]"), HasSubstr("needs key \"mode\"")));
  EXPECT_THAT(table("mode = \"best\"\n"), HasSubstr("\"min\" or \"max\""));
  EXPECT_THAT(table("patience = 1\n"), HasSubstr("unknown key \"patience\""));
  EXPECT_THAT(table("metric = \"acuracy\"\nmode = \"max\"\n"), HasSubstr("did you mean \"accuracy\"?"));
  EXPECT_THAT(table("metric = 3\n"), HasSubstr("metric"));
  write("job.toml", "save_best = true\n" + job());
  EXPECT_THAT(refused({}), HasSubstr("save_best"));
}

}  // namespace
}  // namespace tenon_tests
