// The command line of each process has every option of the training, and none of the launcher.
// SPDX-License-Identifier: Apache-2.0
#include "launch/words.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <set>

namespace tenon_tests {

namespace {

using tenon::cli::TrainCommand;
using tenon::launch::words_of;
using tenon::launch::WordsOptions;
using testing::AnyOf;
using testing::ElementsAre;

WordsOptions plain_options() {
  WordsOptions options;
  options.job = "job.toml";
  return options;
}

TEST(Words, HaveEveryOptionOfATraining) {
  const std::set<std::string> of_launcher = {"processes", "servers", "nodes",   "comm",
                                             "address",   "stall",   "silence", "restarts"};
  const std::set<std::string> of_cluster = {"cluster", "image",   "namespace",   "claim",         "host-path",
                                            "memory",  "label",   "pull-secret", "node-selector", "toleration",
                                            "detach",  "dry-run", "output"};
  const TrainCommand described;
  for (const auto& option : described.options.list.options()) {
    const std::string name = option->long_name();
    if (name == "help" || of_cluster.count(name) > 0) continue;
    std::string word = "--" + name;
    if (option->semantic()->max_tokens() > 0) word += name == "log-format" ? "=json" : "=7";
    TrainCommand command;
    std::string other = name == "processes" || name == "nodes" ? "--quiet" : "--processes=2";
    if (name == "address") other = "--nodes=x";
    if (name == "run-every") other = "--run=x";
    ASSERT_TRUE(command.parse({word, other, "job.toml"})) << word;
    const std::vector<std::string> words = words_of(command, plain_options());
    if (of_launcher.count(name) > 0)
      EXPECT_THAT(words, AnyOf(ElementsAre("train", "job.toml"), ElementsAre("train", "job.toml", "--quiet")));
    else if (name == "run-every")
      EXPECT_THAT(words, ElementsAre("train", "job.toml", word, other));
    else
      EXPECT_THAT(words, ElementsAre("train", "job.toml", word));
  }
}

TEST(Words, ARelaunchResumesAndPathsBecomeAbsolute) {
  TrainCommand command;
  ASSERT_TRUE(command.parse(
      {"-q", "--resume-from", "a", "--save", "m", "--run", "r", "--set", "save=b", "job.toml", "--nodes", "x"}));
  WordsOptions options = plain_options();
  options.absolute = true;
  options.servers = 2;
  options.threads = 3;
  options.shards = 8;
  const auto here = [](const char* name) { return (std::filesystem::current_path() / name).string(); };
  EXPECT_THAT(words_of(command, options),
              ElementsAre("train", "job.toml", "--quiet", "--resume-from=" + here("a"), "--save=" + here("m"),
                          "--run=" + here("r"), "--set=save=b", "--servers=2", "--threads=3", "--set=shards=8"));
  options.resume_from = "/ck/new";
  EXPECT_THAT(words_of(command, options), testing::Contains("--resume-from=/ck/new"));
  EXPECT_THAT(words_of(command, options), testing::Not(testing::Contains("--resume-from=" + here("a"))));
  options.resume_from = "";
  EXPECT_THAT(words_of(command, options), testing::Contains("--resume"));
}

}  // namespace

}  // namespace tenon_tests
