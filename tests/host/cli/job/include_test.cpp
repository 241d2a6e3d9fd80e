// Files of a job that include each other. SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/include.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "host/cli/cli.h"
#include "host/cli/job/job.h"
#include "tests/host/cli/job/refused.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Include : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(path("sub/deep")); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_.file(name); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  static std::string include(const std::string& files) { return "[include]\nfiles = " + files + "\n"; }
  static std::string layer(const std::string& name) { return "[[layer]]\nname = \"" + name + "\"\ntype = \"t\"\n"; }

  [[nodiscard]] Job load(const std::vector<std::string>& sets = {}) const { return load_job(path("job.toml"), sets); }
  // Returns the message without the folder's name.
  [[nodiscard]] std::string refused(int exit = kBadConfig) const {
    std::string message = refused_with(exit, [&] { (void)load(); });
    const std::string root = folder_.path().string() + "/";
    for (size_t at = message.find(root); at != std::string::npos; at = message.find(root))
      message.erase(at, root.size());
    return message;
  }
  static std::vector<std::string> names_of(const Job& job) {
    std::vector<std::string> result;
    for (const JobLayer& layer : job.layers) result.push_back(layer.name);
    return result;
  }

  const TemporaryFolder folder_;
};

TEST_F(Include, JoinsTheFiles) {
  write("job.toml", "passes = 2\n" + include("[\"sub/one.toml\", \"two.toml\"]") + layer("own") +
                        "[updater]\ntype = \"sgd\"\n[reader.test]\ntype = \"idx\"\n");
  write("sub/one.toml", "seed = 5\n" + include("\"deep/three.toml\"") + layer("one"));
  write("sub/deep/three.toml", layer("three"));
  write("two.toml", layer("two") + "[reader.train]\ntype = \"idx\"\nbatch = 4\n");
  const Job job = load({"seed=6"});
  EXPECT_THAT(names_of(job), ElementsAre("three", "one", "two", "own")) << "included ones first";
  EXPECT_EQ(job.layers[0].place, path("sub/deep/three.toml") + ":1");
  EXPECT_EQ(job.training.passes, 2);
  EXPECT_EQ(job.seed, 6);
  EXPECT_EQ(job.train->batch, 4);
  EXPECT_EQ(job.test->batch, 4);
  EXPECT_EQ(job.directory, folder_.path().string());
}

TEST_F(Include, PathsAreRelativeToTheJob) {
  write("job.toml", include("\"sub/one.toml\"") + layer("own"));
  write("sub/one.toml", "save = \"model.safetensors\"\n");
  EXPECT_EQ(load().save, path("model.safetensors"));
}

TEST_F(Include, AFileCountsOnce) {
  write("job.toml", include("[\"a.toml\", \"b.toml\", \"./sub/../b.toml\"]"));
  write("a.toml", include("[\"common.toml\"]") + layer("a"));
  write("b.toml", include("[\"common.toml\"]") + layer("b"));
  write("common.toml", layer("common"));
  EXPECT_THAT(names_of(load()), ElementsAre("common", "a", "b"));
}

TEST_F(Include, AKeyStandsInOneFile) {
  write("job.toml", "passes = 2\n" + include("[\"a.toml\", \"b.toml\"]") + layer("own"));
  write("a.toml", "seed = 1\n");
  write("b.toml", "\nseed = 2\n");
  EXPECT_EQ(refused(), "b.toml:2: key \"seed\" is given at a.toml:1 already");
  write("b.toml", "passes = 2\n");
  EXPECT_EQ(refused(), "job.toml:1: key \"passes\" is given at b.toml:1 already");
  write("b.toml", "");
  write("a.toml", "[updater]\ntype = \"adam\"\n");
  write("job.toml", include("[\"a.toml\"]") + layer("own") + "[updater]\nlearning_rate = 1\n");
  EXPECT_EQ(load().updater->type, "adam") << "tables are joined";
  write("job.toml", include("[\"a.toml\"]") + layer("own") + "[updater]\nlearning_rate = 1\ntype = \"sgd\"\n");
  EXPECT_EQ(refused(), "job.toml:8: key \"updater.type\" is given at a.toml:2 already");
  write("job.toml", include("[\"a.toml\"]") + "updater = 3\n");
  EXPECT_THAT(refused(), HasSubstr("unknown key")) << "a key below [include]";
  write("job.toml", "updater = 3\n" + include("[\"a.toml\"]"));
  EXPECT_EQ(refused(), "job.toml:1: key \"updater\" is given at a.toml:1 already");
  write("job.toml", "updater = { learning_rate = 1 }\n" + include("[\"a.toml\"]"));
  EXPECT_EQ(refused(), "job.toml:1: key \"updater\" is given at a.toml:1 already") << "an inline table is a value";
}

TEST_F(Include, LayersOfOneNameNameBothFiles) {
  write("job.toml", include("[\"a.toml\"]") + layer("a"));
  write("a.toml", layer("a"));
  EXPECT_EQ(refused(), "job.toml:3: layer \"a\": the name is taken; see a.toml:1");
}

TEST_F(Include, BlocksOfAFile) {
  write("job.toml", include("[\"blocks.toml\"]") +
                        "[[layer]]\nname = \"a\"\ntype = \"block\"\nblock = \"b\"\ninputs = \"p\"\nrepeat = 2\n");
  const std::string block =
      "\n[[block]]\nname = \"b\"\ninputs = \"x\"\nparameters = \"w\"\n[[block.layer]]\nname = \"l\"\n"
      "type = \"t\"\ninputs = \"x\"\nsize = \"{w}\"\n";
  write("blocks.toml", block);
  EXPECT_EQ(refused(), "job.toml:3: layer \"a\": parameter \"w\" of block \"b\" at blocks.toml:2 is missing");
  write("more.toml", block);
  write("job.toml", include("[\"blocks.toml\", \"more.toml\"]"));
  EXPECT_EQ(refused(), "more.toml:2: block \"b\": the name is taken; see blocks.toml:2");
}

TEST_F(Include, Mistakes) {
  write("job.toml", "\ninclude = \"a.toml\"\n");
  EXPECT_EQ(refused(), "job.toml:2: key \"include\": expected a table with the key \"files\", got the text \"a.toml\"");
  write("job.toml", "[include]\nfile = \"a.toml\"\n");
  EXPECT_THAT(refused(), HasSubstr("job.toml:2: [include]: unknown key \"file\"; did you mean \"files\"?"));
  for (const char* empty : {"[include]\n", "include = {}\n"}) {
    write("job.toml", "\n" + std::string(empty));
    EXPECT_THAT(refused(), HasSubstr("job.toml:2: [include]: key \"files\" is missing")) << empty;
    write("a.toml", "\n" + std::string(empty));
    write("job.toml", include("[\"a.toml\"]"));
    EXPECT_THAT(refused(), HasSubstr("a.toml:2: [include]: key \"files\" is missing")) << empty;
  }
  write("job.toml", "[include]\nfiles = [1]\n");
  EXPECT_THAT(refused(), HasSubstr("[include]: key \"files\": expected a list of names"));
  write("job.toml", "[include]\nfiles = [\"\"]\n");
  EXPECT_THAT(refused(), HasSubstr("[include]: key \"files\": expected a list of names that are not empty"));
  write("job.toml", "[include]\nfiles = [\"a.toml\"]\nmore = 1\n");
  EXPECT_THAT(refused(), HasSubstr("[include]: unknown key \"more\""));
  write("job.toml", include("[\"a.toml\"]"));
  write("a.toml", "\nseed = = 3\n");
  EXPECT_THAT(refused(), HasSubstr("a.toml:2: "));
  write("a.toml", "\nsede = 3\n");
  write("job.toml", include("[\"a.toml\"]") + layer("own"));
  EXPECT_EQ(refused(), "a.toml:2: unknown key \"sede\"; did you mean \"seed\"?");
}

TEST_F(Include, MissingFiles) {
  write("job.toml", "[include]\nfiles = [\n  \"a.toml\",\n  \"sub/nowhere.toml\"\n]\n");
  write("a.toml", "");
  EXPECT_THAT(refused(kNotFound),
              AllOf(HasSubstr("job.toml:4: [include]: cannot open the job file \"sub/nowhere.toml\""),
                    HasSubstr("No such file")));
  write("job.toml", include("\"sub\""));
  EXPECT_EQ(refused(kIo), "job.toml:2: [include]: the job file \"sub\" is not a regular file");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  write("job.toml", include("\"pipe\""));
  EXPECT_EQ(refused(kIo), "job.toml:2: [include]: the job file \"pipe\" is not a regular file");
}

// A pipe without a writer would block for ever.
TEST_F(Include, TheJobItselfIsARegularFileOrAnOpenPipe) {
  const auto refusal = [](const std::string& name) -> std::string {
    try {
      (void)read_job_file(name, name);
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.exit(), kIo);
      return failure.what();
    }
    return "not refused";
  };
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", path("link.toml"));
  std::filesystem::create_symlink("loop.toml", path("loop.toml"));
  for (const std::string& name : {path("pipe"), path("link.toml"), std::string("/dev/zero"), path(".")})
    EXPECT_EQ(refusal(name), "the job file \"" + name + "\" is not a regular file");
  EXPECT_THAT(refusal(path("loop.toml")), HasSubstr("cannot open the job file"));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "seed = 3\n", 9), 9);
  ::close(ends[1]);
  const std::string open = "/proc/self/fd/" + std::to_string(ends[0]);
  EXPECT_EQ(read_job_file(open, open), "seed = 3\n") << "as a shell passes <(...)";
  ::close(ends[0]);
}

TEST_F(Include, StaysInTheFolderOfTheJob) {
  const TemporaryFolder other;
  std::ofstream(other.file("x.toml")) << "seed = 1\n";
  const auto outside = [&](const std::string& file) {
    write("job.toml", include("\"" + file + "\""));
    EXPECT_THAT(refused(),
                AllOf(HasSubstr("job.toml:2: [include]: "), HasSubstr("is outside of the folder of the job")))
        << file;
  };
  outside("../x.toml");
  outside("sub/../../x.toml");
  outside(other.file("x.toml"));
  outside("/dev/zero");
  outside("..");
  std::filesystem::create_symlink(other.file("x.toml"), path("link.toml"));
  outside("link.toml");
  std::filesystem::create_directory_symlink(other.path(), path("sub/folder"));
  outside("sub/folder/x.toml");
  // "<folder>-more" begins like "<folder>".
  const std::string sibling = folder_.path().string() + "-more";
  outside(sibling + "/x.toml");
  std::filesystem::create_symlink("loop.toml", path("loop.toml"));
  write("job.toml", include("\"loop.toml\""));
  EXPECT_THAT(refused(), HasSubstr("job.toml:2: [include]: cannot open \"loop.toml\""));
  // Links to files of the folder are files of it.
  write("sub/own.toml", layer("own"));
  std::filesystem::create_symlink("sub/own.toml", path("alias.toml"));
  write("job.toml", include("[\"alias.toml\", \"sub/own.toml\"]"));
  EXPECT_THAT(names_of(load()), ElementsAre("own"));
  // A file in a subfolder may include one of the folder above it.
  write("sub/up.toml", include("\"../alias.toml\""));
  write("job.toml", include("\"sub/up.toml\""));
  EXPECT_THAT(names_of(load()), ElementsAre("own"));
}

TEST_F(Include, Cycles) {
  write("job.toml", include("\"job.toml\""));
  EXPECT_EQ(refused(), "job.toml:2: [include]: the files form a cycle: \"job.toml\" includes \"job.toml\"");
  write("job.toml", include("\"sub/a.toml\""));
  write("sub/a.toml", "\n" + include("\"deep/b.toml\""));
  write("sub/deep/b.toml", include("\"../a.toml\""));
  EXPECT_EQ(refused(),
            "sub/deep/b.toml:2: [include]: the files form a cycle: \"sub/a.toml\" includes "
            "\"sub/deep/b.toml\" includes \"sub/a.toml\"");
}

TEST_F(Include, Depth) {
  const auto chain = [&](int files) {
    write("job.toml", include("\"1.toml\""));
    for (int i = 1; i < files; ++i)
      write(std::to_string(i) + ".toml", include("\"" + std::to_string(i + 1) + ".toml\""));
    write(std::to_string(files) + ".toml", layer("last"));
  };
  chain(16);
  EXPECT_THAT(names_of(load()), ElementsAre("last"));
  chain(17);
  EXPECT_EQ(refused(), "16.toml:2: [include]: files include each other more than 16 deep");
}

TEST_F(Include, ManyAndLargeFiles) {
  std::string files;
  for (int i = 0; i < 257; ++i) {
    files += (i == 0 ? "" : ",\n") + ("\"" + std::to_string(i) + ".toml\"");
    write(std::to_string(i) + ".toml", i == 0 ? layer("a") : "");
  }
  write("job.toml", include("[" + files + "]"));
  EXPECT_EQ(refused(), "job.toml:258: [include]: the job has more than 256 files");
  write("a.toml", "#" + std::string(kLargestJob / 2, 'x') + "\n");
  write("b.toml", "#" + std::string(kLargestJob / 2, 'x') + "\n");
  write("job.toml", include("[\"a.toml\", \"b.toml\"]"));
  EXPECT_EQ(refused(), "job.toml:2: [include]: with \"b.toml\" the files of the job are larger than 4194304 bytes");
}

}  // namespace
}  // namespace tenon_tests
