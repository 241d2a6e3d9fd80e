// A folder of plugins and a plugin set beside them, for the tests of sets. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "host/plugins/registry.h"
#include "host/plugins/set/lock.h"
#include "host/plugins/set/plugin_set.h"
#include "host/plugins/set/signature.h"
#include "tests/support/memory_system.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon::host;

// Plugins of this test write to a marker file when their code runs.
class PluginSetTest : public testing::Test {
 protected:
  PluginSetTest() {
    umask(022);  // sets, and folders beside them, that others may write are refused
    std::filesystem::create_directory(folder_);
    setenv("TENON_TEST_MARKER", (root_ / "marker").c_str(), 1);
  }
  ~PluginSetTest() override { unsetenv("TENON_TEST_MARKER"); }

  static std::string content(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  static void write(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  // What ran: a line for each constructor of a plugin or library.
  [[nodiscard]] std::string ran() const { return content(root_ / "marker"); }

  // Copies a file of a test plugin's folder, with its version 1.2.3 replaced by another of five characters.
  std::filesystem::path install(const std::string& plugin, const std::string& as, const std::string& version = "1.2.3",
                                const std::string& file = "") {
    const std::filesystem::path to = folder_ / as;
    std::filesystem::create_directories(to.parent_path());
    std::string bytes =
        content(std::filesystem::path(test_plugin_folder()) / plugin / (file.empty() ? plugin + ".so" : file));
    const std::string old = "1.2.3";
    for (size_t at = bytes.find(old); at != std::string::npos; at = bytes.find(old, at + 5))
      bytes.replace(at, 5, version);
    write(to, bytes);
    return to;
  }
  // Changes one bit of the last byte: of the section headers, which neither note nor loader reads.
  static void change_bit(const std::filesystem::path& file) {
    std::string bytes = content(file);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    write(file, bytes);
  }
  static std::string sha256(const std::filesystem::path& file) { return digest_of(*system_files()->open(file)); }

  std::filesystem::path write_set(const std::string& text, const std::string& name = "set.toml") {
    write(root_ / name, text);
    return root_ / name;
  }
  std::shared_ptr<const PluginSet> set(const std::string& text, const std::string& name = "set.toml") {
    return std::make_shared<const PluginSet>(read_plugin_set(write_set(text, name), *system_files()));
  }
  Registry registry(const std::string& text, std::shared_ptr<FileSystem> files = system_files()) {
    return Registry({folder_}, std::move(files), nullptr, set(text));
  }
  // The text of a set of mode "locked" with this plugin, which has the id tenon.test.<name>.
  [[nodiscard]] std::string locked(const std::string& name, const std::filesystem::path& file,
                                   const std::string& version = "1.2.3") const {
    return lock_text({lock_plugin("tenon.test." + name, version, file, system_files())}, root_);
  }
  // Reads a set that is wrong.
  Error wrong(const std::string& text) {
    return error_of([&] { (void)set(text); });
  }

  const TemporaryFolder temporary_;
  const std::filesystem::path root_ = temporary_.path(), folder_ = root_ / "plugins";
};

}  // namespace tenon_tests
