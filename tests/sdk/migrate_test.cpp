// tn::Migration over a table in C, and its table in a layer type. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <tenon/plugin.hpp>

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::function<void(tn::Migration&)>* migrating = nullptr;
const int kOther = 0;

struct Plain {
  static void describe(tn::LayerDescription& d) { d.type("plain", "for tests"); }
  static void plan(tn::Planner&) {}
};
struct Migrated : Plain {
  static void migrate(tn::Migration& migration) { (*migrating)(migration); }
};
struct Extended : Migrated {
  static constexpr uint32_t kOldestState = 0;
  static const void* extension(const char* id) noexcept { return std::strcmp(id, "other") == 0 ? &kOther : nullptr; }
};

const void* extension_of(const tn_layer_type* type, const char* id) { return type->extension(type->user, id); }

TEST(MigrateTable, IsMadeFromTheFunction) {
  EXPECT_EQ(tn::layer_type<Plain>()->extension, nullptr);
  const auto* const table = static_cast<const tn_migrate*>(extension_of(tn::layer_type<Migrated>(), "tenon.migrate/1"));
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->size, sizeof *table);
  EXPECT_EQ(table->oldest, 1u);
  EXPECT_EQ(extension_of(tn::layer_type<Migrated>(), "other"), nullptr);
}

TEST(MigrateTable, StandsBesideOtherExtensions) {
  const tn_layer_type* const type = tn::layer_type<Extended>();
  EXPECT_EQ(extension_of(type, "other"), &kOther);
  EXPECT_EQ(extension_of(type, "more"), nullptr);
  EXPECT_EQ(static_cast<const tn_migrate*>(extension_of(type, TN_MIGRATE))->oldest, 0u);
}

// A host that notes what it is asked, with the tensor "weight" [2, 1].
struct FakeHost {
  tn_errors errors = {};
  tn_migration migration = {};
  std::vector<std::string> calls;
  std::string message;
  tn_status answer = TN_OK;
  const char* names[5] = {"size", "rate", "whole", "note", "flag"};
  tn_value values[5] = {tn::int_value(3), tn::float_value(0.5), tn::int_value(2), {}, tn::bool_value(true)};
  const int64_t shape[2] = {2, 1};
  const float weight[2] = {4, 5};

  FakeHost() {
    errors.size = sizeof errors;
    errors.self = this;
    errors.report = [](void* self, const tn_error_report* report) {
      static_cast<FakeHost*>(self)->message = report->message;
    };
    migration = {};
    migration.size = sizeof migration;
    migration.state_version = 4;
    migration.self = this;
    migration.errors = &errors;
    migration.plugin = "vendor.p";
    migration.plugin_version = "1.5";
    migration.attributes_count = 5;
    migration.attribute_names = names;
    migration.attribute_values = values;
    migration.set_attribute = [](void* self, const char* name, const tn_value* value) {
      return note(self, std::string("set ") + name + " " + std::to_string(value->as.i));
    };
    migration.rename_attribute = [](void* self, const char* name, const char* now) {
      return note(self, std::string("rename ") + name + " " + now);
    };
    migration.remove_attribute = [](void* self, const char* name) { return note(self, std::string("remove ") + name); };
    migration.tensor = [](void* self, const char* suffix, tn_stored_tensor* tensor) {
      const FakeHost& host = *static_cast<FakeHost*>(self);
      if (host.answer != TN_OK) return host.answer;
      if (std::strcmp(suffix, "weight") != 0) return tn_status{TN_NOT_FOUND};
      *tensor = {tensor->size, 2, host.shape, host.weight};
      return tn_status{TN_OK};
    };
    migration.set_tensor = [](void* self, const char* suffix, const tn_stored_tensor* tensor) {
      return note(self, std::string("set tensor ") + suffix + " of rank " + std::to_string(tensor->rank) + " from " +
                            std::to_string(tensor->values[0]));
    };
    migration.rename_tensor = [](void* self, const char* suffix, const char* now) {
      return note(self, std::string("rename tensor ") + suffix + " " + now);
    };
    migration.remove_tensor = [](void* self, const char* suffix) {
      return note(self, std::string("remove tensor ") + suffix);
    };
  }
  static tn_status note(void* self, const std::string& call) {
    static_cast<FakeHost*>(self)->calls.push_back(call);
    return static_cast<FakeHost*>(self)->answer;
  }
  tn_status run(std::function<void(tn::Migration&)> body) {
    migrating = &body;
    return static_cast<const tn_migrate*>(extension_of(tn::layer_type<Migrated>(), TN_MIGRATE))->migrate(&migration);
  }
};

TEST(Migration, ReadsWhatIsStored) {
  FakeHost host;
  EXPECT_EQ(host.run([](tn::Migration& m) {
    EXPECT_EQ(m.state_version(), 4u);
    EXPECT_STREQ(m.plugin(), "vendor.p");
    EXPECT_STREQ(m.plugin_version(), "1.5");
    EXPECT_EQ(m.integer("size"), 3);
    EXPECT_EQ(m.number("rate"), 0.5);
    EXPECT_EQ(m.number("whole"), 2) << "a number may be stored as an integer";
    EXPECT_TRUE(m.flag("flag"));
    EXPECT_FALSE(m.has("note")) << "absent";
    EXPECT_FALSE(m.has("depth"));
    EXPECT_EQ(m.find("size")->as.i, 3);
    EXPECT_TRUE(m.has_tensor("weight"));
    EXPECT_FALSE(m.has_tensor("bias"));
    const tn::StoredTensor weight = m.tensor("weight");
    EXPECT_THAT(weight.shape, ElementsAre(2, 1));
    EXPECT_THAT(weight.values, ElementsAre(4, 5));
  }),
            TN_OK)
      << host.message;
}

TEST(Migration, PassesOnItsChanges) {
  FakeHost host;
  EXPECT_EQ(host.run([](tn::Migration& m) {
    m.set("a", tn::int_value(7));
    m.rename("b", "c");
    m.remove("d");
    m.set_tensor("e", {{2}, {1, 2}});
    m.rename_tensor("f", "g");
    m.remove_tensor("h");
  }),
            TN_OK)
      << host.message;
  EXPECT_THAT(host.calls, ElementsAre("set a 7", "rename b c", "remove d", "set tensor e of rank 1 from 1.000000",
                                      "rename tensor f g", "remove tensor h"));
}

TEST(Migration, WhatIsMissingIsTheFilesFault) {
  FakeHost host;
  EXPECT_EQ(host.run([](tn::Migration& m) { m.integer("depth"); }), TN_BAD_DATA);
  EXPECT_EQ(host.run([](tn::Migration& m) { m.text("size"); }), TN_BAD_DATA);
  EXPECT_EQ(host.run([](tn::Migration& m) { m.number("flag"); }), TN_BAD_DATA);
  EXPECT_THAT(host.message, HasSubstr("the file lacks or has as another kind"));
  EXPECT_EQ(host.run([](tn::Migration& m) { m.tensor("bias"); }), TN_BAD_DATA);
  EXPECT_THAT(host.message, HasSubstr("no such parameter or buffer"));
}

TEST(Migration, RefusedCallsEndIt) {
  FakeHost host;
  host.answer = TN_PLUGIN_FAULT;
  for (const auto& call : std::vector<std::function<void(tn::Migration&)>>{
           [](tn::Migration& m) { m.set("a", tn::int_value(7)); }, [](tn::Migration& m) { m.rename("b", "c"); },
           [](tn::Migration& m) { m.remove("d"); }, [](tn::Migration& m) { m.has_tensor("weight"); },
           [](tn::Migration& m) { m.tensor("weight"); },
           [](tn::Migration& m) {
             m.set_tensor("e", {{1}, {1}});
           },
           [](tn::Migration& m) { m.rename_tensor("f", "g"); }, [](tn::Migration& m) { m.remove_tensor("h"); }})
    EXPECT_EQ(host.run(call), TN_PLUGIN_FAULT);
  EXPECT_EQ(host.message, "") << "the host has reported the reason";
  host.answer = TN_OK;
  EXPECT_EQ(host.run([](tn::Migration& m) { m.set_tensor("e", {{3}, {1}}); }), TN_PLUGIN_FAULT);
  EXPECT_EQ(host.message, "migrate sets 1 values in a shape of 3 elements");
}

}  // namespace
