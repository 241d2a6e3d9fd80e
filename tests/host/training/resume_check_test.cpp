// The comparison of two trainings: every difference is named, with both values. SPDX-License-Identifier: Apache-2.0
#include "host/training/resume_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <tenon/plugin.hpp>

#include "host/plugins/registry.h"
#include "tests/support/memory_system.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> differences(const char* stored, const char* present) {
  std::vector<std::string> lines;
  compare("", json::parse(stored), json::parse(present), lines);
  return lines;
}

TEST(ResumeCheck, EqualValuesHaveNoDifference) {
  EXPECT_THAT(differences(R"({"a": [1, {"b": null}]})", R"({"a": [1, {"b": null}]})"), IsEmpty());
}

TEST(ResumeCheck, AllDifferencesAreNamed) {
  EXPECT_THAT(differences(R"({"a": 1, "b": {"c": "x"}, "d": true, "e": [1, 2]})",
                          R"({"a": 2, "b": {"c": "y"}, "f": 0.5, "e": [1, 3]})"),
              ElementsAre("a: 1 in the checkpoint, 2 now", "b.c: \"x\" in the checkpoint, \"y\" now",
                          "d: in the checkpoint (true), not now", "e[1]: 2 in the checkpoint, 3 now",
                          "f: not in the checkpoint, now 0.5"));
  EXPECT_THAT(differences("[1]", "[1, 2]"), ElementsAre(": [1] in the checkpoint, [1,2] now"));
}

// A layer that is added must not make all later ones different.
TEST(ResumeCheck, NamedObjectsAreComparedByName) {
  EXPECT_THAT(differences(R"({"layers": [{"name": "a", "size": 1}, {"name": "c"}]})",
                          R"({"layers": [{"name": "a", "size": 2}, {"name": "b"}, {"name": "c"}]})"),
              ElementsAre("layers.a.size: 1 in the checkpoint, 2 now",
                          "layers.b: not in the checkpoint, now {\"name\":\"b\"}"));
  EXPECT_THAT(differences(R"([{"name": "a"}, {"name": "b"}])", R"([{"name": "b"}, {"name": "a"}])"),
              ElementsAre("[0]: \"a\" in the checkpoint, \"b\" now", "[1]: \"b\" in the checkpoint, \"a\" now"));
}

// A wrapper that is added to a reader must not make its steps one long difference.
TEST(ResumeCheck, StepsThatAreMissingAreNamed) {
  const char *const three = R"({"steps": [{"file": "a"}, {"shuffle": 1}, {"batch": 8}]})",
                    *const two = R"({"steps": [{"file": "a"}, {"batch": 8}]})";
  EXPECT_THAT(differences(three, two), ElementsAre("steps[1]: in the checkpoint ({\"shuffle\":1}), not now"));
  EXPECT_THAT(differences(two, three), ElementsAre("steps[1]: not in the checkpoint, now {\"shuffle\":1}"));
  EXPECT_THAT(differences(three, R"({"steps": [{"file": "b"}, {"batch": 8}]})"),
              ElementsAre("steps[0].file: \"a\" in the checkpoint, \"b\" now",
                          "steps[1]: in the checkpoint ({\"shuffle\":1}), not now"));
  EXPECT_THAT(differences(R"([{"a": 1}, {"a": 1}])", R"([{"a": 1}])"),
              ElementsAre("[1]: in the checkpoint ({\"a\":1}), not now"));
}

TEST(ResumeCheck, LongValuesAreCut) {
  const std::vector<std::string> lines =
      differences(json(std::string(500, 'x')).dump().c_str(), json(std::string(500, 'y')).dump().c_str());
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_LT(lines[0].size(), 300U);
  EXPECT_THAT(lines[0], HasSubstr("xxx... in the checkpoint, \"yyy"));
}

TEST(ResumeCheck, OnlyTheProviderMayDifferInexactly) {
  const json stored = {{"seed", 1}, {"provider", {{"device", "cpu"}}}},
             other = {{"seed", 1}, {"provider", {{"device", "x"}}}};
  const json both = {{"seed", 2}, {"provider", {{"device", "x"}}}};
  const auto error = [&](const json& present, bool inexact) {
    return error_of([&] { check_same_run("saves/c", stored, present, inexact); });
  };
  EXPECT_EQ(error(stored, false).code(), TN_OK);
  EXPECT_EQ(error(other, true).code(), TN_OK);
  const Error provider = error(other, false);
  EXPECT_EQ(provider.code(), TN_INVALID);
  EXPECT_EQ(provider.subject(), "saves/c");
  EXPECT_STREQ(provider.what(),
               "saves/c: the checkpoint is of another training; 1 difference: provider.device: \"cpu\" in "
               "the checkpoint, \"x\" now; an inexact resume accepts these, and rounds differently");
  EXPECT_THAT(error(both, false).what(),
              HasSubstr("2 differences: provider.device: \"cpu\" in the checkpoint, \"x\" now; "
                        "seed: 1 in the checkpoint, 2 now"));
  EXPECT_THAT(error(both, true).what(), HasSubstr("1 difference: seed: 1 in the checkpoint, 2 now"));
  EXPECT_THAT(error(both, true).what(), Not(HasSubstr("inexact")));
}

struct GrownLayer {
  static void describe(tn::LayerDescription& d) {
    d.type("grown", "a layer type with attributes of a later version");
    d.input("x", "any");
    d.output("y", "x");
    d.attribute(tn::int_attribute("size").required().doc("of the first version"));
    d.attribute(tn::float_attribute("factor", 0.5).doc("of a later one"));
    d.attribute(tn::int_attribute("axis").doc("of a later one, without a value"));
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }
  static void lower(const tn::Attributes& /*attributes*/, tn::Builder& body) { body.output(0, body.input(0)); }
};
struct GrownUpdater {
  static void describe(tn::UpdaterDescription& d) {
    d.type("grown", "an updater with an attribute of a later version");
    d.attribute(tn::string_attribute("kind", "plain").one_of({"plain", "other"}).doc("of a later one"));
  }
  static void record(tn::UpdateRecorder& update) { update.parameter_next(update.parameter() - update.gradient()); }
};
void describe_grown(tn::Plugin& plugin) {
  plugin.about("tenon.test.grown", "1.0.0", "types with attributes of a later version", "Apache-2.0");
  plugin.layer<GrownLayer>();
  plugin.updater<GrownUpdater>();
}

TEST(ResumeCheck, AttributesOfLaterVersionsHaveTheirDefaults) {
  const std::shared_ptr<FileSystem> files = system_files();
  Registry registry({}, files);
  registry.add(*tn::entry<describe_grown>());
  json run = json::parse(R"({"topology": {"layers": [
      {"type": "data", "name": "x"},
      {"type": "unknown", "attributes": {"size": 1}},
      {"type": "grown", "attributes": {"size": 3, "factor": 0.25},
       "inner": [{"type": "grown", "attributes": {"size": 4}}]}]},
    "updater": {"type": "grown", "attributes": {}, "groups": [{"type": "grown", "attributes": {"kind": "other"}},
                                                             {"type": "rule"}]}})");
  add_defaults(run, registry);
  EXPECT_EQ(run, json::parse(R"({"topology": {"layers": [
      {"type": "data", "name": "x"},
      {"type": "unknown", "attributes": {"size": 1}},
      {"type": "grown", "attributes": {"size": 3, "factor": 0.25, "axis": null},
       "inner": [{"type": "grown", "attributes": {"size": 4, "factor": 0.5, "axis": null}}]}]},
    "updater": {"type": "grown", "attributes": {"kind": "plain"},
                "groups": [{"type": "grown", "attributes": {"kind": "other"}}, {"type": "rule"}]}})"));
  for (const char* const other : {"null", "[]", "{}", R"({"topology": 3, "updater": []})",
                                  R"({"topology": {"layers": {"a": 1}}, "updater": {"type": 1, "attributes": {}}})"}) {
    json malformed = json::parse(other);
    add_defaults(malformed, registry);
    EXPECT_EQ(malformed, json::parse(other));
  }
}

}  // namespace

}  // namespace tenon_tests
