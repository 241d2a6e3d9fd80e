// What `tenon train --run` records. SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/rerun/recorded.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;

class RecordTest : public RecordedTest {
 protected:
  static std::string fault(const json& record) {
    std::ifstream file(source_folder() + "/docs/record.schema.json");
    return Schema(json::parse(file)).fault(record);
  }
  // Returns the SHA-256 that the program of the system computes.
  [[nodiscard]] std::string sha256(const std::string& name) const {
    return shell("sha256sum < '" + path(name) + "'").out.substr(0, 64);
  }
};

TEST_F(RecordTest, HasWhatTheSchemaAsksFor) {
  setenv("TENON_TEST_SECRET", "hush-4711", 1);
  write("parts.toml", "seed = 3\n");
  std::string text = table_job();
  text.erase(text.find("seed = 3\n"), 9);
  write("job.toml", text + "[include]\nfiles = [\"parts.toml\"]\n");
  train({"--run", "runs/1", "--set", "updater.learning_rate=0.02", "--passes", "2", "--threads", "2"});
  const json record = record_of("runs/1");
  EXPECT_EQ(fault(record), "");
  EXPECT_NE(fault(json::object()), "");
  EXPECT_EQ(record["job"]["files"][0], json({{"path", "job.toml"}, {"text", read("job.toml")}}));
  EXPECT_EQ(record["job"]["files"][1], json({{"path", "parts.toml"}, {"text", "seed = 3\n"}}));
  EXPECT_EQ(record["job"]["set"], json({"updater.learning_rate=0.02"}));
  EXPECT_EQ(record["job"]["folder"], "../..");
  EXPECT_EQ(record["seed"], 3);
  EXPECT_EQ(record["passes"], 2);
  EXPECT_EQ(record["threads"], 2);
  const json& data = record["data"]["files"];
  ASSERT_EQ(data.size(), 1U);
  EXPECT_EQ(data[0]["path"], "table.csv");
  EXPECT_EQ(data[0]["key"], "reader.train.files");
  EXPECT_EQ(data[0]["bytes"], read("table.csv").size());
  EXPECT_EQ(data[0]["sha256"], sha256("table.csv"));
  EXPECT_EQ(record["models"][0]["sha256"], sha256("table.safetensors"));
  EXPECT_EQ(record["digests"].size(), 1U + 2 * kUpdates);
  EXPECT_EQ(record["curves"].size(), 2U);
  EXPECT_EQ(record["end"]["reason"], "passes");
  bool has_fc = false;
  for (const json& plugin : record["plugins"]) has_fc = has_fc || plugin["id"] == "tenon.fc";
  EXPECT_TRUE(has_fc);
  const std::string whole = read("runs/1/record.json");
  EXPECT_THAT(whole, Not(HasSubstr("hush-4711")));
  EXPECT_THAT(whole, Not(HasSubstr(path("."))));
  unsetenv("TENON_TEST_SECRET");
}

TEST_F(RecordTest, HasMetricsAndTests) {
  write("job.toml", "test_every = 2\n" + job());
  train({"--run", "run"});
  const json record = record_of("run");
  EXPECT_EQ(fault(record), "");
  EXPECT_EQ(record["data"]["files"].size(), 4U);
  std::string kinds;
  for (const json& entry : record["curves"]) kinds += entry["kind"].get<std::string>()[0];
  EXPECT_EQ(kinds, "pptppt");
  EXPECT_EQ(record["end"]["test"]["metrics"], record["curves"].back()["metrics"]);
}

TEST_F(RecordTest, ListsFilesOfPatterns) {
  write_table("part-1.csv");
  write_table("part-2.csv");
  train({"--run", "run", "--set", "reader.train.files=['part-*.csv']", "--no-save"});
  const json record = record_of("run");
  ASSERT_EQ(record["data"]["files"].size(), 2U);
  EXPECT_EQ(record["data"]["files"][1]["path"], "part-2.csv");
  EXPECT_EQ(record["models"], json::array());
}

TEST_F(RecordTest, LocatesBlocksOfLargerFiles) {
  const std::string rest = read("table.csv").substr(6);
  std::string text = read("table.csv");
  while (text.size() < 200'000) text += rest;
  write("table.csv", text);
  train({"--run", "run", "--passes", "1", "--no-save"});
  const json file = record_of("run")["data"]["files"][0];
  EXPECT_EQ(file["block_bytes"], 65536);
  EXPECT_EQ(file["blocks"].size(), 4U);
}

TEST_F(RecordTest, KeepsFewerDigestsOfLongTrainings) {
  train({"--run", "run", "--passes", "250", "--no-save", "--quiet"});
  const json digests = record_of("run")["digests"];
  EXPECT_EQ(digests.size(), 1 + 250U * kUpdates / 4);
  EXPECT_EQ(digests[1]["batch"], 4);
  train({"--run", "other", "--passes", "5", "--no-save", "--run-every", "7"});
  EXPECT_EQ(record_of("other")["digests"].size(), 1U + 5 * kUpdates / 7);
}

TEST_F(RecordTest, ListsFilesThatOtherTextsName) {
  std::string texts;
  for (int i = 0; i < kRows; ++i) texts += "0." + std::to_string(100 + 13 * i % 800) + "\n";
  write("texts.txt", texts);
  std::string text = table_job();
  const std::string columns = "[\"x = a, b: f32\", \"y: f32\"]";
  write("job.toml", text.replace(text.find(columns), columns.size(),
                                 "[\"x = a: f32\", \"y: f32\", \"z = b: category(texts.txt)\"]"));
  train({"--run", "run", "--no-save"});
  const json files = record_of("run")["data"]["files"];
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0]["path"], "texts.txt");
  EXPECT_EQ(files[0]["key"], "reader.train.columns");
}

TEST_F(RecordTest, SaysThatStandardInputIsUnknown) {
  const Outcome outcome =
      shell("\"$TENON\" train job.toml --run run --no-save --set \"reader.train.files=['-']\" < table.csv");
  EXPECT_EQ(outcome.exit, 0) << outcome.error;
  const json data = record_of("run")["data"];
  EXPECT_EQ(data["files"], json::array());
  ASSERT_EQ(data["unknown"].size(), 1U);
  EXPECT_THAT(data["unknown"][0].get<std::string>(), HasSubstr("reader.train.files: standard input"));
}

TEST_F(RecordTest, IsNotOverwritten) {
  train({"--run", "run"});
  EXPECT_THAT(failure(kIo, run_train, {"job.toml", "--run", "run"}),
              HasSubstr("run/record.json exists already and is not overwritten"));
  EXPECT_THAT(failure(kUsage, run_train, {"job.toml", "--run-every", "2"}), HasSubstr("--run-every is about --run"));
  EXPECT_THAT(failure(kUsage, run_train, {"job.toml", "--run", "x", "--run-every", "0"}),
              HasSubstr("--run-every: expected at least 1, got 0"));
  EXPECT_THAT(failure(kUsage, run_train, {"job.toml", "--run", "x", "--cluster", "--image", "tenon"}),
              HasSubstr("--cluster and --run exclude each other"));
  EXPECT_THAT(failure(kIo, run_train, {"job.toml", "--run", "job.toml/x"}),
              HasSubstr("--run job.toml/x: cannot create"));
}

TEST_F(RecordTest, ContinuesWhenItsTrainingResumes) {
  write("job.toml", table_job() + "[checkpoint]\nfolder = \"saves\"\nevery_batches = 3\n");
  train({"--run", "whole", "--set", "checkpoint.folder=others"});
  const Outcome stopped =
      interrupted(run_train, {"job.toml", "--log-format", "json", "--run", "run"}, SIGTERM, "{\"batch\":5,");
  EXPECT_EQ(stopped.exit, kSignalled + SIGTERM);
  EXPECT_EQ(record_of("run")["end"]["reason"], "interrupted");
  EXPECT_THAT(failure(kBadConfig, run_rerun, {"run"}), HasSubstr("the training has not ended"));
  train({"--run", "run", "--resume"});
  const json record = record_of("run"), whole = record_of("whole");
  EXPECT_EQ(fault(record), "");
  EXPECT_EQ(record["resumes"], json({{{"pass", 0}, {"batch", 5}, {"changes", ""}}}));
  EXPECT_EQ(record["digests"], whole["digests"]);
  EXPECT_EQ(record["models"], whole["models"]);
  EXPECT_EQ(record["end"]["digest"], whole["end"]["digest"]);
  same({"run"});
}

TEST_F(RecordTest, OfAnotherTrainingIsNotContinued) {
  write("job.toml", table_job() + "[checkpoint]\nfolder = \"saves\"\n");
  train({"--no-save", "--passes", "1"});
  EXPECT_THAT(failure(kBadConfig, run_train, {"job.toml", "--resume", "--run", "new"}),
              HasSubstr("new/record.json: is not the record of the training that resumes"));
  train({"--run", "run", "--seed", "4", "--set", "checkpoint.folder=others"});
  EXPECT_THAT(failure(kBadConfig, run_train, {"job.toml", "--resume", "--run", "run"}),
              HasSubstr("the checkpoint has other parameters than the record"));
}

}  // namespace

}  // namespace tenon_tests
