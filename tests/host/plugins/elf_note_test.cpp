// Files are untrusted input: any bytes give a note or a refusal. SPDX-License-Identifier: Apache-2.0
#include "host/plugins/elf_note.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "host/plugins/manifest.h"
#include "tests/support/memory_system.h"
#include "tests/support/sanitized.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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

TEST(ElfNote, IsFoundAmongOthers) {
  EXPECT_EQ(read(ElfFile(note_of("{\"note\":1}")).bytes()), "{\"note\":1}");
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
  for (const auto& [machine, name] : {std::pair{EM_AARCH64, "aarch64"}, std::pair{EM_RISCV, "riscv64"},
                                      std::pair{EM_SPARC, "ELF machine 2"}, std::pair{EM_386, "x86 of 32 bits"}}) {
    file.header.e_machine = static_cast<Elf64_Half>(machine);
    EXPECT_EQ(refusal(file), text("it is built for another machine: for ", name, ", and this one is x86-64"));
  }
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
  EXPECT_THAT(refusal(ElfFile(note_of(std::string(TN_NOTE_LIMIT + 1, ' ')))), HasSubstr("1048577 bytes"));
  std::string many;
  for (int i = 0; i < 2000; ++i) many += note_of("", std::string("GNU\0", 4), 3);
  EXPECT_THAT(refusal(ElfFile(many)), HasSubstr("more than 1024 notes"));
}

// Changes each byte to each value and cuts the file at each place: the result is a manifest or an Error.
TEST(ElfNote, SurvivesEveryChangeOfOneByteAndEveryCut) {
  const std::string small = R"({"note":1,"abi":{"major":0,"built":2,"required":2},"id":"a","layers":[{"type":"v.b",)"
                            R"("role":0,"outputs":[{"name":"y"}],"attributes":[{"name":"c","kind":6,"initial":[1.5],)"
                            R"("minimum":-1e3,"choices":[]}]}],"doc":"\u00e9"})";
  const std::string golden = ElfFile(note_of("gnu", std::string("GNU\0", 4), 3) + note_of(small)).bytes();
  int accepted = 0, refused = 0;
  const auto attempt = [&](const std::string& bytes) {
    try {
      const NoteTree note(read(bytes));
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
  const int step = sanitized() ? 7 : 1;  // fewer values under sanitizers, which take 20 times as long
  for (size_t at = 0; at < golden.size(); ++at) {
    std::string bytes = golden;
    for (int value = 0; value < 256; value += step) {
      bytes[at] = static_cast<char>(value);
      attempt(bytes);
    }
  }
  EXPECT_GT(accepted, 256);
  EXPECT_GT(refused, 256);
}

// ---- how the file was linked

// A file with sections, and with a dynamic segment that needs `needed`.
struct LinkedFile {
  ElfFile elf{note_of("{}")};
  std::string names{"\0.text\0.gcc_except_table\0.shstrtab\0", 36};
  std::vector<Elf64_Shdr> sections = std::vector<Elf64_Shdr>(4);
  std::string strings{"\0libc.so.6\0libgcc_s.so.1\0", 26};
  std::vector<Elf64_Dyn> dynamic;
  std::vector<Elf64_Phdr> segments;

  explicit LinkedFile(bool tables, std::vector<uint64_t> needed) {
    const auto section = [&](size_t i, uint32_t name, uint64_t bytes) {
      sections[i].sh_name = name;
      sections[i].sh_size = bytes;
    };
    section(1, 1, 64);
    section(2, 7, tables ? 12 : 0);
    section(3, 25, names.size());
    for (const uint64_t name : needed) add(DT_NEEDED, name);
    add(DT_STRTAB, kAddress);
    add(DT_STRSZ, strings.size());
    add(DT_NULL, 0);
    add(DT_NEEDED, 11);  // behind the end
  }
  void add(int64_t tag, uint64_t value) {
    Elf64_Dyn entry = {};
    entry.d_tag = tag;
    entry.d_un.d_val = value;
    dynamic.push_back(entry);
  }
  [[nodiscard]] std::string bytes(bool with_sections = true) {
    const auto text = [](const auto& list) {
      return std::string(reinterpret_cast<const char*>(list.data()), list.size() * sizeof list[0]);
    };
    const uint64_t begin = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
    const auto segment = [](uint32_t type, uint64_t offset, uint64_t size, uint64_t address) {
      Elf64_Phdr made = {};
      made.p_type = type;
      made.p_offset = offset;
      made.p_filesz = size;
      made.p_vaddr = address;
      made.p_align = 4;
      return made;
    };
    const uint64_t strings_at = begin + elf.notes.size(), dynamic_at = strings_at + strings.size();
    const uint64_t names_at = dynamic_at + dynamic.size() * sizeof(Elf64_Dyn), sections_at = names_at + names.size();
    segments = {segment(PT_NOTE, begin, elf.notes.size(), 0), segment(PT_LOAD, strings_at, strings.size(), kAddress),
                segment(PT_DYNAMIC, dynamic_at, dynamic.size() * sizeof(Elf64_Dyn), 0)};
    elf.header.e_phnum = 3;
    if (with_sections) {
      sections[3].sh_offset = names_at;
      elf.header.e_shoff = sections_at;
      elf.header.e_shnum = 4;
      elf.header.e_shstrndx = 3;
      elf.header.e_shentsize = sizeof(Elf64_Shdr);
    }
    return std::string(reinterpret_cast<const char*>(&elf.header), sizeof elf.header) + text(segments) + elf.notes +
           strings + text(dynamic) + names + text(sections);
  }
  static constexpr uint64_t kAddress = 0x10000;
};

// "" if check_unwinder accepts the file.
std::string unwinder_refusal(const std::string& bytes) {
  MemoryFiles files;
  files.files["f"] = bytes;
  const Error error = error_of([&] { check_unwinder(*files.open("f")); });
  EXPECT_TRUE(error.code() == TN_OK || error.code() == TN_REFUSED) << error.message();
  return error.message();
}

TEST(Unwinder, MustBeSharedByWhatHasExceptionTables) {
  constexpr uint64_t kLibc = 1, kUnwinder = 11;
  EXPECT_EQ(unwinder_refusal(LinkedFile(true, {kLibc, kUnwinder}).bytes()), "");
  EXPECT_EQ(unwinder_refusal(LinkedFile(false, {kLibc}).bytes()), "");
  EXPECT_EQ(unwinder_refusal(LinkedFile(true, {kLibc}).bytes(false)), "") << "nobody can tell without section headers";
  for (const std::vector<uint64_t>& needed :
       {std::vector<uint64_t>{kLibc}, std::vector<uint64_t>{}, std::vector<uint64_t>{kUnwinder + 1, kUnwinder - 1}}) {
    const std::string message = unwinder_refusal(LinkedFile(true, needed).bytes());
    EXPECT_THAT(message,
                AllOf(HasSubstr(".gcc_except_table"), HasSubstr("libgcc_s.so.1"), HasSubstr("-shared-libgcc")));
  }
  EXPECT_EQ(read(LinkedFile(true, {}).bytes()), "{}") << "the note itself is read";
}

TEST(Unwinder, StaysWithinTheFile) {
  const auto damaged = [](auto damage) {
    LinkedFile file(true, {1, 11});
    std::string bytes = file.bytes();
    damage(file, bytes);
    return unwinder_refusal(bytes);
  };
  const auto with_header = [&](auto change) {
    return damaged([&](LinkedFile& file, std::string& bytes) {
      change(file.elf.header);
      std::memcpy(bytes.data(), &file.elf.header, sizeof file.elf.header);
    });
  };
  EXPECT_THAT(with_header([](Elf64_Ehdr& h) { h.e_shoff = UINT64_MAX - 8; }), HasSubstr("beyond the end"));
  EXPECT_THAT(with_header([](Elf64_Ehdr& h) { h.e_shnum = 5; }), HasSubstr("beyond the end"));
  EXPECT_THAT(with_header([](Elf64_Ehdr& h) { h.e_shstrndx = 4; }), HasSubstr("usual form"));
  EXPECT_THAT(with_header([](Elf64_Ehdr& h) { h.e_shentsize = 40; }), HasSubstr("usual form"));
  EXPECT_EQ(with_header([](Elf64_Ehdr& h) { h.e_shnum = 0; }), "");
  LinkedFile names(true, {1, 11});
  names.sections[3].sh_size = UINT64_MAX;
  EXPECT_THAT(unwinder_refusal(names.bytes()), HasSubstr("beyond the end"));
  LinkedFile far_name(true, {});
  far_name.sections[2].sh_name = UINT32_MAX;
  EXPECT_EQ(unwinder_refusal(far_name.bytes()), "") << "a name outside of the table is none";
  LinkedFile far_library(true, {UINT64_MAX, UINT64_MAX - 4});
  EXPECT_NE(unwinder_refusal(far_library.bytes()), "");
  LinkedFile no_strings(true, {11});
  no_strings.dynamic[1].d_un.d_val = LinkedFile::kAddress - 1;  // DT_STRTAB
  EXPECT_NE(unwinder_refusal(no_strings.bytes()), "");
}

// Changes each byte and cuts the file at each place: the file is accepted or refused.
TEST(Unwinder, SurvivesEveryChangeOfOneByteAndEveryCut) {
  const std::string golden = LinkedFile(true, {1, 11}).bytes();
  ASSERT_EQ(unwinder_refusal(golden), "");
  int refused = 0;
  for (size_t cut = 0; cut < golden.size(); ++cut) refused += unwinder_refusal(golden.substr(0, cut)).empty() ? 0 : 1;
  EXPECT_EQ(refused, static_cast<int>(golden.size())) << "the section headers are at the end";
  for (size_t at = 0; at < golden.size(); ++at)
    for (const int value : {0, 1, 0x7f, 0x80, 0xff}) {
      std::string bytes = golden;
      bytes[at] = static_cast<char>(value);
      refused += unwinder_refusal(bytes).empty() ? 0 : 1;
    }
  EXPECT_GT(refused, static_cast<int>(golden.size()) + 64);
}

TEST(ElfNote, AReservedNoteIsEmpty) {
  const std::string reserved = note_of(std::string(64, '\0'), std::string("Tenon\0", 6), TN_NOTE_RESERVED);
  EXPECT_THAT(refusal(ElfFile(reserved)), HasSubstr("reserved but empty; 'tenon plugins seal' fills it in"));
  EXPECT_EQ(read(ElfFile(note_of("{}" + std::string(62, '\0'))).bytes()), "{}") << "sealed: zeros follow the text";
}

// ---- how a file was linked

// A file with one segment that is mapped at `kAddress`: the texts, then the dynamic segment.
struct DynamicFile {
  static constexpr uint64_t kAddress = 0x4000;
  std::string texts = std::string(1, '\0');
  std::vector<Elf64_Dyn> entries;
  bool with_table = true;
  uint64_t more_bytes = 0;  // that the table of texts states beside its own

  uint64_t text(const std::string& value) {
    const uint64_t at = texts.size();
    texts += value + '\0';
    return at;
  }
  void add(int64_t tag, const std::string& value) { add(tag, text(value)); }
  void add(int64_t tag, uint64_t value) {
    Elf64_Dyn entry = {};
    entry.d_tag = tag;
    entry.d_un.d_val = value;
    entries.push_back(entry);
  }
  [[nodiscard]] std::string bytes() const {
    ElfFile file("");
    file.header.e_phnum = 2;
    std::vector<Elf64_Dyn> all = entries;
    const auto put = [&](int64_t tag, uint64_t value) {
      all.push_back({});
      all.back().d_tag = tag;
      all.back().d_un.d_val = value;
    };
    if (with_table) {
      put(DT_STRTAB, kAddress);
      put(DT_STRSZ, texts.size() + more_bytes);
    }
    put(DT_NULL, 0);
    put(DT_NEEDED, 1);  // behind the end
    Elf64_Phdr segments[2] = {};
    const uint64_t begin = sizeof file.header + sizeof segments;
    segments[0].p_type = PT_LOAD;
    segments[0].p_offset = begin;
    segments[0].p_vaddr = kAddress;
    segments[0].p_filesz = texts.size();
    segments[1].p_type = PT_DYNAMIC;
    segments[1].p_offset = begin + texts.size();
    segments[1].p_filesz = all.size() * sizeof(Elf64_Dyn);
    std::string result(begin, '\0');
    std::memcpy(result.data(), &file.header, sizeof file.header);
    std::memcpy(result.data() + sizeof file.header, segments, sizeof segments);
    return result + texts + std::string(reinterpret_cast<const char*>(all.data()), segments[1].p_filesz);
  }
};

Links links_of(const std::string& bytes) {
  MemoryFiles files;
  files.files["f"] = bytes;
  return read_links(*files.open("f"));
}
std::string links_refusal(const DynamicFile& file) {
  const Error error = error_of([&] { (void)links_of(file.bytes()); });
  EXPECT_EQ(error.code(), TN_REFUSED);
  return error.message();
}

TEST(ElfLinks, AreThoseOfTheLoader) {
  DynamicFile file;
  file.add(DT_NEEDED, "libone.so.1");
  file.add(DT_SONAME, "libself.so");
  file.add(DT_FILTER, "libfilter.so");
  file.add(DT_AUXILIARY, "libaux.so");
  file.add(DT_RPATH, "$ORIGIN:/usr/lib");
  file.add(DT_RUNPATH, ":${ORIGIN}/../lib::");
  file.add(DT_NEEDED, "libtwo.so");
  const Links found = links_of(file.bytes());
  EXPECT_EQ(found.soname, "libself.so");
  EXPECT_THAT(found.needed, ::testing::ElementsAre("libone.so.1", "libfilter.so", "libaux.so", "libtwo.so"));
  EXPECT_THAT(found.search, ::testing::ElementsAre("", "${ORIGIN}/../lib", "", "")) << "which DT_RPATH does not change";
  EXPECT_FALSE(found.inherited);
  DynamicFile older;
  older.add(DT_RPATH, "$ORIGIN:/usr/lib");
  const Links inherited = links_of(older.bytes());
  EXPECT_THAT(inherited.search, ::testing::ElementsAre("$ORIGIN", "/usr/lib"));
  EXPECT_TRUE(inherited.inherited);
  const Links none = links_of(ElfFile("").bytes());
  EXPECT_TRUE(none.soname.empty() && none.needed.empty() && none.search.empty()) << "without a dynamic segment";
}

TEST(ElfLinks, StayWithinTheirTable) {
  DynamicFile file;
  file.add(DT_NEEDED, uint64_t{1} << 40);
  EXPECT_THAT(links_refusal(file), HasSubstr("lies outside of its table"));
  file = {};
  file.add(DT_NEEDED, "a");
  file.with_table = false;
  EXPECT_THAT(links_refusal(file), HasSubstr("its table of texts lies outside of its segments"));
  file.with_table = true;
  file.more_bytes = 1;
  EXPECT_THAT(links_refusal(file), HasSubstr("its table of texts lies outside of its segments"));
  file = {};
  file.add(DT_NEEDED, std::string(100000, 'x'));
  EXPECT_THAT(links_refusal(file), HasSubstr("does not end within"));
  file = {};
  file.add(DT_SONAME, "a");
  file.texts.pop_back();  // the NUL at the end
  EXPECT_THAT(links_refusal(file), HasSubstr("does not end within"));
}

// The system's loader takes the last of two tables, and another reader the first.
TEST(ElfLinks, HaveOneTable) {
  DynamicFile file;
  file.add(DT_NEEDED, "a");
  file.add(DT_STRTAB, DynamicFile::kAddress);
  EXPECT_EQ(links_refusal(file), "it names two tables of texts");
}

// Every change of one byte, and every cut, gives links or a refusal.
TEST(ElfLinks, OfDamagedFiles) {
  DynamicFile file;
  file.add(DT_NEEDED, "libone.so.1");
  file.add(DT_RUNPATH, "$ORIGIN");
  const std::string good = file.bytes();
  const auto expect_answer = [](const std::string& bytes) {
    const Error error = error_of([&] { (void)links_of(bytes); });
    EXPECT_TRUE(error.message().empty() || error.code() == TN_REFUSED) << error.message();
  };
  for (size_t i = 0; i < good.size(); ++i) {
    expect_answer(good.substr(0, i));
    for (const int change : {1, 0x80, 0xff}) {
      std::string bytes = good;
      bytes[i] = static_cast<char>(bytes[i] ^ change);
      expect_answer(bytes);
    }
  }
}

}  // namespace
}  // namespace tenon_tests
