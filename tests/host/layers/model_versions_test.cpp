// Model files of another version of a plugin: what they hold of it, what is migrated, what is refused.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/migration_test.h"

namespace tenon_tests {

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

using ModelVersions = MigrationTest;

const std::string kLayer = "layer \"b\" (test.blend): ";
const std::string kMigration = kLayer + "migration from state version 1 to 2: ";

// ---- what files hold

TEST_F(ModelVersions, FilesHoldVersionsAllAttributesAndBuffers) {
  save("first", "test.blend", {{"size", 2}, {"act", "tanh"}, {"drop_rate", 0.5}});
  const json layer = saved_layer();
  EXPECT_EQ(layer.at("plugin"), json({{"id", "tenon.test.versions"}, {"version", "1.0.0"}, {"state_version", 1}}));
  EXPECT_EQ(layer.at("attributes"), json({{"size", 2},
                                          {"momentum", 0.9},
                                          {"note", nullptr},
                                          {"act", "tanh"},
                                          {"drop_rate", 0.5},
                                          {"parameter_name", "b"}}));
  EXPECT_EQ(layer.at("buffers"), json({{"b.mean", "mean"}}));
  ASSERT_EQ(layer.at("inner").size(), 1u);
  const json& inner = layer.at("inner")[0];
  EXPECT_EQ(inner.at("name"), "b/tanh");
  EXPECT_EQ(inner.at("type"), "tanh");
  EXPECT_EQ(inner.at("plugin").at("id"), "tenon.activations");
  EXPECT_EQ(inner.at("attributes"), json::object());
  EXPECT_FALSE(topology().at("layers").at(0).contains("plugin")) << "a data layer has no type of a plugin";
}

TEST_F(ModelVersions, BuffersSayHowTheyMerge) {
  const Host saving = host("second");
  save(saving, {saving.layer("test.wrapped", {input(saving)}, {}, "b")});
  EXPECT_EQ(saved_layer().at("buffers"), json({{"b.mean", "max"}})) << "also in an expansion";
}

TEST_F(ModelVersions, ALoadedModelIsSavedAsTheSameFile) {
  for (const char* type : {"test.blend", "test.wrapped"}) {
    save("first", type, std::string(type) == "test.blend" ? Attributes{{"size", 2}} : Attributes{});
    const std::string before = bytes();
    const Host loading = host("first");
    const Model model = loading.load(path_);
    model.parameters.save(model.outputs, path_);
    EXPECT_EQ(bytes(), before) << type;
  }
}

// ---- defaults

TEST_F(ModelVersions, AChangedDefaultChangesNoOldModel) {
  for (const char* type : {"test.blend", "test.wrapped"}) {
    save("first", type, std::string(type) == "test.blend" ? Attributes{{"size", 2}} : Attributes{});
    const Numbers before = answers("first");
    EXPECT_EQ(answers("first_changed"), before) << type;
    save("first_changed", type, std::string(type) == "test.blend" ? Attributes{{"size", 2}} : Attributes{});
    EXPECT_NE(answers("first_changed"), before) << "the same parameters with the new default";
  }
}

TEST_F(ModelVersions, AModelSavedAgainNamesThePresentPlugin) {
  save("first");
  const Host changed = host("first_changed");
  const Model model = changed.load(path_);
  model.parameters.save(model.outputs, path_);
  EXPECT_EQ(saved_layer().at("plugin").at("version"), "1.1.0");
  EXPECT_EQ(saved_layer().at("attributes").at("momentum"), 0.9) << "as the first file said";
}

// ---- migrations

TEST_F(ModelVersions, AnOlderStateIsMigrated) {
  save("first", "test.blend", {{"size", 2}, {"param.weight.rate_multiplier", 0.5}});
  const Numbers before = answers("first");
  EXPECT_EQ(answers("second"), before);
  // Saved by the new version, the file is one of the new version.
  const Host loading = host("second");
  const Model model = loading.load(path_);
  model.parameters.save(model.outputs, path_);
  const json layer = saved_layer();
  EXPECT_EQ(layer.at("plugin"), json({{"id", "tenon.test.versions"}, {"version", "2.0.0"}, {"state_version", 2}}));
  EXPECT_EQ(layer.at("attributes"), json({{"outputs", 2},
                                          {"keep", 0.9},
                                          {"shift", 0},
                                          {"note", nullptr},
                                          {"param.kernel.rate_multiplier", 0.5},
                                          {"parameter_name", "b"}}))
      << "a setting of a parameter is renamed with it";
  EXPECT_EQ(answers("second"), before);
}

TEST_F(ModelVersions, InnerLayersAreMigrated) {
  save("first", "test.wrapped", {});
  EXPECT_EQ(answers("second"), answers("first"));
}

TEST_F(ModelVersions, ALayerWithAnActivationIsMigrated) {
  save("first", "test.blend", {{"size", 2}, {"act", "tanh"}});
  EXPECT_EQ(answers("second"), answers("first"));
}

TEST_F(ModelVersions, LayersMayShareWhatIsMigrated) {
  const Host saving = host("first");
  const Layer x = input(saving);
  save(saving, {saving.layer("test.blend", {x}, {{"size", 3}, {"parameter_name", "s"}}, "b"),
                saving.layer("test.blend", {x}, {{"size", 3}, {"parameter_name", "s"}, {"momentum", 0.25}}, "c")});
  EXPECT_EQ(answers("second"), answers("first")) << "each migration begins with what the file holds";
}

TEST_F(ModelVersions, MigrateSeesWhatTheFileHolds) {
  save("first", "test.blend", {{"size", 2}, {"note", "kept"}, {"act", "tanh"}});
  bool called = false;
  EXPECT_THAT(refusal(
                  [&](tn::Migration& m) {
                    called = true;
                    EXPECT_EQ(m.state_version(), 1u);
                    EXPECT_STREQ(m.plugin(), "tenon.test.versions");
                    EXPECT_STREQ(m.plugin_version(), "1.0.0");
                    EXPECT_EQ(m.integer("size"), 2);
                    EXPECT_EQ(m.number("momentum"), 0.9);
                    EXPECT_STREQ(m.text("note"), "kept");
                    EXPECT_FALSE(m.has("act")) << "an attribute of the host";
                    EXPECT_FALSE(m.has("outputs"));
                    EXPECT_THAT(m.tensor("weight").shape, ElementsAre(2, kWidth));
                    EXPECT_THAT(m.tensor("mean").values, ElementsAre(0.25F, 0.25F));
                    EXPECT_FALSE(m.has_tensor("kernel"));
                    m.rename_tensor("weight", "kernel");
                    EXPECT_FALSE(m.has_tensor("weight"));
                    EXPECT_THAT(m.tensor("kernel").shape, ElementsAre(2, kWidth));
                    m.set_tensor("kernel", {{1}, {8}});
                    EXPECT_THAT(m.tensor("kernel").values, ElementsAre(8));
                    throw tn::Failure(TN_UNSUPPORTED, "note", "cannot be \"kept\"");
                  },
                  TN_REFUSED),
              kMigration + "note: cannot be \"kept\"");
  EXPECT_TRUE(called);
}

TEST_F(ModelVersions, AnAbsentAttributeIsShownAsOne) {
  save("first");
  EXPECT_THAT(refusal(
                  [](tn::Migration& m) {
                    EXPECT_FALSE(m.has("note"));
                    static_cast<void>(m.text("note"));
                  },
                  TN_BAD_DATA),
              StartsWith(kMigration + "note: migrate reads the attribute"));
}

// ---- refusals of versions

TEST_F(ModelVersions, ANewerStateIsRefused) {
  const Host saving = host("second");
  save(saving, {saving.layer("test.blend", {input(saving)}, {{"outputs", 2}}, "b")});
  EXPECT_EQ(refusal(host("first"), TN_REFUSED),
            kLayer +
                "state version 2, saved by plugin \"tenon.test.versions\" 2.0.0, is newer than that of the installed "
                "plugin \"tenon.test.versions\" 1.0.0, which is 1");
}

TEST_F(ModelVersions, ANewerInnerStateIsRefused) {
  save("second", "test.wrapped", {});
  EXPECT_EQ(refusal(host("first"), TN_REFUSED),
            "layer \"b\" (test.wrapped): layer \"b/test.blend\" (test.blend): state version 2, saved by plugin "
            "\"tenon.test.versions\" 2.0.0, is newer than that of the installed plugin \"tenon.test.versions\" 1.0.0, "
            "which is 1");
}

TEST_F(ModelVersions, AnOlderStateIsRefusedWithoutAMigration) {
  save("first");
  EXPECT_EQ(refusal(host("second_without"), TN_REFUSED),
            kLayer +
                "state version 1, saved by plugin \"tenon.test.versions\" 1.0.0, is older than that of the installed "
                "plugin \"tenon.test.versions\" 2.0.0, which is 2 and does not migrate older ones");
  Second::table.oldest = 2;
  EXPECT_EQ(refusal(second(), TN_REFUSED),
            kLayer +
                "state version 1, saved by plugin \"tenon.test.versions\" 1.0.0, is older than that of the installed "
                "plugin \"tenon.test.versions\" 2.5.0, which is 2 and migrates from 2 on");
}

TEST_F(ModelVersions, AnUnknownTypeNamesThePluginThatHadIt) {
  save("first");
  const Host without({1, {plugin_folder()}, nullptr, {}});
  EXPECT_THAT(refusal(without, TN_NOT_FOUND),
              AllOf(HasSubstr("layer type \"test.blend\" not found"),
                    EndsWith("; the layer was saved with plugin \"tenon.test.versions\" 1.0.0")));
}

// ---- files that state no version

TEST_F(ModelVersions, AFileWithoutVersionsIsMigratedOnRequest) {
  save("first");
  // Without the checksum and what this version added.
  const std::string before = bytes();
  json header = json::parse(before.substr(8, static_cast<size_t>(before[0] & 0xff) + 256U * (before[1] & 0xff)));
  json topology = json::parse(header.at("__metadata__").at("tenon.topology").get<std::string>());
  json& layer = topology.at("layers").at(1);
  for (const char* member : {"plugin", "buffers"}) layer.erase(member);
  for (const char* attribute : {"momentum", "note"}) layer.at("attributes").erase(attribute);
  header["__metadata__"] = {{"tenon.topology", topology.dump()}};
  const std::string text = header.dump();
  const size_t data = before.size() - 8 * sizeof(float);  // 6 weights and 2 means
  std::string after(8, '\0');
  for (size_t i = 0; i < 8; ++i) after[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  std::ofstream(path_, std::ios::binary) << after << text << before.substr(data);

  EXPECT_EQ(answers("first").size(), 4u);
  EXPECT_NE(answers("first"), answers("first_changed")) << "a default that is not stored is that of today";
  EXPECT_THAT(refusal(host("second"), TN_BAD_DATA), StartsWith(kLayer + "unknown attribute \"size\""))
      << "a migration from version 1 on is not asked";
  Second::table.oldest = 0;
  std::function<tn_status(const tn_migration*)> raw = [](const tn_migration* migration) {
    return tn::guarded(migration->errors, [&] {
      tn::Migration m(*migration);
      EXPECT_EQ(m.state_version(), 0u);
      EXPECT_STREQ(m.plugin(), "");
      EXPECT_STREQ(m.plugin_version(), "");
      EXPECT_EQ(migration->attributes_count, 1u);
      m.rename("size", "outputs");
      m.set("keep", tn::float_value(1));
      m.remove_tensor("weight");
      m.set_tensor("kernel", {{kWidth, 2}, Numbers(6, 1)});
    });
  };
  migrating = &raw;
  EXPECT_EQ(answers(second(), path_)[0], 6.25F);
}

}  // namespace
}  // namespace tenon_tests
