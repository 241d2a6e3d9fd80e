// Components that the application adds, and tables that are shorter or longer than the host's own or lack functions.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "host/plugins/registry.h"
#include "tests/support/memory_system.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::HasSubstr;

// A plugin of the application whose components have the required fields alone.
struct Own {
  tn_port port = {sizeof(tn_port), 0, "y", nullptr};
  const tn_port* ports[1] = {&port};
  tn_layer_description layer_text = {};
  tn_layer_type layer = {};
  const tn_layer_type* layers[1] = {&layer};
  tn_updater_description updater_text = {};
  tn_updater_type updater = {};
  const tn_updater_type* updaters[1] = {&updater};
  tn_reader_description reader_text = {};
  tn_reader_type reader = {};
  const tn_reader_type* readers[1] = {&reader};
  tn_device_description device_text = {};
  tn_device_type device = {};
  const tn_device_type* devices[1] = {&device};
  tn_dtype types[2] = {TN_F32, TN_F64};
  tn_kernel slow = {}, fast = {};
  const tn_kernel* kernels[2] = {&slow, &fast};
  tn_comm_description comm_text = {};
  tn_comm_type comm = {};
  const tn_comm_type* comms[1] = {&comm};
  tn_plugin plugin = {};

  explicit Own(const char* id) {
    layer_text.size = sizeof layer_text;
    layer_text.type = "own";
    layer_text.outputs = ports;
    layer_text.outputs_count = layer_text.state_version = 1;
    layer.size = sizeof layer;
    layer.description = &layer_text;
    updater_text.size = sizeof updater_text;
    updater_text.type = "own";
    updater_text.state_version = 1;
    updater.size = sizeof updater;
    updater.description = &updater_text;
    reader_text.size = sizeof reader_text;
    reader_text.type = "own";
    reader.size = sizeof reader;
    reader.description = &reader_text;
    device_text.size = sizeof device_text;
    device_text.kind = "own";
    device.size = sizeof device;
    device.description = &device_text;
    comm_text.size = sizeof comm_text;
    comm_text.type = "own";
    comm_text.traits = TN_COMM_ENCRYPTED | TN_COMM_ONE_PER_PROCESS;
    comm.size = sizeof comm;
    comm.draft = TN_COMM_DRAFT;
    comm.description = &comm_text;
    slow.size = fast.size = sizeof slow;
    slow.type = fast.type = "own";
    slow.device = fast.device = "own";
    slow.name = "slow";
    fast.name = "fast";
    slow.score = 1;
    fast.score = 2;
    slow.dtypes = fast.dtypes = types;
    slow.dtypes_count = 2;
    fast.dtypes_count = 1;
    plugin.size = sizeof plugin;
    plugin.abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0};
    plugin.id = id;
    plugin.layers = layers;
    plugin.updaters = updaters;
    plugin.readers = readers;
    plugin.devices = devices;
    plugin.kernels = kernels;
    plugin.comms = comms;
    plugin.layers_count = plugin.updaters_count = plugin.readers_count = plugin.devices_count = plugin.comms_count = 1;
    plugin.kernels_count = 2;
  }
};

TEST(Adoption, TakesTheApplicationsOwnComponents) {
  Registry found({}, system_files());
  const Own own("tenon.own");
  found.add(own.plugin);
  EXPECT_EQ(found.layer("own").plugin, "tenon.own");
  EXPECT_TRUE(found.list().empty()) << "list() has plugins of files alone";
  const auto kernels = found.kernels("own", "own", TN_F32);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_STREQ(kernels[0]->table.name, "fast");
  EXPECT_EQ(found.kernels("own", "own", TN_F64).size(), 1u);
  EXPECT_TRUE(found.kernels("own", "cpu", TN_F32).empty());

  // The host replaces missing functions by ones that fail or do nothing; optional ones stay null.
  int reports = 0;
  const tn_errors errors = {sizeof(tn_errors), 0, &reports,
                            [](void* self, const tn_error_report*) { ++*static_cast<int*>(self); }};
  const tn_device_type& device = found.device("own").table;
  EXPECT_LT(device.count(nullptr, &errors), 0);
  tn_device_open open = {};
  open.errors = &errors;
  EXPECT_EQ(device.open(&open, nullptr), TN_UNSUPPORTED);
  EXPECT_EQ(device.allocate(nullptr, &errors, 8), nullptr);
  device.release(nullptr, nullptr, 0);
  EXPECT_EQ(device.copy(nullptr, &errors, nullptr), TN_UNSUPPORTED);
  EXPECT_EQ(device.extension, nullptr);
  tn_update_recorder recorder = {};
  recorder.errors = &errors;
  EXPECT_EQ(found.updater("own").table.record(&recorder), TN_UNSUPPORTED);
  const tn_reader_type& reader = found.reader("own").table;
  EXPECT_EQ(reader.next(nullptr, nullptr, nullptr), TN_UNSUPPORTED);
  EXPECT_EQ(reader.seek(nullptr, 0), TN_UNSUPPORTED);
  EXPECT_EQ(reader.read_at, nullptr);
  const CommType& comm = found.comm("own");
  EXPECT_EQ(comm.plugin, "tenon.own");
  EXPECT_EQ(comm.built, TN_ABI_MINOR);
  EXPECT_EQ(comm.description.traits, uint32_t{TN_COMM_ENCRYPTED | TN_COMM_ONE_PER_PROCESS});
  tn_comm_open opening = {};
  opening.errors = &errors;
  EXPECT_EQ(comm.table.open(&opening, nullptr), TN_UNSUPPORTED);
  EXPECT_EQ(comm.table.world(nullptr, nullptr), TN_UNSUPPORTED);
  EXPECT_EQ(comm.table.send(nullptr, nullptr, nullptr), TN_UNSUPPORTED);
  EXPECT_EQ(comm.table.receive(nullptr, nullptr, nullptr), TN_UNSUPPORTED);
  EXPECT_EQ(comm.table.progress(nullptr, 0, nullptr, 1, nullptr), TN_UNSUPPORTED);
  comm.table.wake(nullptr);
  comm.table.abort(nullptr, 1);
  comm.table.close(nullptr, 0);
  EXPECT_EQ(comm.table.extension, nullptr);
  EXPECT_EQ(found.layer("own").table.finalize, nullptr) << "only metrics have finalize";
  tn_kernel_site site = {};
  site.errors = &errors;
  EXPECT_EQ(kernels[0]->table.supports(nullptr, nullptr), TN_UNSUPPORTED);
  EXPECT_EQ(kernels[0]->table.prepare(&site, 0, nullptr), TN_UNSUPPORTED);
  EXPECT_EQ(reports, 7);
}

TEST(Adoption, AMetricWithoutResultsHasNone) {
  Registry found({}, system_files());
  Own own("tenon.own");
  own.layer_text.role = TN_ROLE_METRIC;
  own.layer_text.outputs_count = 0;
  found.add(own.plugin);
  const tn_layer_type& metric = found.layer("own").table;
  ASSERT_NE(metric.finalize, nullptr);
  int reports = 0;
  const tn_errors errors = {sizeof(tn_errors), 0, &reports,
                            [](void* self, const tn_error_report*) { ++*static_cast<int*>(self); }};
  tn_finalizer finalizer = {};
  finalizer.errors = &errors;
  EXPECT_EQ(metric.finalize(&finalizer), TN_UNSUPPORTED);
  EXPECT_EQ(reports, 1);
}

// Any exception from a plugin becomes TN_PLUGIN_FAULT, except std::bad_alloc, which is passed on.
TEST(Adoption, ForeignExceptionsHaveOneCode) {
  const Origin origin{"own", nullptr};
  const std::string who = "reader \"own\"";
  const TaggedFunction open{Tag::kIo, "open"};
  const auto thrown_by = [&](tn_status (*function)()) {
    return error_of([&] { (void)call_plugin(origin, who, open, function); });
  };
  const Error standard = thrown_by([]() -> tn_status { throw std::runtime_error("odd"); });
  EXPECT_EQ(standard.code(), TN_PLUGIN_FAULT);
  EXPECT_EQ(standard.message(), "reader \"own\" of plugin \"own\": open [io] threw an exception: odd");
  EXPECT_EQ(standard.component(), who);
  const Error other = thrown_by([]() -> tn_status { throw 1; });
  EXPECT_EQ(other.code(), TN_PLUGIN_FAULT);
  EXPECT_EQ(other.message(), "reader \"own\" of plugin \"own\": open [io] threw an exception of unknown type");
  EXPECT_EQ(other.component(), who);
  EXPECT_THROW((void)call_plugin(
                   origin, who, open, +[]() -> tn_status { throw std::bad_alloc(); }),
               std::bad_alloc);
}

TEST(Adoption, DescribesTypes) {
  Registry found({}, system_files());
  Own own("tenon.own");
  tn_attribute size = {};
  size.size = sizeof size;
  size.kind = TN_ATTR_INT;
  size.name = "size";
  size.doc = "how many";
  size.has_range = 1;
  size.minimum = 1;
  size.initial = {TN_ATTR_INT, 1, {}};
  size.initial.as.i = 4;
  const tn_attribute* const attributes[] = {&size};
  own.layer_text.role = TN_ROLE_LAYER;
  own.layer_text.attributes = attributes;
  own.layer_text.attributes_count = 1;
  found.add(own.plugin);
  const nlohmann::json layer = found.describe_type("layer", "own");
  EXPECT_EQ(layer.at("type"), "own");
  EXPECT_EQ(layer.at("role"), "layer");
  EXPECT_EQ(layer.at("outputs").at(0).at("name"), "y");
  const nlohmann::json expected = {{"name", "size"},    {"doc", "how many"}, {"kind", TN_ATTR_INT},
                                   {"required", false}, {"initial", 4},      {"minimum", 1.0}};
  EXPECT_EQ(layer.at("attributes"), nlohmann::json::array({expected}));
  EXPECT_EQ(found.describe_type("updater", "own").at("attributes"), nlohmann::json::array());
  EXPECT_EQ(found.describe_type("reader", "own").at("type"), "own");
  EXPECT_EQ(found.describe_type("comm", "own").at("traits"), nlohmann::json({"encrypted", "one_per_process"}));
  const Error no_comm = error_of([&] { (void)found.comm("owm"); });
  EXPECT_EQ(no_comm.code(), TN_NOT_FOUND);
  EXPECT_THAT(no_comm.message(), HasSubstr("communicator \"owm\" not found; did you mean \"own\"?"));
  const Error absent = error_of([&] { (void)found.describe_type("reader", "owm"); });
  EXPECT_EQ(absent.code(), TN_NOT_FOUND);
  EXPECT_EQ(absent.component(), "reader type \"owm\"");
  EXPECT_EQ(error_of([&] { (void)found.describe_type("device", "own"); }).code(), TN_INVALID);
}

TEST(Adoption, ReadsLongerTables) {
  struct Later {
    tn_layer_type known;
    void* appended;
  };
  Own own("tenon.own");
  const Later later = {{sizeof(Later), 0, &own.layer_text, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr}, &own};
  own.layers[0] = &later.known;
  Registry found({}, system_files());
  found.add(own.plugin);
  EXPECT_EQ(found.layer("own").table.size, sizeof(tn_layer_type));
}

// Returns why a registry refuses a plugin of the application with one change.
template <typename Change>
std::string refusal(Registry& found, Change change) {
  Own own("tenon.own");
  change(own);
  const Error error = error_of([&] { found.add(own.plugin); });
  EXPECT_EQ(error.code(), TN_REFUSED);
  EXPECT_THAT(error.message(), HasSubstr("the application's plugin"));
  return error.message();
}

TEST(Adoption, RefusesReservedMembersAndRequirementsOfOthers) {
  Registry found({}, system_files());
  const auto refused = [&](auto change) { return refusal(found, change); };
  constexpr void (*kReserved[])(Own&) = {
      [](Own& o) { o.plugin.reserved = 3; },       [](Own& o) { o.plugin.reserved4 = 3; },
      [](Own& o) { o.layer.reserved = 3; },        [](Own& o) { o.updater.reserved = 3; },
      [](Own& o) { o.updater_text.reserved = 3; }, [](Own& o) { o.reader.reserved = 3; },
      [](Own& o) { o.reader_text.reserved = 3; },  [](Own& o) { o.device.reserved = 3; },
      [](Own& o) { o.fast.reserved = 3; },         [](Own& o) { o.plugin.reserved3 = 3; },
      [](Own& o) { o.comm_text.reserved = 3; }};
  for (const auto set : kReserved) EXPECT_THAT(refused(set), HasSubstr("its reserved member is 3; expected 0"));
  tn_requirement requirement = {sizeof requirement, 9, nullptr};
  const tn_requirement* const requirements[] = {&requirement};
  const auto with_requirement = [&](Own& o) { o.plugin.requirements = requirements, o.plugin.requirements_count = 1; };
  EXPECT_THAT(refused(with_requirement), HasSubstr("a requirement is for none of its layers, updaters, readers"));
  Own of_comm("tenon.comm");
  of_comm.plugin.layers_count = of_comm.plugin.updaters_count = of_comm.plugin.readers_count = 0;
  of_comm.plugin.devices_count = of_comm.plugin.kernels_count = 0;
  with_requirement(of_comm);
  requirement.component = &of_comm.comm;
  found.add(of_comm.plugin);
  EXPECT_THAT(error_of([&] { (void)found.comm("own"); }).message(), HasSubstr("it needs a host of 0.9 or later"));
  requirement.component = nullptr;
  requirement.minor = 1 << 16;
  EXPECT_THAT(refused(with_requirement), HasSubstr("a requirement states the minor version 65536"));
  requirement.size = 8;
  EXPECT_THAT(refused(with_requirement), HasSubstr("it must hold \"component\""));
}

TEST(Adoption, RefusesUnsoundComponentsWholly) {
  Registry found({}, system_files());
  const auto refused = [&](auto change) { return refusal(found, change); };
  EXPECT_THAT(refused([](Own& o) { o.plugin.id = nullptr; }), HasSubstr("\"id\" is empty"));
  EXPECT_THAT(refused([](Own& o) { o.plugin.size = 40; }), HasSubstr("\"providers\""));
  EXPECT_THAT(refused([](Own& o) { o.plugin.layers = nullptr; }), HasSubstr("\"layers\" is null, but counts 1"));
  EXPECT_THAT(refused([](Own& o) { o.layers[0] = nullptr; }), HasSubstr("entry 0 of \"layers\" is null"));
  EXPECT_THAT(refused([](Own& o) { o.layer.description = nullptr; }), HasSubstr("description is null"));
  EXPECT_THAT(refused([](Own& o) { o.layer_text.type = "Own"; }), HasSubstr("layer type \"Own\""));
  EXPECT_THAT(refused([](Own& o) { o.port.name = ""; }), HasSubstr("layer type \"own\": \"name\" is empty"));
  // Tables hold all members of 0.2.
  const auto shortened = [&](const std::string& what, auto of, size_t appended = 0) {
    EXPECT_THAT(refused([&](Own& o) { of(o).size = 0; }), AllOf(HasSubstr(what), HasSubstr("of 0 bytes")));
    EXPECT_THAT(refused([&](Own& o) { of(o).size -= static_cast<uint32_t>(appended + 8); }),
                AllOf(HasSubstr(what), HasSubstr("must hold \"")));
    EXPECT_THAT(refused([&](Own& o) { of(o).size += 4; }), HasSubstr(what));
  };
  shortened(
      "a layer type", [](Own & o) -> auto& { return o.layer; });
  shortened(
      "an updater type", [](Own & o) -> auto& { return o.updater; });
  shortened(
      "a reader type", [](Own & o) -> auto& { return o.reader; });
  shortened(
      "a device", [](Own & o) -> auto& { return o.device; });
  shortened(
      "a communicator", [](Own & o) -> auto& { return o.comm; });
  EXPECT_THAT(refused([](Own& o) { o.comm.draft = 7; }),
              HasSubstr("a communicator: its table is of the draft 00000007; this host has the draft "));
  EXPECT_THAT(refused([](Own& o) { o.plugin.comms = nullptr; }), HasSubstr("\"comms\" is null, but counts 1"));
  EXPECT_THAT(refused([](Own& o) { o.comm_text.type = "Own"; }), HasSubstr("communicator \"Own\""));
  shortened(
      "a kernel", [](Own & o) -> auto& { return o.fast; }, sizeof(tn_kernel) - offsetof(tn_kernel, inputs_known));
  for (const char* const type : {"layer", "updater"})
    EXPECT_THAT(
        refused([&](Own& o) { (*type == 'l' ? o.layer_text.state_version : o.updater_text.state_version) = 0; }),
        AllOf(HasSubstr(type), HasSubstr("its state_version is 0; expected at least 1")));
  for (const char* const bad : {"\xff", "a\xc0"}) {
    EXPECT_THAT(refused([&](Own& o) { o.plugin.id = bad; }), HasSubstr("\"id\" is not UTF-8"));
    EXPECT_THAT(refused([&](Own& o) { o.plugin.doc = bad; }), HasSubstr("\"doc\" is not UTF-8"));
    EXPECT_THAT(refused([&](Own& o) { o.fast.name = bad; }), HasSubstr("\"name\" is not UTF-8"));
  }
  EXPECT_THAT(refused([](Own& o) { o.port.flags = TN_PORT_INTEGER | TN_PORT_ANY; }), HasSubstr("exclude each other"));
  EXPECT_THAT(refused([](Own& o) { o.port.flags = TN_PORT_OPTIONAL; }), HasSubstr("are for inputs"));
  EXPECT_THAT(refused([](Own& o) { o.fast.dtypes = nullptr; }), HasSubstr("kernel \"fast\""));
  EXPECT_THAT(refused([](Own& o) { o.plugin.abi.major = 9; }), HasSubstr("update Tenon"));
  EXPECT_THAT(refused([](Own& o) { o.plugin.isa = "telepathy"; }), HasSubstr("telepathy"));
  EXPECT_EQ(error_of([&] { (void)found.layer("own"); }).code(), TN_NOT_FOUND);

  const Own first("tenon.own"), second("tenon.second");
  found.add(first.plugin);
  const Error taken = error_of([&] { found.add(second.plugin); });
  EXPECT_EQ(taken.code(), TN_INVALID);
  EXPECT_THAT(taken.message(), HasSubstr("it offers the layer type \"own\""));
  EXPECT_EQ(found.kernels("own", "own", TN_F32).size(), 2u) << "the refused plugin must not add kernels";
}

}  // namespace
}  // namespace tenon_tests
