// SPDX-License-Identifier: Apache-2.0
#include "host/cli/suggest.h"

#include <algorithm>
#include <utility>

namespace tenon::cli {

namespace {

// Keys of jobs as other frameworks call them.
constexpr std::pair<const char*, const char*> kElsewhere[] = {{"epochs", "passes"}, {"batch_size", "batch"}};

// Returns the number of insertions, deletions and changes that turn a into b (Levenshtein). Two swapped neighbours
// count once.
size_t edits(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) table[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) table[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      table[i][j] = std::min({table[i - 1][j] + 1, table[i][j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
    }
  }
  return table[a.size()][b.size()];
}

// Of two letters one is half of the name, so that only their order may be wrong.
bool is_swapped(const std::string& name, const std::string& candidate) {
  return std::is_permutation(name.begin(), name.end(), candidate.begin(), candidate.end());
}

}  // namespace

std::string nearest(const std::string& name, const std::vector<std::string>& known) {
  for (const auto& [elsewhere, here] : kElsewhere)
    if (name == elsewhere && std::find(known.begin(), known.end(), here) != known.end()) return here;
  constexpr size_t kLongest = 64;  // edits() is quadratic, and longer names are not misspelt
  std::string best;
  if (name.size() > kLongest) return best;
  size_t fewest = (name.size() + 2) / 3 + 1;  // a third of the letters may be wrong
  for (const std::string& candidate : known) {
    if (candidate.size() > kLongest || (name.size() < 3 && !is_swapped(name, candidate))) continue;
    const size_t count = edits(name, candidate);
    if (count < fewest && count < std::max(name.size(), candidate.size())) {
      fewest = count;
      best = candidate;
    }
  }
  return best;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 20;
  std::string result;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) result += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kMost ? result + " and " + std::to_string(names.size() - kMost) + " more" : result;
}

std::string suggestion(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  if (!near.empty()) return "; did you mean \"" + near + "\"?";
  return known.empty() ? "" : "; known: " + listed(known);
}

}  // namespace tenon::cli
