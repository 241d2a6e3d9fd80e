// Migrations that fail, and what the host asks of one.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/migration_test.h"

#include <tenon/tenon_topology.hpp>

namespace tenon_tests {

namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

using Migration = MigrationTest;

const std::string kLayer = "layer \"b\" (test.blend): ";
const std::string kMigration = kLayer + "migration from state version 1 to 2: ";

// A topology alone lacks the parameters that a migration may change.
TEST_F(Migration, NeedsAModelFile) {
  save("first");
  bool called = false;
  std::function<tn_status(const tn_migration*)> raw = [&](const tn_migration*) { return called = true, TN_OK; };
  migrating = &raw;
  try {
    (void)read_topology(second(), topology().dump());
    FAIL() << "the layer was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_REFUSED);
    EXPECT_THAT(error.what(), AllOf(StartsWith(kLayer + "state version 1"), HasSubstr("so they need a model file")));
  }
  EXPECT_FALSE(called);
}

// ---- migrations that are wrong

TEST_F(Migration, AFailureChangesNothing) {
  save("first");
  const std::string before = bytes();
  const Host loading = second();
  tn_layer outputs[4] = {};
  uint32_t count = 4;
  tn_parameters parameters = {};
  tn_error error = {};
  error.size = sizeof error;
  const uint64_t held = loading.count().bytes_now;
  std::function<tn_status(const tn_migration*)> raw = [](const tn_migration* migration) {
    tn::Migration wrapped(*migration);
    rename_attributes(wrapped);
    wrapped.remove_tensor("weight");
    wrapped.set_tensor("kernel", {{kWidth, 2}, Numbers(6, 1)});
    return tn_fail(migration->errors, TN_INVALID, nullptr, "on second thoughts");
  };
  migrating = &raw;
  EXPECT_EQ(tn_model_load(loading.get(), path_.c_str(), outputs, &count, &parameters, &error), TN_BAD_DATA);
  EXPECT_THAT(error.message, EndsWith("on second thoughts"));
  EXPECT_EQ(count, 4u);
  EXPECT_EQ(parameters.generation, 0u);
  EXPECT_EQ(outputs[0].generation, 0u);
  EXPECT_EQ(loading.count().bytes_now, held);
  EXPECT_EQ(bytes(), before);
  // The next migration begins with the file again.
  raw = [](const tn_migration* migration) {
    return tn::guarded(migration->errors, [&] {
      tn::Migration wrapped(*migration);
      rename_attributes(wrapped);
      wrapped.remove_tensor("weight");
      wrapped.set_tensor("kernel", {{kWidth, 2}, Numbers(6, 1)});
    });
  };
  EXPECT_EQ(answers(loading, path_)[0], 0.9F * 6 + 0.25F);
}

TEST_F(Migration, AttributesOfAMigrationAreChecked) {
  save("first");
  const auto after = [&](const std::function<void(tn::Migration&)>& change, tn_status code) {
    return refusal(
        [&](tn::Migration& m) {
          rename_attributes(m);
          m.remove_tensor("weight");
          m.set_tensor("kernel", {{kWidth, 2}, Numbers(6, 1)});
          change(m);
        },
        code);
  };
  EXPECT_EQ(after([](tn::Migration& m) { m.set("keeps", tn::float_value(1)); }, TN_PLUGIN_FAULT),
            kLayer + "migrate sets attribute \"keeps\", which its description lacks; did you mean \"keep\"?");
  EXPECT_THAT(after([](tn::Migration& m) { m.set("act", tn::string_value("relu")); }, TN_PLUGIN_FAULT),
              HasSubstr("sets attribute \"act\", which its description lacks"))
      << "attributes of the host cannot be set";
  EXPECT_EQ(after([](tn::Migration& m) { m.set("keep", tn::string_value("all")); }, TN_PLUGIN_FAULT),
            kLayer + "attribute \"keep\": expected a number, got \"all\"; a migration has set this value");
  EXPECT_EQ(after([](tn::Migration& m) { m.set("outputs", tn::int_value(0)); }, TN_PLUGIN_FAULT),
            kLayer + "attribute \"outputs\": expected an integer of at least 1, got 0; a migration has set this value");
  EXPECT_THAT(after([](tn::Migration& m) { m.remove("outputs"); }, TN_PLUGIN_FAULT),
              HasSubstr("attribute \"outputs\" is missing"));
  EXPECT_THAT(after([](tn::Migration& m) { m.rename("outputs", "size"); }, TN_PLUGIN_FAULT),
              HasSubstr("sets attribute \"size\", which its description lacks"));
  tn_value odd = tn::int_value(1);
  odd.kind = 99;
  EXPECT_EQ(after([&](tn::Migration& m) { m.set("keep", odd); }, TN_PLUGIN_FAULT),
            kMigration + "migrate sets attribute \"keep\": unknown kind of value 99");
  tn_value nothing = {};
  EXPECT_EQ(
      after([&](tn::Migration& m) { m.set("keep", nothing); }, TN_REFUSED),
      kLayer +
          "attribute \"keep\" was absent when the model was saved, and plugin \"tenon.test.versions\" 2.5.0 gives "
          "it the default 0.5 without a migration");
}

TEST_F(Migration, AttributesThatAreNotMigratedAreUnknown) {
  save("first");
  EXPECT_THAT(refusal([](tn::Migration& m) { m.rename("size", "outputs"); }, TN_BAD_DATA),
              AllOf(StartsWith(kLayer + "unknown attribute \"momentum\""),
                    EndsWith("; the layer was saved with plugin \"tenon.test.versions\" 1.0.0, this is plugin "
                             "\"tenon.test.versions\" 2.5.0")));
}

TEST_F(Migration, ChangesOfWhatIsNotThereFail) {
  save("first");
  const auto fails = [&](const std::function<void(tn::Migration&)>& change) { return refusal(change, TN_BAD_DATA); };
  EXPECT_EQ(fails([](tn::Migration& m) { m.rename("depth", "size"); }),
            kMigration + "attribute \"depth\" is not stored");
  EXPECT_EQ(fails([](tn::Migration& m) { m.remove("depth"); }), kMigration + "attribute \"depth\" is not stored");
  EXPECT_EQ(fails([](tn::Migration& m) { m.rename("size", "momentum"); }),
            kMigration + "attribute \"momentum\", the new name of \"size\", is stored, too");
  EXPECT_EQ(fails([](tn::Migration& m) { m.rename_tensor("depth", "kernel"); }),
            kMigration + "tensor \"b.depth\" is not stored");
  EXPECT_EQ(fails([](tn::Migration& m) { m.remove_tensor("depth"); }), kMigration + "tensor \"b.depth\" is not stored");
  EXPECT_EQ(fails([](tn::Migration& m) { m.rename_tensor("weight", "mean"); }),
            kMigration + "tensor \"b.mean\", the new name of \"b.weight\", is stored, too");
  EXPECT_EQ(fails([](tn::Migration& m) { static_cast<void>(m.tensor("depth")); }),
            kMigration + "depth: the file has no such parameter or buffer");
}

TEST_F(Migration, TensorsOfAMigrationMustFitThePlan) {
  save("first");
  const auto fails = [&](const std::function<void(tn::Migration&)>& change) {
    return refusal(
        [&](tn::Migration& m) {
          rename_attributes(m);
          change(m);
        },
        TN_INVALID);
  };
  const std::string misfit = "\"" + path_ + "\" does not fit the parameters: ";
  EXPECT_THAT(fails([](tn::Migration& m) { m.rename_tensor("weight", "kernel"); }),
              EndsWith("tensor \"b.kernel\", as migrated, is F32 [2, 3], expected float32 [3, 2] (layer \"b\")"));
  EXPECT_THAT(fails([](tn::Migration& m) {
                m.set_tensor("kernel", {{kWidth, 2}, Numbers(6)});
              }),
              EndsWith("tensor \"b.weight\" is not among the parameters"));
  EXPECT_THAT(fails([](tn::Migration& m) { m.remove_tensor("weight"); }), EndsWith("tensor \"b.kernel\" is missing"));
  EXPECT_THAT(fails([](tn::Migration& m) {
                m.set_tensor("kernel", {{kWidth, 2}, Numbers(6)});
                m.remove_tensor("weight");
                m.remove_tensor("mean");
              }),
              EndsWith("tensor \"b.mean\" is missing after a migration"));
  EXPECT_THAT(fails([](tn::Migration& m) {
                m.rename_tensor("weight", "kernel");
                m.set_tensor("kernel", {{kWidth, 2}, Numbers(6)});
                m.set_tensor("more", {{}, {1}});
              }),
              EndsWith("tensor \"b.more\", as migrated, is not among the parameters"));
}

// In C nothing keeps an author from passing null or from going on after a failure.
TEST_F(Migration, WrongCallsAreFaults) {
  save("first");
  const auto fails = [&](const std::function<void(const tn_migration*)>& call) {
    std::function<tn_status(const tn_migration*)> raw = [&](const tn_migration* m) {
      call(m);
      return tn_status{TN_OK};
    };
    migrating = &raw;
    return refusal(second(), TN_PLUGIN_FAULT);
  };
  const tn_value one = tn::int_value(1);
  const std::string nameless = kMigration + "migrate names an attribute by null or an empty text";
  EXPECT_EQ(fails([&](const tn_migration* m) { m->set_attribute(m->self, nullptr, &one); }), nameless);
  EXPECT_EQ(fails([&](const tn_migration* m) { m->set_attribute(m->self, "", &one); }), nameless);
  EXPECT_EQ(fails([](const tn_migration* m) { m->rename_attribute(m->self, "size", nullptr); }), nameless);
  EXPECT_EQ(fails([](const tn_migration* m) { m->rename_attribute(m->self, nullptr, "size"); }), nameless);
  EXPECT_EQ(fails([](const tn_migration* m) { m->remove_attribute(m->self, nullptr); }), nameless);
  EXPECT_EQ(fails([](const tn_migration* m) { m->set_attribute(m->self, "keep", nullptr); }),
            kMigration + "migrate sets attribute \"keep\" to null");
  EXPECT_EQ(fails([&](const tn_migration* m) { m->set_attribute(m->self, "\xff", &one); }),
            kMigration + "migrate names an attribute by a text that is not UTF-8");
  const std::string suffixless = kMigration + "migrate names a parameter or buffer by null or an empty text";
  tn_stored_tensor tensor = {};
  tensor.size = sizeof tensor;
  EXPECT_EQ(fails([&](const tn_migration* m) { m->tensor(m->self, nullptr, &tensor); }), suffixless);
  EXPECT_EQ(fails([&](const tn_migration* m) { m->set_tensor(m->self, nullptr, &tensor); }), suffixless);
  EXPECT_EQ(fails([](const tn_migration* m) { m->rename_tensor(m->self, "weight", nullptr); }), suffixless);
  EXPECT_EQ(fails([](const tn_migration* m) { m->remove_tensor(m->self, nullptr); }), suffixless);
  EXPECT_EQ(fails([](const tn_migration* m) { m->tensor(m->self, "weight", nullptr); }),
            kMigration + "migrate reads tensor \"b.weight\" into a struct that is too short");
}

TEST_F(Migration, WrongTensorsAreFaults) {
  save("first");
  const auto sets = [&](tn_stored_tensor tensor) {
    std::function<tn_status(const tn_migration*)> raw = [&](const tn_migration* m) {
      m->set_tensor(m->self, "kernel", &tensor);
      return tn_status{TN_OK};
    };
    migrating = &raw;
    return refusal(second(), TN_PLUGIN_FAULT);
  };
  const int64_t shape[2] = {2, -1}, huge[2] = {INT64_MAX, 8};
  const float value = 1;
  constexpr uint32_t kSize = sizeof(tn_stored_tensor);
  const std::string sets_kernel = kMigration + "migrate sets tensor \"b.kernel\" ";
  EXPECT_EQ(sets({8, 0, nullptr, &value}), sets_kernel + "to a struct that is too short");
  EXPECT_EQ(sets({kSize, -1, shape, &value}), sets_kernel + "of rank -1");
  EXPECT_EQ(sets({kSize, 9, shape, &value}), sets_kernel + "of rank 9");
  EXPECT_EQ(sets({kSize, 1, nullptr, &value}), sets_kernel + "of rank 1 without a shape");
  EXPECT_EQ(sets({kSize, 2, shape, &value}), sets_kernel + "of shape [2, -1]");
  EXPECT_EQ(sets({kSize, 1, shape, nullptr}), sets_kernel + "without values");
  EXPECT_EQ(sets({kSize, 2, huge, &value}), sets_kernel + "of shape [9223372036854775807, 8]");
}

TEST_F(Migration, WrongTablesAreFaults) {
  save("first");
  Second::table.migrate = nullptr;
  EXPECT_EQ(refusal(second(), TN_PLUGIN_FAULT),
            kLayer + "table \"tenon.migrate/1\" of tenon.test.versions has no function \"migrate\"");
  Second::table = hooked_table();
  Second::table.size = 8;
  EXPECT_EQ(refusal(second(), TN_PLUGIN_FAULT),
            kLayer +
                "table \"tenon.migrate/1\" of tenon.test.versions states a size of 8 bytes; expected a "
                "multiple of 8 from 16 to 65536");
}

// ---- sharing

TEST_F(Migration, LayersThatShareATensorMustAgree) {
  const Host saving = host("first");
  const Layer x = input(saving);
  save(saving, {saving.layer("test.blend", {x}, {{"size", 3}, {"parameter_name", "s"}}, "b"),
                saving.layer("test.blend", {x}, {{"size", 3}, {"parameter_name", "s"}, {"note", "odd"}}, "c")});
  const auto differing = [&](const std::function<void(tn::Migration&)>& otherwise) {
    return refusal(
        [&](tn::Migration& m) {
          rename_attributes(m);
          m.rename_tensor("weight", "kernel");
          if (m.has("note")) otherwise(m);
        },
        TN_REFUSED);
  };
  const std::string both = "layer \"b\" (test.blend) and layer \"c\" (test.blend) share tensor ";
  EXPECT_EQ(differing([](tn::Migration& m) {
              m.set_tensor("kernel", {{3, 3}, Numbers(9)});
            }),
            both + "\"s.kernel\", and their migrations change it differently");
  EXPECT_EQ(differing([](tn::Migration& m) {
              m.set_tensor("mean", {{3}, Numbers(3)});
            }),
            "the migration of layer \"c\" (test.blend) changes tensor \"s.mean\", which layer \"b\" (test.blend) uses "
            "as it is in the file");
}

}  // namespace
}  // namespace tenon_tests
