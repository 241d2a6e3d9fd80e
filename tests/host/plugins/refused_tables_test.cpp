// Tables of providers and layers that a host cannot use: what it says. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/draft/numbers.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <tenon/plugin.hpp>
#include <tenon/tenon.hpp>

#include "tests/support/bare_plugin.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

// The reasons in a plan why a provider computes none of its calls.
std::set<std::string> reasons_of(const Machine& machine, const std::string& provider) {
  std::set<std::string> reasons;
  const json plan = json::parse(machine.plan());
  for (const json& call : plan.at("calls"))
    for (const json& each : call.value("passed_over", json::array()))
      if (each.at("kernel") == provider) reasons.insert(each.at("reason").get<std::string>());
  return reasons;
}

Machine products(const Host& host) {
  DataOptions x;
  x.name = "x", x.shape = {3};
  const Layer layer = host.layer("fc", {host.data(x)}, {{"size", 2}});
  MachineOptions options;
  options.training = true;  // else the weights are packed
  options.flags = TN_MACHINE_GIVEN_GRADIENTS;
  return host.machine(host.parameters({layer}, 1), {layer}, options);
}

Machine rows(const Host& host) {
  DataOptions ids;
  ids.name = "ids", ids.dtype = TN_I32, ids.index_limit = 5;
  const Layer layer = host.layer("embedding", {host.data(ids)}, {{"vocabulary", 5}, {"size", 3}});
  return host.machine(host.parameters({layer}, 1), {layer}, {});
}

TEST(RefusedTables, OfProvidersWithoutAFunctionAreInThePlan) {
  const tn_gemm_table no_products = {sizeof no_products, 0, nullptr};
  const tn_provider lacking = {sizeof lacking, 5, "cpu", TN_GEMM, "lacking", &no_products, nullptr};
  const tn_provider* const list[] = {&lacking};
  tn_plugin plugin = bare_plugin("tenon.test.lacking");
  plugin.providers = list;
  plugin.providers_count = 1;
  const Host host({1, {plugin_folder()}, nullptr, {}});
  host.add_plugin(&plugin);
  EXPECT_EQ(reasons_of(products(host), "lacking"), std::set<std::string>{"its table has no function \"prepare\""});
  EXPECT_EQ(reasons_of(rows(host), "lacking"), std::set<std::string>{}) << "there is no product";
}

// A file that changes after it was found is refused when it is loaded, and stays so.
TEST(RefusedTables, OfPluginsThatAreRefusedWhenTheyAreLoadedAreInThePlan) {
  const TemporaryFolder folder;
  const std::string from = test_plugin_folder() + "/layers/", file = folder.file("found.so");
  std::filesystem::copy_file(from + "rich.so", file);
  const Host host({1, {plugin_folder(), folder.path().string()}, nullptr, {}});
  std::filesystem::remove(file);
  std::filesystem::copy_file(from + "my_plugin.so", file);
  for (int times = 0; times < 2; ++times)
    EXPECT_THAT(reasons_of(rows(host), "rich.gemm-1"),
                testing::ElementsAre(AllOf(HasSubstr("its plugin is refused: " + file),
                                           HasSubstr("it has changed since it was found"))));
  EXPECT_EQ(reasons_of(products(host), "rich.gemm-1"), std::set<std::string>{}) << "its score is below 0";
}

struct Odd {
  static void describe(tn::LayerDescription& d) {
    d.type("test_odd", "the input");
    d.input("input", "any shape");
    d.output("output", "as the input");
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }
  static void lower(const tn::Attributes& /*attributes*/, tn::Builder& body) { body.output(0, body.input(0)); }
  static const void* extension(const char* id) noexcept {
    static constexpr tn_layer_numbers table = {8, TN_NUMBERS_DRAFT, nullptr};
    return std::strcmp(id, TN_LAYER_NUMBERS) == 0 ? &table : nullptr;
  }
};

TEST(RefusedTables, OfNumbersNameTheLayer) {
  tn_plugin plugin = bare_plugin("tenon.test.odd");
  const tn_layer_type* const list[] = {tn::layer_type<Odd>()};
  plugin.layers = list;
  plugin.layers_count = 1;
  const Host host({1, {plugin_folder()}, nullptr, {}});
  host.add_plugin(&plugin);
  DataOptions x;
  x.name = "x", x.shape = {3};
  const Layer layer = host.layer("test_odd", {host.data(x)}, {}, "odd");
  try {
    (void)host.machine(host.parameters({layer}, 1), {layer}, {});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "layer \"odd\" (test_odd): table \"tenon.numbers/1\" of tenon.test.odd states a size of 8 bytes; "
                 "expected a multiple of 8 from 16 to 65536");
  }
}

}  // namespace

}  // namespace tenon_tests
