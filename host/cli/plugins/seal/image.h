// The bytes of a plugin's file: its reserved note, and the libraries that it needs. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::cli {

// A 64-bit shared object of this machine's byte order, in memory. Every offset and size in it is checked before use.
// The functions throw Failure(kBadData) for a damaged file, with a message that does not name it.
class Image {
 public:
  explicit Image(std::string bytes);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }

  // The processor that the file is for, as e_machine of ELF.
  [[nodiscard]] uint16_t machine() const;
  // The manifest that the note of a plugin holds, "" if it is not sealed. Throws as note_room() does.
  [[nodiscard]] std::string manifest() const;
  // Bytes that the note of the plugin has for its manifest. Throws Failure(kRefused) if the file has no such note.
  [[nodiscard]] uint64_t note_room() const;
  // Writes the manifest into the note, followed by zeros; a manifest that was there is replaced. Throws
  // Failure(kRefused) if the room is too small.
  void seal(const std::string& manifest);

  // The names of the libraries that the loader loads with the file.
  [[nodiscard]] std::vector<std::string> needed() const;
  // Takes libraries out of needed(), and makes every undefined symbol weak, so that the file can be loaded without
  // them; a function of theirs must not be called.
  void leave_out(const std::vector<std::string>& libraries);

 private:
  struct Note {
    uint64_t at;    // of its header
    uint64_t text;  // of its description
    uint64_t room;
  };
  struct Segment {
    uint32_t type;
    uint64_t offset, address, bytes, alignment;
  };
  struct Entry {  // of the dynamic segment
    uint64_t at;
    int64_t tag;
    uint64_t value;
  };

  template <typename Struct>
  [[nodiscard]] Struct get(uint64_t at) const;
  template <typename Struct>
  void put(uint64_t at, const Struct& value);
  void within(uint64_t at, uint64_t bytes) const;
  [[nodiscard]] std::string text_at(uint64_t at) const;
  void read_segments();
  void read_notes(const Segment& segment);
  void read_dynamic(const Segment& segment);
  [[nodiscard]] uint64_t place_of(uint64_t address) const;
  [[nodiscard]] const Entry* entry(int64_t tag) const;
  [[nodiscard]] std::string name_of(uint64_t name) const;
  [[nodiscard]] uint64_t symbols_end() const;
  void weaken_symbols();
  void leave_out_versions(const std::vector<std::string>& libraries);
  void ignore(Entry& entry);

  std::string bytes_;
  std::vector<Segment> segments_;
  std::vector<Note> notes_;
  std::vector<Entry> dynamic_;
};

}  // namespace tenon::cli
