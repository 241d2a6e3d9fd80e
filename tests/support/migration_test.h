// Model files of versions of one plugin, and a migration that a test writes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <tenon/plugin.hpp>
#include <tenon/tenon.hpp>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

using Numbers = std::vector<float>;

constexpr int64_t kSamples = 2, kWidth = 3;
inline const Numbers kInput = {1, 2, 3, -4, 0.5F, 6};

// Runs the migration of Second, below.
inline std::function<tn_status(const tn_migration*)>* migrating = nullptr;
inline tn_migrate hooked_table() {
  return {sizeof(tn_migrate), 1, [](const tn_migration* migration) { return (*migrating)(migration); }};
}

// test.blend in state version 2, as tests/support/plugins/versions has it, with the migration of a test.
struct Second {
  static tn_migrate table;

  static void describe(tn::LayerDescription& d) {
    d.type("test.blend", "for tests");
    d.input("in", "");
    d.output("out", "");
    d.attribute(tn::int_attribute("outputs").required().at_least(1));
    d.attribute(tn::float_attribute("keep", 0.5));
    d.attribute(tn::string_attribute("note"));
    d.parameter("kernel");
    d.parameter("mean");
    d.state_version(2);
  }
  static void plan(tn::Planner& planner) {
    const int64_t outputs = planner.attributes().integer("outputs");
    planner.parameter("kernel", tn::Spec({kWidth, outputs}), tn::constant_initializer(0));
    planner.buffer("mean", tn::Spec({outputs}), tn::constant_initializer(0));
    planner.output(0, tn::Spec({planner.input(0)[0], outputs}));
  }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    tn::Program add;
    const tn::Float in = add.full(), mean = add.per_column();
    add.output(in * attributes.number("keep") + mean);
    body.output(0, body.pointwise(add, {body.gemm(body.input(0), body.parameter(0)), body.buffer(0)}).front());
  }
  static const void* extension(const char* id) noexcept { return std::strcmp(id, TN_MIGRATE) == 0 ? &table : nullptr; }
};
inline tn_migrate Second::table = hooked_table();

inline void describe_second(tn::Plugin& plugin) {
  plugin.about("tenon.test.versions", "2.5.0", "for tests", "Apache-2.0");
  plugin.layer<Second>();
}

class MigrationTest : public testing::Test {
 protected:
  void TearDown() override {
    migrating = nullptr;
    Second::table = hooked_table();
  }

  // A host with the plugins of Tenon and one version of the plugin of tests/support/plugins/versions.
  static Host host(const std::string& version) {
    return Host({1, {plugin_folder(), test_versions() + "/" + version}, nullptr, {}, TN_CHECK_ON});
  }
  static Layer input(const Host& host) {
    DataOptions x;
    x.name = "x", x.shape = {kWidth};
    return host.data(x);
  }
  // Saves one layer with random parameters.
  void save(const std::string& version, const std::string& type = "test.blend",
            const Attributes& attributes = {{"size", 2}}) const {
    const Host saving = host(version);
    save(saving, {saving.layer(type, {input(saving)}, attributes, "b")});
  }
  void save(const Host& host, const Layers& outputs) const { host.parameters(outputs, 7).save(outputs, path_); }

  // What the outputs of the file say of kInput.
  [[nodiscard]] static Numbers answers(const Host& host, const std::string& path) {
    const Model model = host.load(path);
    MachineOptions options;
    options.max_samples = kSamples;
    const Machine machine = host.machine(model.parameters, model.outputs, options);
    machine.forward({{"x", {TN_F32, {kSamples, kWidth}, kInput.data()}}});
    Numbers result;
    for (const Layer& layer : model.outputs) {
      const Array output = machine.output(layer);
      const auto* const values = static_cast<const float*>(output.data);
      result.insert(result.end(), values, values + output.count());
    }
    return result;
  }
  [[nodiscard]] Numbers answers(const std::string& version) const { return answers(host(version), path_); }

  // The message of a refusal, behind the name of the file.
  std::string refusal(const Host& host, tn_status code) const {
    try {
      static_cast<void>(host.load(path_));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), testing::HasSubstr(path_));
      return std::string(error.what()).substr(std::min(path_.size() + 2, std::strlen(error.what())));
    }
    ADD_FAILURE() << "the model was loaded";
    return "";
  }
  // The same, of a migration that a test writes.
  std::string refusal(const std::function<void(tn::Migration&)>& migrate, tn_status code) const {
    std::function<tn_status(const tn_migration*)> raw = [&](const tn_migration* migration) {
      return tn::guarded(migration->errors, [&] {
        tn::Migration wrapped(*migration);
        migrate(wrapped);
      });
    };
    migrating = &raw;
    return refusal(second(), code);
  }
  static Host second() {
    Host result({1, {plugin_folder()}, nullptr, {}, TN_CHECK_ON});
    result.add_plugin(tn::entry<describe_second>());
    return result;
  }
  // What a sound migration does, without the parameter.
  static void rename_attributes(tn::Migration& migration) {
    migration.rename("size", "outputs");
    migration.rename("momentum", "keep");
  }

  [[nodiscard]] std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] nlohmann::json topology() const {
    return nlohmann::json::parse(host("first").describe_model(path_)).at("topology");
  }
  [[nodiscard]] nlohmann::json saved_layer() const { return topology().at("layers").at(1); }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.file("model");
};

}  // namespace tenon_tests
