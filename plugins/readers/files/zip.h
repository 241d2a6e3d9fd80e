// The members of a ZIP archive. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "inflation.h"

namespace tenon::files {

// A ZIP archive, whose members are visited and read in its order. Calls throw tn::Failure.
class Zip {
 public:
  // most_inflation: of all members together.
  Zip(std::string path, uint64_t most_inflation, const volatile int32_t* cancel);
  ~Zip();
  Zip(Zip&&) = delete;
  Zip& operator=(Zip&&) = delete;

  // Moves to the next member, to the first one at first. False at the end, behind which the first one follows again.
  bool next();
  // Of the member, in any encoding. Folders end with "/".
  [[nodiscard]] const std::string& name() const { return name_; }
  // The inflated size that the archive states for the member.
  [[nodiscard]] uint64_t stated_bytes() const { return bytes_; }
  // Begins to read the member. place: names it in messages.
  void open(std::string place);
  // Reads at most `bytes` bytes of it and returns their number; 0 only at its end, after its checksum was verified.
  uint64_t read(uint8_t* to, uint64_t bytes);

 private:
  struct Close {
    void operator()(void* file) const;
  };

  std::string path_, name_, place_;
  const volatile int32_t* cancel_;
  Inflation inflation_;
  uint64_t bytes_ = 0, read_ = 0;  // of the member
  uint32_t flags_ = 0, method_ = 0;
  bool first_ = true, open_ = false;
  std::unique_ptr<void, Close> handle_;
};

// A file, or a member of an archive.
struct Place {
  std::string file, member;  // member "": none is named
};

// Takes "data.zip/folder/a.csv" for the member "folder/a.csv" of the file "data.zip", if that is a file.
Place place_of(const std::string& path);

// Moves `zip` to the member, or to the only one if `member` is "". Throws TN_NOT_FOUND if there is none, TN_INVALID if
// there are several.
void find_member(Zip& zip, const std::string& path, const std::string& member);

}  // namespace tenon::files
