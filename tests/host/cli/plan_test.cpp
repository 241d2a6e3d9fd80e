// The verb plan for a model that does not fit into memory, and costs that a training would leave out.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/host/cli/program.h"

namespace tenon_tests {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

using PlanTest = ProgramTest;

// 2^30 columns of 16 inputs would take 64 GiB for the weight alone. plan does not allocate it.
TEST_F(PlanTest, AsksForNoMemory) {
  const Outcome outcome = run("plan job.toml --json --set layer.hidden.size=1073741824");
  ASSERT_EQ(outcome.exit, 0) << outcome.error;
  const json bytes = json::parse(outcome.out).at("bytes");
  const auto parameters = bytes.at("parameters").get<uint64_t>();
  EXPECT_EQ(parameters, (uint64_t{16 + 1 + 3} << 32) + 64);
  EXPECT_EQ(bytes.at("state"), 2 * parameters);
  EXPECT_GT(bytes.at("machine").get<uint64_t>(), parameters);
  EXPECT_EQ(run("plan job.toml --inference --set layer.hidden.size=1073741824").exit, 0);
}

// A kernel may need more memory for a huge layer than any sum of sizes can hold. That is the size's fault, not the
// plugin's.
TEST_F(PlanTest, SizesBeyondAllMemoryAreRefused) {
  for (const char* size : {"4398046511104", "17592186044416"}) {
    const Outcome outcome = run(std::string("plan job.toml --set layer.hidden.size=") + size);
    EXPECT_EQ(outcome.exit, 78) << outcome.error;
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("job.toml:"), HasSubstr("layer \"hidden"))) << size;
  }
}

// A plugin that is refused when its code is loaded is left out with a warning; --why names what it would have done.
TEST_F(PlanTest, SaysWhichPluginsAreRefusedWhenTheyAreLoaded) {
  const std::string file = test_plugin_folder() + "/nonconforming/provider_bytes.so";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "not built with sanitizers";
  std::filesystem::create_directory(path("odd"));
  std::filesystem::copy_file(file, path("odd/odd.so"));
  const auto refused =
      AllOf(HasSubstr("odd.so: provider \"bad_gemm\": its table states a size of 8 bytes; expected a "),
            HasSubstr("multiple of 8 from 16"));
  const std::string odd = " --plugins odd";
  for (const char* verb : {"plan job.toml", "train job.toml --no-save", "bench job.toml --seconds=0.1"}) {
    const Outcome outcome = run(verb + odd);
    EXPECT_EQ(outcome.exit, 0) << outcome.error;
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("warning: "), refused)) << verb;
  }
  const Outcome why = run("plan job.toml --why all" + odd);
  EXPECT_THAT(why.out, AllOf(HasSubstr("bad_gemm of bad.provider_bytes"), HasSubstr("bad_relu of bad.provider_bytes"),
                             HasSubstr("its plugin is refused: "), refused));
}

TEST_F(PlanTest, CountsTheSumsOfShardsThatADeviceComputesInTurn) {
  const json bytes = json::parse(run("plan job.toml --json --set shards=4").out).at("bytes");
  EXPECT_EQ(bytes.at("sums"), 2 * bytes.at("gradients").get<int64_t>()) << "at most shard 2 and the sum of 0 and 1";
  int64_t sum = 0;
  for (const char* part : {"control", "feeds", "gradients", "arena", "workspace", "row_sparse", "sums"})
    sum += bytes.at(part).get<int64_t>();
  EXPECT_EQ(bytes.at("machine"), sum);
  EXPECT_THAT(run("plan job.toml --set shards=4").out,
              AllOf(HasSubstr("device cpu:0, with 4 shards of at most 2 of the samples, one after another"),
                    HasSubstr("from \"control\" to \"sums\"")));
}

TEST_F(PlanTest, SaysWhatTheOwnersOfTablesHaveAndServe) {
  write("words.csv", "word,label\n3,1\n500,0\n");
  write("tables.toml", R"(
tables = ["vector.weight"]
shards = 4
layer = [{ name = "vector", type = "embedding", inputs = ["word"], vocabulary = 1000, size = 6 },
         { name = "score", type = "fc", inputs = ["vector"], size = 2 },
         { name = "cost", type = "cross_entropy", inputs = ["score", "label"], from_logits = true }]
updater = { type = "adam", learning_rate = 0.1 }
[[updater_group]]
parameters = ["vector"]
type = "rowwise_adagrad"
learning_rate = 0.1
[reader.train]
type = "csv"
files = ["words.csv"]
columns = ["word: i32 < 1000", "label: i32 < 2"]
batch = 8
)");
  const Outcome outcome = run("plan tables.toml --json --processes 3 --network 1");
  ASSERT_EQ(outcome.exit, 0) << outcome.error;
  const json plan = json::parse(outcome.out), table = plan.at("tables").at(0);
  EXPECT_EQ(table.at("bytes"), 24000);
  EXPECT_EQ(table.at("state_bytes"), 4000) << "one number for each row";
  EXPECT_EQ(table.at("minibatch_rows"), 8);
  // 86 of 256 blocks: 3 rows of each, and of the first 232 one more.
  EXPECT_EQ(table.at("owner"), (json{{"rows", 344}, {"bytes", 8256}, {"state_bytes", 1376}}));
  const double dense = 4.0 / 3 * plan.at("bytes").at("gradients").get<double>();
  EXPECT_NEAR(plan.at("exchange").at("bytes").get<double>(), dense + 8.0 / 3 * 2 / 3 * (2 * 24 + 16), 1e-9);
  EXPECT_THAT(run("plan tables.toml --processes 3").out,
              AllOf(HasSubstr("Tables, and what an owner has of them at most:"), HasSubstr("vector.weight"),
                    HasSubstr("In a step the owners serve about 8 rows, where 16 are taken")));
  const json served = json::parse(run("plan tables.toml --json --processes 3 --servers 2 --network 1").out);
  EXPECT_EQ(served.at("tables").at(0).at("owner").at("rows"), 512) << "128 blocks of 4 rows";
  const double wider = 8.0 / 5 * plan.at("bytes").at("gradients").get<double>();
  EXPECT_NEAR(served.at("exchange").at("bytes").get<double>(), wider + 8.0 / 3 * (24 + 16), 1e-9);
  EXPECT_NEAR(served.at("exchange").at("owner_rows_a_second").get<double>(), 1e8 / 24, 1e-3);
  EXPECT_THAT(run("plan tables.toml --processes 3 --servers 2 --network 1").out,
              HasSubstr("at 1.0 Gb/s an owner can send 4.1"));
  EXPECT_THAT(run("plan job.toml --processes 3 --servers 2").error, HasSubstr("the job has no tables"));
  EXPECT_EQ(run("plan tables.toml --servers 2").exit, 64);
  EXPECT_THAT(run("plan tables.toml --processes 257 --set shards=300").error,
              HasSubstr("--processes 257: the rows of tables can have 256 owners"));
  EXPECT_THAT(run("plan tables.toml --set 'tables=[\"vector.wight\"]'").error,
              AllOf(HasSubstr("\"vector.wight\" is no parameter with rows"), HasSubstr("vector.weight")));
}

TEST_F(PlanTest, SaysWhatTheBoundedModeExchanges) {
  const std::string plan = "plan job.toml --set staleness=4 --processes 3";
  const json bounded = json::parse(run(plan + " --servers 2 --json --network 1").out);
  const json& exchange = bounded.at("exchange");
  EXPECT_EQ(exchange.at("mode"), "bounded");
  EXPECT_EQ(exchange.at("staleness"), 4);
  EXPECT_EQ(exchange.at("shards"), 1);
  const double bytes = bounded.at("bytes").at("gradients").get<double>();
  EXPECT_EQ(exchange.at("bytes").get<double>(), bytes);
  EXPECT_NEAR(exchange.at("seconds").get<double>(), bytes / 1e8 + 4 * 30e-6, 1e-12);
  EXPECT_THAT(run(plan + " --servers 2").out,
              AllOf(HasSubstr("Bounded mode, staleness 4: 3 processes train, 2 serve parameters"),
                    HasSubstr("Over zmq trainers other than process 0 may be lost, and return; over an MPI a lost "
                              "process ends the job in every mode.")));
  const Outcome without = run(plan);
  EXPECT_EQ(without.exit, 64);
  EXPECT_THAT(without.error, HasSubstr("the job has staleness = 4, with which servers have the parameters"));
}

TEST_F(PlanTest, SaysWhatProcessesExchange) {
  const Outcome outcome = run("plan job.toml --json --processes 4 --set shards=8 --network 1");
  ASSERT_EQ(outcome.exit, 0) << outcome.error;
  const json plan = json::parse(outcome.out), exchange = plan.at("exchange");
  EXPECT_EQ(exchange.at("processes"), 4);
  EXPECT_EQ(exchange.at("shards"), 8);
  const double bytes = 1.5 * plan.at("bytes").at("gradients").get<double>();
  EXPECT_EQ(exchange.at("bytes").get<double>(), bytes);
  EXPECT_NEAR(exchange.at("seconds").get<double>(), bytes / 1e8 + 6 * 30e-6, 1e-12);
  EXPECT_EQ(json::parse(run("plan job.toml --json --processes 1").out).at("exchange").at("seconds"), 0);
  const Outcome text = run("plan job.toml --processes 2");
  EXPECT_THAT(text.out, AllOf(HasSubstr("2 processes, 2 shards: in a step each sends "), HasSubstr(" at 10.0 Gb/s"),
                              HasSubstr("Reading: each process reads its own samples.")));
  EXPECT_EQ(plan.at("whole_reason"), "");
  change(R"(type = "idx"
files = ["train-images", "train-labels"])",
         R"(join = "interleave"
part = [{ type = "idx", files = ["train-images", "train-labels"] },
        { type = "idx", files = ["test-images", "test-labels"] }])");
  EXPECT_THAT(run("plan job.toml --processes 2").out,
              HasSubstr("Reading: every process reads all samples: interleave takes the samples of its readers in "
                        "turn."));
  const Outcome few = run("plan job.toml --processes 3 --set shards=2");
  EXPECT_EQ(few.exit, 64);
  EXPECT_THAT(few.error, HasSubstr("--processes 3: the job has 2 shards; a process needs one at least"));
  for (const char* wrong : {"--processes=-1", "--processes 1000000", "--processes x", "--processes 2 --network 0",
                            "--processes 2 --inference"})
    EXPECT_EQ(run(std::string("plan job.toml ") + wrong).exit, 64) << wrong;
}

class HiddenCostTest : public ProgramTest {
 protected:
  // Writes the job with half of the cost as a layer, the average of that as a metric, and these outputs.
  void halve(const std::string& outputs) const {
    change("[[layer]]\nname = \"accuracy\"",
           "[[layer]]\nname = \"half\"\ntype = \"scale_shift\"\ninputs = [\"cost\"]\nscale = 0.5\n\n"
           "[[layer]]\nname = \"watched\"\ntype = \"average\"\ninputs = [\"half\"]\n\n"
           "[[layer]]\nname = \"accuracy\"");
    const std::string text = read("job.toml");
    write("job.toml", outputs + "\n" + text);
  }
};

TEST_F(HiddenCostTest, IsRefusedByName) {
  const auto why = AllOf(HasSubstr("cost layer \"cost\" would not be trained"), HasSubstr("not among the outputs"),
                         HasSubstr("layer \"half\" (scale_shift)"));
  for (const char* outputs : {"outputs = [\"half\"]", "outputs = [\"half\", \"accuracy\", \"prediction\"]"}) {
    halve(outputs);
    for (const char* verb : {"train", "plan"}) {
      const Outcome outcome = run(std::string(verb) + " job.toml");
      EXPECT_EQ(outcome.exit, 78) << outcome.out;
      EXPECT_THAT(outcome.error, why);
      EXPECT_EQ(outcome.out, "");
    }
  }
  halve("outputs = [\"watched\", \"accuracy\"]");
  EXPECT_THAT(run("train job.toml").error,
              HasSubstr("training needs a cost among the outputs; add the layer \"cost\" to them"));
}

// A metric of a cost does not take it out of the outputs.
TEST_F(HiddenCostTest, IsTrainedWhereOnlyMetricsReadIt) {
  change("[[layer]]\nname = \"accuracy\"",
         "[[layer]]\nname = \"hardness\"\ntype = \"perplexity\"\ninputs = [\"cost\"]\n\n"
         "[[layer]]\nname = \"accuracy\"");
  const Outcome outcome = run("train job.toml --passes 1 --no-save");
  EXPECT_EQ(outcome.exit, 0) << outcome.error;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("pass 1/1  cost "), HasSubstr("  perplexity ")));
}

TEST_F(HiddenCostTest, MayStandBesideTheCost) {
  for (const char* outputs : {"outputs = [\"half\", \"cost\"]", "outputs = [\"cost\", \"watched\", \"prediction\"]"}) {
    halve(outputs);
    const Outcome outcome = run("train job.toml --passes 1 --no-save");
    EXPECT_EQ(outcome.exit, 0) << outcome.error;
    EXPECT_THAT(outcome.out, HasSubstr("pass 1/1  cost "));
  }
}

}  // namespace
}  // namespace tenon_tests
