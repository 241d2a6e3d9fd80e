// Jobs on several devices, and with rounded products: the verbs that run machines. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/host/cli/program.h"

namespace tenon_tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class DevicesTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write("job.toml", "devices = [\"cpu:0\", \"cpu:0\"]\n" + job());
  }
};

TEST_F(DevicesTest, TrainTestAndInfer) {
  ASSERT_EQ(run("train job.toml --save whole.safetensors").exit, 0);
  ASSERT_EQ(run("train job.toml --save again.safetensors --threads 1").exit, 0);
  EXPECT_EQ(read("whole.safetensors"), read("again.safetensors"));  // with any number of threads
  ASSERT_EQ(run("train job.toml --save other.safetensors --set 'devices=[\"cpu\", \"cpu\", \"cpu\"]'").exit, 0);
  EXPECT_NE(read("whole.safetensors"), read("other.safetensors"));  // other sums round otherwise
  for (const std::string verb : {"test", "infer"}) {
    const std::string command = verb + " job.toml --model whole.safetensors";
    const Outcome several = run(command);
    ASSERT_EQ(several.exit, 0) << several.error;
    const Outcome one = run(command + " --set 'devices=[\"cpu\"]'");
    if (verb == "test") continue;  // whose sums round otherwise
    EXPECT_EQ(several.out, one.out);
  }
}

// Results depend on the shards, whatever devices compute them.
TEST_F(DevicesTest, ShardsAreDividedAmongDevices) {
  const std::string train = "train job.toml --set shards=3 --save ";
  ASSERT_EQ(run(train + "two.safetensors").exit, 0);
  ASSERT_EQ(run(train + "one.safetensors --set 'devices=[\"cpu\"]'").exit, 0);
  ASSERT_EQ(run(train + "three.safetensors --set 'devices=[\"cpu\", \"cpu\", \"cpu\"]'").exit, 0);
  EXPECT_EQ(read("two.safetensors"), read("one.safetensors"));
  EXPECT_EQ(read("two.safetensors"), read("three.safetensors"));
  ASSERT_EQ(run("train job.toml --set shards=20 --save many.safetensors").exit, 0);  // than samples
  const Outcome few = run("train job.toml --no-save --set shards=1");
  EXPECT_EQ(few.exit, 78);
  EXPECT_THAT(few.error, HasSubstr("shards is 1, fewer than the devices, \"cpu:0\", \"cpu:0\""));
  for (const char* wrong : {"0", "65537", "1.5", "\"two\""}) {
    const Outcome refused = run(std::string("train job.toml --no-save --set 'shards=") + wrong + "'");
    EXPECT_EQ(refused.exit, 78) << wrong;
    EXPECT_THAT(refused.error, HasSubstr("shards")) << wrong;
  }
}

TEST_F(DevicesTest, ResumeWithTheSameBits) {
  const std::string train = "train job.toml --passes 3 --set checkpoint.folder=saves";
  ASSERT_EQ(run("train job.toml --passes 3 --save whole.safetensors").exit, 0);
  ASSERT_EQ(run("train job.toml --passes 1 --set checkpoint.folder=saves").exit, 0);
  const Outcome refused = run(train + " --resume --set 'devices=[\"cpu\"]'");
  EXPECT_EQ(refused.exit, 78);
  EXPECT_THAT(refused.error, HasSubstr("provider.shards: in the checkpoint (2), not now"));
  const Outcome resumed = run(train + " --resume --save resumed.safetensors");
  ASSERT_EQ(resumed.exit, 0) << resumed.error;
  EXPECT_EQ(read("whole.safetensors"), read("resumed.safetensors"));
}

TEST_F(DevicesTest, PlanAndBench) {
  const Outcome plan = run("plan job.toml");
  EXPECT_THAT(plan.out, HasSubstr("devices cpu:0, cpu:0, each with at most 4 of the samples, compute float32, "
                                  "minibatches of at most 8 samples, training"));
  const json described = json::parse(run("plan job.toml --json").out);
  EXPECT_EQ(described.at("devices"), json({"cpu:0", "cpu:0"}));
  EXPECT_EQ(described.at("shard_samples"), 4);
  const Outcome bench = run("bench job.toml --seconds 0.1");
  EXPECT_EQ(bench.exit, 0) << bench.error;
}

// Products in bfloat16: another plan and model, the same one twice, and a resume that is not exact.
TEST_F(DevicesTest, ComputeInBfloat16) {
  write("job.toml", "compute = \"bf16\"\n" + job());
  EXPECT_THAT(run("plan job.toml").out, HasSubstr("compute bf16, minibatches"));
  ASSERT_EQ(run("train job.toml --save rounded.safetensors --set checkpoint.folder=saves").exit, 0);
  ASSERT_EQ(run("train job.toml --save again.safetensors --threads 1").exit, 0);
  EXPECT_EQ(read("rounded.safetensors"), read("again.safetensors"));
  ASSERT_EQ(run("train job.toml --save full.safetensors --set compute=float32").exit, 0);
  EXPECT_NE(read("rounded.safetensors"), read("full.safetensors"));
  EXPECT_EQ(run("test job.toml --model rounded.safetensors").exit, 0);
  const Outcome refused = run("train job.toml --resume --set checkpoint.folder=saves --set compute=float32");
  EXPECT_EQ(refused.exit, 78);
  EXPECT_THAT(refused.error, HasSubstr("provider.compute: in the checkpoint (\"bf16\"), not now"));
  const Outcome unknown = run("train job.toml --set compute=half");
  EXPECT_EQ(unknown.exit, 78);
  EXPECT_THAT(unknown.error, HasSubstr("key \"compute\": expected \"float32\", \"bf16\" or \"tf32\""));
}

// A step whose gradients are not finite is skipped, and said.
TEST_F(DevicesTest, SkippedStepsAreCounted) {
  write("job.toml", "compute = \"bf16\"\n" + job() + "\n");
  const Outcome outcome = run("train job.toml --set updater.learning_rate=1e38 --passes 3");
  EXPECT_THAT(outcome.out + outcome.error, HasSubstr("steps so far were skipped: their gradients were not finite"));
}

TEST_F(DevicesTest, AreRefusedByName) {
  const auto refused = [&](const std::string& key, int exit, const std::string& words) {
    const Outcome outcome = run("train job.toml --set '" + key + "'");
    EXPECT_EQ(outcome.exit, exit) << key;
    EXPECT_THAT(outcome.error, HasSubstr(words));
  };
  refused("devices=[\"cpu:0\", \"cpu:9\"]", 66,
          "devices \"cpu:0\", \"cpu:9\": device \"cpu:9\": unknown number 9; expected 0 to 0");
  refused("devices=[]", 78, "key \"devices\": the list is empty");
  refused("device=cpu", 78, "key \"devices\": the job has the key \"device\", too");
  refused("reader.train.batch=1", 78,
          "a minibatch of at most 1 sample is smaller than the list of devices, \"cpu:0\", \"cpu:0\"");
}

// What the bits may follow from: the key `arithmetic`, and what a model and messages say of it.
TEST_F(DevicesTest, ArithmeticIsPortableOrNative) {
  write("one.toml", job());
  ASSERT_EQ(run("train one.toml --save default.safetensors").exit, 0);
  ASSERT_EQ(run("train one.toml --save portable.safetensors --require-portable").exit, 0);
  EXPECT_EQ(read("default.safetensors"), read("portable.safetensors"));
  ASSERT_EQ(run("train one.toml --save native.safetensors --set 'arithmetic=\"native\"'").exit, 0);
  EXPECT_THAT(run("model show native.safetensors --json").out, HasSubstr("\"arithmetic\": \"native\""));
  EXPECT_THAT(run("model show default.safetensors --json").out, testing::Not(HasSubstr("arithmetic")));
  const Outcome both = run("train one.toml --no-save --require-portable --set 'arithmetic=\"native\"'");
  EXPECT_EQ(both.exit, 64);
  EXPECT_THAT(both.error, HasSubstr("--require-portable: the job has arithmetic = \"native\""));
  const Outcome unknown = run("train one.toml --no-save --set 'arithmetic=\"exact\"'");
  EXPECT_EQ(unknown.exit, 78);
  EXPECT_THAT(unknown.error, HasSubstr("expected \"portable-0\" or \"native\""));
  const Outcome rounded = run("train one.toml --no-save --require-portable --set 'compute=\"bf16\"'");
  EXPECT_NE(rounded.exit, 0);
  EXPECT_THAT(rounded.error, HasSubstr("does not state that its bits are the same on every processor"));
}

}  // namespace
}  // namespace tenon_tests
