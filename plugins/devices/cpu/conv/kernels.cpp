// Sums of convolutions in vector registers. An element of a target is a chain of fused multiply-adds in the order of
// its taps, from 0, wherever it is and whatever is computed with it. A strip is a few positions by a panel of columns.
// SPDX-License-Identifier: Apache-2.0
#include "conv/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "conv/kernels.cpp"
// clang-format off: Highway needs this order
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pointwise/targets.h"
// clang-format on

#include <algorithm>
#include <array>
#include <utility>

#include "pointwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3
constexpr int kSums = 24, kPanelVectors = 3;  // of 32 registers
#else
constexpr int kSums = 12, kPanelVectors = 2;  // of 16 registers
#endif
constexpr int kMostRows = 8;  // each has a pointer in a register

template <class T>
constexpr int64_t kWidth = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));
template <class T>
constexpr int64_t kPanel = kPanelVectors* kWidth<T>;

constexpr int most_rows(int vectors) { return std::min(kSums / vectors, kMostRows); }

// A table of kernels by rows and vectors, from a template with those parameters.
template <class Kernel, class Make>
constexpr auto kernel_table(Make make) {
  return [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    return std::array<Kernel, sizeof...(kIndex)>{
        make(std::integer_sequence<int, kIndex / kPanelVectors + 1, kIndex % kPanelVectors + 1>())...};
  }
  (std::make_integer_sequence<int, kMostRows * kPanelVectors>());
}
constexpr size_t in_table(int64_t rows, int64_t vectors) {
  return static_cast<size_t>((rows - 1) * kPanelVectors + vectors - 1);
}

template <class T>
HWY_INLINE Vector<T> load(const T* from, int64_t count) {
  return count >= kWidth<T> ? hn::LoadU(Tag<T>(), from) : load_part(from, count);
}
template <class T>
HWY_INLINE void store(Vector<T> value, T* to, int64_t count) {
  if (count >= kWidth<T>) {
    hn::StoreU(value, Tag<T>(), to);
  } else {
    store_part(value, to, count);
  }
}

// ---- dense

template <class T>
struct Strip {
  std::array<const T*, kMostRows> sources;
  std::array<T*, kMostRows> targets;
  const T* panel;
  const int64_t* segments;
  int64_t segments_count, depth;
  int64_t columns;
  bool add;
  const T* end;  // elements below it may be overwritten
};

template <class T, int kRows, int kVectors>
void multiply_strip(const Strip<T>& s) {
  const Tag<T> d;
  constexpr int64_t kLanes = kWidth<T>;
  Vector<T> sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  const T* panel = s.panel;
  for (int64_t i = 0; i < s.segments_count; ++i) {
    const T* from[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) from[r] = s.sources[static_cast<size_t>(r)] + s.segments[i];
    for (int64_t l = 0; l < s.depth; ++l, panel += kPanel<T>) {
      Vector<T> row[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) row[v] = hn::LoadU(d, panel + v * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const Vector<T> factor = hn::Set(d, from[r][l]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(factor, row[v], sums[r][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      T* const to = s.targets[static_cast<size_t>(r)] + v * kLanes;
      const int64_t left = to + kLanes <= s.end ? kLanes : s.columns - v * kLanes;
      store(s.add ? hn::Add(load(to, left), sums[r][v]) : sums[r][v], to, left);
    }
}

template <class T>
using StripKernel = void (*)(const Strip<T>&);

template <class T>
void dense(const DenseBand& work) {
  static constexpr auto kKernels = kernel_table<StripKernel<T>>(
      []<int kRows, int kVectors>(std::integer_sequence<int, kRows, kVectors>) -> StripKernel<T> {
        if constexpr (kRows <= most_rows(kVectors)) return &multiply_strip<T, kRows, kVectors>;
        return nullptr;
      });
  const Band& band = work.band;
  const int64_t positions = band.samples * band.rows * band.columns;
  Strip<T> s = {};
  s.segments = band.segments;
  s.segments_count = band.segments_count;
  s.depth = band.depth;
  s.add = work.add;
  s.end = static_cast<T*>(band.target) + work.writable;
  for (int64_t column = 0; column < work.width; column += kPanel<T>) {
    s.panel = static_cast<const T*>(work.panels) + column * work.terms;
    s.columns = std::min(kPanel<T>, work.width - column);
    const int64_t vectors = (s.columns + kWidth<T> - 1) / kWidth<T>, most = most_rows(static_cast<int>(vectors));
    int64_t sample = 0, row = 0, place = 0;
    for (int64_t strips = (positions + most - 1) / most, done = 0; strips > 0; --strips) {
      const int64_t height = (positions - done + strips - 1) / strips;  // strips of about equal height
      for (int64_t r = 0; r < height; ++r) {
        s.sources[static_cast<size_t>(r)] = static_cast<const T*>(band.source) + sample * band.source_sample +
                                            row * band.source_row + place * band.source_column;
        s.targets[static_cast<size_t>(r)] = static_cast<T*>(band.target) + sample * band.target_sample +
                                            row * band.target_row + place * band.target_column + column;
        if (++place < band.columns) continue;
        place = 0;
        if (++row == band.rows) row = 0, ++sample;
      }
      done += height;
      kKernels[in_table(height, vectors)](s);
    }
  }
}

// ---- narrow

// Positions [0, count) of a row, as kVectors vectors, of kColumns columns. weights: of the first of these columns.
template <class T>
struct Piece {
  const T* source;
  const T* weights;
  T* target;
  int64_t count;
  bool add;
};

template <class T, int kColumns, int kVectors>
void multiply_piece(const Band& band, const Piece<T>& piece) {
  const Tag<T> d;
  constexpr int64_t kLanes = kWidth<T>;
  Vector<T> sums[kColumns][kVectors];
#pragma GCC unroll 8
  for (int c = 0; c < kColumns; ++c)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[c][v] = hn::Zero(d);
  const T* weights = piece.weights;
  for (int64_t i = 0; i < band.segments_count; ++i, weights += kNarrow) {
    const T* const from = piece.source + band.segments[i];
    Vector<T> x[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) x[v] = hn::LoadU(d, from + v * kLanes);
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) {
      const Vector<T> factor = hn::Set(d, weights[c]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[c][v] = hn::MulAdd(factor, x[v], sums[c][v]);
    }
  }
  HWY_ALIGN T turned[kColumns][kVectors * kLanes];
#pragma GCC unroll 8
  for (int c = 0; c < kColumns; ++c)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::Store(sums[c][v], d, turned[c] + v * kLanes);
  T* to = piece.target;
  for (int64_t p = 0; p < piece.count; ++p, to += band.target_column)
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) to[c] = piece.add ? to[c] + turned[c][p] : turned[c][p];
}

template <class T>
using PieceKernel = void (*)(const Band&, const Piece<T>&);

constexpr int kMostColumns = kSums / 2;  // at two vectors each

template <class T>
void narrow(const NarrowBand& work) {
  static constexpr auto kKernels = []<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    return std::array<PieceKernel<T>, sizeof...(kIndex)>{&multiply_piece<T, kIndex / 2 + 1, kIndex % 2 + 1>...};
  }
  (std::make_integer_sequence<int, 2 * std::min<int>(kMostColumns, kNarrow)>());
  const Band& band = work.band;
  const int64_t groups = (work.width + kMostColumns - 1) / kMostColumns;
  for (int64_t row = 0; row < band.rows; ++row)
    for (int64_t place = 0; place < band.columns; place += 2 * kWidth<T>) {
      Piece<T> piece = {};
      piece.source = static_cast<const T*>(band.source) + row * band.source_row + place;
      piece.count = std::min(2 * kWidth<T>, band.columns - place);
      piece.add = work.add;
      T* const target = static_cast<T*>(band.target) + row * band.target_row + place * band.target_column;
      for (int64_t column = 0, left = groups; left > 0; --left) {
        const int64_t columns = (work.width - column + left - 1) / left;  // groups of about equal size
        piece.weights = static_cast<const T*>(work.weights) + column;
        piece.target = target + column;
        kKernels[static_cast<size_t>(2 * (columns - 1) + (piece.count > kWidth<T> ? 1 : 0))](band, piece);
        column += columns;
      }
    }
}

// ---- weights

// A few vectors of columns of some rows of weights: vector v is count[v] elements at source + from[v], and is added to
// those at weights + to[v]. from ascends.
template <class T>
struct Block {
  const T* source;
  const T* target;
  T* weights;
  int64_t row;  // elements between rows of weights
  std::array<int64_t, kPanelVectors> from, to, count;
};

// The number of places, of those that begin at `from`, at which `elements` elements can be read.
template <class T>
int64_t places_within(const Band& band, const T* from, int64_t elements) {
  const int64_t room = static_cast<const T*>(band.source_end) - from - elements;
  return room < 0 ? 0 : std::min(band.columns, room / band.source_column + 1);
}

template <class T, int kRows, int kVectors>
void add_products(const Band& band, const Block<T>& b) {
  const Tag<T> d;
  Vector<T> sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  int64_t at[kVectors];
  bool part = false;
#pragma GCC unroll 8
  for (size_t v = 0; v < kVectors; ++v) {
    at[v] = b.from[v];
    part = part || b.count[v] < kWidth<T>;
  }
  const T *from = nullptr, *by = nullptr;
  const auto add = [&](int64_t places, const auto vector) HWY_ATTR {
    for (int64_t place = 0; place < places; ++place, from += band.source_column, by += band.target_column) {
      Vector<T> taps[kVectors];
#pragma GCC unroll 8
      for (size_t v = 0; v < kVectors; ++v) taps[v] = vector(from + at[v], v);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const Vector<T> factor = hn::Set(d, by[r]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(factor, taps[v], sums[r][v]);
      }
    }
  };
  for (int64_t sample = 0; sample < band.samples; ++sample)
    for (int64_t row = 0; row < band.rows; ++row) {
      from = b.source + sample * band.source_sample + row * band.source_row;
      by = b.target + sample * band.target_sample + row * band.target_row;
      // Lanes behind the columns are computed from what lies there, and not stored: loading a part takes several times
      // as long as a vector. Only the places at the end of the memory load a part.
      const int64_t whole = part ? places_within(band, from, at[kVectors - 1] + kWidth<T>) : band.columns;
      add(whole, [&](const T* tap, size_t) HWY_ATTR { return hn::LoadU(d, tap); });
      add(band.columns - whole, [&](const T* tap, size_t v) HWY_ATTR { return load(tap, b.count[v]); });
    }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v) {
      T* const to = b.weights + r * b.row + b.to[v];
      store(hn::Add(load(to, b.count[v]), sums[r][v]), to, b.count[v]);
    }
}

template <class T>
using BlockKernel = void (*)(const Band&, const Block<T>&);

// Adds to `vectors` vectors of all rows of weights.
template <class T>
void add_block(const WeightsBand& work, Block<T> b, int64_t vectors) {
  static constexpr auto kKernels = kernel_table<BlockKernel<T>>(
      []<int kRows, int kVectors>(std::integer_sequence<int, kRows, kVectors>) -> BlockKernel<T> {
        if constexpr (kRows <= most_rows(kVectors)) return &add_products<T, kRows, kVectors>;
        return nullptr;
      });
  const int64_t most = most_rows(static_cast<int>(vectors));
  T* const weights = b.weights;
  int64_t row = 0;
  for (int64_t strips = (work.width + most - 1) / most; strips > 0; --strips) {
    const int64_t height = (work.width - row + strips - 1) / strips;
    b.target = static_cast<const T*>(work.band.target) + row;
    b.weights = weights + row * b.row;
    kKernels[in_table(height, vectors)](work.band, b);
    row += height;
  }
}

template <class T>
void weights(const WeightsBand& work) {
  const Band& band = work.band;
  Block<T> b = {};
  b.row = work.row;
  const auto add = [&](int64_t segment, int64_t column, int64_t vectors) {
    b.source = static_cast<const T*>(band.source) + band.segments[segment] + column;
    b.weights = static_cast<T*>(work.weights) + segment * band.depth + column;
    add_block(work, b, vectors);
  };
  if (band.depth <= kWidth<T>) {  // a vector each of several segments
    for (int64_t i = 0; i < band.segments_count; i += kPanelVectors) {
      const int64_t vectors = std::min<int64_t>(kPanelVectors, band.segments_count - i);
      for (int64_t v = 0; v < vectors; ++v) {
        const auto at = static_cast<size_t>(v);
        b.from[at] = band.segments[i + v] - band.segments[i];
        b.to[at] = v * band.depth;
        b.count[at] = band.depth;
      }
      add(i, 0, vectors);
    }
    return;
  }
  for (int64_t i = 0; i < band.segments_count; ++i)
    for (int64_t column = 0; column < band.depth; column += kPanel<T>) {
      const int64_t columns = std::min(kPanel<T>, band.depth - column);
      for (int64_t v = 0; v < kPanelVectors; ++v) {
        const auto at = static_cast<size_t>(v);
        b.from[at] = b.to[at] = v * kWidth<T>;
        b.count[at] = std::min(kWidth<T>, columns - v * kWidth<T>);
      }
      add(i, column, (columns + kWidth<T> - 1) / kWidth<T>);
    }
}

// ---- channels by themselves

constexpr int64_t kAtOnce = 4;  // places, or taps, whose sums do not wait for each other

// A vector of channels from `at`, of which the last `keep` are stored: the last vector of more channels than lanes
// overlaps the one before, since a load of a part takes several times as long.
struct Channels {
  int64_t at, left, keep;
};
template <class T>
Channels channels_from(int64_t c, int64_t depth) {
  const int64_t at = std::min(c, std::max<int64_t>(0, depth - kWidth<T>));
  return {at, depth - at, std::min(kWidth<T>, depth - c)};
}
template <class T>
HWY_INLINE void store_channels(Vector<T> value, T* to, const Channels& of) {
  if (of.keep >= kWidth<T> || of.left < kWidth<T>) return store(value, to, of.left);
  HWY_ALIGN T all[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(value, Tag<T>(), all);
  const int64_t skip = kWidth<T> - of.keep;
  std::copy_n(all + skip, of.keep, to + skip);
}

template <class T, int64_t kPlaces>
HWY_INLINE void filter_places(const ChannelBand& work, const T* from, T* to, const Channels& of) {
  const Band& band = work.band;
  Vector<T> sums[kPlaces];
#pragma GCC unroll 8
  for (int64_t p = 0; p < kPlaces; ++p) sums[p] = hn::Zero(Tag<T>());
  const T* by = static_cast<const T*>(work.weights) + of.at;
  for (int64_t i = 0; i < band.segments_count; ++i, by += band.depth) {
    const Vector<T> weight = load(by, of.left);
    const T* const tap = from + band.segments[i] + of.at;
#pragma GCC unroll 8
    for (int64_t p = 0; p < kPlaces; ++p)
      sums[p] = hn::MulAdd(load(tap + p * band.source_column, of.left), weight, sums[p]);
  }
#pragma GCC unroll 8
  for (int64_t p = 0; p < kPlaces; ++p) {
    T* const at = to + p * band.target_column + of.at;
    store_channels(work.add ? hn::Add(load(at, of.left), sums[p]) : sums[p], at, of);
  }
}

template <class T>
void channels(const ChannelBand& work) {
  const Band& band = work.band;
  for (int64_t row = 0; row < band.rows; ++row) {
    const T* from = static_cast<const T*>(band.source) + row * band.source_row;
    T* to = static_cast<T*>(band.target) + row * band.target_row;
    int64_t place = 0;
    const auto filter = [&]<int64_t kPlaces>(std::integral_constant<int64_t, kPlaces>) HWY_ATTR {
      for (; place + kPlaces <= band.columns; place += kPlaces) {
        for (int64_t c = 0; c < band.depth; c += kWidth<T>)
          filter_places<T, kPlaces>(work, from, to, channels_from<T>(c, band.depth));
        from += kPlaces * band.source_column;
        to += kPlaces * band.target_column;
      }
    };
    filter(std::integral_constant<int64_t, kAtOnce>());
    filter(std::integral_constant<int64_t, 1>());
  }
}

template <class T, int64_t kTaps>
HWY_INLINE void add_taps(const ChannelBand& work, int64_t tap, const Channels& of) {
  const Band& band = work.band;
  Vector<T> sums[kTaps];
#pragma GCC unroll 8
  for (int64_t t = 0; t < kTaps; ++t) sums[t] = hn::Zero(Tag<T>());
  for (int64_t row = 0; row < band.rows; ++row) {
    const T* from = static_cast<const T*>(band.source) + row * band.source_row + of.at;
    const T* by = static_cast<const T*>(band.target) + row * band.target_row + of.at;
    for (int64_t place = 0; place < band.columns; ++place, from += band.source_column, by += band.target_column) {
      const Vector<T> factor = load(by, of.left);
#pragma GCC unroll 8
      for (int64_t t = 0; t < kTaps; ++t)
        sums[t] = hn::MulAdd(load(from + band.segments[tap + t], of.left), factor, sums[t]);
    }
  }
#pragma GCC unroll 8
  for (int64_t t = 0; t < kTaps; ++t) {
    T* const to = static_cast<T*>(work.weights) + (tap + t) * band.depth + of.at;
    store_channels(hn::Add(load(to, of.left), sums[t]), to, of);
  }
}

template <class T>
void channel_weights(const ChannelBand& work) {
  const Band& band = work.band;
  for (int64_t c = 0; c < band.depth; c += kWidth<T>) {
    const Channels of = channels_from<T>(c, band.depth);
    int64_t tap = 0;
    for (; tap + kAtOnce <= band.segments_count; tap += kAtOnce) add_taps<T, kAtOnce>(work, tap, of);
    for (; tap < band.segments_count; ++tap) add_taps<T, 1>(work, tap, of);
  }
}

template <class T>
constexpr ConvKernels kConvKernels = {kPanel<T>, &dense<T>, &narrow<T>, &weights<T>, &channels<T>, &channel_weights<T>};

}  // namespace

const ConvKernels& find_conv(bool wide) { return wide ? kConvKernels<double> : kConvKernels<float>; }

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

const ConvKernels& conv_kernels(Isa isa, bool wide) { TENON_CHOOSE(isa, find_conv(wide)); }

}  // namespace tenon::cpu
#endif
