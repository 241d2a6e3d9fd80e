// Notes are untrusted input: any bytes give a manifest or a refusal, and refusals name the place.
// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/draft/records.h>

#include <nlohmann/json.hpp>

#include "host/layers/host_attributes.h"
#include "host/training/updater_options.h"
#include "tests/support/memory_system.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kGolden = R"({"note":1,"abi":{"major":0,"built":2,"required":2},"id":"tenon.b","version":"1",
"doc":"d","license":"MIT","isa":"","layers":[{"type":"fc","role":0,"doc":"l","inputs":[{"name":"x","doc":"p",
"flags":2}],"outputs":[{"name":"y","doc":"q","flags":0}],"attributes":[{"name":"size","doc":"s","kind":2,
"required":true,"initial":null,"minimum":1,"maximum":null,"choices":[]},{"name":"rates","doc":"","kind":6,
"required":false,"initial":[1,0.5],"minimum":0,"maximum":1,"choices":[]}],"parameters":["weight"],
"state_version":3}],"updaters":[{"type":"v.sgd","doc":"u","attributes":[],"state_version":1}],"readers":[{"type":"idx",
"doc":"r","attributes":[],"traits":8,"tables":["tenon.pass/1","tenon.later/1"],"required":4}],"devices":[{"kind":"cpu","doc":"c","dlpack_type":1,"tables":["tenon.gemm/1"]}],
"kernels":[{"type":"fc","device":"cpu","name":"k","dtypes":["float32","f64"],"score":-2}],
"libraries":[{"name":"libz.so.1","hint":"h"}],"providers":[{"device":"cpu","id":"tenon.gemm/1","name":"fast","score":7}],
"comms":[{"type":"v.pipes","doc":"m","attributes":[{"name":"depth","kind":2}],"traits":3}],
"later":{"unknown":[1]}})";

Error parse(const std::string& text) {
  return error_of([&] { (void)manifest_from(NoteTree(text)); });
}

// Replaces `from` in kGolden by `to`, expects a refusal, and returns its message.
std::string parse_with(const std::string& from, const std::string& to) {
  std::string text = kGolden;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  const Error error = parse(text.replace(at, from.size(), to));
  EXPECT_EQ(error.code(), TN_REFUSED) << from << " -> " << to;
  return error.message();
}

// Other plugins would take the place of those of Tenon.
TEST(Manifest, NamesWithoutAVendorAreOfTenon) {
  for (const char* id : {"a.b", "tenon", "tenonx.b", "org.tenon.b"})
    EXPECT_EQ(parse_with("tenon.b", id), std::string("layer type \"fc\": the name needs a \"vendor.\" before it, since "
                                                     "the id \"") +
                                             id + "\" does not begin with \"tenon.\"");
  std::string text = kGolden;
  for (const char* name : {"\"fc\"", "\"idx\"", "\"cpu\""})
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos;) text.insert(at + 1, "v.");
  text.replace(text.find("tenon.b"), 7, "a.b");
  EXPECT_EQ(parse(text).code(), TN_OK);
}

// The host takes its attributes before the type, so that an attribute of the same name would never have a value.
TEST(Manifest, AttributesOfTheHostAreNotOfATypeToo) {
  const auto refusal = [](const std::string& name) { return ": the attribute \"" + name + "\" is one of the host"; };
  for (const std::string& name : host_attribute_names())
    EXPECT_EQ(parse_with("\"size\"", "\"" + name + "\""), "layer type \"fc\"" + refusal(name));
  for (const std::string& option : UpdaterOptions::names()) {
    const std::string name = option.substr(0, option.find('.'));
    EXPECT_EQ(parse_with(R"("doc":"u","attributes":[])", R"("doc":"u","attributes":[{"name":")" + name +
                                                             R"(","doc":"s","kind":2,"required":true,"initial":null,)"
                                                             R"("minimum":null,"maximum":null,"choices":[]}])"),
              "updater type \"v.sgd\"" + refusal(name));
  }
}

TEST(Manifest, HoldsWhatTheNoteSays) {
  const Manifest manifest = manifest_from(NoteTree(kGolden));
  EXPECT_EQ(manifest.id, "tenon.b");
  EXPECT_EQ(manifest.abi, (AbiInterval{0, 2, 2}));
  ASSERT_EQ(manifest.layers.size(), 1u);
  const LayerDescription& layer = manifest.layers[0];
  EXPECT_EQ(layer.type, "fc");
  EXPECT_EQ(layer.inputs, (std::vector<Port>{{"x", "p", TN_PORT_VARIADIC}}));
  ASSERT_EQ(layer.attributes.size(), 2u);
  EXPECT_TRUE(layer.attributes[0].required);
  EXPECT_EQ(layer.attributes[0].initial, Value());
  EXPECT_EQ(layer.attributes[0].minimum, 1.0);
  EXPECT_EQ(layer.attributes[0].maximum, std::nullopt);
  EXPECT_EQ(layer.attributes[1].initial, Value(std::vector<double>{1, 0.5}));
  EXPECT_EQ(layer.parameters, std::vector<std::string>{"weight"});
  EXPECT_EQ(layer.state_version, 3u);
  EXPECT_EQ(manifest.updaters[0].type, "v.sgd");
  EXPECT_EQ(manifest.readers[0].traits, 8u);
  EXPECT_EQ(manifest.devices[0].tables, std::vector<std::string>{"tenon.gemm/1"});
  EXPECT_EQ(manifest.kernels[0].dtypes, (std::vector<tn_dtype>{TN_F32, TN_F64}));
  EXPECT_EQ(manifest.kernels[0].score, -2);
  EXPECT_EQ(manifest.libraries[0].hint, "h");
  EXPECT_EQ(manifest.providers, (std::vector<ProviderDescription>{{"cpu", "tenon.gemm/1", "fast", 7}}));
  ASSERT_EQ(manifest.comms.size(), 1u);
  EXPECT_EQ(manifest.comms[0].type, "v.pipes");
  EXPECT_EQ(manifest.comms[0].traits, uint32_t{TN_COMM_SURVIVES | TN_COMM_AUTHENTICATED});
  EXPECT_EQ(manifest.comms[0].attributes.at(0).name, "depth");
  EXPECT_EQ(manifest.comms[0].refused, "");
  EXPECT_EQ(layer.refused + manifest.updaters[0].refused + manifest.readers[0].refused + manifest.kernels[0].refused,
            "");
}

// kGolden with `from` replaced, which must be read.
Manifest read_with(const std::string& from, const std::string& to) {
  std::string text = kGolden;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return manifest_from(NoteTree(text.replace(at, from.size(), to)));
}

// A value of a later version costs one component; the rest of the note is read.
TEST(Manifest, UnknownValuesRefuseTheirComponentAlone) {
  const std::string rest =
      " is unknown to this host, which offers version 0.4 of the plugin interface; update Tenon to use it";
  const auto layer = [](const std::string& from, const std::string& to) {
    const Manifest read = read_with(from, to);
    EXPECT_EQ(read.updaters[0].refused + read.readers[0].refused + read.kernels[0].refused, "") << to;
    return read.layers.at(0).refused;
  };
  EXPECT_EQ(layer("\"role\":0", "\"role\":3"), "its role 3" + rest);
  EXPECT_EQ(layer("\"role\":0", "\"role\":-1"), "its role -1" + rest);
  EXPECT_EQ(layer("\"kind\":2", "\"kind\":8"), "its kind 8 of attribute \"size\"" + rest);
  EXPECT_EQ(layer("\"kind\":2", "\"kind\":0"), "its kind 0 of attribute \"size\"" + rest);
  EXPECT_EQ(layer("\"flags\":2", "\"flags\":34"), "its flags 32 of input \"x\"" + rest);
  EXPECT_EQ(layer("\"doc\":\"q\",\"flags\":0", "\"doc\":\"q\",\"flags\":4294967264"),
            "its flags 4294967264 of output \"y\"" + rest);
  EXPECT_EQ(layer("\"kind\":2,\n\"required\":true,\"initial\":null,\"minimum\":1,\"maximum\":null,\"choices\":[]",
                  "\"kind\":9,\"required\":{},\"initial\":{\"new\":[[]]},\"choices\":1,\"more\":0")
                .substr(0, 11),
            "its kind 9 ")
      << "the rest of the attribute may have another form";
  EXPECT_EQ(read_with("\"attributes\":[],\"state_version\":1",
                      "\"attributes\":[{\"name\":\"a\",\"kind\":8}],\"state_version\":1")
                .updaters[0]
                .refused,
            "its kind 8 of attribute \"a\"" + rest);
  EXPECT_EQ(read_with("\"traits\":8", "\"traits\":24").readers[0].refused, "its traits 16" + rest);
  EXPECT_EQ(read_with("\"traits\":3", "\"traits\":19").comms[0].refused, "its traits 16" + rest);
  EXPECT_EQ(read_with("\"name\":\"depth\",\"kind\":2", "\"name\":\"depth\",\"kind\":8").comms[0].refused,
            "its kind 8 of attribute \"depth\"" + rest);
  const auto kernel = [](const std::string& from, const std::string& to) {
    return read_with(from, to).kernels.at(0).refused;
  };
  const std::string types = R"(["float32","f64"])";
  EXPECT_EQ(kernel(types, "[\"float8_e4m3\"]"), "its compute type \"float8_e4m3\"" + rest);
  EXPECT_EQ(kernel(types, "[\"int32\"]"), "its compute type int32" + rest);
  for (const char* const newer : {R"(["float8_e4m3","f64"])", R"(["f64","int32"])"}) {
    EXPECT_EQ(kernel(types, newer), "") << "it is offered for the type that is known";
    EXPECT_EQ(read_with(types, newer).kernels.at(0).dtypes, std::vector<tn_dtype>{TN_F64});
  }
  const std::string nine = R"(["a","fc","b","c","d","e","f","g","fc"])";
  EXPECT_EQ(kernel("\"score\":-2", "\"score\":-2,\"fuses\":" + nine), "its chain of 9 layers" + rest);
  // What makes a metric of a layer is not asked of an unknown role, but names are.
  EXPECT_THAT(parse_with("\"role\":0,\"doc\":\"l\",\"inputs\":[{\"name\":\"x\"",
                         "\"role\":3,\"doc\":\"l\",\"inputs\":[{\"name\":\"X\""),
              HasSubstr("layer type \"fc\": input \"X\""));
}

TEST(Manifest, RefusalsNameThePlaceInTheJson) {
  EXPECT_THAT(parse_with("\"kind\":2", "\"kind\":\"int\""), HasSubstr("$.layers[0].attributes[0].kind: expected"));
  EXPECT_THAT(parse_with("\"role\":0", "\"role\":null"), HasSubstr("$.layers[0].role: missing"));
  EXPECT_THAT(parse_with("\"flags\":2", "\"flags\":-1"), HasSubstr("$.layers[0].inputs[0].flags: expected an integer"));
  EXPECT_THAT(parse_with("\"flags\":2", "\"flags\":2.0"), HasSubstr("$.layers[0].inputs[0].flags"));
  EXPECT_THAT(parse_with("\"built\":2", "\"built\":65536"), HasSubstr("$.abi.built"));
  EXPECT_THAT(parse_with("\"required\":true", "\"required\":1"), HasSubstr("expected true or false, got number"));
  EXPECT_THAT(parse_with("\"doc\":\"d\"", "\"doc\":[]"), HasSubstr("$.doc: expected a text, got array"));
  EXPECT_THAT(parse_with("\"doc\":\"d\"", "\"doc\":\"\\u001b[2J\""), HasSubstr("control character 27"));
  EXPECT_THAT(parse_with("[\"weight\"]", "{}"), HasSubstr("$.layers[0].parameters: expected a list, got object"));
  EXPECT_THAT(parse_with("[{\"name\":\"libz.so.1\",\"hint\":\"h\"}]", "[7]"),
              HasSubstr("$.libraries[0]: expected an object"));
  EXPECT_THAT(parse_with("\"float32\"", "7"), HasSubstr("$.kernels[0].dtypes[0]: expected a text, got number"));
  EXPECT_THAT(parse_with("\"name\":\"fast\"", "\"nam\":\"fast\""), HasSubstr("$.providers[0].name: missing"));
  EXPECT_THAT(parse_with("\"score\":7", "\"score\":7.5"), HasSubstr("$.providers[0].score: expected an integer"));
  EXPECT_THAT(parse_with("\"score\":-2", "\"score\":-2,\"fuses\":7"), HasSubstr("$.kernels[0].fuses: expected a list"));
  for (const char* chain : {"[\"fc\"]", "[1,2,3,4,5,6,7,8,9]", "[\"a\",\"B\",\"fc\"]"})
    EXPECT_NE(parse_with("\"score\":-2", text("\"score\":-2,\"fuses\":", chain)), "") << chain;
  EXPECT_THAT(parse_with("\"score\":-2", "\"score\":-2,\"fuses\":[\"fc\",\"relu\"]"),
              HasSubstr("the chain that it fuses ends in \"relu\""));
  EXPECT_THAT(parse_with("[1,0.5]", "[1,2]"), HasSubstr("$.layers[0].attributes[1].initial"));
  EXPECT_THAT(parse_with("\"note\":1", "\"note\":2"), HasSubstr("form 2"));
}

TEST(Manifest, TheTextItselfIsBounded) {
  EXPECT_THAT(parse_with("\"flags\":2", "\"flags\":2,\"flags\":2"),
              HasSubstr("$.layers[0].inputs[0].flags: duplicate key"));
  EXPECT_THAT(parse_with("\"minimum\":1,", "\"minimum\":1e999,"), HasSubstr("$.layers[0].attributes[0].minimum"));
  EXPECT_THAT(parse_with("\"later\":{", "\"later\":{\"later\""), HasSubstr("$.later"));
  EXPECT_THAT(parse(std::string(60000, '[')).message(), HasSubstr("nested deeper than 16"));
  EXPECT_THAT(parse(std::string(TN_NOTE_LIMIT + 1, ' ')).message(), HasSubstr("1048577 bytes"));
  EXPECT_EQ(parse("{\"id\":\"\xff\"}").code(), TN_REFUSED);
  EXPECT_EQ(parse("[]").code(), TN_REFUSED);
  EXPECT_EQ(parse("null").code(), TN_REFUSED);
  EXPECT_EQ(parse("").code(), TN_REFUSED);
}

TEST(Manifest, NamesAreSoundAndUnique) {
  for (const char* type : {"Fc", "9", "", "a.b.c", ".fc", "fc.", "f c", "../fc"})
    EXPECT_THAT(parse_with("\"type\":\"fc\",\"role\"", text("\"type\":\"", type, "\",\"role\"")),
                HasSubstr("lower case letters"));
  EXPECT_THAT(parse_with("\"name\":\"rates\"", "\"name\":\"size\""),
              HasSubstr("layer type \"fc\": duplicate attribute \"size\""));
  const std::string ranged = "\"initial\":[1,0.5],\"minimum\":0,\"maximum\":1";
  for (const char* range : {"\"minimum\":1,\"maximum\":0.5", "\"minimum\":0,\"maximum\":-1"})
    EXPECT_THAT(parse_with(ranged, text("\"initial\":null,", range)),
                HasSubstr("layer type \"fc\": attribute \"rates\": empty or infinite range"));
  std::string one_number = kGolden;
  one_number.replace(one_number.find(ranged), ranged.size(), "\"minimum\":1,\"maximum\":1");
  EXPECT_EQ(parse(one_number).code(), TN_OK);
  for (const auto& [list, what] :
       {std::pair("layers", "layer type \"fc\""), std::pair("updaters", "updater type \"v.sgd\""),
        std::pair("readers", "reader type \"idx\""), std::pair("devices", "device \"cpu\""),
        std::pair("comms", "communicator \"v.pipes\"")}) {
    json twice = json::parse(kGolden);
    twice[list].push_back(json(twice[list][0]));
    EXPECT_EQ(parse(twice.dump()).message(), text("duplicate ", what));
  }
  EXPECT_THAT(parse_with("\"tenon.b\"", "\"\""), HasSubstr("no id"));
  EXPECT_THAT(parse_with("\"role\":0", "\"role\":2"), HasSubstr("is a metric but has outputs"));
}

TEST(Abi, IntervalsMustMeet) {
  check_abi({TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR});
  check_abi({TN_ABI_MAJOR, TN_ABI_MINOR + 5, TN_ABI_MINOR});  // built with later headers, needs this version
  const auto refused = [](const AbiInterval& abi) {
    const Error error = error_of([&] { check_abi(abi); });
    EXPECT_EQ(error.code(), TN_REFUSED);
    return error.message();
  };
  EXPECT_THAT(refused({TN_ABI_MAJOR, TN_ABI_MINOR + 5, TN_ABI_MINOR + 4}),
              AllOf(HasSubstr("version 0.9"), HasSubstr("needs a host of 0.8"),
                    HasSubstr("this host offers version 0.4"), HasSubstr("update Tenon")));
  EXPECT_THAT(refused({TN_ABI_MAJOR + 1, 0, 0}), HasSubstr("update Tenon"));
  // The edges: the oldest headers, this version itself, and the next one.
  constexpr uint16_t kOldest = 2, kNext = TN_ABI_MINOR + 1;
  check_abi({TN_ABI_MAJOR, kOldest, 0});
  check_abi({TN_ABI_MAJOR, kNext, TN_ABI_MINOR});
  EXPECT_THAT(refused({TN_ABI_MAJOR, kOldest - 1, 0}), HasSubstr("rebuild the plugin"));
  EXPECT_THAT(refused({TN_ABI_MAJOR, kNext, kNext}), HasSubstr("update Tenon"));
  EXPECT_THAT(refused({TN_ABI_MAJOR, TN_ABI_MINOR, kNext}), HasSubstr("update Tenon"));
  EXPECT_THAT(refused({TN_ABI_MAJOR, 0, 0}), HasSubstr("rebuild the plugin"));
}

// 1.0 is the last 0.x under another number: it runs what that ran.
TEST(Abi, AHostOfOneRunsPluginsOfZero) {
  const HostAbi one = {1, 4, 2};
  for (const AbiInterval& abi :
       {AbiInterval{0, 2, 2}, AbiInterval{0, 3, 2}, AbiInterval{0, 9, 8}, AbiInterval{1, 4, 4}, AbiInterval{1, 5, 2}})
    check_abi(abi, one);
  const auto refused = [](const AbiInterval& abi, const HostAbi& host) {
    return error_of([&] { check_abi(abi, host); }).message();
  };
  EXPECT_THAT(refused({0, 1, 1}, one), HasSubstr("this host offers version 1.4 and accepts plugins built with 0.2"));
  EXPECT_THAT(refused({1, 5, 5}, one), HasSubstr("needs a host of 1.5 or later"));
  EXPECT_THAT(refused({2, 0, 0}, one), HasSubstr("update Tenon"));
  EXPECT_THAT(refused({1, 4, 4}, {2, 4, 2}), HasSubstr("rebuild the plugin"));
  EXPECT_THAT(refused({0, 4, 2}, {2, 4, 2}), HasSubstr("rebuild the plugin"));
}

// What only one component needs.
TEST(Abi, AComponentThatNeedsANewerHostIsRefusedAlone) {
  std::string note = kGolden;
  note.replace(note.find("\"required\":4"), 12, "\"required\":5");
  const Manifest manifest = manifest_from(NoteTree(note));
  EXPECT_EQ(manifest.readers[0].refused, "it needs a host of 0.5 or later; this host offers version 0.4");
  EXPECT_EQ(manifest.layers[0].refused, "");
  EXPECT_EQ(manifest_from(NoteTree(kGolden)).readers[0].refused, "");
  const Manifest other = read_with("\"traits\":3", "\"traits\":3,\"required\":5");
  EXPECT_EQ(other.comms[0].refused, "it needs a host of 0.5 or later; this host offers version 0.4");
}

// Only drafts are compared; a plugin that uses none runs in every host.
TEST(Abi, AnotherDraftIsRefused) {
  const auto message = [](const std::string& drafts) {
    std::string note = kGolden;
    return parse(note.replace(note.find("\"later\""), 0, "\"drafts\":[" + drafts + "],")).message();
  };
  EXPECT_EQ(message(""), "");
  EXPECT_EQ(message(R"({"id":"tenon.later/1","digest":"00000007"})"), "");
  EXPECT_THAT(
      message(R"({"id":"tenon.records/1","digest":"00000007"})"),
      HasSubstr("it was built with the table \"tenon.records/1\" of the draft 00000007; this host has the draft "));
  EXPECT_THAT(
      message(R"({"id":"tenon.comm/1","digest":"00000007"})"),
      HasSubstr("it was built with the table \"tenon.comm/1\" of the draft 00000007; this host has the draft "));
}

TEST(Isa, FeaturesMustBeKnownAndPresent) {
  check_isa("");
  EXPECT_THAT(error_of([] { check_isa("telepathy"); }).message(), HasSubstr("\"telepathy\""));
#if defined(__x86_64__)
  check_isa("sse3, ssse3,");
  EXPECT_EQ(error_of([] { check_isa("sse3,telepathy"); }).code(), TN_REFUSED);
  EXPECT_EQ(error_of([] { check_isa("avx512f"); }).code(), __builtin_cpu_supports("avx512f") ? TN_OK : TN_REFUSED);
#endif
}

TEST(Difference, SaysWhereTheFirstOneIs) {
  const Manifest note = manifest_from(NoteTree(kGolden));
  EXPECT_EQ(difference(note, note), "");
  const auto changed = [&](auto change) {
    Manifest plugin = note;
    change(plugin);
    return difference(note, plugin);
  };
  EXPECT_THAT(changed([](Manifest& m) { m.abi.required = 0; }), HasSubstr("needs 0.0"));
  EXPECT_EQ(changed([](Manifest& m) { m.id = "tenon.c"; }), "the note has the id \"tenon.b\", the code \"tenon.c\"");
  EXPECT_THAT(changed([](Manifest& m) { m.version = "2"; }), HasSubstr("version \"1\", the code \"2\""));
  EXPECT_EQ(changed([](Manifest& m) { m.doc = "e"; }), "the note has the doc line \"d\", the code \"e\"");
  EXPECT_EQ(changed([](Manifest& m) { m.license = ""; }), "the note has the license \"MIT\", the code \"\"");
  EXPECT_EQ(changed([](Manifest& m) { m.isa = "avx2"; }), "the note has the CPU feature list \"\", the code \"avx2\"");
  EXPECT_THAT(changed([](Manifest& m) { m.layers[0].attributes[0].minimum = 2; }),
              HasSubstr("layer type \"fc\": the attribute \"size\""));
  EXPECT_THAT(changed([](Manifest& m) { m.layers[0].doc = "x"; }), HasSubstr("layer type \"fc\""));
  EXPECT_THAT(changed([](Manifest& m) { m.layers.clear(); }), HasSubstr("lists 1 of layer type, the code 0"));
  EXPECT_THAT(changed([](Manifest& m) { m.updaters[0].type = "adam"; }), HasSubstr("\"v.sgd\" where the code has"));
  EXPECT_THAT(changed([](Manifest& m) { m.readers[0].traits = 0; }), HasSubstr("reader type \"idx\""));
  EXPECT_THAT(changed([](Manifest& m) { m.devices[0].tables.clear(); }), HasSubstr("device \"cpu\""));
  EXPECT_THAT(changed([](Manifest& m) { m.comms[0].traits = 0; }), HasSubstr("communicator \"v.pipes\" differs"));
  EXPECT_THAT(changed([](Manifest& m) { m.comms[0].attributes[0].minimum = 2; }),
              HasSubstr("communicator \"v.pipes\": the attribute \"depth\""));
  EXPECT_THAT(changed([](Manifest& m) { m.comms.clear(); }), HasSubstr("lists 1 of communicator, the code 0"));
  EXPECT_THAT(changed([](Manifest& m) { m.kernels[0].score = 0; }), HasSubstr("kernel \"k\""));
  EXPECT_THAT(changed([](Manifest& m) { m.kernels[0].chain = {"x", "fc"}; }), HasSubstr("kernel \"k\""));
  EXPECT_THAT(changed([](Manifest& m) { m.libraries[0].hint = ""; }), HasSubstr("library \"libz.so.1\""));
  EXPECT_THAT(changed([](Manifest& m) { m.providers[0].score = 1; }), HasSubstr("provider \"fast\""));
  EXPECT_THAT(changed([](Manifest& m) { m.readers[0].tables.clear(); }),
              HasSubstr("the note of the reader type \"idx\" lists the table \"tenon.pass/1\""));
  EXPECT_EQ(changed([](Manifest& m) {
              m.readers[0].tables = {"tenon.pass/1", "tenon.records/1"};
            }),
            "")
      << "a note lists what its writer knew, and a host knows what its headers have";
  EXPECT_THAT(changed([](Manifest& m) { m.readers[0].minor = 5; }), HasSubstr("reader type \"idx\" differs"));
  EXPECT_THAT(changed([](Manifest& m) {
                m.drafts = {{TN_RECORDS, "00000007"}};
              }),
              HasSubstr("differ in the draft of the table \"tenon.records/1\""));
  EXPECT_EQ(changed([](Manifest& m) { m.drafts = {{"tenon.later/1", "00000007"}}; }), "");
  EXPECT_THAT(changed([](Manifest& m) { m.providers.clear(); }), HasSubstr("lists 1 of provider, the code 0"));
}

TEST(Difference, OfRefusedComponentsOnlyNamesCount) {
  Manifest note = manifest_from(NoteTree(kGolden));
  note.layers[0].refused = note.kernels[0].refused = "unknown";
  Manifest code = note;
  code.layers[0].attributes[0].kind = 12;
  code.layers[0].attributes[0].minimum = 3;
  code.layers[0].refused = "another reason";
  code.kernels[0].dtypes.clear();
  EXPECT_EQ(difference(note, code), "");
  code.layers[0].type = "other";
  EXPECT_THAT(difference(note, code), HasSubstr("the layer type \"fc\" where the code has \"other\""));
  // A component that is refused for its code alone differs.
  code = manifest_from(NoteTree(kGolden));
  note = code;
  code.readers[0].traits = 4096;
  code.readers[0].refused = "unknown";
  EXPECT_THAT(difference(note, code), HasSubstr("reader type \"idx\" differs"));
}

}  // namespace
}  // namespace tenon_tests
