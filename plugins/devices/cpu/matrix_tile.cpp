// An element of C is computed in one way, wherever it is: its terms are cut into blocks; kMatrixStep pairs of a block
// are added by an instruction, in their order; pairs that are left at the end are a block of their own. The sums of the
// blocks times alpha are written, or added to C, one after the other. So no bit depends on the rows of A beside it.
//
// Eight registers hold tiles of up to 16 rows of 16 numbers or pairs: 0 to 5 the sums of two tiles of rows by a panel,
// 6 a tile of A, 7 one of B (LDTILECFG, TILELOADD, TDPBF16PS: Intel 64 and IA-32 Architectures Software Developer's
// Manual, volume 2). SPDX-License-Identifier: Apache-2.0
#include "matrix_tile.h"

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#define TENON_MATRIX __attribute__((target("avx512f,amx-tile,amx-bf16")))

namespace tenon::cpu {

namespace {

constexpr int64_t kSide = kMatrixStep;  // rows of a tile, and numbers or pairs of a row
constexpr int64_t kStrip = 2 * kSide;   // rows of A that are multiplied at once
constexpr int64_t kPanel = 3 * kSide;   // panel_columns of float32 with AVX-512
constexpr int64_t kRowBytes = kSide * 4, kPanelBytes = kPanel * 4;
constexpr int64_t kGroup = 8;  // panels that stay in the second-level cache for all strips

// The operand of LDTILECFG: the rows of each register, and their bytes.
struct alignas(64) Shapes {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t rows[16] = {};
};

// The first `count` of 16 lanes.
__mmask16 first_lanes(int64_t count) { return static_cast<__mmask16>(count >= kSide ? 0xffff : (1 << count) - 1); }

// Lets tiles of A have `rows` rows of `pairs` pairs.
TENON_MATRIX void set_shapes(int64_t rows, int64_t pairs) {
  Shapes shapes;
  std::fill_n(shapes.rows, 7, static_cast<uint8_t>(rows));
  std::fill_n(shapes.bytes, 8, uint16_t{kRowBytes});
  shapes.bytes[6] = static_cast<uint16_t>(pairs * 4);
  shapes.rows[7] = static_cast<uint8_t>(pairs);
  asm volatile("" : : "m"(shapes) : "memory");
  _tile_loadconfig(&shapes);
}

// Rows of A that are multiplied at once: one tile or two of the same height, which share a row if the number is odd.
struct Strip {
  const uint32_t* a;
  int64_t row_bytes;  // from a row to the next
  int64_t height;     // of a tile
  int64_t second;     // the first row of the second tile; 0: there is none
};

// sums [rows of the strip, kPanel] = strip * panel, or += if `add`, over `steps` steps of l; rows of sums are
// `row_bytes` apart. `panel` is [steps * kMatrixStep, kPanel].
TENON_MATRIX void multiply_panel(const Strip& strip, const uint32_t* panel, int64_t steps, bool add, float* sums,
                                 int64_t row_bytes) {
  const uint32_t* a = strip.a;
  const uint32_t* b = panel;
  const bool two = strip.second > 0;
  float* const second = sums + strip.second * (row_bytes / 4);
  if (add) {
    _tile_loadd(0, sums, row_bytes);
    _tile_loadd(1, sums + kSide, row_bytes);
    _tile_loadd(2, sums + 2 * kSide, row_bytes);
    if (two) {
      _tile_loadd(3, second, row_bytes);
      _tile_loadd(4, second + kSide, row_bytes);
      _tile_loadd(5, second + 2 * kSide, row_bytes);
    }
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
  }
  if (two) {
    const uint32_t* a_second = a + strip.second * (strip.row_bytes / 4);
    for (int64_t step = 0; step < steps; ++step, a += kSide, a_second += kSide, b += kSide * kPanel) {
      _tile_loadd(6, a, strip.row_bytes);
      _tile_loadd(7, b, kPanelBytes);
      _tile_dpbf16ps(0, 6, 7);
      _tile_loadd(7, b + kSide, kPanelBytes);
      _tile_dpbf16ps(1, 6, 7);
      _tile_loadd(7, b + 2 * kSide, kPanelBytes);
      _tile_dpbf16ps(2, 6, 7);
      _tile_loadd(6, a_second, strip.row_bytes);
      _tile_dpbf16ps(5, 6, 7);
      _tile_loadd(7, b + kSide, kPanelBytes);
      _tile_dpbf16ps(4, 6, 7);
      _tile_loadd(7, b, kPanelBytes);
      _tile_dpbf16ps(3, 6, 7);
    }
    _tile_stored(3, second, row_bytes);
    _tile_stored(4, second + kSide, row_bytes);
    _tile_stored(5, second + 2 * kSide, row_bytes);
  } else {
    for (int64_t step = 0; step < steps; ++step, a += kSide, b += kSide * kPanel) {
      _tile_loadd(6, a, strip.row_bytes);
      _tile_loadd(7, b, kPanelBytes);
      _tile_dpbf16ps(0, 6, 7);
      _tile_loadd(7, b + kSide, kPanelBytes);
      _tile_dpbf16ps(1, 6, 7);
      _tile_loadd(7, b + 2 * kSide, kPanelBytes);
      _tile_dpbf16ps(2, 6, 7);
    }
  }
  _tile_stored(0, sums, row_bytes);
  _tile_stored(1, sums + kSide, row_bytes);
  _tile_stored(2, sums + 2 * kSide, row_bytes);
}

// C [rows, columns] = alpha sums [rows, kPanel], or += if `add`.
TENON_MATRIX void finish(const float* sums, int64_t rows, int64_t columns, float alpha, bool add, float* c,
                         int64_t c_row) {
  const __m512 factor = _mm512_set1_ps(alpha);
  for (int64_t row = 0; row < rows; ++row, sums += kPanel, c += c_row)
    for (int64_t j = 0; j < columns; j += kSide) {
      const __mmask16 mask = first_lanes(columns - j);
      const __m512 sum = _mm512_loadu_ps(sums + j);
      const __m512 value = add ? _mm512_fmadd_ps(factor, sum, _mm512_maskz_loadu_ps(mask, c + j)) : factor * sum;
      _mm512_mask_storeu_ps(c + j, mask, value);
    }
}

// Multiplies a strip of `rows` rows by a panel, of which C has `columns` columns. Sums that are not scaled are added to
// C itself, or to a copy of it if the panel is wider.
TENON_MATRIX void multiply_strip(const Strip& strip, int64_t rows, const uint32_t* panel, int64_t steps,
                                 int64_t columns, float alpha, bool add, float* c, int64_t c_row) {
  if (alpha == 1 && columns == kPanel) return multiply_panel(strip, panel, steps, add, c, c_row * 4);
  alignas(64) float sums[kStrip * kPanel];
  const bool copies = alpha == 1 && add;
  for (int64_t row = 0; copies && row < rows; ++row)
    for (int64_t j = 0; j < columns; j += kSide)
      _mm512_store_ps(sums + row * kPanel + j, _mm512_maskz_loadu_ps(first_lanes(columns - j), c + row * c_row + j));
  multiply_panel(strip, panel, steps, copies, sums, kPanelBytes);
  finish(sums, rows, columns, alpha, add && !copies, c, c_row);
}

// Multiplies the pairs [l, l + pairs) of the block that is `depth` pairs long and begins at `block`: whole steps, or
// less than one.
TENON_MATRIX void multiply_terms(const GemmTile& t, int64_t block, int64_t depth, int64_t l, int64_t pairs, bool add) {
  const int64_t step = std::min(pairs, kSide), steps = pairs / step;
  const auto* const a = static_cast<const uint32_t*>(t.a) + l;
  const auto* const b = static_cast<const uint32_t*>(t.b) + block * t.packed_columns + (l - block) * kPanel;
  int64_t shaped = 0;
  for (int64_t group = 0; group < t.columns; group += kGroup * kPanel) {
    const int64_t end = std::min(t.columns, group + kGroup * kPanel);
    for (int64_t row = 0; row < t.rows; row += kStrip) {
      const int64_t rows = std::min(kStrip, t.rows - row), height = rows > kSide ? (rows + 1) / 2 : rows;
      const Strip strip = {a + row * t.a_row, t.a_row * 4, height, rows - height};
      if (height != shaped) set_shapes(shaped = height, step);
      for (int64_t j = group; j < end; j += kPanel)
        multiply_strip(strip, rows, b + (t.first + j) * depth, steps, std::min(kPanel, end - j),
                       static_cast<float>(t.alpha), add, static_cast<float*>(t.c) + row * t.c_row + j, t.c_row);
    }
  }
}

bool ask() {
  constexpr unsigned kTiles = 1U << 24, kBf16 = 1U << 22;  // of EDX of leaf 7
  constexpr long kRequest = 0x1023, kTileData = 18;        // ARCH_REQ_XCOMP_PERM (asm/prctl.h)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kTiles) == 0 || (d & kBf16) == 0) return false;
  if (detect_isa() != Isa::kAvx512 || __builtin_cpu_supports("avx512bf16") == 0) return false;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

}  // namespace

bool has_matrix_tiles() {
  static const bool has = ask();
  return has;
}

TENON_MATRIX void multiply_matrix_tile(const GemmTile& t) {
  bool add = t.add;
  asm volatile("" : : : "memory");  // the intrinsics do not say that they read memory
  for (int64_t block = 0; block < t.depth; block += t.block) {
    const int64_t depth = std::min(t.block, t.depth - block), whole = depth / kSide * kSide;
    if (whole > 0) {
      multiply_terms(t, block, depth, block, whole, add);
      add = true;
    }
    if (whole < depth) multiply_terms(t, block, depth, block + whole, depth - whole, add);
    add = true;
  }
  _tile_release();
}

}  // namespace tenon::cpu

#else

namespace tenon::cpu {

bool has_matrix_tiles() { return false; }
void multiply_matrix_tile(const GemmTile&) {}

}  // namespace tenon::cpu

#endif
