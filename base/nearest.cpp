// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <utility>

#include "base/text.h"

namespace tenon::base {

namespace {

// Keys of jobs as other frameworks call them.
constexpr std::pair<const char*, const char*> kElsewhere[] = {{"epochs", "passes"}, {"batch_size", "batch"}};

// Returns the edit distance of a and b in insertions, deletions, replacements and swaps of neighbours, ignoring case
// (optimal string alignment). May return limit + 1 for any distance above `limit`.
size_t edits(const std::string& a, const std::string& b, size_t limit) {
  if ((a.size() > b.size() ? a.size() - b.size() : b.size() - a.size()) > limit) return limit + 1;
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);  // rows i - 2, i - 1, i
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool equal = lower(a[i - 1]) == lower(b[j - 1]);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (equal ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

// Of two letters one is half of the name, so that only their order may be wrong.
bool is_swapped(const std::string& name, const std::string& candidate) {
  return std::is_permutation(name.begin(), name.end(), candidate.begin(), candidate.end());
}

}  // namespace

std::string nearest(const std::string& name, const std::vector<std::string>& known) {
  for (const auto& [elsewhere, here] : kElsewhere)
    if (name == elsewhere && std::find(known.begin(), known.end(), here) != known.end()) return here;
  constexpr size_t kLongest = 64;  // edits() is quadratic
  std::string best;
  if (name.size() > kLongest) return best;
  size_t fewest = (name.size() + 2) / 3 + 1;  // a third of the letters may be wrong
  for (const std::string& candidate : known) {
    if (candidate.size() > kLongest || (name.size() < 3 && !is_swapped(name, candidate))) continue;
    const size_t count = edits(name, candidate, fewest);
    if (count < fewest && count < std::max(name.size(), candidate.size())) {
      fewest = count;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  if (!near.empty()) return "; did you mean \"" + near + "\"?";
  return known.empty() ? "" : "; known: " + listed(known);
}

}  // namespace tenon::base
