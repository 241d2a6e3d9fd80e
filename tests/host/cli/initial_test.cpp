// The key "init" of a job: initial values from a model file, renamed and skipped. SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/initial.h"

#include <gmock/gmock.h>

#include "host/cli/options.h"
#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class InitialTest : public CallTest {
 protected:
  void SetUp() override {
    CallTest::SetUp();
    done(run_train, {"job.toml", "--passes", "1", "--save", "base.safetensors"});
  }
  // Writes the job with `init` before the first table, and `from` replaced.
  void write_job(const std::string& init, const std::string& from = "", const std::string& to = "") const {
    std::string text = init + "\n" + job();
    while (!from.empty() && text.find(from) != std::string::npos) text.replace(text.find(from), from.size(), to);
    write("job.toml", text);
  }
  // Trains with a rate of 0 and returns the parameters in the saved model, by name.
  std::map<std::string, std::vector<float>> untrained(std::string* note = nullptr) const {
    const Outcome outcome = done(
        run_train, {"job.toml", "--passes", "1", "--set", "updater.learning_rate=0", "--save", "kept.safetensors"});
    if (note != nullptr) *note = outcome.error;
    return values("kept.safetensors");
  }
  [[nodiscard]] std::map<std::string, std::vector<float>> values(const std::string& file) const {
    const Host host = PluginOptions().host();
    const Model model = host.load(path(file));
    std::map<std::string, std::vector<float>> result;
    for (const json& each : json::parse(model.parameters.describe())) {
      const Array array = model.parameters.get(each.at("name"));
      const auto* const data = static_cast<const float*>(array.data);
      result[each.at("name")] = {data, data + array.count()};
    }
    return result;
  }
  [[nodiscard]] std::string refused() const { return failure(kBadConfig, run_train, {"job.toml"}); }
};

TEST_F(InitialTest, AModelGivesTheInitialValues) {
  write_job("init = \"base.safetensors\"");
  std::string note;
  EXPECT_EQ(untrained(&note), values("base.safetensors"));
  EXPECT_THAT(note, HasSubstr("4 parameters from base.safetensors"));
}

TEST_F(InitialTest, ThePathIsRelativeToTheJob) {
  std::filesystem::create_directory(path("jobs"));
  write("jobs/job.toml", "init = \"../base.safetensors\"\n" + job());
  EXPECT_THAT(failure(kNotFound, run_train, {"jobs/job.toml"}), HasSubstr("train-images")) << "the next file to read";
}

TEST_F(InitialTest, NamesAreReplacedAndSkipped) {
  const auto base = values("base.safetensors");
  write_job("init = { file = \"base.safetensors\", rename = { hidden = \"first\" }, skip = [\"score.bias\"] }",
            "\"hidden\"", "\"first\"");
  std::string note;
  const auto now = untrained(&note);
  EXPECT_EQ(now.at("first.weight"), base.at("hidden.weight"));
  EXPECT_EQ(now.at("first.bias"), base.at("hidden.bias"));
  EXPECT_EQ(now.at("score.weight"), base.at("score.weight"));
  EXPECT_EQ(now.at("score.bias"), std::vector<float>(3, 0)) << "its own initial value";
  EXPECT_NE(base.at("score.bias"), std::vector<float>(3, 0));
  EXPECT_THAT(note, HasSubstr("3 parameters from base.safetensors; skipped: score.bias"));
}

TEST_F(InitialTest, WhatDoesNotFitIsListed) {
  write_job("init = \"base.safetensors\"", "size = 8", "size = 9");
  EXPECT_THAT(refused(), AllOf(StartsWith("job.toml:1: [init]: \"base.safetensors\" does not fit the job: "),
                               HasSubstr("hidden.weight: float32 [16,8] in the file, float32 [16,9] in the job; "),
                               HasSubstr("hidden.bias: float32 [8] in the file, float32 [9] in the job; "),
                               HasSubstr("score.weight: float32 [8,3] in the file, float32 [9,3] in the job")));
  write_job("init = \"base.safetensors\"", "\"hidden\"", "\"first\"");
  EXPECT_THAT(refused(), AllOf(HasSubstr("first.weight: not in the file; first.bias: not in the file"),
                               HasSubstr("; only in the file: hidden.weight, hidden.bias")));
}

TEST_F(InitialTest, AnotherFileIsAnError) {
  write_job("init = \"absent.safetensors\"");
  EXPECT_THAT(failure(kNotFound, run_train, {"job.toml"}), HasSubstr("absent.safetensors"));
  write("broken.safetensors", "no model");
  write_job("init = \"broken.safetensors\"");
  EXPECT_THAT(failure(kBadData, run_train, {"job.toml"}), HasSubstr("broken.safetensors"));
}

TEST_F(InitialTest, WrongKeysNameTheLine) {
  const auto wrong = [&](const std::string& init) {
    write_job(init);
    const std::string message = refused();
    EXPECT_THAT(message, StartsWith("job.toml:1: "));
    return message;
  };
  EXPECT_THAT(wrong("init = 3"), HasSubstr("key \"init\""));
  EXPECT_THAT(wrong("init = \"\""), HasSubstr("expected a text that is not empty"));
  EXPECT_THAT(wrong("init = { skip = [\"score\"] }"), HasSubstr("[init]: key \"file\""));
  EXPECT_THAT(wrong("init = { file = \"base.safetensors\", skips = [] }"), HasSubstr("did you mean \"skip\"?"));
  EXPECT_THAT(wrong("init = { file = \"base.safetensors\", skip = [\"scores\"] }"),
              AllOf(HasSubstr("[init]: key \"skip\": the job has no parameter \"scores\"")));
  EXPECT_THAT(wrong("init = { file = \"base.safetensors\", rename = { hiden = \"hidden\" } }"),
              HasSubstr("[init]: key \"rename\": \"base.safetensors\" has no parameter \"hiden\""));
  EXPECT_THAT(wrong("init = { file = \"base.safetensors\", rename = { hidden = \"first\" } }"),
              HasSubstr("[init]: key \"rename\": the job has no parameter \"first\""));
  EXPECT_THAT(wrong("init = { file = \"base.safetensors\", rename = { hidden = 1 } }"), HasSubstr("rename.hidden"));
  EXPECT_THAT(wrong("init = { file = \"base.safetensors\", rename = { hidden = \"score\" } }"),
              HasSubstr("the parameters \"hidden.weight\" and \"score.weight\" of \"base.safetensors\" both become "
                        "\"score.weight\""));
}

TEST_F(InitialTest, OneCommandInitialisesAndResumes) {
  write_job("init = \"base.safetensors\"");
  write("job.toml", read("job.toml") + "\n[checkpoint]\nfolder = \"saves\"\n");
  done(run_train, {"job.toml", "--save", "whole.safetensors"});
  std::filesystem::remove_all(path("saves"));
  EXPECT_THAT(done(run_train, {"job.toml", "--resume", "--passes", "1"}).error,
              HasSubstr("4 parameters from base.safetensors"));
  EXPECT_THAT(done(run_train, {"job.toml", "--resume"}).error, testing::Not(HasSubstr("base.safetensors")));
  EXPECT_EQ(read("model.safetensors"), read("whole.safetensors"));
  EXPECT_THAT(failure(kBadConfig, run_train, {"job.toml", "--resume-from", "saves/checkpoint-3-0.safetensors"}),
              HasSubstr("job.toml:1: key \"init\": a training that resumes takes all values from its checkpoint"));
  write("job.toml", "init = \"saves/checkpoint-3-0.safetensors\"\n" + job());
  EXPECT_EQ(untrained(), values("saves/checkpoint-3-0.safetensors")) << "a checkpoint is a model";
}

TEST(InitialFit, TheLongestRenamedNameDecides) {
  const auto parameter = [](const char* name) {
    return json{{"name", name}, {"shape", {2}}, {"dtype", "float32"}, {"kind", "parameter"}};
  };
  JobInit init;
  init.rename = {{"a", "x"}, {"a.b", "y"}};
  const InitialFit found = fit(init, json::array({parameter("a.c"), parameter("a.b.c"), parameter("ab.c")}),
                               json::array({parameter("x.c"), parameter("y.c"), parameter("ab.c")}));
  std::vector<std::string> pairs;
  for (const InitialFit::Pair& pair : found.taken) pairs.push_back(pair.from + " " + pair.to);
  EXPECT_THAT(pairs, ElementsAre("a.c x.c", "a.b.c y.c", "ab.c ab.c"));
  EXPECT_THAT(found.faults, IsEmpty());
  EXPECT_THAT(found.extra, IsEmpty());
}

}  // namespace

}  // namespace tenon_tests
