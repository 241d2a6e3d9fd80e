// Jobs and models of earlier versions (tests/data/models_*): they load, and predict the same values as before.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>

#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<std::string> models() {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(fs::path(tenon_tests::source_folder()) / "tests/data/models_0_1"))
    if (entry.is_directory()) folders.push_back(entry.path().filename().string());
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
    const fs::path from = fs::path(tenon_tests::source_folder()) / "tests/data/models_0_1" / GetParam();
    for (const auto& entry : fs::directory_iterator(from))  // training writes its model beside the job
      fs::copy_file(entry.path(), path(entry.path().filename().string()), fs::copy_options::overwrite_existing);
  }
};

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
  done(run_train, {"job.toml", "--passes", "2"});
  EXPECT_TRUE(fs::exists("model.safetensors"));
}

INSTANTIATE_TEST_SUITE_P(Interface01, OldModel, testing::ValuesIn(models()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace tenon_tests
