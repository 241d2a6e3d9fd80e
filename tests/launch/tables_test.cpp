// Jobs with tables whose rows several processes own: the model of one process, byte for byte.
// SPDX-License-Identifier: Apache-2.0
#include "tests/launch/launch.h"
#include "tests/launch/table_job.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class LaunchTables : public LaunchTest {
 protected:
  void SetUp() override {
    LaunchTest::SetUp();
    unsetenv("TENON_PROGRAM");
    write("data.csv", table_data());
    write("job.toml", table_job("passes = 3\nshards = 4\n") + R"([reader.test]
type = "csv"
files = ["data.csv"]
columns = ["item:i32<600", "rating"]
batch = 8
)");
  }
  // Returns the line of the test at the end, without its time.
  static std::string test_of(const std::string& output) {
    const size_t begin = output.rfind("test  cost");
    return begin == std::string::npos ? "" : output.substr(begin, output.find(',', begin) - begin);
  }
};

TEST_F(LaunchTables, ModelsAndTestsAreThoseOfOneProcess) {
  const Outcome whole = run("train job.toml --set tables=[] --save whole.safetensors");
  EXPECT_EQ(whole.exit, 0) << whole.error;
  for (const char* const processes : {"1", "2", "3", "1 --servers 1", "2 --servers 2"}) {
    fs::remove(path("model.safetensors"));
    const Outcome outcome = run(std::string("train job.toml --processes ") + processes);
    EXPECT_EQ(outcome.exit, 0) << outcome.error;
    EXPECT_TRUE(read("model.safetensors") == read("whole.safetensors")) << processes;
    EXPECT_EQ(test_of(outcome.out), test_of(whole.out)) << processes;
  }
  const Outcome unsaved = run("train job.toml --processes 2 --no-save");
  EXPECT_EQ(unsaved.exit, 0) << unsaved.error;
  EXPECT_THAT(unsaved.out + unsaved.error, HasSubstr("not tested: the rows of tables lie with several processes"));
}

TEST_F(LaunchTables, FirstValuesFromAModelGoToTheOwners) {
  EXPECT_EQ(run("train job.toml --set seed=9 --save first.safetensors").exit, 0);
  EXPECT_EQ(run("train job.toml --set init=first.safetensors --set tables=[] --save whole.safetensors").exit, 0);
  const Outcome outcome = run("train job.toml --set init=first.safetensors --processes 2");
  EXPECT_EQ(outcome.exit, 0) << outcome.error;
  EXPECT_TRUE(read("model.safetensors") == read("whole.safetensors"));
}

TEST_F(LaunchTables, AnOwnerThatIsKilledCostsNoUpdate) {
  const std::string longer = "train job.toml --set passes=150 --set shards=4";
  EXPECT_EQ(run(longer + " --set tables=[] --save whole.safetensors").exit, 0);
  Child child = begin("--processes 3 --set passes=150 --set 'checkpoint={folder=\"ck\",every_batches=20}'");
  ASSERT_TRUE(comes([&] { return fs::exists(path("ck/checkpoint-2-4.safetensors")) || child.has_ended(); }));
  ASSERT_FALSE(child.has_ended()) << read("output");
  send("1", SIGKILL);
  EXPECT_EQ(exit_of(child), 0) << read("output");
  EXPECT_THAT(read("output"), HasSubstr("process 1 was ended by signal 9"));
  EXPECT_TRUE(read("model.safetensors") == read("whole.safetensors")) << read("output");
  EXPECT_TRUE(fs::exists(path("ck/checkpoint-150-0.parts/002-of-003.safetensors")));
  EXPECT_EQ(run("model join ck/checkpoint-150-0.safetensors one.safetensors").exit, 0);
  EXPECT_EQ(test_of(run("test job.toml --model one.safetensors").out),
            test_of(run("test job.toml --model whole.safetensors").out));
}

TEST_F(LaunchTables, MistakesNameTheTable) {
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const Outcome outcome = run("train job.toml " + arguments);
    EXPECT_GE(outcome.exit, 64) << arguments;
    EXPECT_LE(outcome.exit, 78) << arguments;
    EXPECT_THAT(outcome.error, HasSubstr(why));
  };
  for (const char* const processes : {"", " --processes 2"}) {
    refused(std::string("--set 'tables=[\"item.weight\"]'") + processes,
            "table \"item.weight\": the model has no parameter of that name");
    refused(std::string("--set 'tables=[\"prediction.weight\"]'") + processes,
            "table \"prediction.weight\": layer \"prediction\" reads it by");
  }
  refused("--processes 2 --set updater.clip_norm=1.0", "table \"items.weight\" has its rows with the processes");
  EXPECT_FALSE(fs::exists(path("model.safetensors")));
}

}  // namespace

}  // namespace tenon_tests
