// Notes are untrusted input: any bytes give a manifest or a refusal, and refusals name the place.
// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/manifest.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "host/plugins/elf_note.h"
#include "tests/support/memory_system.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kGolden = R"({"note":1,"abi":{"major":0,"built":2,"required":2},"id":"a.b","version":"1",
"doc":"d","license":"MIT","isa":"","layers":[{"type":"fc","role":0,"doc":"l","inputs":[{"name":"x","doc":"p",
"flags":2}],"outputs":[{"name":"y","doc":"q","flags":0}],"attributes":[{"name":"size","doc":"s","kind":2,
"required":true,"initial":null,"minimum":1,"maximum":null,"choices":[]},{"name":"rates","doc":"","kind":6,
"required":false,"initial":[1,0.5],"minimum":0,"maximum":1,"choices":[]}],"parameters":["weight"],
"state_version":3}],"updaters":[{"type":"v.sgd","doc":"u","attributes":[],"state_version":1}],"readers":[{"type":"idx",
"doc":"r","attributes":[],"traits":8}],"devices":[{"kind":"cpu","doc":"c","dlpack_type":1,"tables":["tenon.gemm/1"]}],
"kernels":[{"type":"fc","device":"cpu","name":"k","dtypes":["float32","f64"],"score":-2}],
"libraries":[{"name":"libz.so.1","hint":"h"}],"later":{"unknown":[1]}})";

std::string padded(std::string bytes) {
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return bytes;
}

std::string note_of(const std::string& text, const std::string& owner = std::string("Tenon\0", 6),
                    uint32_t type = TN_NOTE_TYPE) {
  Elf64_Nhdr header = {};
  header.n_namesz = static_cast<uint32_t>(owner.size());
  header.n_descsz = static_cast<uint32_t>(text.size());
  header.n_type = type;
  std::string result(sizeof header, '\0');
  std::memcpy(result.data(), &header, sizeof header);
  return result + padded(owner) + padded(text);
}

// The smallest file that has `notes` in one PT_NOTE segment.
struct ElfFile {
  Elf64_Ehdr header = {};
  Elf64_Phdr segment = {};
  std::string notes;

  explicit ElfFile(std::string with) : notes(std::move(with)) {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
#if defined(__x86_64__)
    header.e_machine = EM_X86_64;
#elif defined(__aarch64__)
    header.e_machine = EM_AARCH64;
#endif
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof segment;
    header.e_phnum = 1;
    segment.p_type = PT_NOTE;
    segment.p_offset = sizeof header + sizeof segment;
    segment.p_filesz = notes.size();
    segment.p_align = 4;
  }
  [[nodiscard]] std::string bytes() const {
    std::string result(sizeof header + sizeof segment, '\0');
    std::memcpy(result.data(), &header, sizeof header);
    std::memcpy(result.data() + sizeof header, &segment, sizeof segment);
    return result + notes;
  }
};

std::string read(const std::string& bytes) {
  MemoryFiles files;
  files.files["f"] = bytes;
  return read_note(*files.open("f"));
}

std::string refusal(const ElfFile& file) {
  const Error error = error_of([&] { (void)read(file.bytes()); });
  EXPECT_EQ(error.code(), TN_REFUSED);
  return error.message();
}

Error parse(const std::string& text) {
  return error_of([&] { (void)manifest_from(parse_note(text)); });
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

TEST(ElfNote, IsFoundAmongOthers) {
  EXPECT_EQ(read(ElfFile(note_of(kGolden)).bytes()), kGolden);
  const std::string others = note_of("xyz", std::string("GNU\0", 4), 3) + note_of("no", std::string("Tenon\0", 6), 2);
  EXPECT_EQ(read(ElfFile(others + note_of("{}") + note_of("", "", 1)).bytes()), "{}");
}

TEST(ElfNote, NeedsItsOwnMachineAndForm) {
  const ElfFile good(note_of("{}"));
  ElfFile file = good;
  file.header.e_ident[0] = 'x';
  EXPECT_THAT(refusal(file), HasSubstr("it is not an ELF file"));
  file = good;
  file.header.e_ident[EI_CLASS] = ELFCLASS32;
  EXPECT_THAT(refusal(file), HasSubstr("64-bit"));
  file = good;
  file.header.e_machine = EM_SPARC;
  EXPECT_THAT(refusal(file), HasSubstr("another machine"));
  file = good;
  file.header.e_type = ET_EXEC;
  EXPECT_THAT(refusal(file), HasSubstr("it is not a shared object"));
  file = good;
  file.header.e_phentsize = 32;
  EXPECT_THAT(refusal(file), HasSubstr("usual form"));
}

TEST(ElfNote, StaysWithinTheFile) {
  const ElfFile good(note_of("{}"));
  ElfFile file = good;
  file.header.e_phoff = UINT64_MAX - 8;
  EXPECT_THAT(refusal(file), HasSubstr("beyond the end"));
  file = good;
  file.segment.p_offset = UINT64_MAX - 4;
  EXPECT_THAT(refusal(file), HasSubstr("beyond the end"));
  file = good;
  file.segment.p_filesz = UINT64_MAX;
  EXPECT_THAT(refusal(file), HasSubstr("beyond the end"));
  for (const uint32_t size : {100u, 0x7fffffffu, 0xffffffffu}) {
    file = good;
    std::memcpy(file.notes.data(), &size, sizeof size);  // of the owner's name
    EXPECT_THAT(refusal(file), HasSubstr("runs over"));
    file = good;
    std::memcpy(file.notes.data() + 4, &size, sizeof size);  // of the text
    EXPECT_THAT(refusal(file), HasSubstr("runs over"));
  }
}

TEST(ElfNote, IsOneAndOfAllowedSize) {
  EXPECT_THAT(refusal(ElfFile("")), HasSubstr("no Tenon note"));
  EXPECT_THAT(refusal(ElfFile(note_of("{}") + note_of("{}"))), HasSubstr("two Tenon notes"));
  EXPECT_THAT(refusal(ElfFile(note_of(""))), HasSubstr("0 bytes"));
  EXPECT_EQ(read(ElfFile(note_of(std::string(TN_NOTE_LIMIT, ' '))).bytes()).size(), size_t{TN_NOTE_LIMIT});
  EXPECT_THAT(refusal(ElfFile(note_of(std::string(TN_NOTE_LIMIT + 1, ' ')))), HasSubstr("65537 bytes"));
  std::string many;
  for (int i = 0; i < 2000; ++i) many += note_of("", std::string("GNU\0", 4), 3);
  EXPECT_THAT(refusal(ElfFile(many)), HasSubstr("more than 1024 notes"));
}

// Changes each byte to each value and cuts the file at each place: the result is a manifest or an Error.
TEST(ElfNote, SurvivesEveryChangeOfOneByteAndEveryCut) {
  const std::string small = R"({"note":1,"abi":{"major":0,"built":2,"required":2},"id":"a","layers":[{"type":"b",)"
                            R"("role":0,"outputs":[{"name":"y"}],"attributes":[{"name":"c","kind":6,"initial":[1.5],)"
                            R"("minimum":-1e3,"choices":[]}]}],"doc":"\u00e9"})";
  const std::string golden = ElfFile(note_of("gnu", std::string("GNU\0", 4), 3) + note_of(small)).bytes();
  int accepted = 0, refused = 0;
  const auto attempt = [&](const std::string& bytes) {
    try {
      const json note = parse_note(read(bytes));
      const Manifest manifest = manifest_from(note);
      check_isa(manifest.isa);
      check_abi(manifest.abi);
      ++accepted;
    } catch (const Error& error) {
      EXPECT_FALSE(error.message().empty());
      ++refused;
    }
  };
  attempt(golden);
  ASSERT_EQ(accepted, 1);
  for (size_t cut = 0; cut < golden.size(); ++cut) attempt(golden.substr(0, cut));
  EXPECT_EQ(accepted, 1) << "a truncated file must not be accepted";
  for (size_t at = 0; at < golden.size(); ++at) {
    std::string bytes = golden;
    for (int value = 0; value < 256; ++value) {
      bytes[at] = static_cast<char>(value);
      attempt(bytes);
    }
  }
  EXPECT_GT(accepted, 256);
  EXPECT_GT(refused, 256);
}

TEST(Manifest, HoldsWhatTheNoteSays) {
  const Manifest manifest = manifest_from(parse_note(kGolden));
  EXPECT_EQ(manifest.id, "a.b");
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
}

TEST(Manifest, RefusalsNameThePlaceInTheJson) {
  EXPECT_THAT(parse_with("\"kind\":2", "\"kind\":9"), HasSubstr("$.layers[0].attributes[0].kind: unknown kind 9"));
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
  EXPECT_THAT(parse_with("\"float32\"", "\"float33\""), HasSubstr("$.kernels[0].dtypes: unknown element type"));
  EXPECT_THAT(parse_with("\"score\":-2", "\"score\":-2,\"fuses\":7"), HasSubstr("$.kernels[0].fuses: expected a list"));
  for (const char* chain :
       {"[\"fc\"]", "[1,2,3,4,5,6,7,8,9]", "[\"a\",\"fc\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"fc\"]"})
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
  EXPECT_THAT(parse(std::string(70000, ' ')).message(), HasSubstr("70000 bytes"));
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
        std::pair("readers", "reader type \"idx\""), std::pair("devices", "device \"cpu\"")}) {
    json twice = json::parse(kGolden);
    twice[list].push_back(json(twice[list][0]));
    EXPECT_EQ(parse(twice.dump()).message(), text("duplicate ", what));
  }
  EXPECT_THAT(parse_with("\"a.b\"", "\"\""), HasSubstr("no id"));
  EXPECT_THAT(parse_with("\"f64\"", "\"int32\""), HasSubstr("int32 is not a compute type"));
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
              AllOf(HasSubstr("version 0.7"), HasSubstr("needs a host of 0.6"),
                    HasSubstr("this host offers version 0.2"), HasSubstr("update Tenon")));
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
  const Manifest note = manifest_from(parse_note(kGolden));
  EXPECT_EQ(difference(note, note), "");
  const auto changed = [&](auto change) {
    Manifest plugin = note;
    change(plugin);
    return difference(note, plugin);
  };
  EXPECT_THAT(changed([](Manifest& m) { m.abi.required = 0; }), HasSubstr("needs 0.0"));
  EXPECT_EQ(changed([](Manifest& m) { m.id = "a.c"; }), "the note has the id \"a.b\", the code \"a.c\"");
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
  EXPECT_THAT(changed([](Manifest& m) { m.kernels[0].score = 0; }), HasSubstr("kernel \"k\""));
  EXPECT_THAT(changed([](Manifest& m) { m.kernels[0].chain = {"x", "fc"}; }), HasSubstr("kernel \"k\""));
  EXPECT_THAT(changed([](Manifest& m) { m.libraries[0].hint = ""; }), HasSubstr("library \"libz.so.1\""));
}

}  // namespace
}  // namespace tenon_tests
