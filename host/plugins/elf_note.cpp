// A bounded reader of ELF notes. A library for the whole of ELF would map the file and trust far more of it than the
// three structures that are needed here. SPDX-License-Identifier: Apache-2.0
#include "host/plugins/elf_note.h"

#include <elf.h>
#include <tenon/plugin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "core/checked.h"

namespace tenon::host {

namespace {

constexpr uint64_t kMostNotes = 1024;  // of a file; a plugin has about four

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr uint16_t kMachine = EM_RISCV;
#else
#error "say which ELF machine this is"
#endif
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the reader copies little-endian structures");

struct Range {
  uint64_t begin, end;
};

class NoteReader {
 public:
  explicit NoteReader(InputFile& file) : file_(file), size_(file.size()) {}

  std::string read() {
    const Elf64_Ehdr header = checked_header();
    for (uint64_t i = 0; i < header.e_phnum; ++i) {
      const auto segment = read_struct<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr), "a program header");
      // The loader maps these segments: reading a page past the end of a truncated file would kill the process.
      if (segment.p_type == PT_LOAD) within(segment.p_offset, segment.p_filesz, "a segment");
      if (segment.p_type == PT_NOTE) visit(segment);
    }
    if (!note_) fail(TN_REFUSED, "it holds no Tenon note; a plugin is built with tenon_add_plugin, which writes one");
    return read_text(*note_);
  }

 private:
  // Returns [begin, begin + bytes), which must lie within the file.
  Range within(uint64_t begin, uint64_t bytes, const char* what) const {
    if (begin > size_ || bytes > size_ - begin)
      fail(TN_REFUSED, what, " (", bytes, " bytes at ", begin, ") lies beyond the end of the file at ", size_);
    return {begin, begin + bytes};
  }

  template <typename Struct>
  Struct read_struct(uint64_t offset, const char* what) {
    within(offset, sizeof(Struct), what);
    Struct result;
    file_.read(offset, &result, sizeof result);
    return result;
  }

  Elf64_Ehdr checked_header() {
    if (size_ < sizeof(Elf64_Ehdr))
      fail(TN_REFUSED, "it is not a shared object: ", size_, " bytes are less than an ELF header");
    const auto header = read_struct<Elf64_Ehdr>(0, "the ELF header");
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) fail(TN_REFUSED, "it is not an ELF file");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
      fail(TN_REFUSED, "it is not a 64-bit little-endian ELF file");
    if (header.e_ident[EI_VERSION] != EV_CURRENT) fail(TN_REFUSED, "its ELF version is unknown");
    if (header.e_type != ET_DYN) fail(TN_REFUSED, "it is not a shared object (ELF type ", header.e_type, ")");
    if (header.e_machine != kMachine)
      fail(TN_REFUSED, "it is built for another machine (ELF machine ", header.e_machine, ", this one is ", kMachine,
           ")");
    if (header.e_phnum == 0) fail(TN_REFUSED, "it has no program headers");
    if (header.e_phnum == PN_XNUM || header.e_phentsize != sizeof(Elf64_Phdr))
      fail(TN_REFUSED, "its program headers are not of the usual form");
    within(header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr), "the program header table");
    return header;
  }

  void visit(const Elf64_Phdr& segment) {
    const Range range = within(segment.p_offset, segment.p_filesz, "a note segment");
    const uint64_t alignment = segment.p_align == 8 ? 8 : 4;
    uint64_t at = range.begin;
    while (range.end - at >= sizeof(Elf64_Nhdr)) {
      if (++notes_ > kMostNotes) fail(TN_REFUSED, "it holds more than ", kMostNotes, " notes");
      at = visit_note(at, range.end, alignment);
    }
  }

  // Examines the note at `at` and returns where the next one begins, at most `end`.
  uint64_t visit_note(uint64_t at, uint64_t end, uint64_t alignment) {
    const auto note = read_struct<Elf64_Nhdr>(at, "a note");
    // Padding is relative to the start of the note. The sizes have 32 bits, so the sums cannot wrap.
    const uint64_t name = sizeof(Elf64_Nhdr);
    const uint64_t text = round_up(name + note.n_namesz, alignment);
    const uint64_t bytes = text + note.n_descsz;
    if (bytes > end - at) fail(TN_REFUSED, "the note at ", at, " runs over the end of its segment");
    if (note.n_type == TN_NOTE_TYPE && owned(at + name, note.n_namesz)) {
      if (note_ && note_->begin != at + text) fail(TN_REFUSED, "it holds two Tenon notes");  // segments may overlap
      if (note.n_descsz == 0 || note.n_descsz > TN_NOTE_LIMIT)
        fail(TN_REFUSED, "its Tenon note has ", note.n_descsz, " bytes; 1 to ", TN_NOTE_LIMIT, " are allowed");
      note_ = Range{at + text, at + bytes};
    }
    return std::min(end, checked_add(at, round_up(bytes, alignment), "note"));
  }

  bool owned(uint64_t at, uint32_t bytes) {
    constexpr char kOwner[] = TN_NOTE_OWNER;
    if (bytes != sizeof kOwner) return false;
    std::array<char, sizeof kOwner> name;
    file_.read(at, name.data(), name.size());
    return std::memcmp(name.data(), kOwner, sizeof kOwner) == 0;
  }

  std::string read_text(const Range& range) {
    std::string text(range.end - range.begin, '\0');
    file_.read(range.begin, text.data(), text.size());
    while (!text.empty() && text.back() == '\0') text.pop_back();  // some assemblers pad the text itself
    return text;
  }

  static uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

  InputFile& file_;
  const uint64_t size_;
  uint64_t notes_ = 0;
  std::optional<Range> note_;
};

}  // namespace

std::string read_note(InputFile& file) { return NoteReader(file).read(); }

}  // namespace tenon::host
