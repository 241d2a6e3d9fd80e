// Finding, refusing and loading plugins, with the deliberately bad ones of tests/support/plugins.
// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/support/memory_system.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

bool is_mapped(const fs::path& path) { return content("/proc/self/maps").find(path.string()) != std::string::npos; }

// Gives each test a plugin folder of its own, and a marker file to which plugins write when their code runs.
class RegistryTest : public testing::Test {
 protected:
  RegistryTest() {
    fs::create_directory(folder_);
    setenv("TENON_TEST_MARKER", marker().c_str(), 1);
  }
  ~RegistryTest() override { unsetenv("TENON_TEST_MARKER"); }

  [[nodiscard]] fs::path marker() const { return root_ / "marker"; }
  [[nodiscard]] std::string ran() const { return content(marker()); }

  fs::path install(const std::string& plugin, const std::string& as = "") {
    const fs::path to = folder_ / (as.empty() ? plugin + ".so" : as);
    fs::create_directories(to.parent_path());
    fs::copy_file(fs::path(tenon_tests::test_plugin_folder()) / plugin / (plugin + ".so"), to);
    return to;
  }
  [[nodiscard]] Registry registry() const { return Registry({folder_}, system_files()); }

  // The only entry of `list`.
  static json only(const Registry& registry) {
    const json all = registry.list();
    EXPECT_EQ(all.size(), 1u);
    return all.at(0);
  }

  // Installs a plugin that must be refused when it is found. Returns the reason.
  std::string refused_when_found(const std::string& plugin) {
    const fs::path file = install(plugin);
    Registry found = registry();
    const json entry = only(found);
    EXPECT_EQ(entry["status"], "refused") << plugin;
    EXPECT_NE(error_of([&] { (void)found.layer(plugin); }).code(), TN_OK) << plugin;
    EXPECT_EQ(ran(), "") << plugin;
    EXPECT_FALSE(is_mapped(file)) << plugin;
    fs::remove(file);
    EXPECT_THAT(entry["reason"].get<std::string>(), HasSubstr(file.string()));
    return entry["reason"];
  }

  // Installs a plugin that must be found but refused when it is loaded. Returns the message.
  std::string refused_when_loaded(const std::string& plugin) {
    const fs::path file = install(plugin);
    Registry found = registry();
    EXPECT_EQ(only(found)["status"], "found") << plugin;
    const Error first = error_of([&] { (void)found.layer(plugin); });
    EXPECT_EQ(first.code(), TN_REFUSED) << plugin;
    EXPECT_EQ(only(found)["status"], "refused") << plugin;
    EXPECT_EQ(error_of([&] { (void)found.layer(plugin); }).message(), first.message()) << "at the second request";
    fs::remove(file);
    EXPECT_THAT(first.message(), AllOf(HasSubstr("layer type \"" + plugin + "\""), HasSubstr(file.string())));
    return first.message();
  }

  const tenon_tests::TemporaryFolder temporary_;
  const fs::path root_ = temporary_.path(), folder_ = root_ / "plugins";
};

TEST_F(RegistryTest, LoadsAPluginWhenItIsFirstUsed) {
  const fs::path file = install("good", "layers/good.so");
  Registry found = registry();
  EXPECT_EQ(only(found)["file"], file.string());
  EXPECT_EQ(only(found)["status"], "found");
  EXPECT_EQ(only(found)["reason"], "");
  EXPECT_EQ(only(found)["manifest"]["layers"][0]["attributes"][0]["initial"], 3);
  (void)error_of([&] { (void)found.layer("goood"); });
  EXPECT_TRUE(found.kernels("good", "cpu", TN_F32).empty());
  EXPECT_EQ(ran(), "") << "list, suggestions and kernels of others must run no plugin code";
  EXPECT_FALSE(is_mapped(file));

  const LayerType& layer = found.layer("good");
  EXPECT_EQ(ran(), "good\n");
  EXPECT_TRUE(is_mapped(file));
  EXPECT_EQ(only(found)["status"], "loaded");
  EXPECT_EQ(layer.plugin, "tenon.test.good");
  EXPECT_EQ(layer.description.attributes.at(0).initial, Value(int64_t{3}));
  EXPECT_EQ(layer.description.state_version, 7u);
  EXPECT_EQ(layer.table.size, sizeof(tn_layer_type));
  EXPECT_EQ(layer.table.expand, nullptr);
  EXPECT_EQ(&found.layer("good"), &layer);

  // A second host shares the image and has tables of its own.
  Registry second = registry();
  EXPECT_NE(&second.layer("good"), &layer);
  EXPECT_EQ(second.layer("good").table.plan, layer.table.plan);
  EXPECT_EQ(ran(), "good\n");
}

TEST_F(RegistryTest, LoadsACommunicatorWhenItIsFirstUsed) {
  const fs::path file = folder_ / "my_plugin.so";
  fs::copy_file(fs::path(tenon_tests::test_plugin_folder()) / "../test_comms/comms/my_plugin.so", file);
  Registry found = registry();
  EXPECT_EQ(only(found)["manifest"]["comms"][0]["type"], "example.my_plugin");
  EXPECT_EQ(only(found)["manifest"]["drafts"][0]["id"], "tenon.comm/1");
  EXPECT_THAT(error_of([&] { (void)found.comm("example.my_plugim"); }).message(),
              HasSubstr("did you mean \"example.my_plugin\"?"));
  EXPECT_FALSE(is_mapped(file));
  const CommType& comm = found.comm("example.my_plugin");
  EXPECT_TRUE(is_mapped(file));
  EXPECT_EQ(only(found)["status"], "loaded");
  EXPECT_EQ(comm.description.traits, uint32_t{TN_COMM_SURVIVES});
  EXPECT_EQ(comm.table.draft, TN_COMM_DRAFT);
}

TEST_F(RegistryTest, AnImageOutlivesItsRegistry) {
  const fs::path file = install("good");
  tn_layer_type table = {};
  {
    Registry found = registry();
    table = found.layer("good").table;
  }
  EXPECT_TRUE(is_mapped(file));
  tn_planner planner = {};
  tn_spec spec = {};
  const tn_spec* inputs[] = {&spec};
  planner.inputs = inputs;
  planner.self = &spec;
  planner.output = [](void* self, uint32_t, const tn_spec* output) -> tn_status {
    return self == output ? TN_OK : TN_INTERNAL;
  };
  EXPECT_EQ(table.plan(&planner), TN_OK);
}

TEST_F(RegistryTest, RefusesFromTheNoteAlone) {
  EXPECT_THAT(refused_when_found("bad_major"),
              AllOf(HasSubstr("version 9.4"), HasSubstr("9.2 or later"), HasSubstr("this host offers version 0.4")));
  EXPECT_THAT(refused_when_found("bad_minor"), AllOf(HasSubstr("0.99"), HasSubstr("0.98"), HasSubstr("update Tenon")));
  EXPECT_THAT(refused_when_found("bad_note"), HasSubstr("no Tenon note"));
  EXPECT_THAT(refused_when_found("bad_isa"), HasSubstr("telepathy"));
  EXPECT_THAT(
      refused_when_found("bad_unwinder"),
      AllOf(HasSubstr(".gcc_except_table"), HasSubstr("does not need libgcc_s.so.1"), HasSubstr("-shared-libgcc")));
}

// Of a plugin of a later version, what has values that this host does not know is refused, and the rest works.
TEST_F(RegistryTest, AnUnknownValueCostsOneComponent) {
  const fs::path file = install("newer");
  Registry found = registry();
  const json entry = only(found);
  EXPECT_EQ(entry["status"], "found");
  EXPECT_EQ(entry["reason"], "");
  std::vector<std::string> refused;
  for (const json& component : entry["refused"])
    refused.push_back(text(component["kind"].get<std::string>(), " ", component["index"].get<int>(), " ",
                           component["name"].get<std::string>()));
  EXPECT_EQ(refused, (std::vector<std::string>{"layer 0 newer_role", "layer 2 newer_kind", "layer 3 newer_flags",
                                               "layer 4 newer_host", "updater 0 newer_kind", "reader 0 newer_traits",
                                               "kernel 0 eighth", "kernel 2 whole", "kernel 3 long"}));
  EXPECT_THAT(entry["refused"][0]["reason"].get<std::string>(), HasSubstr("its role 9 is unknown to this host"));

  const auto asked = [&](auto ask, const std::string& who, const std::string& why) {
    const Error error = error_of(ask);
    EXPECT_EQ(error.code(), TN_REFUSED) << error.message();
    EXPECT_EQ(error.component(), who);
    EXPECT_EQ(error.subject(), file.string());
    EXPECT_THAT(error.message(),
                AllOf(HasSubstr(who + ": " + file.string() + " offers it, but its " + why), HasSubstr("version 0.4")));
  };
  asked([&] { (void)found.layer("newer_role"); }, "layer type \"newer_role\"", "role 9 is unknown");
  asked([&] { (void)found.layer("newer_kind"); }, "layer type \"newer_kind\"", "kind 12 of attribute \"tree\"");
  asked([&] { (void)found.layer("newer_flags"); }, "layer type \"newer_flags\"", "flags 1048576 of output \"y\"");
  asked([&] { (void)found.updater("newer_kind"); }, "updater type \"newer_kind\"", "kind 12");
  asked([&] { (void)found.reader("newer_traits"); }, "reader type \"newer_traits\"", "traits 4096");
  EXPECT_THAT(
      error_of([&] { (void)found.layer("newer_host"); }).message(),
      HasSubstr(file.string() + " offers it, but it needs a host of 0.41 or later; this host offers version 0.4"));
  asked([&] { (void)found.describe_type("layer", "newer_role"); }, "layer type \"newer_role\"", "role 9");
  EXPECT_EQ(error_of([&] { (void)found.layer("newer"); }).code(), TN_NOT_FOUND);
  EXPECT_EQ(ran(), "");

  EXPECT_EQ(found.layer("newer_good").plugin, "tenon.test.newer") << "its code agrees with its note";
  const auto kernels = found.kernels("newer_good", "cpu", TN_F32);
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_STREQ(kernels[0]->table.name, "plain");
  EXPECT_TRUE(found.fusions({"a", "newer_good"}, "cpu", TN_F32).empty());
  EXPECT_EQ(only(found)["status"], "loaded");
}

// Another plugin may offer what this one cannot.
TEST_F(RegistryTest, ARefusedComponentOwnsNoName) {
  install("good", "b.so");
  std::string bytes = content(install("good", "a.so"));
  const auto replace = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(bytes.find(from), std::string::npos) << from;
    bytes.replace(bytes.find(from), from.size(), to);
  };
  replace("\"id\":\"tenon.test.good\"", "\"id\":\"tenon.test.evil\"");
  replace("\"role\":0", "\"role\":9");
  write(folder_ / "a.so", bytes);
  Registry found = registry();
  const json all = found.list();
  EXPECT_EQ(all[0]["status"], "found");
  EXPECT_EQ(all[1]["status"], "found");
  EXPECT_EQ(found.layer("good").plugin, "tenon.test.good");
}

TEST_F(RegistryTest, RefusesCodeThatIsNotWhatTheNoteSays) {
  EXPECT_THAT(refused_when_loaded("bad_symbol"), HasSubstr("does not export the symbol tenon_plugin"));
  EXPECT_THAT(refused_when_loaded("bad_null"), HasSubstr("returned no descriptor"));
  EXPECT_THAT(refused_when_loaded("bad_short"), HasSubstr("its descriptor of 8 bytes ends before \"abi\""));
  EXPECT_THAT(refused_when_loaded("bad_throw"), HasSubstr("threw an exception"));
  EXPECT_THAT(refused_when_loaded("thrower"), HasSubstr("it cannot be described: no cards today"));
  EXPECT_THAT(refused_when_loaded("bad_differs"), HasSubstr("the attribute \"size\" differs in the code"));
  EXPECT_THAT(refused_when_loaded("bad_hidden_minor"), HasSubstr("needs a host of 0.98"));
  EXPECT_THAT(refused_when_loaded("bad_size"), AllOf(HasSubstr("a layer type"), HasSubstr("\"user\"")));
}

TEST_F(RegistryTest, AMissingLibraryCarriesItsHint) {
  const std::string message = refused_when_loaded("bad_library");
  EXPECT_THAT(message, HasSubstr("libtenon_test_absent.so: install the absent package"));
  EXPECT_EQ(ran(), "");
}

TEST_F(RegistryTest, AMissingFunctionAnswersUnsupported) {
  install("bad_plan");
  Registry found = registry();
  const LayerType& layer = found.layer("bad_plan");
  std::string message;
  const tn_errors errors = {sizeof(tn_errors), 0, &message, [](void* self, const tn_error_report* report) {
                              *static_cast<std::string*>(self) = report->message;
                            }};
  tn_planner planner = {};
  planner.errors = &errors;
  EXPECT_EQ(layer.table.plan(&planner), TN_UNSUPPORTED);
  EXPECT_THAT(message, HasSubstr("no plan"));
}

TEST_F(RegistryTest, RefusesDamagedFiles) {
  const std::string good = content(install("good"));
  const size_t owner = good.find(std::string("Tenon\0\0\0{", 9));
  ASSERT_NE(owner, std::string::npos);
  const auto damaged = [&](const std::string& name, auto damage) {
    std::string bytes = good;
    damage(bytes);
    write(folder_ / (name + ".so"), bytes);
  };
  fs::remove(folder_ / "good.so");
  damaged("a_cut", [](std::string& bytes) { bytes.resize(700); });
  damaged("b_oversized", [&](std::string& bytes) { bytes[owner - 6] = 2; });  // the third byte of the text's length
  damaged("c_garbage", [&](std::string& bytes) { bytes.replace(owner + 8, 8, "garbage!"); });
  damaged("d_empty", [](std::string& bytes) { bytes.clear(); });
  damaged("e_text", [](std::string& bytes) { bytes = "GROUP ( libc.so.6 )"; });
  const Registry found = registry();
  const json all = found.list();
  ASSERT_EQ(all.size(), 5u);
  const char* const reasons[] = {"", "runs over the end", "its note at $", "not a shared object",
                                 "not a shared object"};
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i]["status"], "refused") << all[i];
    EXPECT_TRUE(all[i]["manifest"].is_null()) << all[i];
    EXPECT_THAT(all[i]["reason"].get<std::string>(), HasSubstr(reasons[i]));
  }
  EXPECT_EQ(ran(), "");
}

TEST_F(RegistryTest, AFileThatChangedIsNotLoaded) {
  const fs::path file = install("good");
  Registry found = registry();
  fs::remove(file);
  install("bad_type", "good.so");
  EXPECT_THAT(error_of([&] { (void)found.layer("good"); }).message(), HasSubstr("has changed"));
  EXPECT_EQ(ran(), "");
}

TEST_F(RegistryTest, OfTwoThatOfferTheSameTheFirstWins) {
  const fs::path first = install("good", "a/good.so");
  const fs::path same_id = install("good", "b/good.so");
  const fs::path same_type = install("bad_type", "c/bad_type.so");
  Registry found = registry();
  const json all = found.list();
  EXPECT_EQ(all[0]["status"], "found");
  EXPECT_EQ(all[1]["status"], "unused");
  EXPECT_EQ(all[1]["reason"], same_id.string() + ": its id \"tenon.test.good\" is also that of " + first.string() +
                                  ", which has the same version and comes first");
  EXPECT_EQ(all[2]["status"], "refused");
  EXPECT_THAT(all[2]["reason"].get<std::string>(),
              AllOf(HasSubstr(same_type.string()), HasSubstr("layer type \"good\""), HasSubstr(first.string())));
  EXPECT_EQ(found.layer("good").plugin, "tenon.test.good");

  // The order of the search paths comes before that of the names.
  Registry other({folder_ / "c", folder_ / "a"}, system_files());
  EXPECT_EQ(other.layer("good").plugin, "tenon.test.bad_type");
}

TEST_F(RegistryTest, OfTwoVersionsTheNewerWins) {
  const auto version = [&](const fs::path& file, const std::string& to) {
    std::string bytes = content(file);
    const std::string from = "1.2.3";
    for (size_t at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at)) bytes.replace(at, 5, to);
    write(file, bytes);
  };
  install("good", "a/good.so");
  version(install("good", "b/good.so"), "1.10.");
  version(install("good", "c/good.so"), "1.9.9");
  Registry found = registry();
  EXPECT_EQ(found.list().at(0)["status"], "unused");
  EXPECT_THAT(found.list().at(0)["reason"].get<std::string>(), HasSubstr("whose version 1.10. is newer than 1.2.3"));
  EXPECT_EQ(found.list().at(2)["status"], "unused");
  EXPECT_EQ(found.layer("good").version, "1.10.");
  EXPECT_EQ(error_of([&] { (void)found.layer("bad"); }).message(),
            "layer type \"bad\" not found; known: good; searched: " + folder_.string() + " (1 plugin, 2 unused)");
}

TEST_F(RegistryTest, NotFoundNamesTheNearestAndEveryPlaceSearched) {
  install("good");
  install("bad_note");
  Registry found({folder_, root_ / "nowhere"}, system_files());
  const Error error = error_of([&] { (void)found.layer("godo"); });
  EXPECT_EQ(error.code(), TN_NOT_FOUND);
  EXPECT_EQ(error.message(), "layer type \"godo\" not found; did you mean \"good\"? searched: " + folder_.string() +
                                 " (1 plugin, 1 refused), " + (root_ / "nowhere").string() + " (no such folder)");
  EXPECT_EQ(error_of([&] { (void)found.device("cpu"); }).message(),
            "device \"cpu\" not found; searched: " + folder_.string() + " (1 plugin, 1 refused), " +
                (root_ / "nowhere").string() + " (no such folder)");
  Registry none({}, system_files());
  EXPECT_EQ(error_of([&] { (void)none.reader("idx"); }).message(),
            "reader type \"idx\" not found; searched: no folder");
}

// They may hold the plugin that is missing, and the files beside them are used.
TEST_F(RegistryTest, FoldersThatCannotBeReadAreListed) {
  install("good", "b/good.so");
  fs::create_directories(folder_ / "a" / "shut");
  fs::permissions(folder_ / "a" / "shut", fs::perms::none);
  std::unique_ptr<Registry> found;
  {
    const Unprivileged user;
    found = std::make_unique<Registry>(std::vector<fs::path>{folder_, folder_ / "a" / "shut"}, system_files());
  }
  const json all = found->list();
  ASSERT_EQ(all.size(), 3u) << all.dump(1);
  EXPECT_EQ(all[0]["status"], "found");
  const std::string shut = (folder_ / "a" / "shut").string();
  for (const size_t i : {1, 2}) {
    EXPECT_EQ(all[i]["file"], shut);
    EXPECT_EQ(all[i]["status"], "refused");
    EXPECT_EQ(all[i]["reason"], shut + ": the folder cannot be read: Permission denied");
    EXPECT_TRUE(all[i]["manifest"].is_null());
  }
  EXPECT_THAT(error_of([&] { (void)found->layer("other"); }).message(),
              AllOf(HasSubstr("(1 plugin, 1 folder that cannot be read)"),
                    HasSubstr("(0 plugins, 1 folder that cannot be read)")));
  EXPECT_NO_THROW((void)found->layer("good"));
  fs::permissions(folder_ / "a" / "shut", fs::perms::owner_all);
}

TEST_F(RegistryTest, TakesRegularFilesOnceEach) {
  const fs::path file = install("good", "good.so");
  fs::create_symlink(file, folder_ / "a_link.so");
  fs::create_symlink(folder_, folder_ / "loop");
  fs::create_symlink(root_ / "gone.so", folder_ / "dangling.so");
  fs::create_directory(folder_ / "folder.so");
  ASSERT_EQ(mkfifo((folder_ / "pipe.so").c_str(), 0600), 0);
  write(folder_ / "good.so.1", content(file));
  Registry found({folder_, folder_}, system_files());
  const json all = found.list();
  ASSERT_EQ(all.size(), 3u) << all.dump(1);
  EXPECT_EQ(all[0]["file"], file.string());
  EXPECT_EQ(all[0]["status"], "found");
  EXPECT_THAT(all[1]["reason"].get<std::string>(), HasSubstr("dangling.so: it cannot be resolved"));
  EXPECT_THAT(all[2]["file"].get<std::string>(), HasSubstr("pipe.so"));
  EXPECT_EQ(all[2]["status"], "refused");
}

TEST_F(RegistryTest, ListIsJsonWhateverTheFilesAreCalled) {
  install("good", "\xff.so");
  write(folder_ / "\xfe.so", "");
  const Registry found = registry();
  EXPECT_NO_THROW((void)found.list().dump());
}

}  // namespace
}  // namespace tenon_tests
