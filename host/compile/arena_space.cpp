// SPDX-License-Identifier: Apache-2.0
#include "host/compile/arena_space.h"

#include <algorithm>
#include <bit>

#include "core/checked.h"

namespace tenon::host {

void OffsetRanges::add(uint64_t begin, uint64_t end) {
  if (begin == end) return;
  const auto first = std::lower_bound(ranges_.begin(), ranges_.end(), begin,
                                      [](const auto& range, uint64_t at) { return range.second < at; });
  auto after = first;
  for (; after != ranges_.end() && after->first <= end; ++after) {
    begin = std::min(begin, after->first);
    end = std::max(end, after->second);
  }
  if (first == after) {
    ranges_.insert(first, {begin, end});
    return;
  }
  *first = {begin, end};
  ranges_.erase(first + 1, after);
}

uint64_t OffsetRanges::behind(uint64_t offset, uint64_t bytes) const {
  const auto found = std::upper_bound(ranges_.begin(), ranges_.end(), offset,
                                      [](uint64_t at, const auto& range) { return at < range.second; });
  if (found == ranges_.end() || (found->first >= offset && found->first - offset >= bytes)) return offset;
  return found->second;
}

ArenaSpace::ArenaSpace(size_t nodes)
    : all_{0, std::bit_ceil(std::max<size_t>(nodes, 1)) - 1}, parts_(2 * (all_.last + 1)) {}

template <typename Whole, typename Partly>
void ArenaSpace::visit(Span span, const Whole& whole, const Partly& partly, size_t number, Span nodes) {
  if (span.last < nodes.first || nodes.last < span.first) return;
  Part& part = parts_[number];
  if (span.first <= nodes.first && nodes.last <= span.last) return whole(part);
  partly(part);
  const size_t half = nodes.first + (nodes.last - nodes.first) / 2;
  visit(span, whole, partly, 2 * number, {nodes.first, half});
  visit(span, whole, partly, 2 * number + 1, {half + 1, nodes.last});
}

uint64_t ArenaSpace::take(size_t first, size_t last, uint64_t bytes) {
  const Span span{first, last};
  std::vector<const OffsetRanges*> used;
  used.reserve(2 * static_cast<size_t>(std::bit_width(parts_.size())));
  visit(
      span, [&](const Part& part) { used.push_back(&part.anywhere); },
      [&](const Part& part) { used.push_back(&part.throughout); }, 1, all_);
  uint64_t offset = 0;
  for (size_t free = 0; free < used.size();) {  // number of lists in a row without an overlap
    for (const OffsetRanges* ranges : used) {
      const uint64_t behind = ranges->behind(offset, bytes);
      free = behind == offset ? free + 1 : 0;
      offset = behind;
    }
  }
  const uint64_t end = core::checked_add(offset, bytes, "arena bytes");
  visit(
      span,
      [&](Part& part) {
        part.throughout.add(offset, end);
        part.anywhere.add(offset, end);
      },
      [&](Part& part) { part.anywhere.add(offset, end); }, 1, all_);
  return offset;
}

}  // namespace tenon::host
