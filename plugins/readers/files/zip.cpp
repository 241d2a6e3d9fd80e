// Reads ZIP archives. SPDX-License-Identifier: Apache-2.0
#include "zip.h"

#include <minizip/unzip.h>

#include <algorithm>
#include <filesystem>
#include <tenon/base.hpp>
#include <utility>
#include <vector>

#include "file.h"

namespace tenon::files {

namespace {

constexpr uint64_t kSliceBytes = uint64_t{1} << 20;  // read between two checks of the cancel token
constexpr const char* kDirectory = "the archive's directory is damaged";

// Whether a member is a folder, or what macOS adds to files.
bool is_beside(const std::string& name) {
  return name.empty() || name.back() == '/' || name.compare(0, 9, "__MACOSX/") == 0;
}

}  // namespace

void Zip::Close::operator()(void* file) const { unzClose(file); }

Zip::Zip(std::string path, uint64_t most_inflation, const volatile int32_t* cancel)
    : path_(std::move(path)), cancel_(cancel) {
  const File file(path_);  // throws with the reason if it cannot be opened
  inflation_ = Inflation(file.bytes(), most_inflation);
  handle_.reset(unzOpen64(path_.c_str()));
  if (handle_ == nullptr) throw tn::Failure(TN_BAD_DATA, path_, "not a ZIP archive, or its end is missing");
}

Zip::~Zip() = default;

bool Zip::next() {
  check_cancel(cancel_, path_);
  open_ = false;  // minizip closes a member that was not read to its end
  unz_global_info64 all = {};
  if (unzGetGlobalInfo64(handle_.get(), &all) != UNZ_OK) throw tn::Failure(TN_BAD_DATA, path_, kDirectory);
  if (all.number_entry == 0) return false;
  const int moved = std::exchange(first_, false) ? unzGoToFirstFile(handle_.get()) : unzGoToNextFile(handle_.get());
  first_ = moved == UNZ_END_OF_LIST_OF_FILE;
  if (first_) return false;
  unz_file_info64 info = {};
  char name[1024] = {};
  if (moved != UNZ_OK ||
      unzGetCurrentFileInfo64(handle_.get(), &info, name, sizeof name - 1, nullptr, 0, nullptr, 0) != UNZ_OK)
    throw tn::Failure(TN_BAD_DATA, path_, kDirectory);
  name_ = name;
  if (info.size_filename >= sizeof name - 1 || name_.size() != info.size_filename)
    throw tn::Failure(TN_BAD_DATA, path_, "a member's name is too long or damaged");
  bytes_ = info.uncompressed_size;
  flags_ = static_cast<uint32_t>(info.flag);
  method_ = static_cast<uint32_t>(info.compression_method);
  return true;
}

void Zip::open(std::string place) {
  place_ = std::move(place);
  read_ = 0;
  const bool encrypted = (flags_ & 1) != 0;
  if (encrypted || (method_ != 0 && method_ != 8))
    throw tn::Failure(TN_UNSUPPORTED, place_, encrypted ? "is encrypted" : "is neither stored nor deflated");
  if (unzOpenCurrentFile(handle_.get()) != UNZ_OK)
    throw tn::Failure(TN_BAD_DATA, place_, "its entry in the archive is damaged");
  open_ = true;
}

uint64_t Zip::read(uint8_t* to, uint64_t bytes) {
  check_cancel(cancel_, place_);
  if (!open_) return 0;
  const uint64_t most = std::min({bytes, kSliceBytes, bytes_ - read_});
  const int got = most == 0 ? 0 : unzReadCurrentFile(handle_.get(), to, static_cast<unsigned>(most));
  if (got < 0 || (got == 0 && read_ < bytes_ && bytes != 0))
    throw tn::Failure(TN_BAD_DATA, place_, "the compressed data is damaged or ends in the middle");
  read_ += static_cast<uint64_t>(got);
  inflation_.add(static_cast<uint64_t>(got), place_);
  if (read_ == bytes_ && std::exchange(open_, false) && unzCloseCurrentFile(handle_.get()) != UNZ_OK)
    throw tn::Failure(TN_BAD_DATA, place_, "its checksum is wrong");
  return static_cast<uint64_t>(got);
}

Place place_of(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::exists(path, unknown)) return {path, ""};
  for (size_t at = path.rfind('/'); at != std::string::npos && at != 0; at = path.rfind('/', at - 1))
    if (const std::string file = path.substr(0, at); std::filesystem::is_regular_file(file, unknown))
      return {file, path.substr(at + 1)};
  return {path, ""};
}

void find_member(Zip& zip, const std::string& path, const std::string& member) {
  std::vector<std::string> names;
  while (zip.next()) {
    if (!member.empty() && zip.name() == member)
      return zip.open(path + ", member " + files::quoted(member, member.size()));
    if (!is_beside(zip.name())) names.push_back(zip.name());
  }
  if (!member.empty())
    throw tn::Failure(TN_NOT_FOUND, path, "has no member " + files::quoted(member) + "; known: " + listed(names));
  if (names.empty()) throw tn::Failure(TN_NOT_FOUND, path, "the archive has no members");
  if (std::any_of(names.begin(), names.end(), [](const std::string& name) { return name.compare(0, 3, "xl/") == 0; }))
    throw tn::Failure(TN_BAD_DATA, path, "is the workbook of a spreadsheet program: save the sheet as CSV");
  if (names.size() > 1)
    throw tn::Failure(
        TN_INVALID, path,
        "has " + std::to_string(names.size()) + " members: " + listed(names) + "; name one, as in ARCHIVE/" + names[0]);
  find_member(zip, path, names[0]);
}

}  // namespace tenon::files
