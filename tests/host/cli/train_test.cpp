// tenon train in this process: its options, output and interrupts. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "tests/host/cli/calls.h"
#include "tests/support/denied_calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> keys_of(const json& object) {
  std::vector<std::string> result;
  for (const auto& [key, value] : object.items()) result.push_back(key);
  return result;
}

class TrainTest : public CallTest {
 protected:
  static Outcome train(Arguments arguments) {
    arguments.insert(arguments.begin(), "job.toml");
    return done(run_train, arguments);
  }
  static std::string refused(int exit, Arguments arguments) {
    arguments.insert(arguments.begin(), "job.toml");
    return failure(exit, run_train, arguments);
  }
  static std::vector<json> events(Arguments arguments) {
    arguments.insert(arguments.end(), {"--log-format", "json"});
    return parsed(train(arguments).out);
  }
};

// ---- output

TEST_F(TrainTest, EventsHaveTheDocumentedKeys) {
  const std::vector<json> told = events({"--passes", "2", "--test-every", "1"});
  std::map<std::string, int> counts;
  for (const json& event : told) {
    const std::string name = event.at("event");
    ++counts[name];
    if (name == "saved")
      EXPECT_THAT(keys_of(event), ElementsAre("batch", "cost", "event", "metrics", "pass", "path"));
    else if (name == "test")
      EXPECT_THAT(keys_of(event),
                  ElementsAre("batch", "cost", "event", "metrics", "pass", "samples", "seconds", "test"));
    else if (name == "begin_training")
      EXPECT_THAT(keys_of(event), ElementsAre("batch", "cost", "event", "learning_rate", "metrics", "pass", "passes",
                                              "samples", "seconds"));
    else if (name == "end_training")
      EXPECT_THAT(keys_of(event), ElementsAre("batch", "cost", "event", "learning_rate", "metrics", "pass", "reason",
                                              "samples", "seconds"));
    else
      EXPECT_THAT(keys_of(event),
                  ElementsAre("batch", "cost", "event", "learning_rate", "metrics", "pass", "samples", "seconds"));
  }
  EXPECT_EQ(counts, (std::map<std::string, int>{{"begin_training", 1},
                                                {"begin_pass", 2},
                                                {"end_iteration", 16},
                                                {"end_pass", 2},
                                                {"end_training", 1},
                                                {"saved", 1},
                                                {"test", 2}}));
}

TEST_F(TrainTest, EventsCountFromOne) {
  const std::vector<json> told = events({"--passes", "2", "--test-every", "1"});
  const auto place = [](const json& event) {
    return event.at("event").get<std::string>() + " " + event.at("pass").dump() + " " + event.at("batch").dump();
  };
  std::vector<std::string> places;
  for (const json& event : told) places.push_back(place(event));
  EXPECT_EQ(places.at(0), "begin_training 0 0");
  EXPECT_EQ(places.at(1), "begin_pass 1 0");
  EXPECT_EQ(places.at(2), "end_iteration 1 1");
  EXPECT_EQ(places.at(9), "end_iteration 1 8");
  EXPECT_EQ(places.at(10), "end_pass 1 8");
  EXPECT_EQ(places.at(11), "test 1 0");
  EXPECT_EQ(places.at(12), "begin_pass 2 0");
  EXPECT_EQ(places.at(13), "end_iteration 2 1");
  EXPECT_EQ(places.at(21), "end_pass 2 8");
  EXPECT_EQ(places.at(22), "end_training 2 8");
  EXPECT_EQ(places.at(23), "saved 2 0");
  EXPECT_EQ(places.at(24), "test 2 0");
  EXPECT_EQ(told.at(0).at("passes"), 2);
  EXPECT_EQ(told.at(23).at("path"), "model.safetensors");
}

TEST_F(TrainTest, EventsHaveCostsWhereThereAreAny) {
  const std::vector<json> told = events({"--passes", "1", "--no-save", "--set", "updater.schedule.type=step", "--set",
                                         "updater.schedule.steps=4", "--set", "updater.schedule.rate=0.5"});
  double sum = 0;
  for (const json& event : told) {
    const std::string name = event.at("event");
    if (name.rfind("begin_", 0) == 0) {
      EXPECT_TRUE(event.at("cost").is_null()) << event;
      EXPECT_EQ(event.at("metrics"), json::object());
      EXPECT_EQ(event.at("samples"), 0);
    } else {
      EXPECT_GT(event.at("cost").get<double>(), 0) << event;
      EXPECT_TRUE(event.at("metrics").at("accuracy").is_number());
      EXPECT_GE(event.at("seconds").get<double>(), 0);
    }
    if (name == "end_iteration") sum += event.at("cost").get<double>() * event.at("samples").get<double>();
  }
  const json& pass = told.at(10);
  ASSERT_EQ(pass.at("event"), "end_pass");
  EXPECT_NEAR(pass.at("cost").get<double>(), sum / 60, 1e-5) << "the mean over the samples of the pass";
  EXPECT_EQ(told.at(11).at("cost"), pass.at("cost")) << "end_training has the cost of the last pass";
  EXPECT_EQ(told.at(11).at("metrics"), pass.at("metrics"));
  EXPECT_NEAR(told.at(3).at("learning_rate").get<double>(), 0.05, 1e-6);
  EXPECT_NEAR(told.at(7).at("learning_rate").get<double>(), 0.025, 1e-6) << "after the schedule";
  const json& test = told.back();
  EXPECT_EQ(test.at("samples"), 21);
  EXPECT_EQ(test.at("test"), (json{{"cost", test.at("cost")}, {"metrics", test.at("metrics")}}));
}

TEST_F(TrainTest, JsonHoldsNothingElseOnStandardOutput) {
  const Outcome outcome = train({"--log-format", "json"});
  EXPECT_THAT(outcome.out, EndsWith("}\n"));
  for (const std::string& line : lines_of(outcome.out)) EXPECT_TRUE(json::parse(line).is_object());
  EXPECT_EQ(outcome.error, "");
  const Outcome text = train({"--log-format", "text"});
  for (const std::string& line : lines_of(text.out))
    EXPECT_THAT(line, testing::AnyOf(StartsWith("pass "), StartsWith("test "), StartsWith("saved ")));
}

TEST_F(TrainTest, PlainLinesOutsideOfATerminal) {
  const Outcome outcome = train({"--passes", "12"});
  EXPECT_THAT(outcome.out, AllOf(Not(HasSubstr("\r")), Not(HasSubstr("\033")), EndsWith("\n")));
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 14u);
  EXPECT_THAT(lines.at(0), StartsWith("pass  1/12  cost ")) << "the numbers of passes are aligned";
  EXPECT_THAT(lines.at(8), StartsWith("pass  9/12  cost "));
  EXPECT_THAT(lines.at(9), StartsWith("pass 10/12  cost "));
}

TEST_F(TrainTest, CostsThatAreNotFiniteAreNullAndWarnOnce) {
  const Arguments wild = {
      "job.toml", "--log-format", "json", "--set", "updater.type=sgd", "--set", "updater.learning_rate=1e30"};
  const Outcome outcome = call(run_train, wild);
  EXPECT_EQ(outcome.exit, kBadConfig);
  const std::vector<json> told = parsed(outcome.out);
  EXPECT_TRUE(told.back().at("cost").is_null()) << told.back();
  const std::vector<std::string> said = lines_of(outcome.error);
  ASSERT_EQ(said.size(), 2u) << outcome.error;
  EXPECT_THAT(
      said.at(0),
      MatchesRegex("warning: the cost is not a finite number since pass 1, batch [2-8]; with --check-finite .*"));
  EXPECT_THAT(said.at(1),
              HasSubstr("the cost of the last pass is not a finite number: nothing saved; with --save FILE"));
  EXPECT_FALSE(exists("model.safetensors"));
}

TEST_F(TrainTest, MetricsThatAreNotFiniteWarnOnce) {
  change("[[layer]]\nname = \"accuracy\"",
         "[[layer]]\nname = \"logs\"\ntype = \"log\"\ninputs = [\"pixel\"]\n\n"
         "[[layer]]\nname = \"depth\"\ntype = \"average\"\ninputs = [\"logs\"]\n\n[[layer]]\nname = \"accuracy\"");
  const Outcome outcome = call(run_train, {"job.toml", "--passes", "3"});
  EXPECT_EQ(outcome.exit, kDone) << outcome.error;
  EXPECT_EQ(lines_of(outcome.error),
            std::vector<std::string>{"warning: the metric \"average\" is not a finite number in pass 1"});
}

TEST_F(TrainTest, CheckFiniteNamesTheLayer) {
  const Arguments wild = {"job.toml",         "--check-finite", "--set",
                          "updater.type=sgd", "--set",          "updater.learning_rate=1e30"};
  const Outcome outcome = call(run_train, wild);
  EXPECT_EQ(outcome.exit, kBadConfig);
  EXPECT_THAT(outcome.error, MatchesRegex("(.|\n)*layer \".*\" \\(.*\\): .* is -?(inf|nan) at \\[.*\\](.|\n)*"));
  EXPECT_EQ(call(run_train, {"job.toml", "--check", "--check-finite"}).exit, 0);
}

TEST_F(TrainTest, QuietLeavesRemarksOutButNoResultAndNoWarning) {
  change("save = \"model.safetensors\"\n", "");
  EXPECT_EQ(train({}).error, "nothing saved: neither the job nor --save names a file\n");
  const Outcome quiet = train({"-q"});
  EXPECT_EQ(quiet.error, "");
  EXPECT_EQ(lines_of(quiet.out).size(), 5u);
  EXPECT_EQ(train({"--no-save"}).error, "") << "no remark: the option requests it";
  const Outcome wild = call(run_train, {"job.toml", "--quiet", "--set", "updater.learning_rate=1e30"});
  EXPECT_THAT(wild.error, HasSubstr("warning: the cost"));
}

// ---- options

TEST_F(TrainTest, OptionsWinOverTheJobAndOverSets) {
  EXPECT_EQ(lines_of(train({"--no-save"}).out).size(), 5u);
  EXPECT_THAT(train({"--set", "passes=3", "--no-save"}).out, StartsWith("pass 1/3 "));
  EXPECT_THAT(train({"--passes", "2", "--set", "passes=3", "--no-save"}).out, StartsWith("pass 1/2 "));
  EXPECT_THAT(train({"--passes=2", "--no-save"}).out, StartsWith("pass 1/2 "));
  train({"--passes", "1", "--save", "a"});
  train({"--passes", "1", "--save", "b", "--set", "seed=8"});
  train({"--passes", "1", "--save", "c", "--seed", "8"});
  train({"--passes", "1", "--save", "d", "--seed", "3", "--set", "seed=8"});
  train({"--passes", "1", "--save", "e", "--seed", "0", "--set", "seed=8"});
  train({"--passes", "1", "--save", "f", "--set", "seed=0"});
  EXPECT_NE(read("a"), read("b"));
  EXPECT_EQ(read("b"), read("c"));
  EXPECT_EQ(read("a"), read("d"));
  EXPECT_EQ(read("e"), read("f"));
  EXPECT_NE(read("e"), read("b"));
}

TEST_F(TrainTest, SaveAndNoSave) {
  EXPECT_THAT(train({"--passes", "1", "--save", "other"}).out, HasSubstr("\nsaved other\n"));
  EXPECT_TRUE(exists("other"));
  EXPECT_FALSE(exists("model.safetensors"));
  EXPECT_THAT(train({"--passes", "1", "--no-save"}).out, Not(HasSubstr("saved")));
  EXPECT_FALSE(exists("model.safetensors"));
  EXPECT_THAT(train({"--passes", "1"}).out, HasSubstr("\nsaved model.safetensors\n"));
  EXPECT_TRUE(exists("model.safetensors"));
}

TEST_F(TrainTest, TestEveryCountsPasses) {
  const auto tests = [](const Arguments& arguments) {
    std::vector<int> passes;
    for (const json& event : events(arguments))
      if (event.at("event") == "test") passes.push_back(event.at("pass"));
    return passes;
  };
  EXPECT_THAT(tests({"--no-save", "--passes", "5", "--test-every", "2"}), ElementsAre(2, 4, 5));
  EXPECT_THAT(tests({"--no-save", "--passes", "4", "--test-every", "2"}), ElementsAre(2, 4))
      << "the last pass is tested once";
  EXPECT_THAT(tests({"--no-save", "--passes", "3", "--test-every", "0"}), ElementsAre(3));
  const std::vector<std::string> text = lines_of(train({"--no-save", "--passes", "2", "--test-every", "1"}).out);
  ASSERT_EQ(text.size(), 4u);
  EXPECT_THAT(text.at(1), StartsWith("  test  cost ")) << "belongs to the pass above";
  EXPECT_THAT(text.at(3), StartsWith("test  cost "));
}

TEST_F(TrainTest, WithoutTestDataNothingIsTested) {
  change("[reader.test]\ntype = \"idx\"\nfiles = [\"test-images\", \"test-labels\"]\n", "");
  EXPECT_THAT(train({"--passes", "1"}).out, Not(HasSubstr("test")));
  EXPECT_THAT(refused(kBadConfig, {"--test-every", "1"}), HasSubstr("job.toml: the job has no [reader.test]"));
  EXPECT_THAT(train({"--passes", "1", "--test-every", "0"}).out, Not(HasSubstr("test")));
}

TEST_F(TrainTest, BadOptions) {
  const std::string see = "; see 'tenon train --help'";
  EXPECT_EQ(refused(kUsage, {"--test-every", "-1"}), "--test-every: expected at least 0, got -1" + see);
  EXPECT_EQ(refused(kUsage, {"--passes", "0"}), "--passes: expected at least 1, got 0" + see);
  EXPECT_EQ(refused(kUsage, {"--passes", "-1"}), "--passes: expected at least 1, got -1" + see);
  EXPECT_EQ(refused(kUsage, {"--seed", "-1"}), "--seed: expected at least 0, got -1" + see);
  EXPECT_EQ(refused(kUsage, {"--threads", "-1"}), "--threads: expected 0 to 1024, got -1" + see);
  EXPECT_EQ(refused(kUsage, {"--threads", "1025"}), "--threads: expected 0 to 1024, got 1025" + see);
  EXPECT_EQ(refused(kUsage, {"--log-format", "JSON"}), "--log-format: expected text or json, got \"JSON\"" + see);
  EXPECT_EQ(refused(kUsage, {"--save", "x", "--no-save"}), "--save and --no-save exclude each other" + see);
  EXPECT_EQ(refused(kUsage, {"--test-evry", "1"}),
            "unknown option \"--test-evry\"; did you mean \"--test-every\"?" + see);
  for (const char* option : {"--passes", "--seed", "--threads", "--test-every"}) {
    for (const char* value : {"x", "1.5", "1x", "", "99999999999999999999"})
      EXPECT_THAT(refused(kUsage, {option, value}), AllOf(HasSubstr(option), EndsWith(see))) << option << " " << value;
  }
  for (const char* option :
       {"--passes", "--seed", "--threads", "--test-every", "--save", "--set", "--plugins", "--log-format"}) {
    EXPECT_THAT(refused(kUsage, {option}), AllOf(HasSubstr(option), EndsWith(see))) << "its value is missing";
  }
  for (const char* option : {"--no-save", "--quiet"})
    EXPECT_THAT(refused(kUsage, {std::string(option) + "=1"}), HasSubstr(option)) << "it takes no value";
  EXPECT_THAT(refused(kUsage, {"--passes", "1", "--passes", "2"}), HasSubstr("--passes")) << "given twice";
  EXPECT_FALSE(exists("model.safetensors"));
}

TEST_F(TrainTest, ThreadsGoToTheHost) {
  train({"--passes", "1", "--threads", "1024"});
  train({"--passes", "1", "--threads", "0"});
  EXPECT_THAT(refused(kBadConfig, {"--set", "threads=1025"}), HasSubstr("from 0 to 1024, got the integer 1025"));
}

TEST_F(TrainTest, SavesBesideAJobWithSpacesInItsPath) {
  std::filesystem::create_directory(path("a folder"));
  for (const char* file : {"job.toml", "train-images", "train-labels", "test-images", "test-labels"})
    std::filesystem::copy(path(file), path("a folder"));
  std::filesystem::rename(path("a folder/job.toml"), path("a folder/the job.toml"));
  EXPECT_THAT(done(run_train, {"a folder/the job.toml"}).out, HasSubstr("saved a folder/model.safetensors\n"));
  EXPECT_TRUE(exists("a folder/model.safetensors"));
  EXPECT_THAT(done(run_train, {"--", "a folder/the job.toml"}).out, HasSubstr("saved a folder"));
}

TEST_F(TrainTest, EndsAfterTheMinibatchThatWasInterrupted) {
  const Outcome outcome = interrupted(run_train, {"job.toml", "--log-format", "json"}, SIGINT, "\"batch\":3,");
  EXPECT_EQ(outcome.exit, 130);
  const std::vector<json> told = parsed(outcome.out);
  ASSERT_EQ(told.size(), 6u) << outcome.out;
  EXPECT_EQ(told.at(4).at("batch"), 3);
  EXPECT_EQ(told.at(5).at("event"), "end_training") << "without end_pass, since the pass has not ended";
  EXPECT_EQ(told.at(5).at("batch"), 3);
  EXPECT_EQ(outcome.error,
            "warning: interrupted in pass 1, batch 3: nothing saved; with --save FILE what was trained so far is "
            "saved\n");
  EXPECT_FALSE(exists("model.safetensors"));
}

TEST_F(TrainTest, SavesWhatWasTrainedSoFarWhereThatWasAskedFor) {
  const Outcome outcome =
      interrupted(run_train, {"job.toml", "--log-format", "json", "--save", "kept"}, SIGTERM, "\"batch\":3,");
  EXPECT_EQ(outcome.exit, 143);
  EXPECT_EQ(outcome.error, "warning: interrupted in pass 1, batch 3: saving what was trained so far\n");
  EXPECT_EQ(parsed(outcome.out).back().at("event"), "saved");
  EXPECT_TRUE(exists("kept"));
  train(
      {"--save", "whole", "--set", "reader.train.first_n=24", "--set", "reader.train.shuffle=false", "--passes", "1"});
  EXPECT_EQ(read("kept").size(), read("whole").size());
}

// ---- failures

TEST_F(TrainTest, AFailureAfterAnUpdateSavesWhatWasTrainedUntilThen) {
  write_images("train", 60, 17);  // the label of image 10, in the second minibatch of an ordered pass
  const Arguments ordered = {"job.toml", "--set", "reader.train.shuffle=false"};
  const auto failed = [&](Arguments more) {
    more.insert(more.begin(), ordered.begin(), ordered.end());
    const Outcome outcome = call(run_train, more);
    EXPECT_EQ(outcome.exit, kBadData);
    EXPECT_THAT(outcome.error, StartsWith("pass 1, batch 2: data layer \"label\": sample 2 of the minibatch is 17; "));
    return outcome.error;
  };
  EXPECT_THAT(failed({"--save", "kept"}), EndsWith("; what was trained until then is saved as kept"));
  EXPECT_FALSE(exists("model.safetensors"));
  done(run_train, {"job.toml", "--set", "reader.train.shuffle=false", "--set", "reader.train.first_n=8", "--passes",
                   "1", "--save", "whole"});
  EXPECT_EQ(read("kept"), read("whole"));

  write("model.safetensors", "a good model");
  EXPECT_THAT(failed({}), EndsWith("is saved as model.safetensors.partial"));
  EXPECT_EQ(read("model.safetensors"), "a good model");
  EXPECT_EQ(read("model.safetensors.partial"), read("whole"));
  EXPECT_THAT(failed({"--no-save"}), Not(HasSubstr("saved")));
}

TEST_F(TrainTest, AFailureBeforeTheFirstUpdateSavesNothing) {
  write_images("train", 60, 17);
  const Outcome outcome = call(run_train, {"job.toml", "--set", "reader.train.shuffle=false", "--set",
                                           "reader.train.batch=16", "--save", "kept"});
  EXPECT_EQ(outcome.exit, kBadData);
  EXPECT_THAT(outcome.error, Not(HasSubstr("saved")));
  EXPECT_FALSE(exists("kept"));
}

// ---- failures before the training

TEST_F(TrainTest, PlacesThatCannotBeSavedTo) {
  EXPECT_THAT(refused(kNotFound, {"--save", "no/model"}),
              HasSubstr("cannot save to \"no/model\": there is no folder \"no\""));
  EXPECT_THAT(refused(kNotFound, {"--save", "job.toml/model"}), HasSubstr("there is no folder \"job.toml\""));
  EXPECT_THAT(refused(kIo, {"--save", "."}), HasSubstr("cannot save to \".\": it is a folder"));
  EXPECT_THAT(refused(kNotFound, {"--set", "save=no/model"}), HasSubstr("there is no folder \"no\""));
  if (geteuid() == 0) return;  // root may write everywhere
  std::filesystem::create_directory(path("shut"));
  std::filesystem::permissions(path("shut"), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  EXPECT_THAT(refused(kIo, {"--save", "shut/model"}), HasSubstr("folder \"shut\": "));
}

TEST_F(TrainTest, JobsThatCannotBeTrained) {
  EXPECT_THAT(refused(kBadConfig, {"--set", "outputs=[\"accuracy\"]"}),
              HasSubstr("job.toml: training needs a cost among the outputs"));
  EXPECT_THAT(refused(kNotFound, {"--set", "immutable_parameters=[\"hiden\"]"}),
              HasSubstr("--set immutable_parameters=[\"hiden\"]: immutable parameter \"hiden\""));
  EXPECT_THAT(refused(kBadData, {"--set", "reader.train.drop_last=true", "--set", "reader.train.batch=61"}),
              HasSubstr("[reader.train] gave no samples"));
  EXPECT_THAT(refused(kNotFound, {"--set", "device=abacus"}), HasSubstr("abacus"));
  EXPECT_FALSE(exists("model.safetensors"));
}

TEST_F(TrainTest, StandardOutputThatIsFull) {
  Kept full;
  full.refuses = true;
  const Outcome outcome = call(run_train, {"job.toml"}, std::move(full));
  EXPECT_EQ(outcome.exit, kIo);
  EXPECT_EQ(outcome.error, "cannot write to standard output");
  Kept events;
  events.refuses = true;
  EXPECT_EQ(call(run_train, {"job.toml", "--log-format", "json"}, std::move(events)).exit, kIo);
  EXPECT_FALSE(exists("model.safetensors"));
}

// ---- interrupts

TEST_F(TrainTest, InterruptedBetweenPassesTestsNothingMore) {
  const Outcome outcome = interrupted(run_train, {"job.toml", "--test-every", "1"}, SIGINT, "pass 2/4");
  EXPECT_EQ(outcome.exit, 130);
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 3u) << outcome.out;
  EXPECT_THAT(lines.at(1), StartsWith("  test"));
  EXPECT_THAT(lines.at(2), StartsWith("pass 2/4"));
  EXPECT_THAT(outcome.error, HasSubstr("interrupted in pass 2, batch 8:")) << "the last minibatch that was trained";
}

TEST_F(TrainTest, AnInterruptAfterTheLastMinibatchChangesNothing) {
  const Outcome outcome = interrupted(run_train, {"job.toml"}, SIGINT, "pass 4/4");
  EXPECT_EQ(outcome.exit, kDone) << outcome.error;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("saved model.safetensors\n"), HasSubstr("\ntest  cost")));
  EXPECT_TRUE(exists("model.safetensors"));
}

TEST_F(TrainTest, SignalsAreGivenBack) {
  struct sigaction now = {};
  train({"--passes", "1"});
  for (const int signal : {SIGINT, SIGTERM}) {
    ASSERT_EQ(sigaction(signal, nullptr, &now), 0);
    EXPECT_EQ(now.sa_handler, SIG_DFL);
  }
}

TEST_F(TrainTest, ASignalThatIsIgnoredStaysIgnored) {
  std::signal(SIGINT, SIG_IGN);
  const Outcome outcome = interrupted(run_train, {"job.toml"}, SIGINT, "pass 2/4");
  std::signal(SIGINT, SIG_DFL);
  EXPECT_EQ(outcome.exit, kDone);
  EXPECT_THAT(outcome.out, HasSubstr("pass 4/4"));
  EXPECT_EQ(interrupted(run_train, {"job.toml"}, SIGINT, "pass 2/4").exit, 130)
      << "the next training handles the signal";
  train({"--passes", "1"});
}

TEST_F(TrainTest, ComputesWithTheThreadsThatCouldBeStarted) {
  (void)train({"--threads", "4", "--save", "four.safetensors"});
  const auto work = [](int to) {
    if (!deny_threads()) _exit(3);
    const Outcome outcome = call(run_train, {"job.toml", "--threads", "4", "--save", "few.safetensors"});
    _exit(::write(to, outcome.error.data(), outcome.error.size()) < 0 ? 2 : outcome.exit);
  };
  const ChildEnd end = run_child(work, 120);
  EXPECT_EQ(end.code(), 0);
  EXPECT_THAT(end.text,
              HasSubstr("warning: the system started only 1 of 4 compute threads: Operation not permitted\n"));
  EXPECT_TRUE(read("few.safetensors") == read("four.safetensors"));
}

}  // namespace
}  // namespace tenon_tests
