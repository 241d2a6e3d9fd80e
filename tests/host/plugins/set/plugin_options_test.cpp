// Options of plugins: what a set may state, where a mistake is, and that each host has its own.
// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/set/plugin_options.h"

#include "host/plugins/services.h"
#include "tests/support/plugin_set_test.h"
#include "tests/support/reader_check.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kId = "tenon.test.options";

// A host, as far as options need one.
struct Deployed {
  std::shared_ptr<OptionTable> table = std::make_shared<OptionTable>();
  Registry registry;
  Services services{system_allocator(), {}, nullptr, table};

  Deployed(const std::vector<fs::path>& folders, std::shared_ptr<const PluginSet> set)
      : registry(folders, system_files(), nullptr, std::move(set), table) {}

  // What the plugin's reader gives, which follows from its options.
  std::vector<double> samples() {
    TableReader reader(registry.reader("options_constant"), {}, ".", 0, 1,
                       services.tables(registry.reader("options_constant")), nullptr);
    std::vector<double> result;
    for (const auto& sample : reader.next(100)) result.push_back(as<double>(sample.at(0).values).at(0));
    return result;
  }
};

class PluginOptionsTest : public PluginSetTest {
 protected:
  PluginOptionsTest() { file_ = install("readers", "options.so", "1.2.3", "options.so"); }

  // A set with these options, in its line 4.
  [[nodiscard]] static std::string with(const std::string& options, const std::string& mode = "dev") {
    return "mode = \"" + mode + "\"\n[[plugin]]\nid = \"" + kId + "\"\noptions = { " + options + " }\n";
  }
  Deployed deployed(const std::string& text, const std::string& name = "set.toml") {
    return {{folder_}, set(text, name)};
  }
  // Why the plugin is refused, without the file's name in front.
  std::string refused(const std::string& options) {
    const Error error = error_of([&] { (void)registry(with(options)).reader("options_constant"); });
    EXPECT_EQ(error.code(), TN_REFUSED);
    const std::string message = error.message(), place = (root_ / "set.toml").string() + ":4: ";
    const size_t at = message.find(place);
    return at == std::string::npos ? message : message.substr(at + place.size());
  }

  fs::path file_;
};

TEST_F(PluginOptionsTest, ReachThePluginAsTheSetStatesThem) {
  using Numbers = std::vector<double>;
  EXPECT_EQ((Deployed({folder_}, nullptr).samples()), (Numbers{0.5, 0.5})) << "the defaults";
  EXPECT_EQ(deployed(with("samples = 1, rate = 3")).samples(), Numbers{3}) << "an integer is a number";
  EXPECT_EQ(deployed(with(R"(samples = 3, rate = 1.5, unit = "thousand", negative = true)", "allow")).samples(),
            (Numbers{-1500, -1500, -1500}));
  // A table of its own, and a key in quotes, are the same.
  EXPECT_EQ(deployed("mode = \"dev\"\n[[plugin]]\nid = \"tenon.test.options\"\n[plugin.options]\n\"samples\" = 1\n")
                .samples(),
            Numbers{0.5});
}

// Two hosts share the mapped image, and each has the values of its own set at any time.
TEST_F(PluginOptionsTest, AreThoseOfEachHost) {
  Deployed one = deployed(with("samples = 1, rate = 1"), "one.toml");
  Deployed two = deployed(with("samples = 2, rate = 2"), "two.toml");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(one.samples(), (std::vector<double>{1}));
    EXPECT_EQ(two.samples(), (std::vector<double>{2, 2}));
  }
  EXPECT_EQ(reinterpret_cast<const void*>(one.registry.reader("options_constant").table.open),
            reinterpret_cast<const void*>(two.registry.reader("options_constant").table.open));
  EXPECT_EQ(one.table->find("tenon.nobody"), nullptr);
  const tn_services* const own = one.services.tables({kId});
  EXPECT_EQ(own->extension(own->self, "tenon.options/2"), nullptr);
  const Services without(system_allocator(), {});
  EXPECT_EQ(tn_options_of(without.tables({kId}), kId), nullptr);
}

// Another plugin does not read them, but for one that was built when hosts showed all.
TEST_F(PluginOptionsTest, AreThoseOfThePluginAlone) {
  Deployed host = deployed(with("samples = 1, rate = 1"));
  EXPECT_EQ(host.samples(), (std::vector<double>{1}));
  const auto seen_by = [&](const char* id, uint16_t built) {
    return tn_options_of(host.services.tables({id, nullptr, "", nullptr, built}), kId) != nullptr;
  };
  EXPECT_TRUE(seen_by(kId, 4));
  EXPECT_FALSE(seen_by("tenon.test.other", 4));
  EXPECT_TRUE(seen_by("tenon.test.older", 3));
}

// What plugins use of the host is counted by plugin.
TEST(PluginServices, CountMemoryAndLinesByPlugin) {
  std::vector<std::string> lines;
  const Services services(system_allocator(), [&](int32_t, const char* line) { lines.emplace_back(line); });
  const tn_services* const one = services.tables({"one"});
  const tn_services* const two = services.tables({"two"});
  EXPECT_NE(one, two);
  EXPECT_EQ(services.tables({"one"}), one);
  const auto* const memory = static_cast<const tn_memory*>(one->extension(one->self, TN_MEMORY));
  const auto* const log = static_cast<const tn_log*>(two->extension(two->self, TN_LOG));
  void* const block = memory->allocate(memory->self, 1000);
  ASSERT_NE(block, nullptr);
  log->write(log->self, 1, "a line");
  EXPECT_EQ(services.usage("one").bytes, 1000U);
  EXPECT_EQ(services.usage("two").bytes, 0U);
  EXPECT_EQ(services.usage("two").log_lines, 1U);
  EXPECT_EQ(services.usage("one").log_lines, 0U);
  EXPECT_EQ(services.usage("three").bytes, 0U);
  memory->release(memory->self, block, 1000);
  memory->release(memory->self, nullptr, 5);
  EXPECT_EQ(services.usage("one").bytes, 0U);
  EXPECT_EQ(lines, (std::vector<std::string>{"a line"}));
}

TEST_F(PluginOptionsTest, MistakesAreRefusedWithTheirPlace) {
  EXPECT_EQ(refused("sample = 1"), "unknown option \"sample\"; did you mean \"samples\"?");
  EXPECT_EQ(refused("samples = 1.5"), "option \"samples\": expected an integer between 1 and 100, got 1.5");
  EXPECT_EQ(refused("samples = 101"), "option \"samples\": expected an integer between 1 and 100, got 101");
  EXPECT_EQ(refused("rate = true"), "option \"rate\": expected a number, got true");
  EXPECT_THAT(refused("rate = inf"), HasSubstr("option \"rate\": expected a number, got inf"));
  EXPECT_EQ(refused("unit = \"two\""), "option \"unit\": expected one of \"one\", \"thousand\", got \"two\"");
  EXPECT_EQ(refused("negative = 1"), "option \"negative\": expected true or false, got 1");
  EXPECT_EQ(registry(with("sample = 1")).list().at(0).at("status"), "refused") << "before any code runs";
}

TEST_F(PluginOptionsTest, MistakesThatNeedNoPlugin) {
  const std::string place = (root_ / "set.toml").string() + ":4: plugin \"tenon.test.options\": ";
  const auto message = [&](const std::string& options) {
    const Error error = wrong(with(options));
    EXPECT_EQ(error.code(), TN_BAD_CONFIG);
    return error.message();
  };
  EXPECT_EQ(message("samples = [1]"), place + "option \"samples\": expected a text, a number, true or false");
  EXPECT_EQ(message("rate = { a = 1 }"), place + "option \"rate\": expected a text, a number, true or false");
  EXPECT_EQ(message("unit = 1979-05-27"), place + "option \"unit\": expected a text, a number, true or false");
  EXPECT_EQ(message(R"(unit = "o\u0000e")"), place + "option \"unit\": the text has a NUL in it");
  EXPECT_THAT(message("rate = 1, rate = 2"), HasSubstr("set.toml:4"));
  EXPECT_THAT(wrong("mode = \"dev\"\n[[plugin]]\nid = \"a\"\noptions = [1]").message(),
              HasSubstr("key \"options\": expected a table of names and values, got a list"));
}

TEST_F(PluginOptionsTest, AnEntryOfAPluginWithoutOptions) {
  install("good", "good.so");
  Registry found = registry("mode = \"dev\"\n[[plugin]]\nid = \"tenon.test.good\"\noptions = { a = 1 }\n");
  EXPECT_THAT(error_of([&] { (void)found.layer("good"); }).message(),
              HasSubstr("set.toml:4: unknown option \"a\"; there are no options here"));
  EXPECT_EQ(ran(), "");
}

TEST_F(PluginOptionsTest, ALockKeepsThemAsTheyWereStated) {
  Deployed first = deployed(with(R"(rate = 1e300, unit = "thousand", negative = true)"));
  (void)first.samples();
  const std::string text = first.registry.lock(root_);
  EXPECT_THAT(text, HasSubstr(R"(options = { "negative" = true, "rate" = 1e+300, "unit" = "thousand" })"));
  Deployed again = deployed(text, "locked.toml");
  EXPECT_EQ(again.samples(), first.samples());
  EXPECT_EQ(again.registry.lock(root_), text);
  EXPECT_EQ(again.registry.list().at(0).at("options"),
            json({{"samples", 2}, {"rate", 1e300}, {"unit", "thousand"}, {"negative", true}}));
}

TEST_F(PluginOptionsTest, NeverChangeOnceThePluginIsLoaded) {
  Deployed host = deployed(with("samples = 1"));
  host.registry.use(set(with("samples = 3"), "later.toml"));
  EXPECT_EQ(host.samples().size(), 3u) << "it was not loaded yet";
  const tn_attributes* const given = host.table->find(kId);
  for (const char* const options : {"samples = 4", "rate = 3"}) {
    const Error error = error_of([&] { host.registry.use(set(with(options), "other.toml")); });
    EXPECT_EQ(error.code(), TN_REFUSED);
    EXPECT_THAT(error.message(), HasSubstr("options.so: it was loaded with other options"));
  }
  EXPECT_THAT(error_of([&] { host.registry.use(set(with("x = 1"), "wrong.toml")); }).message(),
              HasSubstr("wrong.toml:4: unknown option \"x\""));
  host.registry.use(set(with("samples = 3, rate = 0.5", "allow"), "same.toml"));
  EXPECT_EQ(host.samples().size(), 3u);
  EXPECT_EQ(tn_int(given, "samples", 0), 3) << "what a plugin keeps stays valid";
}

TEST_F(PluginOptionsTest, OfThePluginOfAnApplication) {
  static const tn_attribute option = {
      sizeof(tn_attribute), TN_ATTR_INT, "limit", "bytes", TN_ATTR_REQUIRED, 1, {}, 0, 0, nullptr};
  static const tn_attribute* const list[] = {&option};
  tn_plugin plugin = {};
  plugin.size = sizeof plugin;
  plugin.abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0};
  plugin.id = "tenon.test.given", plugin.version = "1", plugin.doc = "d", plugin.license = "MIT", plugin.isa = "";
  plugin.options = list, plugin.options_count = 1;
  const auto add = [&](const std::string& options) {
    Deployed host = deployed("mode = \"allow\"\n[[plugin]]\nid = \"tenon.test.given\"\napplication = true\n" + options);
    host.registry.add(plugin);
    return tn_int(host.table->find("tenon.test.given"), "limit", 0);
  };
  EXPECT_EQ(add("options = { limit = 7 }"), 7);
  const Error error = error_of([&] { (void)add("options = { limit = -1 }"); });
  EXPECT_EQ(error.code(), TN_REFUSED);
  EXPECT_THAT(error.message(), HasSubstr("option \"limit\": expected an integer of at least 0, got -1"));
  EXPECT_THAT(error_of([&] { (void)add(""); }).message(),
              HasSubstr("set.toml:2: option \"limit\" is missing: expected an integer of at least 0"));
  Registry open({}, system_files());
  EXPECT_THAT(error_of([&] { open.add(plugin); }).message(),
              HasSubstr("no plugin set states its options: option \"limit\" is missing"));
}

}  // namespace
}  // namespace tenon_tests
