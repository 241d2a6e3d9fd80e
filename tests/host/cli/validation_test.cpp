// tenon train with pass_batches, test_every, [early_stop] and [average]. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class ValidationTest : public CallTest {
 protected:
  // Writes the job with these keys before everything else, and these tables at its end.
  void with(const std::string& keys, const std::string& tables) const {
    write("job.toml", keys + "\n" + job() + "\n" + tables);
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
  [[nodiscard]] std::string refused(const std::string& keys, const std::string& tables) const {
    with(keys, tables);
    return failure(kBadConfig, run_train, {"job.toml"});
  }
  static std::string checkpoints(const std::string& more = {}) { return "[checkpoint]\nfolder = \"saves\"\n" + more; }
};

TEST_F(ValidationTest, TheJobSaysWhenToTest) {
  with("test_every = 2", "");
  const auto passes = [](const std::vector<json>& tests) {
    std::vector<int> result;
    for (const json& test : tests) result.push_back(test.at("pass"));
    return result;
  };
  EXPECT_THAT(passes(events("test", {"--passes", "5"})), ElementsAre(2, 4, 5));
  EXPECT_THAT(passes(events("test", {"--passes", "3", "--test-every", "1"})), ElementsAre(1, 2, 3));
  EXPECT_THAT(passes(events("test", {"--passes", "3", "--test-every", "0"})), ElementsAre(3));
}

TEST_F(ValidationTest, PassesHaveTheirMinibatches) {
  with("pass_batches = 3", "");
  const std::vector<json> passes = events("end_pass", {"--passes", "5"});
  ASSERT_THAT(passes, SizeIs(5));
  for (const json& pass : passes) EXPECT_EQ(pass.at("batch"), 3);
  EXPECT_THAT(events("end_iteration", {"--passes", "5"}), SizeIs(15));
}

// The cost has to fall by 100 at each test.
TEST_F(ValidationTest, EarlyStoppingEndsTheTraining) {
  with("", "[early_stop]\npatience = 2\nmin_delta = 100\n");
  const Outcome outcome = train({"--passes", "50"});
  EXPECT_THAT(outcome.error, HasSubstr("ended early: \"cost\" no longer improves"));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("pass  3/50"), Not(HasSubstr("pass  4/50")), HasSubstr("saved")));
  EXPECT_THAT(events("test", {"--passes", "50"}), SizeIs(4)) << "of three passes, and at the end";
  EXPECT_EQ(events("end_training", {"--passes", "50"}).at(0).at("reason"), "early");
  EXPECT_EQ(events("end_training", {"--passes", "2"}).at(0).at("reason"), "passes");
}

TEST_F(ValidationTest, BestIsThatOfTheTests) {
  with("test_every = 1\n", checkpoints("best = \"cost\"\nmode = \"max\"\n"));
  train({"--passes", "3", "--save", "model.safetensors"});
  const double of_best =
      parsed(done(run_test, {"job.toml", "--model", "saves/best.safetensors", "--log-format", "json"}).out)
          .at(0)
          .at("cost");
  std::filesystem::remove_all(path("saves"));
  double highest = 0;
  for (const json& test : events("test", {"--passes", "3"})) highest = std::max(highest, test.at("cost").get<double>());
  EXPECT_EQ(of_best, highest);
}

TEST_F(ValidationTest, AveragesAreTestedAndSaved) {
  with("", "[average]\ndecay = 0.75\nsave = \"averaged.safetensors\"\n");
  const json test = events("test", {"--passes", "2", "--save", "last.safetensors"}).at(0);
  const auto cost = [](const char* model) {
    return parsed(done(run_test, {"job.toml", "--model", model, "--log-format", "json"}).out).at(0).at("cost");
  };
  EXPECT_EQ(cost("averaged.safetensors"), test.at("cost"));
  EXPECT_NE(cost("last.safetensors"), test.at("cost"));
  std::filesystem::remove(path("averaged.safetensors"));
  train({"--passes", "1", "--no-save"});
  EXPECT_FALSE(exists("averaged.safetensors"));
  EXPECT_THAT(failure(kBadConfig, run_train, {"job.toml", "--save", "averaged.safetensors"}),
              HasSubstr("save and average.save are one file, averaged.safetensors"));
}

// All of it together, interrupted anywhere, gives the same files.
TEST_F(ValidationTest, AnInterruptedTrainingResumesToTheSameModels) {
  const std::string tables =
      "[early_stop]\npatience = 2\nmin_delta = 100\n[average]\nwindow = 5\nsave = \"averaged.safetensors\"\n";
  const std::string keys = "passes = 50\npass_batches = 5";
  const auto job_of = [&](const std::string& more) {
    std::string text = job();
    const size_t at = text.find("passes");
    if (at != std::string::npos) text.erase(at, text.find('\n', at) - at + 1);
    write("job.toml", keys + "\n" + text + "\n" + tables + more);
  };
  job_of("");
  train({"--save", "model.safetensors"});
  const std::string model = read("model.safetensors"), averaged = read("averaged.safetensors");
  job_of(checkpoints("every_batches = 1000\n"));
  for (const char* when : {"{\"batch\":2,", "\"event\":\"end_pass\"", "\"event\":\"test\"", "\"batch\":4,"}) {
    std::filesystem::remove_all(path("saves"));
    std::filesystem::remove(path("averaged.safetensors"));
    const Outcome stopped = interrupted(run_train, {"job.toml", "--log-format", "json"}, SIGINT, when);
    EXPECT_EQ(stopped.exit, kSignalled + SIGINT) << stopped.error;
    train({"--resume", "--save", "model.safetensors"});
    EXPECT_EQ(read("model.safetensors"), model) << when;
    EXPECT_EQ(read("averaged.safetensors"), averaged) << when;
  }
}

TEST_F(ValidationTest, TheTablesMayComeFromTheCommandLine) {
  with("", "");
  const Arguments more = {"--passes", "9", "--set", "early_stop.patience=1", "--set", "early_stop.min_delta=100"};
  EXPECT_THAT(events("end_pass", more), SizeIs(2));
  train({"--passes", "1", "--set", "average.decay=0.5", "--set", "average.save=averaged.safetensors"});
  EXPECT_TRUE(exists("averaged.safetensors"));
}

TEST_F(ValidationTest, MistakesAreRefused) {
  EXPECT_THAT(refused("pass_batches = 0", ""), HasSubstr("key \"pass_batches\""));
  EXPECT_THAT(refused("test_every = 0", ""), HasSubstr("key \"test_every\""));
  EXPECT_THAT(refused("", "[early_stop]\n"), AllOf(HasSubstr("[early_stop]"), HasSubstr("\"patience\"")));
  EXPECT_THAT(refused("", "[early_stop]\npatience = 0\n"), HasSubstr("patience"));
  EXPECT_THAT(refused("", "[early_stop]\npatience = 1\nmin_delta = -1\n"), HasSubstr("a number of at least 0"));
  EXPECT_THAT(refused("", "[early_stop]\npatience = 1\nmode = \"best\"\n"), HasSubstr("\"min\" or \"max\""));
  EXPECT_THAT(refused("", "[early_stop]\npatience = 1\nmetric = \"accuracy\"\n"), HasSubstr("needs key \"mode\""));
  EXPECT_THAT(refused("", "[early_stop]\npatience = 1\nmetric = \"acuracy\"\nmode = \"max\"\n"),
              HasSubstr("metric is \"acuracy\""));
  EXPECT_THAT(refused("", "[early_stop]\npatience = 1\nwindow = 3\n"), HasSubstr("unknown key \"window\""));
  EXPECT_THAT(refused("", "[average]\n"), HasSubstr("key \"decay\" or \"window\" is missing"));
  EXPECT_THAT(refused("", "[average]\ndecay = 0.5\nwindow = 2\n"), HasSubstr("exclude each other"));
  EXPECT_THAT(refused("", "[average]\ndecay = 1.5\n"), HasSubstr("a number in (0, 1]"));
  EXPECT_THAT(refused("", "[average]\nwindow = 0\n"), HasSubstr("window"));
}

}  // namespace
}  // namespace tenon_tests
