// Reads ZIP archives. SPDX-License-Identifier: Apache-2.0
#include "archive.h"

#include <minizip/unzip.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <tenon/base.hpp>

#include "inflation.h"
#include "number.h"

namespace tenon::npy {

namespace {

constexpr uint64_t kFirstBytes = uint64_t{1} << 16;  // most bytes of a member's first allocation
constexpr unsigned kSliceBytes = 1u << 20;           // read between two checks of the cancel token
constexpr size_t kMostMembers = 4096;
constexpr std::string_view kSuffix = ".npy";

// An open ZIP archive.
class Archive {
 public:
  Archive(const std::string& path, const files::SourceLimits& limits, const tn_memory* memory,
          const volatile int32_t* cancel)
      : path_(path), most_(limits.most_inflated), memory_(memory), cancel_(cancel) {
    const files::File file(path);  // throws with the reason if it cannot be opened
    inflation_ = files::Inflation(file.bytes(), limits.most_inflation);
    handle_.reset(unzOpen64(path.c_str()));
    if (handle_ == nullptr) throw tn::Failure(TN_BAD_DATA, path, "not a ZIP archive, or its end is missing");
  }

  std::vector<Member> read(const std::vector<std::string>& names,
                           const std::function<bool(const std::string& name, size_t number)>& wanted) {
    std::vector<Member> members;
    int result = unzGoToFirstFile(handle_.get());
    for (; result == UNZ_OK; result = unzGoToNextFile(handle_.get())) {
      files::check_cancel(cancel_, path_);
      unz_file_info64 info = {};
      char buffer[1024] = {};
      if (unzGetCurrentFileInfo64(handle_.get(), &info, buffer, sizeof buffer - 1, nullptr, 0, nullptr, 0) != UNZ_OK)
        throw tn::Failure(TN_BAD_DATA, path_, "the archive's directory is damaged");
      std::string name = buffer;
      if (info.size_filename >= sizeof buffer - 1 || name.size() != info.size_filename)
        throw tn::Failure(TN_BAD_DATA, path_, "a member's name is too long or damaged");
      if (name.size() <= kSuffix.size() || name.substr(name.size() - kSuffix.size()) != kSuffix) continue;
      name.resize(name.size() - kSuffix.size());
      if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) continue;
      if (const char* const fault = files::name_fault(name))
        throw tn::Failure(TN_BAD_DATA, path_, "the name of the member " + files::quoted(name) + " " + fault);
      if (members.size() == kMostMembers) throw tn::Failure(TN_UNSUPPORTED, path_, "has more than 4096 members");
      const bool read = wanted(name, members.size());
      members.push_back(read ? member(name, info) : Member{name, {}, 0});
    }
    if (result != UNZ_END_OF_LIST_OF_FILE) throw tn::Failure(TN_BAD_DATA, path_, "the archive's directory is damaged");
    return names.empty() ? std::move(members) : ordered(std::move(members), names);
  }

 private:
  struct Close {
    void operator()(unzFile file) const { unzClose(file); }
  };

  std::vector<Member> ordered(std::vector<Member> members, const std::vector<std::string>& names) const {
    std::vector<Member> result;
    for (const std::string& name : names) {
      const auto at =
          std::find_if(members.begin(), members.end(), [&](const Member& member) { return member.name == name; });
      if (at == members.end()) throw tn::Failure(TN_NOT_FOUND, path_, "has no member " + files::quoted(name));
      result.push_back(std::move(*at));
      members.erase(at);
    }
    return result;
  }

  Member member(const std::string& name, const unz_file_info64& info) {
    const std::string place = path_ + ", member " + name;
    const bool encrypted = (info.flag & 1) != 0;
    if (encrypted || (info.compression_method != 0 && info.compression_method != 8))
      throw tn::Failure(TN_UNSUPPORTED, place, encrypted ? "is encrypted" : "is neither stored nor deflated");
    if (unzOpenCurrentFile(handle_.get()) != UNZ_OK)
      throw tn::Failure(TN_BAD_DATA, place, "its entry in the archive is damaged");
    Member result{name, {}, 0};
    uint64_t room = std::min<uint64_t>(info.uncompressed_size, kFirstBytes);
    result.content = files::Block(memory_, room + files::kPadding);
    while (result.bytes < info.uncompressed_size) {
      files::check_cancel(cancel_, place);
      if (result.bytes == room) {
        room = std::min(2 * room, static_cast<uint64_t>(info.uncompressed_size));
        files::Block larger(memory_, room + files::kPadding);
        std::memcpy(larger.data(), result.content.data(), result.bytes);
        result.content.swap(larger);
      }
      const auto wanted = static_cast<unsigned>(std::min<uint64_t>(room - result.bytes, kSliceBytes));
      const int got = unzReadCurrentFile(handle_.get(), result.content.data() + result.bytes, wanted);
      if (got <= 0) throw tn::Failure(TN_BAD_DATA, place, "the compressed data is damaged or ends in the middle");
      result.bytes += static_cast<uint64_t>(got);
      used_ += static_cast<uint64_t>(got);
      inflation_.add(static_cast<uint64_t>(got), place);
      if (used_ > most_)
        throw tn::Failure(TN_BAD_DATA, place, "inflates to more than " + std::to_string(most_) + " bytes");
    }
    if (unzCloseCurrentFile(handle_.get()) != UNZ_OK) throw tn::Failure(TN_BAD_DATA, place, "its checksum is wrong");
    return result;
  }

  const std::string& path_;
  uint64_t most_, used_ = 0;
  files::Inflation inflation_;  // of all members together
  const tn_memory* memory_;
  const volatile int32_t* cancel_;
  std::unique_ptr<void, Close> handle_;
};

}  // namespace

std::vector<Member> read_archive(const std::string& path, const std::vector<std::string>& names,
                                 const std::function<bool(const std::string& name, size_t number)>& wanted,
                                 const files::SourceLimits& limits, const tn_memory* memory,
                                 const volatile int32_t* cancel) {
  return Archive(path, limits, memory, cancel).read(names, wanted);
}

}  // namespace tenon::npy
