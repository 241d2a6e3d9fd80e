// Sets that a living host takes: modes only tighten, and plugins of the application are under the rules.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/plugin_set_test.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

using UseTest = PluginSetTest;

TEST_F(UseTest, ModesOnlyTighten) {
  install("good", "good.so");
  Registry found({folder_}, system_files());
  const auto use = [&](const std::string& mode) {
    return error_of([&] { found.use(set("mode = \"" + mode + "\"", mode + ".toml")); });
  };
  EXPECT_EQ(use("dev").message(), "");
  EXPECT_EQ(use("allow").message(), "");
  const Error loose = use("dev");
  EXPECT_EQ(loose.code(), TN_REFUSED);
  EXPECT_EQ(loose.message(), "the plugin set " + (root_ / "dev.toml").string() +
                                 " has the mode \"dev\", which is looser than the mode \"allow\" of this host; modes "
                                 "only tighten");
  EXPECT_EQ(use("locked").message(), "");
  EXPECT_EQ(use("allow").code(), TN_REFUSED);
  EXPECT_EQ(error_of([&] { (void)found.layer("good"); }).code(), TN_REFUSED);
  EXPECT_EQ(ran(), "");
  // Refused once, a plugin stays refused.
  found.use(set(locked("good", folder_ / "good.so"), "later.toml"));
  EXPECT_EQ(error_of([&] { (void)found.layer("good"); }).code(), TN_REFUSED);
}

TEST_F(UseTest, ALoadedPluginMustBeAdmitted) {
  const fs::path good = install("good", "good.so");
  install("bad_plan", "bad_plan.so");
  Registry found({folder_}, system_files());
  (void)found.layer("good");
  const Error error = error_of([&] { found.use(set("mode = \"allow\"")); });
  EXPECT_EQ(error.code(), TN_REFUSED);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("does not admit a plugin that is loaded already: " + good.string()),
                                     HasSubstr("is not listed")));
  EXPECT_NO_THROW((void)found.layer("bad_plan")) << "nothing changed";
  found.use(set("mode = \"allow\"\n[[plugin]]\nid = \"tenon.test.good\"\n[[plugin]]\nid = \"tenon.test.bad_plan\""));
  // The bytes of a plugin that is loaded were not checked, and cannot be any more.
  Registry other({folder_}, system_files());
  (void)other.layer("good");
  EXPECT_THAT(error_of([&] { other.use(set(locked("good", good))); }).message(),
              HasSubstr("its bytes were not checked when it was loaded"));
}

// The bytes that a set names are checked although they were found without one.
TEST_F(UseTest, ALaterSetChecksBytes) {
  const fs::path file = install("bad_isa", "a.so"), good = install("good", "good.so");
  Registry found({folder_}, system_files());
  const std::string text = locked("good", good);
  found.use(set(text));
  change_bit(good);
  EXPECT_THAT(error_of([&] { (void)found.layer("good"); }).message(), HasSubstr("has changed since it was checked"));
  change_bit(good);
  Registry again({folder_}, system_files());
  again.use(set(text));
  EXPECT_NO_THROW((void)again.layer("good"));
  EXPECT_NO_THROW(again.use(set(text))) << "it was loaded from these bytes";
}

TEST_F(UseTest, PluginsOfTheApplicationAreListed) {
  const std::string id = test_layers().id;
  Registry closed = registry("mode = \"allow\"");
  const Error error = error_of([&] { closed.add(test_layers()); });
  EXPECT_EQ(error.code(), TN_REFUSED);
  EXPECT_THAT(error.message(), HasSubstr("the application's plugin: its id \"" + id + "\" is not listed"));
  Registry wrong =
      registry("mode = \"locked\"\n[[plugin]]\nid = \"" + id + "\"\napplication = false\nfile = \"set.toml\"\n" +
               "sha256 = \"" + std::string(64, '0') + "\"");
  EXPECT_THAT(error_of([&] { wrong.add(test_layers()); }).message(), HasSubstr("such an entry has application = true"));
  const std::string entry = "\n[[plugin]]\nid = \"" + id + "\"\napplication = true\n";
  for (const std::string mode : {"dev", "allow", "locked"}) {
    Registry open = registry("mode = \"" + mode + "\"" + entry);
    EXPECT_NO_THROW(open.add(test_layers())) << mode;
    EXPECT_NO_THROW(open.use(set("mode = \"locked\"" + entry))) << mode;
  }
  Registry dev = registry("mode = \"dev\"");
  EXPECT_NO_THROW(dev.add(test_layers()));
}

}  // namespace
}  // namespace tenon_tests
