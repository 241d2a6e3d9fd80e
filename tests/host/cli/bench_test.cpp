// The verb bench. The times themselves are not tested. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/host/cli/program.h"

namespace tenon_tests {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

using BenchTest = ProgramTest;

TEST_F(BenchTest, AccountsForTheStep) {
  const Outcome outcome = run("bench job.toml --seconds 0.2 --threads 1 --json");
  ASSERT_EQ(outcome.exit, 0) << outcome.error;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("threads"), 1);
  EXPECT_EQ(result.at("batch"), 8);
  EXPECT_GE(result.at("steps").get<int64_t>(), 5);
  EXPECT_GT(result.at("machine").at("operations").get<double>(), 0);
  EXPECT_GT(result.at("machine").at("bandwidth").get<double>(), 0);
  double limit = 0, products = 0;
  bool updates = false;
  for (const json& part : result.at("parts")) {
    EXPECT_GE(part.at("seconds").get<double>(), 0);
    limit += part.at("limit").get<double>();
    if (part.at("layers").get<std::string>().find("score") == 0) products += part.at("operations").get<double>();
    updates = updates || part.at("phase") == "update";
  }
  EXPECT_TRUE(updates);
  EXPECT_NEAR(result.at("limit").get<double>(), limit, 1e-12);
  EXPECT_GE(products, 7 * 3 * 2 * 8 * 3);  // minibatches of 7.5 samples on average: three products of 8 x 3
  EXPECT_FALSE(std::filesystem::exists(path("model.safetensors")));
}

TEST_F(BenchTest, PrintsATable) {
  const Outcome outcome = run("bench job.toml --seconds 0.1");
  ASSERT_EQ(outcome.exit, 0) << outcome.error;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("job.toml: minibatches of at most 8 samples"), HasSubstr(" % reached"),
                                 HasSubstr("backward"), HasSubstr("samples/s")));
}

TEST_F(BenchTest, NeedsATraining) {
  EXPECT_THAT(run("bench job.toml --seconds 0").error, HasSubstr("--seconds: expected a number above 0"));
  write("job.toml", "outputs = [\"prediction\"]\n" + job());
  const Outcome outcome = run("bench job.toml --seconds 0.1");
  EXPECT_EQ(outcome.exit, 78);
  EXPECT_THAT(outcome.error, HasSubstr("training needs a cost among the outputs; add the layer \"cost\" to them"));
  EXPECT_EQ(outcome.out, "");
}

}  // namespace
}  // namespace tenon_tests
