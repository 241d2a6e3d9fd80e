// SPDX-License-Identifier: Apache-2.0
#include "cluster/image.h"

#include <vector>

#include "base/text.h"
#include "cluster/members.h"

namespace tenon::cluster {

namespace {

constexpr size_t kMostNamed = 5;
constexpr size_t kShown = 8;  // of a digest

}  // namespace

std::string differences(const json& there, const json& here) {
  const json &theirs = member_of(there, "plugins"), &ours = member_of(here, "plugins");
  if (!theirs.is_object() || theirs.empty() || !ours.is_object()) return "";
  std::vector<std::string> differing;
  for (const auto& [id, digest] : ours.items()) {
    const std::string other = text_of(theirs, id.c_str()), own = text_of(ours, id.c_str());
    if (other == own) continue;
    differing.push_back(
        id + (other.empty() ? " is not in the image" : " is " + other.substr(0, kShown) + " in the image, ") +
        (other.empty() ? "" : own.substr(0, kShown) + " here"));
  }
  std::string text;
  for (size_t i = 0; i < differing.size() && i < kMostNamed; ++i) base::append(text, differing[i], "; ");
  if (differing.size() > kMostNamed) text += "; and " + std::to_string(differing.size() - kMostNamed) + " more";
  return text;
}

}  // namespace tenon::cluster
