// tenon plugins seal: what it writes, for which files, and that it changes nothing when it fails.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <tenon/tenon.hpp>

#include "host/cli/plugins/seal/describe.h"
#include "host/cli/plugins/seal/image.h"
#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class SealTest : public CallTest {
 protected:
  void SetUp() override {
    CallTest::SetUp();
    fs::create_directory(path("plugins"));
  }

  // Copies a plugin of the tests into the folder plugins, and returns its name there.
  std::string install(const std::string& file) const {
    const std::string name = "plugins/" + fs::path(file).filename().string();
    fs::copy_file(fs::path(tenon_tests::test_plugin_folder()) / file, path(name));
    return name;
  }
  [[nodiscard]] json listed() const {
    return json::parse(Host(HostOptions{1, {path("plugins")}, nullptr, {}}).plugins()).at(0);
  }
  // Seals `file`, which must fail and change nothing. Returns the message.
  std::string refused(int exit, const std::string& file) const {
    const std::string before = read(file);
    std::string message = failure(exit, run_plugins_seal, {file});
    EXPECT_THAT(message, testing::StartsWith(file + ": "));
    EXPECT_EQ(read(file), before);
    const auto in_folder = [](const fs::path& folder) {
      return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
    };
    EXPECT_LE(in_folder(path("plugins")), 1) << "a temporary file is left";
    return message;
  }
};

TEST_F(SealTest, FillsTheReservedNote) {
  const std::string file = install("reserved/reserved.so");
  EXPECT_THAT(listed().at("reason").get<std::string>(), HasSubstr("reserved but empty; 'tenon plugins seal'"));
  fs::permissions(path(file), fs::perms(0751));
  const size_t bytes = read(file).size();
  const std::string said = done(run_plugins_seal, {file}).out;
  const json plugin = listed();
  EXPECT_EQ(plugin.at("status"), "found") << plugin;
  const std::string manifest = plugin.at("manifest").dump();
  EXPECT_EQ(plugin.at("manifest").at("layers").at(0).at("type"), "test_reserved");
  EXPECT_EQ(said, file + ": sealed tenon.test.reserved 1.0.0: 1 layer; its manifest takes " +
                      std::to_string(manifest.size()) + " of 4096 bytes\n");
  EXPECT_EQ(read(file).size(), bytes) << "the file never grows";
  EXPECT_EQ(fs::status(path(file)).permissions(), fs::perms(0751));

  // Its code agrees with its note.
  const Host host(HostOptions{1, {path("plugins"), tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions x;
  x.name = "x";
  x.shape = {2};
  EXPECT_TRUE(host.layer("test_reserved", {host.data(x)}));

  // A second time, through a link: the same bytes, and the link stays one.
  const std::string sealed = read(file);
  fs::create_symlink("plugins/reserved.so", path("link.so"));
  done(run_plugins_seal, {"link.so"});
  EXPECT_TRUE(fs::is_symlink(path("link.so")));
  EXPECT_EQ(read(file), sealed);
}

TEST_F(SealTest, WarnsOfAKernelThatStatesNoVersionOfAnotherPluginsType) {
  const std::string file = install("reserved/reserved_kernel.so"), said = done(run_plugins_seal, {file}).out;
  EXPECT_THAT(said, HasSubstr("1 layer, 1 kernel; "));
  EXPECT_THAT(said,
              HasSubstr("\n" + file +
                        ": warning: kernel \"square_loop\" states no state_version of \"square\", a type of another "
                        "plugin: hosts pass it over if the type has one\n"));
}

// A build for another machine gets the manifest of one for this machine.
TEST_F(SealTest, TakesTheManifestOfAnotherFile) {
  const std::string file = install("reserved/reserved.so");
  fs::copy_file(path(file), path("native.so"));
  std::string foreign = read(file);
  foreign[18] = '\xb7';  // e_machine
  write(file, foreign);
  EXPECT_THAT(refused(kRefused, file), HasSubstr("it is built for aarch64, and its code cannot run here: build the "
                                                 "plugin for this machine, too, seal that file, and name it by"));
  const auto from = [&](const std::string& other) {
    return failure(kRefused, run_plugins_seal, {file, "--manifest-of", other});
  };
  EXPECT_THAT(from("native.so"), HasSubstr(file + ": --manifest-of native.so: it holds no manifest"));
  fs::copy_file(fs::path(test_plugin_folder()) / "bad_note/bad_note.so", path("bare.so"));
  EXPECT_THAT(from("bare.so"), HasSubstr("--manifest-of bare.so: it reserves no note"));
  EXPECT_THAT(failure(kIo, run_plugins_seal, {file, "--manifest-of", "none.so"}), HasSubstr("--manifest-of none.so: "));
  EXPECT_THAT(failure(kBadData, run_plugins_seal, {file, "--manifest-of", "job.toml"}), HasSubstr("not an ELF file"));
  EXPECT_EQ(read(file), foreign) << "a refusal changes nothing";
  (void)done(run_plugins_seal, {"native.so"});
  EXPECT_THAT(done(run_plugins_seal, {file, "--manifest-of", "native.so"}).out, HasSubstr("1.0.0: 1 layer; its"));
  std::string expected = read("native.so");
  expected[18] = '\xb7';
  EXPECT_EQ(read(file), expected) << "only the note has changed";
  EXPECT_THAT(listed().at("reason").get<std::string>(),
              HasSubstr("it is built for another machine: for aarch64, and this one is x86-64"));
}

// The checks and the text are those of the build step: what tenon_add_plugin made stays the same, byte for byte.
TEST_F(SealTest, WritesWhatTheBuildStepWrites) {
  for (const char* made : {"layers/rich.so", "layers/fusion.so", "layers/bad_threads.so", "layers/raw_throw.so"}) {
    const std::string file = install(made);
    const std::string before = read(file);
    done(run_plugins_seal, {file});
    EXPECT_EQ(read(file), before) << made;
  }
}

TEST_F(SealTest, ALibraryMayBeAbsent) {
  for (const char* made : {"reserved/reserved_absent.so", "reserved/reserved_alone.so"}) {
    const std::string file = install(made);
    const std::string before = read(file);
    EXPECT_THAT(done(run_plugins_seal, {file}).out, AllOf(HasSubstr("sealed tenon.test.reserved 1.0.0: 1 layer"),
                                                          HasSubstr("; described without libtenon_test_absent.so\n")));
    EXPECT_EQ(listed().at("status"), "found");
    // Only the note has changed: the file still needs the library.
    Image image(before);
    image.seal(listed().at("manifest").dump());
    EXPECT_EQ(json::parse(read(file).substr(read(file).find("{\"note\""), listed().at("manifest").dump().size())),
              listed().at("manifest"));
    EXPECT_THAT(Image(read(file)).needed(), testing::Contains("libtenon_test_absent.so"));
    EXPECT_EQ(read(file).size(), before.size());
    fs::remove(path(file));
  }
}

TEST_F(SealTest, SaysWhyNot) {
  const auto refused_plugin = [&](const std::string& file) {
    const std::string name = install(file);
    const std::string message = refused(kRefused, name);
    fs::remove(path(name));
    return message;
  };
  EXPECT_THAT(refused_plugin("bad_note/bad_note.so"), HasSubstr("it reserves no note: put TN_RESERVE_NOTE"));
  EXPECT_THAT(refused_plugin("reserved/reserved_small.so"),
              testing::ContainsRegex("its note reserves 64 bytes, but its manifest needs [0-9]+: reserve more"));
  EXPECT_THAT(refused_plugin("reserved/reserved_entry.so"), HasSubstr("does not export the symbol tenon_plugin"));
  EXPECT_THAT(refused_plugin("reserved/reserved_null.so"),
              HasSubstr("its descriptor is refused: the plugin: tenon_plugin() returned null"));
  EXPECT_THAT(refused_plugin("reserved/reserved_refused.so"),
              HasSubstr("its descriptor is refused: plugin \"tenon.test.reserved\", layer type \"test_reserved\": the "
                        "function \"plan\" is missing"));
  EXPECT_THAT(refused_plugin("bad_throw/bad_throw.so"), HasSubstr("tenon_plugin threw an exception: from the entry"));
  EXPECT_THAT(refused_plugin("bad_null/bad_null.so"), HasSubstr("returned null"));
  EXPECT_THAT(refused_plugin("bad_hidden_minor/bad_hidden_minor.so"), HasSubstr("its descriptor is refused"));
}

TEST_F(SealTest, ACrashIsReported) {
  const std::string file = install("reserved/reserved_crash.so");
  EXPECT_THAT(refused(kRefused, file),
              AllOf(HasSubstr("its code ended the process in which it was loaded and described, by "),
                    testing::ContainsRegex("signal [0-9]+ \\([A-Z]")));
}

TEST_F(SealTest, ADescriptionThatDoesNotEndIsReported) {
  const std::string file = install("reserved/reserved_waits.so");
  try {
    (void)describe_plugin(file, Image(read(file)), 1);
    FAIL() << "it was described";
  } catch (const Failure& failure) {
    EXPECT_EQ(std::string(failure.what()), "its code did not return within 1 seconds when it was loaded and described");
  }
}

TEST_F(SealTest, ADescriptionThatThrowsIsReported) {
  EXPECT_THAT(refused(kRefused, install("thrower/thrower.so")),
              HasSubstr("its descriptor is refused: the plugin: it cannot be described: no cards today"));
}

TEST_F(SealTest, FilesThatAreNoPlugins) {
  EXPECT_EQ(refused(kBadData, "job.toml"), "job.toml: it is not an ELF file");
  EXPECT_THAT(failure(kNotFound, run_plugins_seal, {"nowhere.so"}), HasSubstr("no file \"nowhere.so\""));
  EXPECT_THAT(failure(kIo, run_plugins_seal, {"plugins"}), HasSubstr("it is not a regular file"));
  EXPECT_THAT(failure(kUsage, run_plugins_seal, {}), HasSubstr("FILE.so"));
  const std::string file = install("reserved/reserved.so");
  fs::permissions(path(file), fs::perms(0444));
  EXPECT_EQ(refused(kIo, file), file + ": it is read-only");
  fs::permissions(path(file), fs::perms(0644));
  write(file, read(file).substr(0, 900));
  EXPECT_THAT(refused(kBadData, file), HasSubstr("it is damaged"));
}

// ---- the file in memory

std::string bytes_of(const std::string& file) {
  std::ifstream in(fs::path(tenon_tests::test_plugin_folder()) / file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(SealImage, LeavesLibrariesOut) {
  Image image(bytes_of("reserved/reserved_absent.so"));
  EXPECT_THAT(image.needed(), testing::Contains("libtenon_test_absent.so"));
  const std::string before = image.bytes();
  image.leave_out({"libtenon_test_absent.so"});
  EXPECT_THAT(Image(image.bytes()).needed(), testing::Not(testing::Contains("libtenon_test_absent.so")));
  EXPECT_EQ(image.bytes().size(), before.size());
  Image alone(bytes_of("reserved/reserved_alone.so"));
  alone.leave_out({"libtenon_test_absent.so"});
  EXPECT_THAT(Image(alone.bytes()).needed(), ElementsAre());
}

TEST(SealImage, NotesAreCounted) {
  Image image(bytes_of("reserved/reserved.so"));
  EXPECT_EQ(image.note_room(), 4096U);
  image.seal(std::string(4096, 'x'));
  EXPECT_EQ(image.note_room(), 4096U) << "a sealed note keeps its room";
  EXPECT_NE(image.bytes().find(std::string(4096, 'x')), std::string::npos);
  image.seal("{}");
  EXPECT_EQ(image.bytes().find('x', image.bytes().find("{}") + 1) - image.bytes().find("{}") >= 4096, true);
  EXPECT_THROW(image.seal(std::string(4097, 'x')), Failure);
}

// Cuts the file at each place and changes each byte: every function returns or throws Failure.
TEST(SealImage, SurvivesEveryChangeOfOneByteAndEveryCut) {
  const std::string golden = bytes_of("reserved/reserved_absent.so");
  int failures = 0;
  const auto attempt = [&](std::string bytes) {
    try {
      Image image(std::move(bytes));
      const std::vector<std::string> needed = image.needed();
      image.leave_out({"libtenon_test_absent.so"});
      image.seal("{\"note\":1}");
    } catch (const Failure& failure) {
      EXPECT_TRUE(failure.exit() == kBadData || failure.exit() == kRefused) << failure.what();
      ++failures;
    }
  };
  attempt(golden);
  ASSERT_EQ(failures, 0);
  const size_t header = 64 + 56 * 12;  // all cuts and changes of the headers, and some of the rest
  for (size_t cut = 0; cut < golden.size(); cut += cut < header ? 1 : 97) attempt(golden.substr(0, cut));
  EXPECT_GT(failures, 100);
  const size_t begin = golden.find("libtenon_test_absent.so");
  ASSERT_NE(begin, std::string::npos);
  for (size_t at = 0; at < golden.size(); at += at < header || (at + 512 > begin && at < begin + 512) ? 1 : 3)
    for (const int value : {0, 1, 0x7f, 0xff}) {
      std::string bytes = golden;
      bytes[at] = static_cast<char>(value);
      attempt(std::move(bytes));
    }
  EXPECT_GT(failures, 300);
}

}  // namespace
}  // namespace tenon_tests
