// Jobs and models of earlier versions (tests/data/models_*): they load, and predict the same values as before.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// "models_0_1/dense" and the others; those with a checkpoint, too, or all.
std::vector<std::string> models(bool with_checkpoint = false) {
  std::vector<std::string> folders;
  const fs::path data = fs::path(tenon_tests::source_folder()) / "tests/data";
  for (const auto& version : fs::directory_iterator(data)) {
    const std::string name = version.path().filename().string();
    if (!name.starts_with("models_")) continue;
    for (const auto& entry : fs::directory_iterator(version))
      if (entry.is_directory() && (!with_checkpoint || fs::exists(entry.path() / "checkpoints")))
        folders.push_back(name + "/" + entry.path().filename().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

// Returns a number or a list of numbers as a list.
std::vector<double> numbers(const json& value) {
  return value.is_array() ? value.get<std::vector<double>>() : std::vector<double>{value.get<double>()};
}

class OldModel : public CallTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    CallTest::SetUp();
    const fs::path from = fs::path(tenon_tests::source_folder()) / "tests/data" / GetParam();
    fs::copy(from, path("."),
             fs::copy_options::recursive |
                 fs::copy_options::overwrite_existing);  // training writes its model beside the job
  }
};

class OldCheckpoint : public OldModel {};

TEST_P(OldModel, AnswersAsItDid) {
  const Outcome answer = done(run_infer, {"job.toml"});
  EXPECT_EQ(answer.error, "") << "the layers of the job are those of the model";
  const std::vector<json> now = parsed(answer.out);
  std::ifstream kept("predictions.jsonl");
  size_t sample = 0;
  for (std::string line; std::getline(kept, line); ++sample) {
    ASSERT_LT(sample, now.size());
    const std::vector<double> expected = numbers(json::parse(line).at("prediction"));
    const std::vector<double> given = numbers(now[sample].at("prediction"));
    ASSERT_EQ(given.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(given[i], expected[i], 1e-5) << "sample " << sample;
  }
  EXPECT_EQ(sample, now.size());
  EXPECT_GT(sample, 0u);
}

TEST_P(OldModel, AnswersTheSameInAnyBatch) {
  const std::string together = done(run_infer, {"job.toml"}).out;
  for (const char* batch : {"1", "2", "3", "7", "16"})
    for (const char* threads : {"1", "2", "3", "4"})
      EXPECT_EQ(done(run_infer, {"job.toml", "--set", std::string("reader.test.batch=") + batch, "--set",
                                 std::string("threads=") + threads})
                    .out,
                together)
          << "batch " << batch << ", " << threads << " threads";
}

TEST_P(OldModel, IsTrainedAgainFromItsJob) {
  fs::remove("model.safetensors");
  fs::remove_all("checkpoints");
  done(run_train, {"job.toml", "--passes", "2"});
  EXPECT_TRUE(fs::exists("model.safetensors"));
}

// The checkpoint is of the middle of the training. Another processor may have other kernels, and so other bits.
TEST_P(OldCheckpoint, IsContinued) {
  const std::string expected = done(run_infer, {"job.toml"}).out;
  fs::remove("model.safetensors");
  done(run_train, {"job.toml", "--resume", "--resume-inexact"});
  const std::vector<json> before = parsed(expected), after = parsed(done(run_infer, {"job.toml"}).out);
  ASSERT_EQ(after.size(), before.size());
  for (size_t sample = 0; sample < before.size(); ++sample) {
    const std::vector<double> wanted = numbers(before[sample].at("prediction"));
    const std::vector<double> given = numbers(after[sample].at("prediction"));
    ASSERT_EQ(given.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(given[i], wanted[i], 1e-3) << "sample " << sample;
  }
}

const auto kNamed = [](const testing::TestParamInfo<std::string>& tested) {
  std::string name = tested.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
};
INSTANTIATE_TEST_SUITE_P(Versions, OldModel, testing::ValuesIn(models()), kNamed);
INSTANTIATE_TEST_SUITE_P(Versions, OldCheckpoint, testing::ValuesIn(models(true)), kNamed);

}  // namespace
}  // namespace tenon_tests
