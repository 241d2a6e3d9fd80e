// A bounded reader of ELF files. A library for the whole of ELF would map the file and trust far more of it than the
// few structures that are needed here. SPDX-License-Identifier: Apache-2.0
#include "host/plugins/elf_note.h"

#include <elf.h>
#include <tenon/plugin.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/alignment.h"
#include "base/elf_machine.h"
#include "core/checked.h"

namespace tenon::host {

namespace {

constexpr uint64_t kMostNotes = 1024;             // of a file; a plugin has about four
constexpr uint64_t kMostDynamicBytes = 1u << 20;  // a plugin has about 500
constexpr uint64_t kLongestText = 4096;           // of a library's name, or of a list of folders
constexpr uint64_t kHead = 4096;                  // bytes that are read at once

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the reader copies little-endian structures");

struct Range {
  uint64_t begin, end;
};

// A shared object for this machine. Every offset and size is checked against the length of the file.
class ElfFile {
 public:
  explicit ElfFile(InputFile& file)
      : file_(file), size_(file.size()), head_(std::min(size_, kHead)), header_(checked_header()) {}

 protected:
  // Returns [begin, begin + bytes), which must lie within the file.
  Range within(uint64_t begin, uint64_t bytes, const char* what) const {
    if (begin > size_ || bytes > size_ - begin)
      fail(TN_REFUSED, what, " (", bytes, " bytes at ", begin, ") lies beyond the end of the file at ", size_);
    return {begin, begin + bytes};
  }

  // Calls visit(program header) for each segment.
  template <typename Visit>
  void each_segment(Visit visit) {
    for (uint64_t i = 0; i < header_.e_phnum; ++i)
      visit(read_struct<Elf64_Phdr>(header_.e_phoff + i * sizeof(Elf64_Phdr), "a program header"));
  }

  template <typename Struct>
  Struct read_struct(uint64_t offset, const char* what) {
    within(offset, sizeof(Struct), what);
    Struct result;
    read(offset, &result, sizeof result);
    return result;
  }

  void read(uint64_t offset, void* to, uint64_t bytes) {
    if (offset <= head_.size() && bytes <= head_.size() - offset)
      std::copy_n(head_.data() + offset, bytes, static_cast<char*>(to));
    else
      file_.read(offset, to, bytes);
  }

  Elf64_Ehdr checked_header() {
    file_.read(0, head_.data(), head_.size());
    if (size_ < sizeof(Elf64_Ehdr))
      fail(TN_REFUSED, "it is not a shared object: ", size_, " bytes are less than an ELF header");
    const auto header = read_struct<Elf64_Ehdr>(0, "the ELF header");
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) fail(TN_REFUSED, "it is not an ELF file");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
      fail(TN_REFUSED, "it is not a 64-bit little-endian ELF file");
    if (header.e_ident[EI_VERSION] != EV_CURRENT) fail(TN_REFUSED, "its ELF version is unknown");
    if (header.e_type != ET_DYN) fail(TN_REFUSED, "it is not a shared object (ELF type ", header.e_type, ")");
    if (header.e_machine != base::kElfMachine)
      fail(TN_REFUSED, "it is built for another machine: for ", base::elf_machine_name(header.e_machine),
           ", and this one is ", base::elf_machine_name(base::kElfMachine));
    if (header.e_phnum == 0) fail(TN_REFUSED, "it has no program headers");
    if (header.e_phnum == PN_XNUM || header.e_phentsize != sizeof(Elf64_Phdr))
      fail(TN_REFUSED, "its program headers are not of the usual form");
    within(header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr), "the program header table");
    return header;
  }

  // Returns whether the bytes at `at` are `text` and the NUL after it.
  bool is_text(uint64_t at, uint64_t end, std::string_view text) {
    if (at > end || text.size() + 1 > end - at) return false;
    std::string found(text.size() + 1, '\0');
    read(at, found.data(), found.size());
    return found.back() == '\0' && text == found.c_str();
  }

  InputFile& file_;
  const uint64_t size_;
  std::vector<char> head_;  // the first bytes of the file, where program headers and notes are
  const Elf64_Ehdr header_;
};

class NoteReader : ElfFile {
 public:
  using ElfFile::ElfFile;

  std::string read() {
    each_segment([this](const Elf64_Phdr& segment) {
      // The loader maps these segments: reading a page past the end of a truncated file would kill the process.
      if (segment.p_type == PT_LOAD) within(segment.p_offset, segment.p_filesz, "a segment");
      if (segment.p_type == PT_NOTE) visit(segment);
    });
    if (note_) return read_text(*note_);
    if (reserved_) fail(TN_REFUSED, "its Tenon note is reserved but empty; 'tenon plugins seal' fills it in");
    fail(TN_REFUSED, "it holds no Tenon note; tenon_add_plugin and 'tenon plugins seal' write one");
  }

 private:
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
    const uint64_t text = base::round_up(name + note.n_namesz, alignment);
    const uint64_t bytes = text + note.n_descsz;
    if (bytes > end - at) fail(TN_REFUSED, "the note at ", at, " runs over the end of its segment");
    const bool ours = note.n_namesz == sizeof TN_NOTE_OWNER && is_text(at + name, at + text, TN_NOTE_OWNER);
    if (ours && note.n_type == TN_NOTE_RESERVED) reserved_ = true;
    if (ours && note.n_type == TN_NOTE_TYPE) {
      if (note_ && note_->begin != at + text) fail(TN_REFUSED, "it holds two Tenon notes");  // segments may overlap
      if (note.n_descsz == 0 || note.n_descsz > TN_NOTE_LIMIT)
        fail(TN_REFUSED, "its Tenon note has ", note.n_descsz, " bytes; 1 to ", TN_NOTE_LIMIT, " are allowed");
      note_ = Range{at + text, at + bytes};
    }
    return std::min(end, checked_add(at, base::round_up(bytes, alignment), "note"));
  }

  std::string read_text(const Range& range) {
    std::string text(range.end - range.begin, '\0');
    ElfFile::read(range.begin, text.data(), text.size());
    while (!text.empty() && text.back() == '\0') text.pop_back();  // some assemblers pad the text itself
    return text;
  }

  uint64_t notes_ = 0;
  std::optional<Range> note_;
  bool reserved_ = false;
};

// Finds sections and needed libraries.
class LinkReader : ElfFile {
 public:
  using ElfFile::ElfFile;

  // Returns whether the file has a section of this name that is not empty. A file may lack its section headers.
  bool has_section(std::string_view name) {
    if (header_.e_shoff == 0 || header_.e_shnum == 0) return false;
    if (header_.e_shentsize != sizeof(Elf64_Shdr) || header_.e_shstrndx >= header_.e_shnum)
      fail(TN_REFUSED, "its section headers are not of the usual form");
    const std::vector<Elf64_Shdr> sections = read_array<Elf64_Shdr>(
        within(header_.e_shoff, header_.e_shnum * sizeof(Elf64_Shdr), "the section header table"));
    const Elf64_Shdr& table = sections[header_.e_shstrndx];
    const Range range = within(table.sh_offset, table.sh_size, "the table of section names");
    if (table.sh_size > kMostNames)
      fail(TN_REFUSED, "its section names take ", table.sh_size, " bytes; at most ", kMostNames, " are allowed");
    std::string names(table.sh_size, '\0');  // in one read: files have dozens of sections
    read(range.begin, names.data(), names.size());
    const std::string wanted = std::string(name) + '\0';
    return std::any_of(sections.begin(), sections.end(), [&](const Elf64_Shdr& section) {
      return section.sh_size > 0 && section.sh_name < names.size() &&
             names.compare(section.sh_name, wanted.size(), wanted) == 0;
    });
  }

  // Returns whether the loader loads this library with the file.
  bool needs(std::string_view library) {
    const std::vector<Elf64_Dyn> entries = dynamic_entries();
    const std::optional<Range> names = texts(entries);
    return names && std::any_of(entries.begin(), entries.end(), [&](const Elf64_Dyn& entry) {
             return entry.d_tag == DT_NEEDED && entry.d_un.d_val < names->end - names->begin &&
                    is_text(names->begin + entry.d_un.d_val, names->end, library);
           });
  }

  Links links() {
    Links result;
    std::optional<std::string> rpath, runpath;  // of several the loader takes the last
    const std::vector<Elf64_Dyn> entries = dynamic_entries();
    const std::optional<Range> names = texts(entries);
    for (const Elf64_Dyn& entry : entries) {
      const auto name = [&] {
        if (!names) fail(TN_REFUSED, "its table of texts lies outside of its segments");
        return read_text(*names, entry.d_un.d_val);
      };
      if (entry.d_tag == DT_SONAME) result.soname = name();
      if (entry.d_tag == DT_NEEDED || entry.d_tag == DT_FILTER || entry.d_tag == DT_AUXILIARY)
        result.needed.push_back(name());
      if (entry.d_tag == DT_RPATH) rpath = name();
      if (entry.d_tag == DT_RUNPATH) runpath = name();
    }
    result.inherited = rpath && !runpath;
    if (rpath || runpath) result.search = folders_of(runpath ? *runpath : *rpath);
    return result;
  }

 private:
  static constexpr uint64_t kMostNames = 1 << 20;  // bytes
  // Returns the place of the texts that the dynamic segment names.
  std::optional<Range> texts(const std::vector<Elf64_Dyn>& entries) {
    // Of two entries the loader takes one and another reader the other.
    const auto value = [&](int64_t tag) {
      const auto is_tag = [&](const Elf64_Dyn& entry) { return entry.d_tag == tag; };
      const auto found = std::find_if(entries.begin(), entries.end(), is_tag);
      if (found == entries.end()) return uint64_t{0};
      if (std::any_of(found + 1, entries.end(), is_tag)) fail(TN_REFUSED, "it names two tables of texts");
      return uint64_t{found->d_un.d_val};
    };
    return mapped(value(DT_STRTAB), value(DT_STRSZ));
  }

  std::string read_text(const Range& names, uint64_t offset) {
    if (offset >= names.end - names.begin) fail(TN_REFUSED, "a text at ", offset, " lies outside of its table");
    std::string text(std::min(kLongestText, names.end - names.begin - offset), '\0');
    read(names.begin + offset, text.data(), text.size());
    const size_t end = text.find('\0');
    if (end == std::string::npos)
      fail(TN_REFUSED, "the text at ", offset, " of its table does not end within ", text.size(), " bytes");
    text.resize(end);
    return text;
  }

  static std::vector<std::string> folders_of(const std::string& list) {
    std::vector<std::string> result;
    if (list.empty()) return result;
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(':', begin), list.size());
      result.push_back(list.substr(begin, end - begin));
      begin = end + 1;
    }
    return result;
  }

  template <typename Struct>
  std::vector<Struct> read_array(const Range& range) {
    std::vector<Struct> result((range.end - range.begin) / sizeof(Struct));
    read(range.begin, result.data(), result.size() * sizeof(Struct));
    return result;
  }

  // Returns the entries of the dynamic segment before its end mark; none without such a segment.
  std::vector<Elf64_Dyn> dynamic_entries() {
    std::vector<Elf64_Dyn> result;
    each_segment([&](const Elf64_Phdr& segment) {
      if (segment.p_type != PT_DYNAMIC) return;
      const Range range = within(segment.p_offset, segment.p_filesz, "the dynamic segment");
      if (segment.p_filesz > kMostDynamicBytes)
        fail(TN_REFUSED, "its dynamic segment has ", segment.p_filesz, " bytes; at most ", kMostDynamicBytes,
             " are allowed");
      result = read_array<Elf64_Dyn>(range);
    });
    const auto end =
        std::find_if(result.begin(), result.end(), [](const Elf64_Dyn& entry) { return entry.d_tag == DT_NULL; });
    result.erase(end, result.end());
    return result;
  }

  // Returns the place in the file of what the loader maps to `address`, if it is within one segment.
  std::optional<Range> mapped(uint64_t address, uint64_t bytes) {
    std::optional<Range> result;
    each_segment([&](const Elf64_Phdr& segment) {
      if (segment.p_type != PT_LOAD || address < segment.p_vaddr) return;
      const uint64_t offset = address - segment.p_vaddr;
      if (offset > segment.p_filesz || bytes > segment.p_filesz - offset) return;
      const Range whole = within(segment.p_offset, segment.p_filesz, "a segment");
      result = Range{whole.begin + offset, whole.begin + offset + bytes};
    });
    return result;
  }
};

}  // namespace

std::string read_note(InputFile& file) { return NoteReader(file).read(); }

Links read_links(InputFile& file) { return LinkReader(file).links(); }

void check_unwinder(InputFile& file) {
  LinkReader reader(file);
  if (!reader.has_section(".gcc_except_table") || reader.needs("libgcc_s.so.1")) return;
  fail(TN_REFUSED, "it has exception tables (section .gcc_except_table) but does not need libgcc_s.so.1, so that an ",
       "exception in it could not be caught by the host and would end the process; link it with -shared-libgcc");
}

}  // namespace tenon::host
