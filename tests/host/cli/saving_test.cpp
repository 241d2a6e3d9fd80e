// Where `tenon train` saves: the program refuses unusable places before the training, and loses no model to signals and
// full disks. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "program.h"

namespace tenon_tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

class SavingTest : public ProgramTest {
 protected:
  void refused_at_once(int exit, const std::string& file, const std::string& why) const {
    const Outcome outcome = run("train job.toml --save " + file);
    EXPECT_EQ(outcome.exit, exit) << file << ": " << outcome.error;
    EXPECT_THAT(outcome.error, HasSubstr(why)) << file;
    EXPECT_EQ(outcome.out, "") << file << ": the training ran";
  }
  // Runs a training that would never end, and the script `then` after its second pass; $pid is its process.
  [[nodiscard]] Outcome amid(const std::string& options, const std::string& then,
                             const std::string& variable = "A=B") const {
    return shell("mkdir -p out; rm -f told; touch told\n" + variable +
                 " \"$TENON\" train job.toml --passes 1000000000 " + options +
                 " >told & pid=$!\n"
                 "for i in $(seq 600); do grep -q 'pass *2/' told && break; sleep 0.05; done\n" +
                 then + "\nwait $pid");
  }
  void expect_model(const std::string& file) const {
    const Outcome shown = run("model show " + file);
    EXPECT_EQ(shown.exit, 0) << shown.error;
  }
  [[nodiscard]] std::vector<std::string> hidden_files(const std::string& folder) const {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(path(folder)))
      if (entry.path().filename().string().front() == '.') names.push_back(entry.path().filename().string());
    return names;
  }
};

TEST_F(SavingTest, BadPlacesAreFoundBeforeTheTraining) {
  ASSERT_EQ(shell("mkfifo pipe; ln -s round ring; ln -s ring round; mkdir folder; ln -s folder link").exit, 0);
  refused_at_once(74, "pipe", "cannot save to \"pipe\": it is not a regular file");
  refused_at_once(74, "/dev/null", "cannot save to \"/dev/null\": it is not a regular file");
  refused_at_once(74, std::string(300, 'm'), "File name too long");
  refused_at_once(74, "ring", "cannot save to \"ring\": ");
  refused_at_once(74, "link", "it is a folder");
  refused_at_once(66, "model.safetensors/model", "there is no folder \"model.safetensors\"");
  refused_at_once(64, "''", "--save: expected the name of a file, got an empty text");
  if (fs::exists("/proc/self")) refused_at_once(74, "/proc/self/model", "cannot save to \"/proc/self/model\": folder ");
  EXPECT_EQ(hidden_files("folder").size(), 0U);
  EXPECT_EQ(run("train job.toml --save folder/model").exit, 0);
  EXPECT_EQ(hidden_files("folder").size(), 0U) << "the attempt before the training left a file";
}

TEST_F(SavingTest, ALinkIsFollowed) {
  ASSERT_EQ(shell("mkdir real; echo old >real/model; ln -s real/model model").exit, 0);
  EXPECT_EQ(run("train job.toml --save model").exit, 0);
  EXPECT_TRUE(fs::is_symlink(path("model")));
  expect_model("real/model");
}

TEST_F(SavingTest, AModelThatCannotBeWrittenIsSavedElsewhere) {
  ASSERT_EQ(shell("mkdir rescue").exit, 0);
  const Outcome outcome = amid("--save out/model", "rm -r out; kill -TERM $pid", "TMPDIR=$PWD/rescue");
  EXPECT_EQ(outcome.exit, 66) << outcome.error;
  const std::string saved = "the model is saved as ";
  ASSERT_THAT(outcome.error, AllOf(HasSubstr("out/model: cannot "), HasSubstr(saved + path("rescue") + "/tenon-")));
  std::string file = outcome.error.substr(outcome.error.find(saved) + saved.size());
  file.resize(file.find('\n'));
  expect_model(file);
  EXPECT_THAT(read("told"), HasSubstr("saved " + file));
  EXPECT_EQ(fs::path(file).filename(), "model");

  const Outcome lost = amid("--save out/model", "rm -r out; kill -TERM $pid", "TMPDIR=$PWD/nowhere");
  EXPECT_EQ(lost.exit, 66);
  EXPECT_THAT(lost.error, HasSubstr("; nor could it be saved elsewhere: there is no folder for temporary files"));
}

// A limit on the size of files replaces a full disk: the same call fails.
TEST_F(SavingTest, ALimitOnTheSizeOfFilesIsAnError) {
  write("model.safetensors", "old");
  ASSERT_EQ(shell("mkdir rescue").exit, 0);
  const Outcome outcome = shell("export TMPDIR=$PWD/rescue; ulimit -f 2; exec \"$TENON\" train job.toml");
  EXPECT_EQ(outcome.exit, 74) << outcome.error;
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("model.safetensors: cannot write it: File too large"),
                                   HasSubstr("; nor could it be saved elsewhere: ")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("saved")));
  EXPECT_EQ(read("model.safetensors"), "old");
  EXPECT_THAT(hidden_files("."), testing::IsEmpty());
  EXPECT_TRUE(fs::is_empty(path("rescue")));
}

TEST_F(SavingTest, AHangupSavesWhereItIsTold) {
  // The system and the shell may each send one.
  const Outcome outcome = amid("--save kept", "kill -HUP $pid; kill -HUP $pid");
  EXPECT_EQ(outcome.exit, 129) << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("interrupted in pass "));
  expect_model("kept");
  EXPECT_EQ(amid("", "kill -HUP $pid").exit, 129);
  EXPECT_FALSE(fs::exists(path("model.safetensors")));
}

TEST_F(SavingTest, AHangupThatIsIgnoredStaysIgnored) {
  const Outcome outcome = amid("--save kept", "kill -HUP $pid; sleep 0.2; kill -TERM $pid", "trap '' HUP;");
  EXPECT_EQ(outcome.exit, 143) << outcome.error;
}

}  // namespace
}  // namespace tenon_tests
