// The bytes that were checked are the bytes that run. SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <functional>

#include "host/plugins/set/checked_copy.h"
#include "tests/support/plugin_set_test.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Calls `hook` when a file is opened.
class HookedFiles : public FileSystem {
 public:
  std::function<void(const fs::path&)> before = [](const fs::path&) {}, after = before;

  std::unique_ptr<InputFile> open(const fs::path& path) override {
    before(path);
    std::unique_ptr<InputFile> file = files_->open(path);
    after(path);
    return file;
  }
  std::unique_ptr<Output> replace(const fs::path& path) override { return files_->replace(path); }

 private:
  const std::shared_ptr<FileSystem> files_ = system_files();
};

class CheckedLoadTest : public PluginSetTest {
 protected:
  CheckedLoadTest() { setenv("TMPDIR", root_.c_str(), 1); }
  ~CheckedLoadTest() override { unsetenv("TMPDIR"); }

  // Names of private folders that were left.
  [[nodiscard]] size_t leftovers() const {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(root_))
      if (entry.path().filename().string().starts_with("tenon-plugin-")) ++count;
    return count;
  }
  [[nodiscard]] static size_t maps_of(const std::string& name) {
    const std::string maps = content("/proc/self/maps");
    size_t count = 0;
    for (size_t at = maps.find(name); at != std::string::npos; at = maps.find(name, at + 1)) ++count;
    return count;
  }
};

TEST_F(CheckedLoadTest, LoadsAPrivateCopyAndRemovesIt) {
  const fs::path file = install("good", "good.so");
  Registry found = registry(locked("good", file));
  EXPECT_EQ(ran(), "");
  EXPECT_EQ(found.layer("good").plugin, "tenon.test.good");
  EXPECT_EQ(ran(), "good\n");
  EXPECT_EQ(maps_of(file.string()), 0U);
  EXPECT_EQ(leftovers(), 0U);
  EXPECT_EQ(found.list().at(0)["status"], "loaded");
}

// Each test has a version of its own: an image that another made of the same bytes would be used again.
TEST_F(CheckedLoadTest, AFileSwappedAfterTheScanIsRefused) {
  const fs::path file = install("good", "good.so", "1.2.4");
  const std::string text = locked("good", file, "1.2.4");
  Registry found = registry(text);
  fs::remove(file);
  install("bad_type", "good.so");
  const Error error = error_of([&] { (void)found.layer("good"); });
  EXPECT_EQ(error.code(), TN_REFUSED);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("it has changed since it was checked: its SHA-256 is " + sha256(file)),
                                     HasSubstr(file.string())));
  EXPECT_EQ(ran(), "");
  EXPECT_EQ(leftovers(), 0U);
}

// The moments at which a loader that opens the path again would take the other bytes.
TEST_F(CheckedLoadTest, AFileSwappedAtAnyMomentNeverRuns) {
  const fs::path other = install("bad_type", "other/bad_type.so");
  const std::string evil = content(other);
  char digit = '0';
  const auto run = [&](const std::string& plugin, bool same_inode, const std::function<bool(const fs::path&)>& when,
                       bool after) {
    const std::string version = std::string("2.0.") + digit++;
    const fs::path file = install(plugin, plugin + ".so", version);
    const auto files = std::make_shared<HookedFiles>();
    Registry found = registry(locked(plugin, file, version), files);
    bool done = false;
    (after ? files->after : files->before) = [&, same_inode](const fs::path& path) {
      if (done || !when(path)) return;
      done = true;
      if (!same_inode) fs::remove(file);
      write(file, evil);
    };
    const Error error = error_of([&] { (void)found.layer(plugin); });
    EXPECT_TRUE(done);
    EXPECT_TRUE(content(file) == evil);
    return error;
  };
  const auto original = [](const std::string& name) {
    return [name](const fs::path& path) { return path.filename() == name; };
  };
  const auto copy = [](const fs::path& path) { return CheckedCopy::is_name_of(path.string(), "", {}); };
  for (const bool same_inode : {false, true}) {
    EXPECT_EQ(run("good", same_inode, original("good.so"), false).code(), TN_REFUSED);
    EXPECT_EQ(run("good", true, original("good.so"), true).code(), TN_REFUSED) << "the open file is overwritten";
    EXPECT_EQ(ran(), "");
  }
  // Once the bytes are copied, the file does not matter.
  EXPECT_EQ(run("good", false, copy, false).message(), "");
  EXPECT_EQ(ran(), "good\n");
  EXPECT_EQ(run("bad_plan", true, copy, true).message(), "");
  EXPECT_EQ(ran(), "good\nbad_plan\n");
}

TEST_F(CheckedLoadTest, HostsShareOneImage) {
  const fs::path file = install("newer", "newer.so");
  const std::string text = locked("newer", file);
  const void* first = nullptr;
  size_t maps = 0;
  for (int i = 0; i < 5; ++i) {
    Registry found = registry(text);
    const LayerType& layer = found.layer("newer_good");
    if (i == 0) maps = maps_of("newer.so");
    if (i == 0) first = reinterpret_cast<const void*>(layer.table.plan);
    EXPECT_EQ(reinterpret_cast<const void*>(layer.table.plan), first);
    EXPECT_EQ(maps_of("newer.so"), maps);
  }
  EXPECT_GT(maps, 0U);
}

// In a process of its own, since the library stays loaded, and before the next test loads its copy.
TEST_F(CheckedLoadTest, RefusesALibraryThatIsLoadedFromElsewhere) {
  const fs::path file = install("brings", "brings.so");
  const fs::path library = install("brings", "libtenon_test_brought.so", "1.2.3", "libtenon_test_brought.so");
  const std::string text = locked("brings", file);
  EXPECT_EXIT(
      {
        fs::create_directory(root_ / "elsewhere");
        const fs::path elsewhere = root_ / "elsewhere" / library.filename();
        fs::copy_file(library, elsewhere);
        if (dlopen(elsewhere.c_str(), RTLD_NOW) == nullptr) _exit(1);
        Registry found = registry(text);
        const Error error = error_of([&] { (void)found.layer("brings"); });
        const std::string wanted = "its library libtenon_test_brought.so is loaded in this process already, from " +
                                   elsewhere.string() + ", and is not the checked copy of " + library.string();
        if (error.message().find(wanted) == std::string::npos) std::fputs(error.what(), stderr);
        _exit(error.message().find(wanted) == std::string::npos ? 2 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(CheckedLoadTest, BringsItsLibraries) {
  const fs::path file = install("brings", "brings.so");
  const fs::path library = install("brings", "libtenon_test_brought.so", "1.2.3", "libtenon_test_brought.so");
  const std::string text = locked("brings", file);
  EXPECT_THAT(text, HasSubstr("{ file = \"plugins/libtenon_test_brought.so\", sha256 = \"" + sha256(library)));

  {  // a changed library is refused when it is found, and one that changes later when the plugin is loaded
    Registry late = registry(text);
    change_bit(library);
    EXPECT_THAT(error_of([&] { (void)late.layer("brings"); }).message(),
                HasSubstr("its library " + library.string() + " has changed since it was checked"));
    Registry early = registry(text);
    EXPECT_THAT(early.list().at(0)["reason"].get<std::string>(),
                HasSubstr("the SHA-256 of its library " + library.string()));
    change_bit(library);
  }
  {  // one that is not listed
    std::string without = text;
    const size_t at = without.find("libraries = ["), end = without.find("]\n", at);
    without.erase(at, end + 2 - at);
    Registry found = registry(without);
    EXPECT_THAT(error_of([&] { (void)found.layer("brings"); }).message(),
                AllOf(HasSubstr("it needs the library libtenon_test_brought.so, which "),
                      HasSubstr("names neither in \"libraries\" nor in \"system\"")));
  }
  {  // the library of the system that is not named
    std::string without = text;
    const std::string libc = "\"libc.so.6\"";
    ASSERT_NE(without.find(libc), std::string::npos);
    without.replace(without.find(libc), libc.size(), "\"libother.so\"");
    Registry found = registry(without);
    EXPECT_THAT(found.list().at(0)["reason"].get<std::string>(), HasSubstr("needs the library libc.so.6"));
  }
  EXPECT_EQ(ran(), "");
  Registry found = registry(text);
  EXPECT_EQ(found.layer("brings").plugin, "tenon.test.brings");
  EXPECT_EQ(ran(), "brought\nbrings\n");
  EXPECT_EQ(maps_of(library.string()), 0U) << "$ORIGIN is the folder of the copy";
  EXPECT_GT(maps_of("libtenon_test_brought.so"), 0U);

  // Another plugin of another set with the same library takes the loaded one.
  const fs::path second = install("brings", "second/brings.so", "1.2.4");
  install("brings", "second/libtenon_test_brought.so", "1.2.3", "libtenon_test_brought.so");
  Registry other = Registry({}, system_files(), nullptr,
                            set(lock_text({lock_plugin("tenon.test.brings", "1.2.4", second, system_files())}, root_)));
  EXPECT_EQ(other.layer("brings").version, "1.2.4");
  EXPECT_EQ(ran(), "brought\nbrings\nbrings\n");
}

// A folder for temporary files is not needed.
TEST_F(CheckedLoadTest, NeedsNoFolder) {
  const fs::path file = install("good", "good.so", "4.0.0");
  Registry found = registry(locked("good", file, "4.0.0"));
  setenv("TMPDIR", (root_ / "gone").c_str(), 1);
  EXPECT_EQ(found.layer("good").version, "4.0.0");
  EXPECT_GT(maps_of("/memfd:tenon good.so"), 0U);
}

// A copy is written, to memory, too: beyond the limit on sizes of files the system ends the process (SIGXFSZ).
TEST_F(CheckedLoadTest, NamesTheLimitOnSizesOfFiles) {
  const fs::path file = install("good", "good.so", "4.2.0");
  const uint64_t bytes = fs::file_size(file);
  const auto load = [&](rlim_t most) {
    Registry found = registry(locked("good", file, "4.2.0"));
    rlimit limit = {};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = most;
    setrlimit(RLIMIT_FSIZE, &limit);
    const Error error = error_of([&] { (void)found.layer("good"); });
    limit.rlim_cur = before;
    setrlimit(RLIMIT_FSIZE, &limit);
    std::fputs(error.message().c_str(), stderr);
    std::_Exit(found.layer("good").version == "4.2.0" ? error.code() : -1);
  };
  for (const rlim_t most : {rlim_t{0}, rlim_t{1}, rlim_t{4096}, rlim_t{bytes - 1}})
    EXPECT_EXIT(load(most), ::testing::ExitedWithCode(TN_IO),
                "good.so: cannot be copied to memory: File too large: it needs " + std::to_string(bytes) +
                    " bytes, and this process may write files of at most " + std::to_string(most) +
                    " .RLIMIT_FSIZE.; raise that limit, with ulimit -f");
  EXPECT_EXIT(load(bytes), ::testing::ExitedWithCode(TN_OK), "");
}

// The names of copies state what they are copies of, so that the numbers of files that are closed may be used again.
TEST_F(CheckedLoadTest, CopiesHaveNamesOfTheirOwn) {
  const fs::path first = install("good", "good.so", "4.1.0"), second = install("bad_plan", "bad_plan.so", "4.1.0");
  const auto name = [&](const fs::path& file) {
    SetPlugin entry;
    const Bundle bundle(entry, file, sha256(file));
    const CheckedCopy copy(bundle, *system_files(), CopyPlace::kMemory);
    const std::string result = copy.files().front().string();
    EXPECT_TRUE(CheckedCopy::is_name_of(result, bundle.digest(), file.filename()));
    EXPECT_TRUE(CheckedCopy::is_name_of(result, "", {}));
    EXPECT_FALSE(CheckedCopy::is_name_of(result, bundle.digest(), "other.so"));
    EXPECT_FALSE(CheckedCopy::is_name_of(result + "/", bundle.digest(), file.filename()));
    EXPECT_EQ(sha256(result), sha256(file));
    EXPECT_LT(open(result.c_str(), O_WRONLY | O_TRUNC), 0) << "it is sealed";
    return result;
  };
  EXPECT_EQ(name(first), name(first));
  EXPECT_NE(name(first), name(second));
  Registry one = registry(locked("good", first, "4.1.0")), other = registry(locked("bad_plan", second, "4.1.0"));
  EXPECT_EQ(one.layer("good").plugin, "tenon.test.good");
  EXPECT_EQ(other.layer("bad_plan").plugin, "tenon.test.bad_plan") << "not the image of a file of the same number";
}

}  // namespace
}  // namespace tenon_tests
