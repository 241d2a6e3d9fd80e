// Tiles of matrix products. An element of C is computed in one way, wherever it is and whatever is computed with it:
// the l are cut into the fewest blocks of at most kSumBlock, of equal length but for the last; the sum of a block is a
// chain of fused multiply-adds in the order of l, from 0; the first sum times alpha is written, or added to C by a
// fused multiply-add, and the others are added by one each. So no bit of it depends on the number of rows, the place of
// the row, the tiles, or the width of a vector. If C has one column, 32 (f32) or 16 (f64) chains share the sum instead.
// A processor without such instructions rounds twice.
//
// A strip is a few rows of a tile; its sums are in vector registers. Vectors lie along the columns, of B itself or of a
// panel: a copy of a few columns of B, in memory of the tile.
// SPDX-License-Identifier: Apache-2.0
#include "gemm_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gemm_tile.cpp"
// clang-format off: Highway needs this order
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "panel_memory.h"
#include "pointwise/targets.h"
// clang-format on

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "gemm_strip-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

constexpr int kGroup = HWY_TARGET == HWY_AVX3 ? 2 : 4;  // panels that are copied at once
// Packed panels that a strip of A is multiplied by while it is in the first-level cache; they stay in the second-level
// cache for the next strips, at most 480 KiB.
constexpr int kPackedGroup = HWY_TARGET == HWY_AVX3 ? 8 : 16;

// Copies B [depth, columns], of at most kGroup panels, to panels that are `distance` elements apart; columns behind the
// last are undefined. `readable`: elements from b to the end of B, which a whole vector may read.
template <class T>
void copy_rows(const T* b, int64_t b_step, int64_t depth, int64_t columns, int64_t readable, T* panels,
               int64_t distance) {
  const Tag<T> d;
  constexpr int64_t kLanes = kWidth<T>;
  const int64_t vectors = (columns + kLanes - 1) / kLanes;
  int64_t at[kGroup * kPanelVectors];  // of a vector of a row, from the row's place in the first panel
  for (int64_t v = 0; v < vectors; ++v) at[v] = v / kPanelVectors * distance + v % kPanelVectors * kLanes;
  for (int64_t l = 0; l < depth; ++l, b += b_step, readable -= b_step, panels += kPanel<T>) {
    prefetch(b + kAhead * b_step, columns * static_cast<int64_t>(sizeof(T)));
    if (vectors * kLanes <= readable) {
      for (int64_t v = 0; v < vectors; ++v) hn::StoreU(hn::LoadU(d, b + v * kLanes), d, panels + at[v]);
    } else {
      for (int64_t v = 0; v + 1 < vectors; ++v) hn::StoreU(hn::LoadU(d, b + v * kLanes), d, panels + at[v]);
      const int64_t last = (vectors - 1) * kLanes;
      hn::StoreU(load_part(b + last, columns - last), d, panels + at[vectors - 1]);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// Loads 16 bytes of each of one or two rows, `distance` elements apart, as the blocks of a vector.
template <class T, class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const T* from, int64_t distance) {
  constexpr hn::FixedTag<T, 16 / sizeof(T)> kBlock;
  if constexpr (hn::MaxLanes(D()) > 16 / sizeof(T)) {
    return hn::Combine(d, hn::LoadU(kBlock, from + distance), hn::LoadU(kBlock, from));
  } else {
    return (void)distance, hn::LoadU(d, from);
  }
}
#endif

// Copies B, stored [columns, depth], to one panel. The columns behind the last are 0 up to a whole vector.
template <class T>
void copy_columns(const T* b, int64_t b_column, int64_t depth, int64_t columns, T* panel) {
  constexpr int64_t kColumns = kPanel<T>;
  int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
  // Squares of kSide x kSide elements are transposed in registers, one or two at a time.
  constexpr int64_t kSide = 16 / sizeof(T), kSquares = kWidth<T> >= 2 * kSide ? 2 : 1;
  const hn::FixedTag<T, static_cast<size_t>(kSide * kSquares)> d;
  for (; j + kSide * kSquares <= columns; j += kSide * kSquares) {
    const T* from = b + j * b_column;
    const int64_t distance = kSide * b_column;
    int64_t l = 0;
    for (; l + kSide <= depth; l += kSide) {
      T* const to = panel + l * kColumns + j;
      const auto r0 = load_blocks(d, from + l, distance), r1 = load_blocks(d, from + b_column + l, distance);
      if constexpr (kSide == 2) {
        hn::StoreU(hn::InterleaveLower(d, r0, r1), d, to);
        hn::StoreU(hn::InterleaveUpper(d, r0, r1), d, to + kColumns);
      } else {
        const auto r2 = load_blocks(d, from + 2 * b_column + l, distance);
        const auto r3 = load_blocks(d, from + 3 * b_column + l, distance);
        const auto p0 = hn::InterleaveLower(d, r0, r2), p1 = hn::InterleaveUpper(d, r0, r2);
        const auto q0 = hn::InterleaveLower(d, r1, r3), q1 = hn::InterleaveUpper(d, r1, r3);
        hn::StoreU(hn::InterleaveLower(d, p0, q0), d, to);
        hn::StoreU(hn::InterleaveUpper(d, p0, q0), d, to + kColumns);
        hn::StoreU(hn::InterleaveLower(d, p1, q1), d, to + 2 * kColumns);
        hn::StoreU(hn::InterleaveUpper(d, p1, q1), d, to + 3 * kColumns);
      }
    }
    for (; l < depth; ++l)
      for (int64_t i = 0; i < kSide * kSquares; ++i) panel[l * kColumns + j + i] = from[i * b_column + l];
  }
#endif
  const int64_t end = (columns + kWidth<T> - 1) / kWidth<T> * kWidth<T>;
  for (; j < end; ++j)
    for (int64_t l = 0; l < depth; ++l) panel[l * kColumns + j] = j < columns ? b[j * b_column + l] : T{0};
}

// Columns of B that a tile multiplies at once: `s.columns` columns at s.b, by `step` a time, each time `distance`
// elements farther.
struct Columns {
  int64_t step, distance;
};

// Copies `height` rows of A from `from` on, which lie as in `all`, close together, and lets `strip` read the copy: rows
// of kSumBlock terms, or, of a transposed A, terms of kStripRows rows.
template <class T>
void copy_strip(const Strip<T>& all, const T* from, int64_t height, T* copy, Strip<T>& strip) {
  strip.a = copy;
  if (all.a_step == 1) {
    for (int64_t r = 0; r < height; ++r)
      std::memcpy(copy + r * kSumBlock<T>, from + r * all.a_row, static_cast<size_t>(all.depth) * sizeof(T));
    strip.a_row = kSumBlock<T>;
    return;
  }
  if (height == kStripRows) {
    for (int64_t l = 0; l < all.depth; ++l)
      std::memcpy(copy + l * kStripRows, from + l * all.a_step, kStripRows * sizeof(T));
  } else {
    for (int64_t l = 0; l < all.depth; ++l) std::copy_n(from + l * all.a_step, height, copy + l * kStripRows);
  }
  strip.a_step = kStripRows;
}

// Prefetches the rows [first, last) of A behind `from`.
template <class T>
void prefetch_strip(const Strip<T>& all, const T* from, int64_t first, int64_t last) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  if (all.a_step == 1) {
    for (int64_t r = first; r < last; ++r) prefetch_all(from + r * all.a_row, all.depth * kSize);
  } else {
    for (int64_t l = 0; l < all.depth; ++l) prefetch(from + l * all.a_step + first, (last - first) * kSize);
  }
}

// Whether a set of the first-level cache has room for a line of each row of a strip, and of B and C.
inline bool has_many_ways() {
  static const bool has = sysconf(_SC_LEVEL1_DCACHE_ASSOC) >= kStripRows + 4;
  return has;
}

// Multiplies all rows of a tile by columns of B, over one block of l. The rows of A are copied if they are so far apart
// that they share few sets of the first-level cache, which then are too small, or if A is transposed.
template <class Terms, class T>
void multiply_rows(const Strip<T>& all, int64_t rows, const Columns& by) {
  constexpr int64_t kFar = 4096 / sizeof(T);
  HWY_ALIGN T copy[kStripRows * kSumBlock<T>];
  const bool packed = all.packed >= 0;
  const bool copies = !packed && (all.a_step != 1 ? shares_sets(all.a_step * static_cast<int64_t>(sizeof(T)), all.depth)
                                                  : all.a_row % kFar == 0 && rows > 1 && !has_many_ways());
  Strip<T> s = all;
  for (int64_t strips = (rows + kStripRows - 1) / kStripRows, row = 0; row < rows; --strips) {
    const int64_t in_strip = packed ? (all.packed + row) % kStripRows : 0;
    const int64_t height = packed ? std::min(kStripRows - in_strip, rows - row)
                                  : (rows - row + strips - 1) / strips;  // strips of about equal height
    const T* const from =
        packed ? all.a + (all.packed + row - in_strip) * all.depth + in_strip : all.a + row * all.a_row;
    s.a = from;
    if (copies) copy_strip(all, from, height, copy, s);
    if (!packed && strips > 1)
      prefetch_strip(all, from, height, height + (rows - row - height + strips - 2) / (strips - 1));
    s.b = all.b;
    for (int64_t j = 0; j < all.columns; j += by.step, s.b += by.distance) {
      s.columns = std::min(by.step, all.columns - j);
      s.c = all.c + row * all.c_row + j * all.c_column;
      strip_kernel<Terms, T>(height, (s.columns + kWidth<T> - 1) / kWidth<T>)(s);
    }
    row += height;
  }
}

// Multiplies the columns of a tile over the block of l that begins at `first`. B is copied if its columns are not
// contiguous, for the part of a vector at the end, and if several strips would read it from farther caches: for many
// rows, or if the rows of B are so far apart that few of them fit into the first-level cache at once.
template <class Terms, class T>
void multiply_block(const GemmTile& t, Strip<T> s, int64_t first) {
  constexpr int64_t kLanes = kWidth<T>, kCopyRows = int64_t{4} * kStripRows, kFar = 2048 / sizeof(T);
  static_assert(kGroup * kSumBlock<T> * kPanel<T> * static_cast<int64_t>(sizeof(T)) <= kPanelMemory);
  static_assert(2 * kStripRows >= 12);  // may_copy
  auto* const panels = static_cast<T*>(t.panels);
  const bool is_far = t.b_step >= kFar;
  const bool copies = t.b_column != 1 || (t.depth >= kCopiedTerms &&
                                          (t.rows >= kCopyRows || (t.rows > int64_t{2} * kStripRows && is_far)));
  const int64_t in_place = most_vectors(static_cast<int>(std::min<int64_t>(t.rows, kStripRows)));
  const T* const b = static_cast<const T*>(t.b) + first * t.b_step;
  T* const c = s.c;
  for (int64_t j = 0; j < t.columns; j += s.columns) {
    const int64_t left = t.columns - j;
    s.c = c + j * s.c_column;
    s.b = b + j * t.b_column;
    const int64_t readable = (t.depth - first - 1) * t.b_step + left;
    if (!copies) {
      s.b_step = t.b_step;
      s.columns = std::min(in_place * kLanes, left);
      const int64_t vectors = (s.columns + kLanes - 1) / kLanes;
      s.whole = readable < vectors * kLanes ? 0 : std::min(s.depth, (readable - vectors * kLanes) / s.b_step + 1);
      multiply_rows<Terms>(s, t.rows, {s.columns, 0});
      continue;
    }
    s.columns = std::min(left, kPanel<T> * (is_far ? kGroup : 1));
    if (t.b_column == 1) {
      copy_rows(s.b, t.b_step, s.depth, s.columns, readable, panels, kSumBlock<T> * kPanel<T>);
    } else {
      copy_columns(s.b, t.b_column, s.depth, s.columns, panels);
    }
    s.b = panels;
    s.b_step = kPanel<T>;
    s.whole = s.depth;
    multiply_rows<Terms>(s, t.rows, {kPanel<T>, kSumBlock<T> * kPanel<T>});
  }
}

// The same where B is packed, and perhaps A.
template <class Terms, class T>
void multiply_packed(const GemmTile& t, Strip<T> s, int64_t first) {
  if (t.packed_rows > 0) {
    s.a = static_cast<const T*>(t.a) + first * t.packed_rows;
    s.a_row = 1;
    s.a_step = kStripRows;
    s.packed = t.first_row;
  }
  const T* const block = static_cast<const T*>(t.b) + first * t.packed_columns;
  T* const c = s.c;
  s.b_step = kPanel<T>;
  s.whole = s.depth;
  constexpr int64_t kColumns = kPackedGroup * kPanel<T>;
  for (int64_t j = 0; j < t.columns; j += kColumns) {
    s.c = c + j;
    s.b = block + (t.first + j) * s.depth;
    s.columns = std::min(kColumns, t.columns - j);
    multiply_rows<Terms>(s, t.rows, {kPanel<T>, s.depth * kPanel<T>});
  }
}

template <class T>
void pack_strips(const GemmPack& p) {
  const int64_t whole = (p.columns + kStripRows - 1) / kStripRows * kStripRows;
  for (int64_t l = 0; l < p.depth; ++l) {
    const int64_t block = l / p.block * p.block, depth = std::min(p.block, p.depth - block);
    const T* from = static_cast<const T*>(p.b) + l * p.b_step + p.first * kStripRows;
    T* to = static_cast<T*>(p.packed) + block * whole + (p.first * depth + l - block) * kStripRows;
    int64_t left = p.columns - p.first * kStripRows;
    for (int64_t strip = p.first; strip < p.last; ++strip, left -= kStripRows) {
      if (left >= kStripRows)
        std::memcpy(to, from, kStripRows * sizeof(T));
      else
        std::copy_n(from, left, to);
      from += kStripRows;
      to += depth * kStripRows;
    }
  }
}

template <class T>
void pack_panels(const GemmPack& p) {
  const int64_t whole = (p.columns + kPanel<T> - 1) / kPanel<T> * kPanel<T>;
  const int64_t group = p.b_column == 1 ? kGroup : 1, end = std::min(p.columns, p.last * kPanel<T>);
  for (int64_t l = 0; l < p.depth; l += p.block) {
    const int64_t depth = std::min(p.block, p.depth - l);
    T* const to = static_cast<T*>(p.packed) + l * whole;
    for (int64_t j = p.first * kPanel<T>; j < end; j += group * kPanel<T>) {
      const int64_t columns = std::min(group * kPanel<T>, end - j);
      const T* const from = static_cast<const T*>(p.b) + l * p.b_step + j * p.b_column;
      if (p.b_column == 1) {
        const int64_t readable = (p.depth - l - 1) * p.b_step + p.columns - j;
        copy_rows(from, p.b_step, depth, columns, readable, to + j * depth, depth * kPanel<T>);
      } else {
        copy_columns(from, p.b_column, depth, columns, to + j * depth);
      }
    }
  }
}

// C [rows, 1]. 32 (f32) or 16 (f64) chains: number i sums the terms i, i + kChains, i + 2 kChains, ...; then the upper
// half of the chains is added to the lower half until one is left. The rows of A and the column of B are contiguous.
template <class T>
void multiply_column(const GemmTile& t) {
  constexpr int64_t kLanes = kWidth<T>, kChains = 128 / sizeof(T);
  constexpr int kVectors = kChains / kLanes;
  const Tag<T> d;
  const auto* a = static_cast<const T*>(t.a);
  const auto* const b = static_cast<const T*>(t.b);
  auto* c = static_cast<T*>(t.c);
  const auto alpha = static_cast<T>(t.alpha);
  const int64_t whole = t.depth / kChains * kChains, vectors = (t.depth - whole) / kLanes;
  const int64_t part = t.depth % kLanes;
  const Vector<T> last = part > 0 ? load_part(b + t.depth - part, part) : hn::Zero(d);
  for (int64_t row = 0; row < t.rows; ++row, a += t.a_row, c += t.c_row) {
    if (t.list != nullptr) a = static_cast<const T*>(t.list[row]);
    Vector<T> sums[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d);
    for (int64_t l = 0; l < whole; l += kChains) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        sums[v] = hn::MulAdd(hn::LoadU(d, a + l + v * kLanes), hn::LoadU(d, b + l + v * kLanes), sums[v]);
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int64_t l = whole + v * kLanes;
      if (v < vectors) {
        sums[v] = hn::MulAdd(hn::LoadU(d, a + l), hn::LoadU(d, b + l), sums[v]);
      } else if (v == vectors && part > 0) {
        sums[v] = hn::MulAdd(load_part(a + l, part), last, sums[v]);
      }
    }
#pragma GCC unroll 8
    for (int half = kVectors / 2; half > 0; half /= 2)
#pragma GCC unroll 4
      for (int v = 0; v < half; ++v) sums[v] = hn::Add(sums[v], sums[half + v]);
    const T sum = fold<Plus>(d, sums[0]);
    *c = t.add ? std::fma(alpha, sum, *c) : alpha * sum;
  }
}

// The transposed product: C [columns, rows] = B^T A^T.
GemmTile turn(const GemmTile& t) {
  GemmTile turned = t;
  turned.a = t.b;
  turned.b = t.a;
  turned.rows = t.columns;
  turned.columns = t.rows;
  turned.a_row = t.b_column;
  turned.a_step = t.b_step;
  turned.b_step = t.a_step;
  turned.b_column = t.a_row;
  return turned;
}

// Whether the columns of C fill less than most of a vector, and the rows of A lie along vectors. Few terms do not pay
// for turning their sums.
template <class T>
bool is_narrow(const GemmTile& t) {
  constexpr int64_t kTerms = 16;
  return t.packed_columns == 0 && t.a_row == 1 && t.depth >= kTerms && t.columns < t.rows &&
         4 * t.columns <= 3 * kWidth<T>;
}

template <class Terms, class T>
void multiply_tile(const GemmTile& given) {
  const bool is_turned = is_narrow<T>(given);
  const GemmTile t = is_turned ? turn(given) : given;
  Strip<T> s = {};
  s.c = static_cast<T*>(t.c);
  s.a_row = t.a_row;
  s.a_step = t.a_step;
  s.c_row = is_turned ? 1 : t.c_row;
  s.c_column = is_turned ? t.c_row : 1;
  s.alpha = static_cast<T>(t.alpha);
  s.add = t.add;
  s.packed = -1;
  for (int64_t l = 0; l < t.depth; l += t.block) {
    s.depth = std::min(t.block, t.depth - l);
    s.a = static_cast<const T*>(t.a) + l * t.a_step;
    if (t.packed_columns > 0)
      multiply_packed<Terms>(t, s, l);
    else
      multiply_block<Terms>(t, s, l);
    s.add = true;
  }
}

// The same where B is a list of rows, row by row of C.
template <class T>
void multiply_list(const GemmTile& t) {
  static constexpr auto kKernels = []<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    return std::array{&multiply_strip<Numbers, T, 1, kIndex + 1, true>...};
  }
  (std::make_integer_sequence<int, most_vectors(1)>());
  constexpr int64_t kLanes = kWidth<T>, kColumns = most_vectors(1) * kLanes;
  Strip<T> s = {};
  s.c_column = 1;
  s.a_step = t.a_step;
  s.alpha = static_cast<T>(t.alpha);
  for (int64_t row = 0; row < t.rows; ++row) {
    s.add = t.add;
    for (int64_t l = 0; l < t.depth; l += t.block) {
      s.depth = std::min(t.block, t.depth - l);
      s.a = static_cast<const T*>(t.a) + row * t.a_row + l * t.a_step;
      s.list = t.list + l;
      for (int64_t j = 0; j < t.columns; j += kColumns) {
        s.columns = std::min(kColumns, t.columns - j);
        s.whole = s.columns % kLanes == 0 ? s.depth : 0;
        s.first = t.first + j;
        s.c = static_cast<T*>(t.c) + row * t.c_row + j;
        kKernels[static_cast<size_t>((s.columns + kLanes - 1) / kLanes - 1)](s);
      }
      s.add = true;
    }
  }
}

}  // namespace

TileKernel find_tile(bool wide, bool column) {
  if (column) return wide ? &multiply_column<double> : &multiply_column<float>;
  return wide ? &multiply_tile<Numbers, double> : &multiply_tile<Numbers, float>;
}
TileKernel find_pairs(bool dot) { return dot ? &multiply_tile<DotPairs, float> : &multiply_tile<Pairs, float>; }

TileKernel find_list(bool wide) { return wide ? &multiply_list<double> : &multiply_list<float>; }

PackKernel find_pack(bool wide) { return wide ? &pack_panels<double> : &pack_panels<float>; }
PackKernel find_strips(bool wide) { return wide ? &pack_strips<double> : &pack_strips<float>; }
int64_t find_strip_rows() { return kStripRows; }
int64_t find_panel(bool wide) { return wide ? kPanel<double> : kPanel<float>; }

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

TileKernel tile_kernel(Isa isa, bool wide, bool column) { TENON_CHOOSE(isa, find_tile(wide, column)); }
TileKernel list_kernel(Isa isa, bool wide) { TENON_CHOOSE(isa, find_list(wide)); }
TileKernel pairs_kernel(Isa isa) {
#if defined(__x86_64__)
  const bool dot = isa == Isa::kAvx512 && __builtin_cpu_supports("avx512bf16");
#else
  const bool dot = false;
#endif
  TENON_CHOOSE(isa, find_pairs(dot));
}
PackKernel pack_kernel(Isa isa, bool wide) { TENON_CHOOSE(isa, find_pack(wide)); }
PackKernel strips_kernel(Isa isa, bool wide) { TENON_CHOOSE(isa, find_strips(wide)); }
int64_t strip_rows(Isa isa) { TENON_CHOOSE(isa, find_strip_rows()); }
int64_t panel_columns(Isa isa, bool wide) { TENON_CHOOSE(isa, find_panel(wide)); }

}  // namespace tenon::cpu
#endif
