// Jobs, models, checkpoints, topologies and records of earlier versions (tests/museum/files): they are read, answer the
// same as before, and are continued and repeated. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "rerun/verb.h"
#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path museum() { return fs::path(tenon_tests::source_folder()) / "tests/museum/files"; }

// "0.1/dense" and the others that have a file or folder `having`.
std::vector<std::string> exhibits(const std::string& having) {
  std::vector<std::string> folders;
  for (const auto& version : fs::directory_iterator(museum())) {
    if (!version.is_directory()) continue;
    for (const auto& entry : fs::directory_iterator(version))
      if (fs::exists(entry.path() / having) && fs::exists(entry.path() / "predictions.jsonl"))
        folders.push_back(version.path().filename().string() + "/" + entry.path().filename().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

// Returns a number or a list of numbers as a list.
std::vector<double> numbers(const json& value) {
  return value.is_array() ? value.get<std::vector<double>>() : std::vector<double>{value.get<double>()};
}

class OldFiles : public CallTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    CallTest::SetUp();
    fs::copy(museum() / "data", path("data"), fs::copy_options::recursive);
    fs::copy(museum() / GetParam(), path("exhibit"), fs::copy_options::recursive);
    fs::current_path(path("exhibit"));
  }
  [[nodiscard]] static std::string contents(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  // Later versions compute what 0.2 and 0.3 did with other roundings; those since 0.4 have the same bits.
  [[nodiscard]] static bool is_exact() { return GetParam() >= "0.4"; }
  static std::vector<json> answers(const std::string& model) {
    return parsed(done(run_infer, {"job.toml", "--model", model}).out);
  }
  static void expect_near(const std::vector<json>& now, const std::vector<json>& before, double tolerance) {
    if (is_exact()) tolerance = 0;
    ASSERT_EQ(now.size(), before.size());
    EXPECT_GT(now.size(), 0u);
    for (size_t sample = 0; sample < before.size(); ++sample) {
      const std::vector<double> expected = numbers(before[sample].at("prediction"));
      const std::vector<double> values = numbers(now[sample].at("prediction"));
      ASSERT_EQ(values.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(values[i], expected[i], tolerance) << "sample " << sample;
    }
  }
};

class OldCheckpoints : public OldFiles {};
class OldTopologies : public OldFiles {};
class OldRecords : public OldFiles {};

TEST_P(OldFiles, AnswerAsTheyDid) {
  const Outcome answer = done(run_infer, {"job.toml"});
  EXPECT_EQ(answer.error, "") << "the layers of the job are those of the model";
  expect_near(parsed(answer.out), parsed(contents("predictions.jsonl")), 1e-5);
}

TEST_P(OldFiles, AnswerTheSameInAnyBatch) {
  const std::string together = done(run_infer, {"job.toml"}).out;
  for (const char* settings : {"1 3", "3 1", "7 2"}) {
    const std::string batch(1, settings[0]), threads(1, settings[2]);
    EXPECT_EQ(done(run_infer, {"job.toml", "--set", "reader.test.batch=" + batch, "--threads", threads}).out, together)
        << "batch " << batch << ", " << threads << " threads";
  }
}

TEST_P(OldFiles, AreTrainedAgainFromTheirJob) {
  fs::remove("model.safetensors");
  fs::remove_all("checkpoints");
  done(run_train, {"job.toml", "--passes", "2"});
  EXPECT_TRUE(fs::exists("model.safetensors"));
}

// Each checkpoint is of the middle of the training.
TEST_P(OldCheckpoints, AreContinued) {
  std::vector<std::pair<fs::path, std::vector<json>>> models;
  for (const auto& file : fs::directory_iterator("."))
    if (file.path().extension() == ".safetensors") models.emplace_back(file.path(), answers(file.path()));
  for (const auto& [file, before] : models) fs::rename(file, file.string() + ".before");
  done(run_train,
       is_exact() ? Arguments{"job.toml", "--resume"} : Arguments{"job.toml", "--resume", "--resume-inexact"});
  for (const auto& [file, before] : models) {
    expect_near(answers(file), before, 1e-3);
    EXPECT_TRUE(!is_exact() || contents(file) == contents(file.string() + ".before")) << file;
  }
}

TEST_P(OldCheckpoints, AreModels) {
  for (const auto& file : fs::directory_iterator("checkpoints"))
    if (file.path().extension() == ".safetensors") {
      EXPECT_EQ(answers(file.path()).size(), parsed(contents("predictions.jsonl")).size());
      EXPECT_THAT(done(run_model_show, {file.path()}).out, testing::HasSubstr("prediction"));
    }
}

TEST_P(OldTopologies, AreThoseOfTheirModels) {
  EXPECT_EQ(done(run_model_print, {"topology.json", "--topology", "of_topology.json"}).out,
            done(run_model_print, {"model.safetensors", "--topology", "of_model.json"}).out);
  EXPECT_EQ(contents("of_topology.json"), contents("of_model.json"));
  EXPECT_THAT(contents("of_model.json"), testing::HasSubstr("\"outputs\""));
}

TEST_P(OldRecords, AreRepeated) {
  const Outcome outcome = call(rerun::run_rerun, {"record"});
  EXPECT_EQ(outcome.exit, kDone) << outcome.out << outcome.error;
  EXPECT_THAT(outcome.out, testing::HasSubstr("the same model: record"));
}

const auto kNamed = [](const testing::TestParamInfo<std::string>& tested) {
  std::string name = tested.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == '.'; }, '_');
  return name;
};
INSTANTIATE_TEST_SUITE_P(Versions, OldFiles, testing::ValuesIn(exhibits("model.safetensors")), kNamed);
INSTANTIATE_TEST_SUITE_P(Versions, OldCheckpoints, testing::ValuesIn(exhibits("checkpoints")), kNamed);
INSTANTIATE_TEST_SUITE_P(Versions, OldTopologies, testing::ValuesIn(exhibits("topology.json")), kNamed);
INSTANTIATE_TEST_SUITE_P(Versions, OldRecords, testing::ValuesIn(exhibits("record")), kNamed);

}  // namespace
}  // namespace tenon_tests
