// The memory of an arena that is in use at each node of a graph. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tenon::host {

// Disjoint ranges [begin, end) of offsets in ascending order; adjacent ones are joined.
class OffsetRanges {
 public:
  void add(uint64_t begin, uint64_t end);
  // Returns the end of the first range that overlaps the `bytes` at `offset`; `offset` if there is none.
  [[nodiscard]] uint64_t behind(uint64_t offset, uint64_t bytes) const;

 private:
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;
};

// A segment tree over the numbers of nodes (Bentley, "Decomposable searching problems", 1979), so that a place for one
// of n values is found in logarithmic time while the used offsets form few ranges.
class ArenaSpace {
 public:
  explicit ArenaSpace(size_t nodes);
  // Takes `bytes` at the lowest offset where they are free from node `first` to node `last`, and returns the offset.
  // Throws TN_INVALID if the end of the place overflows.
  uint64_t take(size_t first, size_t last, uint64_t bytes);

 private:
  // Part p of the tree is a range of nodes; its halves are the parts 2 p and 2 p + 1.
  struct Part {
    OffsetRanges throughout;  // used at each node of the part
    OffsetRanges anywhere;    // used at one of its nodes at least
  };
  // A range of nodes, both inclusive.
  struct Span {
    size_t first = 0, last = 0;
  };
  // Calls whole(part) for the largest parts inside `span`, and partly(part) for the parts around these.
  template <typename Whole, typename Partly>
  void visit(Span span, const Whole& whole, const Partly& partly, size_t number, Span nodes);

  Span all_;
  std::vector<Part> parts_;
};

}  // namespace tenon::host
