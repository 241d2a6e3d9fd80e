// Reads the arrays of ZIP archives. SPDX-License-Identifier: Apache-2.0
#include "archive.h"

#include <algorithm>
#include <string_view>
#include <tenon/base.hpp>
#include <utility>

#include "zip.h"

namespace tenon::npy {

namespace {

constexpr size_t kMostMembers = 4096;
constexpr std::string_view kSuffix = ".npy";

// The members in the order of `names`, which has each once.
std::vector<Member> ordered(std::vector<Member> members, const std::vector<std::string>& names,
                            const std::string& path) {
  std::vector<Member> result;
  for (const std::string& name : names) {
    const auto at =
        std::find_if(members.begin(), members.end(), [&](const Member& member) { return member.name == name; });
    if (at == members.end()) throw tn::Failure(TN_NOT_FOUND, path, "has no member " + files::quoted(name));
    result.push_back(std::move(*at));
    members.erase(at);
  }
  return result;
}

}  // namespace

std::vector<Member> read_archive(const std::string& path, const std::vector<std::string>& names,
                                 const std::function<bool(const std::string& name, size_t number)>& wanted,
                                 const files::SourceLimits& limits, const tn_memory* memory,
                                 const volatile int32_t* cancel) {
  files::Zip zip(path, limits.most_inflation, cancel);
  std::vector<Member> members;
  uint64_t inflated = 0;  // bytes of all members
  while (zip.next()) {
    std::string name = zip.name();
    if (name.size() <= kSuffix.size() || name.substr(name.size() - kSuffix.size()) != kSuffix) continue;
    name.resize(name.size() - kSuffix.size());
    if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) continue;
    if (const char* const fault = files::name_fault(name))
      throw tn::Failure(TN_BAD_DATA, path, "the name of the member " + files::quoted(name) + " " + fault);
    if (members.size() == kMostMembers) throw tn::Failure(TN_UNSUPPORTED, path, "has more than 4096 members");
    Member& member = members.emplace_back();
    member.name = name;
    if (!wanted(name, members.size() - 1)) continue;
    const std::string place = path + ", member " + name;
    zip.open(place);
    const auto read = [&](uint8_t* to, uint64_t bytes) {
      const uint64_t count = zip.read(to, bytes);
      inflated += count;
      if (inflated > limits.most_inflated)
        throw tn::Failure(TN_BAD_DATA, place,
                          "inflates to more than " + std::to_string(limits.most_inflated) + " bytes");
      return count;
    };
    member.content = files::read_all(read, 0, zip.stated_bytes(), place, memory, &member.bytes);
  }
  return names.empty() ? std::move(members) : ordered(std::move(members), names, path);
}

}  // namespace tenon::npy
