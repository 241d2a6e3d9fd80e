// SPDX-License-Identifier: Apache-2.0
#include "host/cli/plugins/seal/image.h"

#include <elf.h>
#include <tenon/plugin.h>

#include <algorithm>
#include <cstring>

#include "base/alignment.h"
#include "host/cli/cli.h"

namespace tenon::cli {

namespace {

// A tag of the range for systems that no system uses: the loader ignores the entry.
constexpr int64_t kIgnored = DT_LOOS + 0xff2;

[[noreturn]] void damaged(const std::string& what) { throw Failure(kBadData, "it is damaged: " + what); }

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void Image::within(uint64_t at, uint64_t bytes) const {
  if (at > bytes_.size() || bytes > bytes_.size() - at)
    damaged(std::to_string(bytes) + " bytes at " + std::to_string(at) + " lie beyond its end at " +
            std::to_string(bytes_.size()));
}

template <typename Struct>
Struct Image::get(uint64_t at) const {
  within(at, sizeof(Struct));
  Struct result;
  std::memcpy(&result, bytes_.data() + at, sizeof result);
  return result;
}

template <typename Struct>
void Image::put(uint64_t at, const Struct& value) {
  within(at, sizeof value);
  std::memcpy(bytes_.data() + at, &value, sizeof value);
}

std::string Image::text_at(uint64_t at) const {
  within(at, 1);
  const size_t end = bytes_.find('\0', at);
  if (end == std::string::npos) damaged("a name does not end");
  return bytes_.substr(at, end - at);
}

Image::Image(std::string bytes) : bytes_(std::move(bytes)) {
  if (bytes_.size() < sizeof(Elf64_Ehdr) || bytes_.compare(0, SELFMAG, ELFMAG) != 0)
    throw Failure(kBadData, "it is not an ELF file");
  const auto header = get<Elf64_Ehdr>(0);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_DYN)
    throw Failure(kBadData, "it is not a 64-bit little-endian shared object");
  if (header.e_phentsize != sizeof(Elf64_Phdr)) damaged("its program headers are not of the usual form");
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    within(header.e_phoff, i * sizeof(Elf64_Phdr));
    const auto found = get<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
    if (found.p_type != PT_LOAD && found.p_type != PT_NOTE && found.p_type != PT_DYNAMIC) continue;
    within(found.p_offset, found.p_filesz);
    segments_.push_back({found.p_type, found.p_offset, found.p_vaddr, found.p_filesz, found.p_align});
  }
  for (const Segment& segment : segments_) {
    if (segment.type == PT_NOTE) read_notes(segment);
    if (segment.type == PT_DYNAMIC) read_dynamic(segment);
  }
}

void Image::read_notes(const Segment& segment) {
  const uint64_t alignment = segment.alignment == 8 ? 8 : 4;
  const std::string owner(TN_NOTE_OWNER, sizeof TN_NOTE_OWNER);
  const uint64_t end = segment.offset + segment.bytes;
  for (uint64_t at = segment.offset; at < end && end - at >= sizeof(Elf64_Nhdr);) {
    const auto note = get<Elf64_Nhdr>(at);
    const uint64_t text = at + base::round_up(sizeof note + note.n_namesz, alignment);
    if (text > end || note.n_descsz > end - text) damaged("a note runs over the end of its segment");
    const bool ours = note.n_type == TN_NOTE_TYPE || note.n_type == TN_NOTE_RESERVED;
    if (ours && bytes_.compare(at + sizeof note, note.n_namesz, owner) == 0 &&
        std::none_of(notes_.begin(), notes_.end(), [&](const Note& other) { return other.at == at; }))
      notes_.push_back({at, text, note.n_descsz});
    at = text + base::round_up(note.n_descsz, alignment);
  }
}

uint64_t Image::note_room() const {
  if (notes_.empty())
    throw Failure(kRefused,
                  "it reserves no note: put TN_RESERVE_NOTE(4096); of tenon/plugin.h into one of its sources");
  if (notes_.size() > 1)
    throw Failure(kRefused, "it holds " + std::to_string(notes_.size()) + " Tenon notes, expected 1");
  if (notes_[0].room > TN_NOTE_LIMIT)
    throw Failure(kRefused, "its note reserves " + std::to_string(notes_[0].room) + " bytes; at most " +
                                std::to_string(TN_NOTE_LIMIT) + " are allowed");
  return notes_[0].room;
}

uint16_t Image::machine() const { return get<Elf64_Ehdr>(0).e_machine; }

std::string Image::manifest() const {
  const uint64_t room = note_room();
  if (get<Elf64_Nhdr>(notes_[0].at).n_type != TN_NOTE_TYPE) return "";
  const std::string text = bytes_.substr(notes_[0].text, room);
  return text.substr(0, text.find_last_not_of('\0') + 1);
}

void Image::seal(const std::string& manifest) {
  const uint64_t room = note_room();
  if (manifest.size() > room)
    throw Failure(kRefused, "its note reserves " + std::to_string(room) + " bytes, but its manifest needs " +
                                std::to_string(manifest.size()) +
                                ": reserve more by TN_RESERVE_NOTE, in Rust by the variable TENON_NOTE_BYTES of rustc");
  auto header = get<Elf64_Nhdr>(notes_[0].at);
  header.n_type = TN_NOTE_TYPE;
  put(notes_[0].at, header);
  std::fill_n(bytes_.begin() + static_cast<std::ptrdiff_t>(notes_[0].text), room, '\0');
  bytes_.replace(notes_[0].text, manifest.size(), manifest);
}

void Image::read_dynamic(const Segment& segment) {
  for (uint64_t at = segment.offset; at + sizeof(Elf64_Dyn) <= segment.offset + segment.bytes;
       at += sizeof(Elf64_Dyn)) {
    const auto found = get<Elf64_Dyn>(at);
    if (found.d_tag == DT_NULL) break;
    dynamic_.push_back({at, found.d_tag, found.d_un.d_val});
  }
}

// Returns the place in the file of what the loader maps to `address`.
uint64_t Image::place_of(uint64_t address) const {
  for (const Segment& segment : segments_)
    if (segment.type == PT_LOAD && address >= segment.address && address - segment.address < segment.bytes)
      return segment.offset + (address - segment.address);
  damaged("nothing is mapped to address " + std::to_string(address));
}

const Image::Entry* Image::entry(int64_t tag) const {
  const auto found =
      std::find_if(dynamic_.begin(), dynamic_.end(), [&](const Entry& entry) { return entry.tag == tag; });
  return found == dynamic_.end() ? nullptr : &*found;
}

// Returns a name in the table of strings of the dynamic segment.
std::string Image::name_of(uint64_t name) const {
  const Entry* const table = entry(DT_STRTAB);
  if (table == nullptr || name > bytes_.size()) damaged("a name lies outside of its table");
  return text_at(place_of(table->value) + name);
}

std::vector<std::string> Image::needed() const {
  std::vector<std::string> result;
  for (const Entry& entry : dynamic_)
    if (entry.tag == DT_NEEDED) result.push_back(name_of(entry.value));
  return result;
}

void Image::ignore(Entry& entry) {
  entry.tag = kIgnored;
  put(entry.at, entry.tag);
}

void Image::leave_out(const std::vector<std::string>& libraries) {
  for (Entry& entry : dynamic_)
    if (entry.tag == DT_NEEDED && holds(libraries, name_of(entry.value))) ignore(entry);
  weaken_symbols();
  leave_out_versions(libraries);
}

// Returns a number above that of every undefined symbol.
uint64_t Image::symbols_end() const {
  // The second word of DT_HASH is the number of symbols; that of DT_GNU_HASH the number of the first symbol in the
  // table, which defined symbols alone are.
  for (const int64_t tag : {DT_HASH, DT_GNU_HASH})
    if (const Entry* const table = entry(tag)) return get<uint32_t>(place_of(table->value) + sizeof(uint32_t));
  return 0;
}

// The loader gives a weak symbol that no library has the address 0.
void Image::weaken_symbols() {
  const Entry* const table = entry(DT_SYMTAB);
  if (table == nullptr) return;
  const uint64_t begin = place_of(table->value), end = symbols_end();
  for (uint64_t i = 1; i < end; ++i) {
    const uint64_t at = begin + i * sizeof(Elf64_Sym);
    auto symbol = get<Elf64_Sym>(at);
    if (symbol.st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL) continue;
    symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(STB_WEAK, ELF64_ST_TYPE(symbol.st_info)));
    put(at, symbol);
  }
}

// The loader wants the library of every needed version to be loaded. So versions of a library that is left out become
// optional versions of another one; without another one nothing is left that needs a version.
void Image::leave_out_versions(const std::vector<std::string>& libraries) {
  const Entry* const table = entry(DT_VERNEED);
  const Entry* const count = entry(DT_VERNEEDNUM);
  if (table == nullptr || count == nullptr) return;
  const Entry* const other = entry(DT_NEEDED);
  if (other == nullptr) {
    for (Entry& entry : dynamic_)
      if (entry.tag == DT_VERNEED || entry.tag == DT_VERNEEDNUM || entry.tag == DT_VERSYM) ignore(entry);
    return;
  }
  uint64_t at = place_of(table->value);
  for (uint64_t i = 0; i < count->value; ++i) {
    auto need = get<Elf64_Verneed>(at);
    if (holds(libraries, name_of(need.vn_file))) {
      need.vn_file = static_cast<Elf64_Word>(other->value);
      put(at, need);
      uint64_t version_at = at + need.vn_aux;
      for (uint32_t k = 0; k < need.vn_cnt; ++k) {
        auto version = get<Elf64_Vernaux>(version_at);
        version.vna_flags |= VER_FLG_WEAK;
        put(version_at, version);
        version_at += version.vna_next;
      }
    }
    if (need.vn_next == 0) break;
    at += need.vn_next;
  }
}

}  // namespace tenon::cli
