// What `tenon rerun` finds. SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>

#include "tests/rerun/recorded.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;

class RerunTest : public RecordedTest {
 protected:
  void SetUp() override {
    RecordedTest::SetUp();
    train({"--run", "run"});
    model_ = read("table.safetensors");
    fs::remove(path("table.safetensors"));
  }
  // Writes the record "other", which is "run" but for a change.
  void alter(const std::function<void(json& record)>& change) const {
    json record = record_of("run");
    change(record);
    write_record("other", record);
  }

  std::string model_;
};

TEST_F(RerunTest, TheSameModelWithAnyNumberOfThreadsFromAnywhere) {
  EXPECT_EQ(same({"run"}),
            "data: 1 file, 1.3 KiB, as recorded\n30 updates, 31 digests of the parameters, as "
            "recorded\nthe same model: run\n");
  EXPECT_FALSE(exists("table.safetensors")) << "nothing is saved";
  for (const char* threads : {"1", "2", "3"}) same({"run", "--threads", threads});
  fs::create_directory(path("deep"));
  fs::current_path(path("deep"));
  same({"../run"});
  fs::current_path(path("."));
  fs::rename(path("run"), path("deep/run"));  // the job's folder is no longer where the record says
  EXPECT_THAT(failure(kNotFound, run_rerun, {"deep/run"}),
              HasSubstr("data file \"table.csv\" of the record is missing, seen from \"deep"));
  same({"deep/run", "--job-folder", "."});
  fs::rename(path("table.csv"), path("deep/data.csv"));
  same({"deep/run", "--job-folder", ".", "--data", "table.csv=deep/data.csv"});
}

TEST_F(RerunTest, DataMayChangePlaces) {
  const std::string first = path("first.csv"), second = path("second.csv");
  write_table("first.csv");
  write_table("second.csv", 3);
  const std::string files = "reader.train.files=[\"" + first + "\", \"" + second + "\"]";
  train({"--run", "both", "--set", files});
  fs::rename(first, path("moved.csv"));
  fs::rename(second, first);
  fs::rename(path("moved.csv"), second);
  same({"both", "--data", first + "=" + second, "--data", second + "=" + first});
}

TEST_F(RerunTest, DoesNotNeedTheJobNorItsIncludes) {
  fs::create_directory(path("common"));
  std::string text = table_job();
  text.erase(text.find("seed = 3\n"), 9);
  write("job.toml", text + "[include]\nfiles = [\"common/part.toml\"]\n");
  write("common/part.toml", "seed = 3\n");
  train({"--run", "parts", "--set", "updater.learning_rate=0.02", "--passes", "2"});
  fs::remove_all(path("common"));
  fs::remove(path("job.toml"));
  same({"parts"});
}

TEST_F(RerunTest, FindsDataThatChanged) {
  write_table("table.csv", 5);
  EXPECT_THAT(difference({"run"}), HasSubstr("differs: data file \"table.csv\", block 1 of 1: bytes 0 to"));
  write("table.csv", read("table.csv") + "0.1,0.1,0.1\n");
  EXPECT_THAT(difference({"run"}), HasSubstr("bytes, in the record "));
  write_table("table.csv");
  same({"run"});
}

TEST_F(RerunTest, FindsAChangedDigitAtTheBorderOfABlock) {
  const std::string rest = read("table.csv").substr(6);
  std::string text = read("table.csv");
  while (text.size() < 200'000) text += rest;
  write("table.csv", text);
  train({"--run", "large", "--passes", "1", "--no-save"});
  constexpr size_t kBlock = 65536;
  for (const size_t block : {1U, 2U, 3U})
    for (const size_t at : {block * kBlock - 1, block * kBlock}) {
      std::string changed = text;
      changed[at] = changed[at] == '1' ? '2' : '1';
      write("table.csv", changed);
      const size_t number = at / kBlock;
      const size_t end = std::min((number + 1) * kBlock, text.size()) - 1;
      EXPECT_EQ(difference({"large"}), "differs: data file \"table.csv\", block " + std::to_string(number + 1) +
                                           " of 4: bytes " + std::to_string(number * kBlock) + " to " +
                                           std::to_string(end) + " differ");
    }
}

TEST_F(RerunTest, FindsFilesThatWereNotThere) {
  write_table("part-1.csv");
  train({"--run", "parts", "--set", "reader.train.files=['part-*.csv']", "--no-save"});
  write_table("part-2.csv");
  EXPECT_EQ(difference({"parts"}), "differs: data file \"part-2.csv\" is not in the record");
}

TEST_F(RerunTest, LocatesDifferencesToTheUpdate) {
  for (const int row : {0, 7, 8, 41, 79}) {
    write_table("table.csv", row);
    const int update = row / kBatch + 1;
    EXPECT_THAT(difference({"run", "--go-on"}),
                testing::StartsWith("differs: the parameters after update " + std::to_string(update) +
                                    " (pass 1, minibatch " + std::to_string(update) + "), first \"hidden."));
  }
}

TEST_F(RerunTest, SaysBetweenWhichDigestsAnUpdateLies) {
  train({"--run", "few", "--run-every", "4", "--no-save"});
  write_table("table.csv", 41);  // of update 6
  EXPECT_THAT(
      difference({"few", "--go-on"}),
      testing::EndsWith("the parameters after update 8 (pass 1, minibatch 8), first \"hidden.weight\" [2, 4]; the "
                        "digest before that, of update 4, is equal"));
}

TEST_F(RerunTest, NamesTheFirstParameter) {
  alter([](json& record) {
    json& digest = record["digests"][17];
    std::string each = digest["each"];
    each[8] = each[8] == '0' ? '1' : '0';
    digest["each"] = each;
    digest["xxh3"] = std::string(32, '0');
  });
  EXPECT_EQ(difference({"other"}),
            "differs: the parameters after update 17 (pass 2, minibatch 7), first \"hidden.bias\" [4]");
  alter([](json& record) { record["seed"] = 4; });
  EXPECT_EQ(difference({"other"}),
            "differs: the values before the first update, first those of \"hidden.weight\" [2, 4]");
}

TEST_F(RerunTest, FindsOtherVersionsAndBuilds) {
  const auto plugin = [](json& record) -> json& {
    for (json& each : record["plugins"])
      if (each["id"] == "tenon.fc") return each;
    throw std::runtime_error("no fc");
  };
  alter([&](json& record) { plugin(record)["version"] = "0.0.7"; });
  EXPECT_THAT(difference({"other"}),
              testing::MatchesRegex("differs: the plugin tenon.fc has the version .*, in the record 0.0.7"));
  EXPECT_THAT(same({"other", "--go-on"}), HasSubstr("remark: the plugin tenon.fc has the version "));
  alter([&](json& record) { record["library"]["version"] = "0.0.7"; });
  EXPECT_THAT(difference({"other"}), HasSubstr("libtenon has the version "));
  alter([&](json& record) {
    plugin(record)["sha256"] = std::string(64, '0');
    record["library"]["sha256"] = std::string(64, '0');
    record["processor"] = "Nobody avx sse9";
  });
  const std::string text = same({"other"});
  EXPECT_THAT(text, HasSubstr("remark: libtenon is another build of its version\n"));
  EXPECT_THAT(text, HasSubstr("remark: other builds of their versions: the plugins tenon.fc\n"));
  EXPECT_THAT(text, HasSubstr("remark: another processor, without Nobody"));
}

TEST_F(RerunTest, FindsAnotherArithmetic) {
  alter([](json& record) { record["arithmetic"]["asked"] = "native"; });
  EXPECT_EQ(difference({"other"}), "differs: arithmetic is \"default\", in the record \"native\"");
  alter([](json& record) { record["arithmetic"]["portable"] = !record["arithmetic"]["portable"]; });
  EXPECT_THAT(difference({"other"}), HasSubstr("has calls whose bits depend on the processor"));
}

TEST_F(RerunTest, FindsOtherResultsOfEqualParameters) {
  alter([](json& record) { record["curves"][1]["cost"] = 0.5; });
  EXPECT_THAT(difference({"other"}), testing::MatchesRegex("differs: pass 2: cost is [0-9.e-]*, in the record 0.5"));
  alter([](json& record) { record["models"][0]["sha256"] = std::string(64, '0'); });
  EXPECT_THAT(difference({"other"}),
              HasSubstr("the file of the key \"save\", \"table.safetensors\", has the SHA-256 "));
  alter([](json& record) {  // the digests of a thinned record need not reach the end
    record["digests"] = json::array();
    record["end"]["digest"]["xxh3"] = std::string(32, '0');
  });
  EXPECT_THAT(difference({"other"}), HasSubstr("differs: the parameters after update 30, first "));
}

TEST_F(RerunTest, RefusesWhatIsNotARecord) {
  EXPECT_THAT(failure(kNotFound, run_rerun, {"nowhere"}), HasSubstr("nowhere: has no record.json"));
  const std::pair<const char*, const char*> wrong[] = {
      {"", "is not the record of a training"},
      {"[1]", "is not the record of a training"},
      {"{\"a\": 1}", "is not the record of a training"},
      {"{\"tenon_record\": 2}", "a record of format 2, which this version"},
      {"{\"tenon_record\": 1}", "is not a whole record"}};
  fs::create_directory(path("wrong"));
  for (const auto& [text, message] : wrong) {
    write("wrong/record.json", text);
    EXPECT_THAT(failure(kBadData, run_rerun, {"wrong"}), HasSubstr(message)) << text;
  }
  alter([](json& record) { record["staleness"] = 2; });
  EXPECT_THAT(failure(kBadConfig, run_rerun, {"other"}), HasSubstr("the bounded mode depend on time"));
  alter([](json& record) { record["resumes"] = {{{"pass", 1}, {"batch", 0}, {"changes", "updater.learning_rate"}}}; });
  EXPECT_THAT(failure(kBadConfig, run_rerun, {"other"}), HasSubstr("resumed with other values"));
  alter([](json& record) { record["job"]["files"] = json::array(); });
  EXPECT_THAT(failure(kBadData, run_rerun, {"other"}), HasSubstr("the record has no job"));
  EXPECT_THAT(failure(kUsage, run_rerun, {"run", "--data", "x"}), HasSubstr("--data: expected OLD=NEW, got \"x\""));
  EXPECT_THAT(failure(kUsage, run_rerun, {"run", "--threads", "-1"}), HasSubstr("--threads: expected 0 to 1024"));
}

TEST_F(RerunTest, RepeatsAveragesTheBestAndTests) {
  write("job.toml", "test_every = 1\n" + job() +
                        "[average]\ndecay = 0.9\nsave = \"average.safetensors\"\n[save_best]\nmetric = \"accuracy\"\n"
                        "mode = \"max\"\n[early_stop]\npatience = 2\n");
  train({"--run", "best"});
  EXPECT_EQ(record_of("best")["models"].size(), 2U);
  same({"best"});
}

TEST_F(RerunTest, IsAVerbOfTheProgram) {
  const Outcome outcome = run("rerun run");
  EXPECT_EQ(outcome.exit, 0) << outcome.error;
  EXPECT_THAT(outcome.out, HasSubstr("the same model: run"));
}

}  // namespace

}  // namespace tenon_tests
