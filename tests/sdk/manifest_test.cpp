// The note that the build step wrote into each plugin, as read by the host, is equal to the plugin's descriptor.
// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/manifest.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/draft/records.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "host/plugins/elf_note.h"
#include "host/plugins/loader.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> plugins_under(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".so") files.push_back(entry.path());
  return files;
}

Manifest from_note(const fs::path& path) {
  const std::unique_ptr<InputFile> file = system_files()->open(path);
  return manifest_from(NoteTree(read_note(*file)));
}

Manifest from_code(const fs::path& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto entry = reinterpret_cast<tn_entry>(dlsym(library, TN_ENTRY_NAME));
  return describe(*entry());
}

TEST(ManifestWriter, NoteAndDescriptorOfEachPluginAgree) {
  std::vector<fs::path> files = plugins_under(tenon_tests::plugin_folder());
  EXPECT_GE(files.size(), 9u);
  files.push_back(fs::path(tenon_tests::test_plugin_folder()) / "layers" / "my_plugin.so");
  files.push_back(fs::path(tenon_tests::test_plugin_folder()) / "layers" / "rich.so");
  for (const fs::path& file : files) {
    const Manifest note = from_note(file);
    EXPECT_EQ(difference(note, from_code(file)), "") << file;
    EXPECT_FALSE(note.id.empty()) << file;
    EXPECT_FALSE(note.doc.empty()) << file;
  }
}

TEST(ManifestWriter, TablesRequirementsAndDraftsAreInTheNote) {
  const Manifest note = from_note(fs::path(tenon_tests::test_plugin_folder()) / "layers" / "rich.so");
  ASSERT_EQ(note.readers.size(), 1u);
  EXPECT_EQ(note.readers[0].tables, std::vector<std::string>{TN_RECORDS});
  EXPECT_EQ(note.readers[0].minor, TN_ABI_MINOR);
  ASSERT_EQ(note.comms.size(), 1u);
  EXPECT_EQ(note.comms[0].type, "test_comm");
  EXPECT_EQ(note.comms[0].traits, uint32_t{TN_COMM_SURVIVES | TN_COMM_AUTHENTICATED});
  ASSERT_EQ(note.drafts.size(), 2u);
  EXPECT_EQ(note.drafts[1].id, "tenon.comm/1");
  EXPECT_EQ(note.drafts[0].id, TN_RECORDS);
  EXPECT_EQ(note.drafts[0].digest.size(), 8u);
}

TEST(ManifestWriter, ValuesThatAreHardToWriteComeBackExactly) {
  const Manifest note = from_note(fs::path(tenon_tests::test_plugin_folder()) / "layers" / "rich.so");
  ASSERT_EQ(note.layers.size(), 2u);
  const std::vector<Attribute>& attributes = note.layers[0].attributes;
  ASSERT_EQ(attributes.size(), 8u);
  EXPECT_EQ(std::get<bool>(attributes[0].initial), true);
  EXPECT_EQ(std::get<int64_t>(attributes[1].initial), -7);
  EXPECT_EQ(std::get<double>(attributes[2].initial), 3.0);
  EXPECT_EQ(attributes[3].doc, "quote \" backslash \\ newline \n tab \t omega \xce\xa9 ?\?/ %d");
  EXPECT_THAT(std::get<std::vector<int64_t>>(attributes[4].initial), testing::ElementsAre(INT64_MIN, -1, 0, INT64_MAX));
  EXPECT_THAT(
      std::get<std::vector<double>>(attributes[5].initial),
      testing::ElementsAre(0.1, 1.0 / 3.0, -0.0, 1e300, 0x1p-1022, 0x1.fffffffffffffp1023, 0x1p-1074, 123456789.0));
  EXPECT_TRUE(std::signbit(std::get<std::vector<double>>(attributes[5].initial)[2]));
  EXPECT_THAT(std::get<std::vector<std::string>>(attributes[6].initial), testing::ElementsAre("a", "b", "a"));
  EXPECT_TRUE(attributes[7].required);
  EXPECT_EQ(note.layers[0].state_version, 4000000000u);
  EXPECT_EQ(note.kernels[0].score, -3);
  EXPECT_EQ(note.kernels[0].chain, (std::vector<std::string>{"fc", "relu"}));
  EXPECT_EQ(note.providers, (std::vector<ProviderDescription>{{"cpu", TN_GEMM, "rich.gemm-1", -5},
                                                              {"cpu", TN_GATHER, "rich.gemm-1", 1}}));
  ASSERT_EQ(note.options.size(), 2u);
  EXPECT_EQ(note.options[0].choices, (std::vector<std::string>{"small", "large"}));
  EXPECT_EQ(note.options[1].minimum, 0.0);
}

}  // namespace
}  // namespace tenon_tests
