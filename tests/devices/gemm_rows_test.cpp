// Rows of products: a row has the same bits alone, in a product of any number of rows, at any place
// and with any number of threads, namely those of the sum that plugins/devices/cpu/gemm_tile.cpp defines.
// SPDX-License-Identifier: Apache-2.0
#include "tests/devices/pointwise_case.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

// A product of n columns and k terms; its rows may vary.
struct Shape {
  int64_t n, k;
  uint32_t flags = 0;
  double alpha = 1;
  tn_dtype dtype = TN_F32;
  uint8_t request = TN_REQUEST_WRITE;
  uint32_t precision = TN_PRECISION_FULL;
};

std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << "n " << s.n << " k " << s.k << " flags " << s.flags << " alpha " << s.alpha
             << (s.dtype == TN_F32 ? " f32" : " f64") << " request " << int{s.request};
}

bool fuses() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

template <class T>
T multiply_add(T a, T b, T c) {
  static const bool fused = fuses();
  if (fused) return std::fma(a, b, c);
  const volatile T product = a * b;  // volatile: rounds it
  return product + c;
}

// Returns alpha a b, added to c where it is not null, by definition. a and b have k terms.
template <class T>
T defined_sum(const Shape& s, const T* a, const T* b, const T* c) {
  const auto alpha = static_cast<T>(s.alpha);
  const auto joined = [&](T sum, const T* to) { return to == nullptr ? alpha * sum : multiply_add(alpha, sum, *to); };
  if (s.n == 1) {
    constexpr int64_t kChains = 128 / sizeof(T);
    T chains[kChains] = {};
    for (int64_t l = 0; l < s.k; ++l) chains[l % kChains] = multiply_add(a[l], b[l], chains[l % kChains]);
    for (int64_t half = kChains / 2; half > 0; half /= 2)
      for (int64_t i = 0; i < half; ++i) chains[i] += chains[half + i];
    return joined(chains[0], c);
  }
  T result = 0;
  constexpr int64_t kMost = sizeof(T) == 4 ? 320 : 256;
  const int64_t blocks = (s.k + kMost - 1) / kMost, block = (s.k + blocks - 1) / std::max<int64_t>(blocks, 1);
  for (int64_t first = 0; first < s.k; first += block) {
    T sum = 0;
    for (int64_t l = first; l < std::min(first + block, s.k); ++l) sum = multiply_add(a[l], b[l], sum);
    result = joined(sum, first > 0 ? &result : c);
  }
  return result;
}

template <class T>
std::vector<T> numbers(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> result(static_cast<size_t>(count));
  for (T& number : result) number = uniform(random);
  return result;
}

template <class T>
std::vector<T> transposed(const std::vector<T>& from, int64_t rows, int64_t columns) {
  std::vector<T> to(from.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      to[static_cast<size_t>(j * rows + i)] = from[static_cast<size_t>(i * columns + j)];
  return to;
}

template <class T>
Guarded guarded(const T* from, int64_t count) {
  Guarded memory(static_cast<size_t>(count) * sizeof(T));
  std::memcpy(memory.data(), from, memory.size());
  return memory;
}

class GemmRows : public testing::Test {
 protected:
  // C [batch, m, n] = alpha A B (+ C). Operands lie between guards, so that a read or write outside of them fails under
  // AddressSanitizer.
  template <class T>
  std::vector<T> run(const Shape& s, int64_t batch, int64_t m, const T* a, const T* b, const T* c, int32_t workers) {
    tn_gemm gemm = {};
    gemm.size = sizeof gemm;
    gemm.dtype = s.dtype;
    gemm.batch = tn_dim_constant(batch);
    gemm.m = tn_dim_symbol(TN_SYMBOL_SAMPLES);
    gemm.m.bound = bound_;
    gemm.n = tn_dim_constant(s.n);
    gemm.k = tn_dim_constant(s.k);
    gemm.flags = s.flags;
    gemm.alpha = s.alpha;
    gemm.precision = s.precision;
    PreparedCall call(device_);
    EXPECT_EQ(device_.table<tn_gemm_table>(TN_GEMM)->prepare(device_.device(), device_.services(), device_.errors(),
                                                             &gemm, &call.prepared),
              TN_OK);
    Guarded in_a = guarded(a, batch * m * s.k), in_b = guarded(b, batch * s.k * s.n), out = guarded(c, batch * m * s.n);
    EXPECT_EQ(call.run({&in_a, &in_b}, {&out}, {s.request}, {0, m}, workers), TN_OK);
    EXPECT_TRUE(out.intact());
    std::vector<T> result(static_cast<size_t>(batch * m * s.n));
    std::memcpy(result.data(), out.data(), out.size());
    if (batch == 1) check_packed(gemm, in_a, in_b, guarded(c, m * s.n), result, s.request, workers);
    return result;
  }

  // Compares the product with a packed B with `want`, that of B itself, where the device packs it.
  template <class T>
  void check_packed(const tn_gemm& gemm, Guarded& a, Guarded& b, Guarded c, const std::vector<T>& want, uint8_t request,
                    int32_t workers) {
    const auto* const table = device_.table<tn_packed_gemm_table>(TN_PACKED_GEMM);
    uint64_t bytes = 0;
    if (table->packed_bytes(device_.device(), device_.errors(), &gemm, &bytes) != TN_OK) return;
    ++packed_;
    PreparedCall pack(device_), multiply(device_);
    ASSERT_EQ(table->prepare_pack(device_.device(), device_.services(), device_.errors(), &gemm, &pack.prepared),
              TN_OK);
    ASSERT_EQ(
        table->prepare_multiply(device_.device(), device_.services(), device_.errors(), &gemm, &multiply.prepared),
        TN_OK);
    Guarded packed(bytes);
    const int64_t m = static_cast<int64_t>(want.size()) / gemm.n.offset;
    ASSERT_EQ(pack.run({&b}, {&packed}, {TN_REQUEST_WRITE}, {0, m}, workers), TN_OK);
    ASSERT_EQ(multiply.run({&a, &packed}, {&c}, {request}, {0, m}, workers), TN_OK);
    ASSERT_TRUE(packed.intact() && c.intact());
    ASSERT_EQ(std::memcmp(c.data(), want.data(), c.size()), 0)
        << "packed, n " << gemm.n.offset << " k " << gemm.k.offset << " flags " << gemm.flags << " m " << m;
  }

  // Compares the result of an epilogue on a product with a packed B with `result`, that of B itself, where the device
  // packs it. inputs: A, B, and the operands of the epilogue.
  void check_packed(const tn_gemm_epilogue& epilogue, std::vector<Guarded*> inputs, Guarded& product,
                    const Guarded& result, int64_t m, int32_t workers) {
    const auto* const table = device_.table<tn_packed_gemm_table>(TN_PACKED_GEMM);
    const tn_gemm& gemm = *epilogue.gemm;
    uint64_t bytes = 0;
    if (table->packed_bytes(device_.device(), device_.errors(), &gemm, &bytes) != TN_OK) return;
    ++packed_;
    PreparedCall pack(device_), fused(device_);
    ASSERT_EQ(table->prepare_pack(device_.device(), device_.services(), device_.errors(), &gemm, &pack.prepared),
              TN_OK);
    ASSERT_EQ(
        table->prepare_epilogue(device_.device(), device_.services(), device_.errors(), &epilogue, &fused.prepared),
        TN_OK);
    Guarded packed(bytes), same(result.size());
    ASSERT_EQ(pack.run({inputs[1]}, {&packed}, {TN_REQUEST_WRITE}, {0, m}, workers), TN_OK);
    inputs[1] = &packed;
    ASSERT_EQ(fused.run(inputs, {&product, &same}, {TN_REQUEST_WRITE, TN_REQUEST_WRITE}, {0, m}, workers), TN_OK);
    ASSERT_EQ(same.bytes(), result.bytes()) << "packed, n " << gemm.n.offset << " k " << gemm.k.offset << " m " << m;
  }

  // Compares rows [first, first + m) of a product, computed alone, with the sums.
  template <class T>
  void check_rows(const Shape& s, const std::vector<T>& sums, int64_t first, int64_t m, const T* a, const T* b,
                  const T* c, int32_t workers) {
    const std::vector<T> got = run(s, 1, m, a + first * s.k, b, c + first * s.n, workers);
    ASSERT_EQ(std::memcmp(got.data(), sums.data() + first * s.n, got.size() * sizeof(T)), 0)
        << s << ": rows " << first << " to " << first + m - 1 << ", " << workers << " workers";
  }

  // Products of 1 to kRows rows.
  template <class T>
  void check(int64_t n, int64_t k) {
    constexpr int64_t kRows = 25;
    const std::vector<T> a = numbers<T>(kRows * k, 1), columns = numbers<T>(n * k, 2), held = numbers<T>(kRows * n, 3);
    const std::vector<T> rows = transposed(columns, n, k);  // B [k, n]; with TN_TRANSPOSE_B `columns`
    for (const bool adds : {false, true}) {
      Shape s = {n, k, 0, adds ? -0.3 : 1, sizeof(T) == 4 ? TN_F32 : TN_F64, TN_REQUEST_WRITE};
      s.request = adds ? TN_REQUEST_ADD : TN_REQUEST_WRITE;
      std::vector<T> sums;
      for (int64_t i = 0; i < kRows; ++i)
        for (int64_t j = 0; j < n; ++j)
          sums.push_back(
              defined_sum<T>(s, a.data() + i * k, columns.data() + j * k, adds ? held.data() + i * n + j : nullptr));
      for (const uint32_t flags : {uint32_t{0}, uint32_t{TN_TRANSPOSE_B}}) {
        s.flags = flags;
        const T* const b = flags == 0 ? rows.data() : columns.data();
        for (int64_t m = 1; m <= 9; ++m)
          check_rows<T>(s, sums, m % 4 * 5, m, a.data(), b, held.data(), static_cast<int32_t>(m % 4 + 1));
        for (const int64_t m : {13, 24, 25}) check_rows<T>(s, sums, 0, m, a.data(), b, held.data(), 2);
        if (HasFatalFailure()) return;
      }
    }
  }

  DeviceUnderTest device_;
  int64_t bound_ = TN_UNBOUNDED;  // of the rows; a product with a bound may pack B by itself
  int packed_ = 0;                // products that were computed with a packed B, too
};

TEST_F(GemmRows, AreSumsInADefinedOrder) {
  for (const int64_t n : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 48, 65, 100})
    for (const int64_t k : {1, 2, 3, 8, 31, 32, 33, 63, 100, 255, 256, 257, 319, 320, 321, 513, 700}) {
      check<float>(n, k);
      check<double>(n, k);
      if (HasFatalFailure()) return;
    }
}

TEST_F(GemmRows, AreSumsInADefinedOrderIfTheyAreLong) {
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 5003}, {10, 4096}, {128, 784}, {300, 300}, {517, 64}}) {
    check<float>(n, k);
    check<double>(n, k);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(packed_, 100);
}

TEST_F(GemmRows, PackedMatricesAreOfOneProductWithConstantSizes) {
  const auto* const table = device_.table<tn_packed_gemm_table>(TN_PACKED_GEMM);
  const auto asked = [&](tn_dtype dtype, const tn_dim& n, int64_t k, uint32_t flags) {
    const tn_gemm gemm = {
        sizeof gemm, dtype, tn_dim_constant(1), tn_dim_symbol(TN_SYMBOL_SAMPLES), n, tn_dim_constant(k), flags, 0, 1};
    uint64_t bytes = 0;
    const tn_status status = table->packed_bytes(device_.device(), device_.errors(), &gemm, &bytes);
    if (status == TN_OK) {
      EXPECT_GE(bytes, static_cast<uint64_t>(n.offset * k * tn_dtype_bytes(dtype)));
    }
    return status;
  };
  EXPECT_EQ(asked(TN_F32, tn_dim_constant(64), 64, 0), TN_OK);
  EXPECT_EQ(asked(TN_F64, tn_dim_constant(64), 64, TN_TRANSPOSE_B), TN_OK);
  EXPECT_EQ(asked(TN_F32, tn_dim_constant(64), 64, TN_TRANSPOSE_A), TN_UNSUPPORTED);
  EXPECT_EQ(asked(TN_F32, tn_dim_constant(64), 63, 0), TN_UNSUPPORTED);
  EXPECT_EQ(asked(TN_F32, tn_dim_constant(1), 10'000, 0), TN_UNSUPPORTED);
  EXPECT_EQ(asked(TN_F32, tn_dim_constant(64), 0, 0), TN_UNSUPPORTED);
  EXPECT_EQ(asked(TN_F32, tn_dim_constant(int64_t{1} << 40), int64_t{1} << 40, 0), TN_UNSUPPORTED);
  EXPECT_EQ(asked(TN_F32, tn_dim_symbol(TN_SYMBOL_SAMPLES), 64, 0), TN_UNSUPPORTED);
  EXPECT_EQ(asked(TN_I32, tn_dim_constant(64), 64, 0), TN_UNSUPPORTED);
}

TEST_F(GemmRows, OfAnEmptyMinibatchAreNone) {
  for (const uint32_t flags : {uint32_t{0}, uint32_t{TN_TRANSPOSE_B}, uint32_t{TN_TRANSPOSE_A}}) {
    const Shape s = {130, 300, flags};
    const auto none = numbers<float>(1, 1), b = numbers<float>(s.n * s.k, 2);
    EXPECT_TRUE(run(s, 1, 0, none.data(), b.data(), none.data(), 2).empty());
  }
  EXPECT_EQ(packed_, 2);
}

// Rounded factors, where the device has them; their B packed, too.
TEST_F(GemmRows, InBfloat16DoNotDependOnTilesAndThreads) {
  constexpr int64_t kRows = 131;
  bound_ = kRows;
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{5, 40}, {130, 301}, {513, 257}, {64, 2100}})
    for (const uint32_t flags : {uint32_t{0}, uint32_t{TN_TRANSPOSE_B}})
      for (const double alpha : {1.0, 0.7}) {
        const Shape s = {n, k, flags, alpha, TN_F32, TN_REQUEST_ADD, TN_PRECISION_BF16};
        const auto a = numbers<float>(kRows * k, 1), b = numbers<float>(n * k, 2), c = numbers<float>(kRows * n, 3);
        const std::vector<float> all = run(s, 1, kRows, a.data(), b.data(), c.data(), 1);
        for (const int64_t m : {1, 2, 15, 16, 17, 31, 33, 64, 131})
          for (const int64_t first : {int64_t{0}, kRows - m})
            check_rows<float>(s, all, first, m, a.data(), b.data(), c.data(), static_cast<int32_t>(m % 4 + 1));
        if (HasFatalFailure()) return;
      }
  EXPECT_GT(packed_, 200);
}

// More rows than a tile, and columns that are cut: parts of the rows give the bits of all of them.
TEST_F(GemmRows, DoNotDependOnTilesAndThreads) {
  constexpr int64_t kRows = 331;
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 900}, {5, 40}, {130, 300}, {513, 257}})
    for (const uint32_t flags : {uint32_t{0}, uint32_t{TN_TRANSPOSE_B}}) {
      const Shape s = {n, k, flags, 0.7, TN_F32, TN_REQUEST_ADD};
      const auto a = numbers<float>(kRows * k, 1), b = numbers<float>(n * k, 2), c = numbers<float>(kRows * n, 3);
      const std::vector<float> all = run(s, 1, kRows, a.data(), b.data(), c.data(), 1);
      for (int32_t workers = 2; workers <= 4; ++workers)
        ASSERT_EQ(run(s, 1, kRows, a.data(), b.data(), c.data(), workers), all) << s << ", " << workers << " workers";
      for (const auto& [first, m] : {std::pair<int64_t, int64_t>{330, 1}, {7, 2}, {100, 23}, {3, 97}, {1, 200}})
        check_rows<float>(s, all, first, m, a.data(), b.data(), c.data(), 3);
      if (HasFatalFailure()) return;
    }
}

// Products of many rows pack B by themselves, and have the bits of those that do not.
TEST_F(GemmRows, ManyRowsHaveTheBitsOfFew) {
  constexpr int64_t kRows = 331;
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{130, 300}, {513, 257}, {40, 1024}})
    for (const uint32_t flags : {uint32_t{0}, uint32_t{TN_TRANSPOSE_B}}) {
      const Shape s = {n, k, flags, 0.7, TN_F32, TN_REQUEST_ADD};
      const auto a = numbers<float>(kRows * k, 1), b = numbers<float>(n * k, 2), c = numbers<float>(kRows * n, 3);
      bound_ = TN_UNBOUNDED;
      const std::vector<float> all = run(s, 1, kRows, a.data(), b.data(), c.data(), 1);
      bound_ = kRows;
      for (int32_t workers = 1; workers <= 4; ++workers)
        ASSERT_EQ(run(s, 1, kRows, a.data(), b.data(), c.data(), workers), all) << s << ", " << workers << " workers";
    }
}

// With a transposed A as well, whichever kernels compute it, and where the request is ADD.
TEST_F(GemmRows, OfATransposedMatrixDoNotDependOnTheThreads) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{203, 130, 1100}, {389, 50, 2000}, {192, 410, 980}})
    for (const uint32_t flags : {uint32_t{TN_TRANSPOSE_A}, uint32_t{TN_TRANSPOSE_A | TN_TRANSPOSE_B}}) {
      const Shape s = {n, k, flags, 0.7, TN_F32, TN_REQUEST_ADD};
      const auto a = numbers<float>(m * k, 1), b = numbers<float>(n * k, 2), c = numbers<float>(m * n, 3);
      bound_ = m;
      const std::vector<float> all = run(s, 1, m, a.data(), b.data(), c.data(), 1);
      for (int32_t workers = 2; workers <= 4; ++workers)
        ASSERT_EQ(run(s, 1, m, a.data(), b.data(), c.data(), workers), all) << s << ", " << workers << " workers";
    }
}

// Every form: a product of a batch has the bits that it has alone.
TEST_F(GemmRows, ProductsOfABatchDoNotDependOnEachOther) {
  constexpr int64_t kBatch = 9;
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{1, 17, 33}, {2, 3, 4}, {7, 1, 300}, {20, 30, 40}, {5, 9, 1}, {33, 65, 513}})
    for (uint32_t flags = 0; flags < 4; ++flags) {
      const Shape s = {n, k, flags, 1};
      const auto a = numbers<float>(kBatch * m * k, 1), b = numbers<float>(kBatch * k * n, 2),
                 c = numbers<float>(kBatch * m * n, 3);
      const std::vector<float> all = run(s, kBatch, m, a.data(), b.data(), c.data(), 1);
      for (int32_t workers = 2; workers <= 4; ++workers)
        ASSERT_EQ(run(s, kBatch, m, a.data(), b.data(), c.data(), workers), all) << s;
      for (int64_t i = 0; i < kBatch; ++i) {
        const std::vector<float> one =
            run(s, 1, m, a.data() + i * m * k, b.data() + i * k * n, c.data() + i * m * n, 2);
        ASSERT_EQ(std::memcmp(one.data(), all.data() + i * m * n, one.size() * sizeof(float)), 0)
            << s << ", product " << i;
      }
    }
}

// The softmax of alpha A B + bias, as an epilogue and with sums of rows, for 1 to 300 rows.
TEST_F(GemmRows, OfAnEpilogueDoNotDependOnEachOther) {
  ProgramWriter w;
  const int32_t product = w.input(TN_FULL), added = w.input(TN_PER_COLUMN);
  const int32_t x = w.apply(TN_OP_ADD, product, added);
  const int32_t e = w.apply(TN_OP_EXP, w.apply(TN_OP_SUB, x, w.reduce(TN_OP_REDUCE_MAX, x, TN_PER_ROW)));
  w.output(w.apply(TN_OP_DIV, e, w.reduce(TN_OP_REDUCE_SUM, e, TN_PER_ROW)));
  const Program program = Program::from(w.finish().view());
  const tn_program view = program.view();
  const tn_dtype inputs[] = {TN_F32, TN_F32}, output = TN_F32;
  const auto* const table = device_.table<tn_gemm_epilogue_table>(TN_GEMM_EPILOGUE);
  constexpr int64_t kRows = 300;
  struct Size {
    int64_t n, k;
    uint32_t precision = TN_PRECISION_FULL;
  };
  for (const auto& [n, k, precision] : {Size{10, 128},
                                        {1, 300},
                                        {3, 5},
                                        {128, 784},
                                        {300, 40},
                                        {128, 784, TN_PRECISION_BF16},
                                        {300, 41, TN_PRECISION_BF16}}) {
    const auto a = numbers<float>(kRows * k, 1), b = numbers<float>(k * n, 2), bias = numbers<float>(n, 3);
    const auto softmax = [&, n = n, k = k, precision = precision](int64_t first, int64_t m, int64_t bound,
                                                                  int32_t workers) {
      tn_dim rows = tn_dim_symbol(TN_SYMBOL_SAMPLES);
      rows.bound = bound;
      const tn_gemm gemm = {sizeof gemm,        TN_F32, tn_dim_constant(1), rows, tn_dim_constant(n),
                            tn_dim_constant(k), 0,      precision,          0.5};
      const tn_pointwise_site site = {sizeof site, TN_F32,  &view, program.extents.data(),
                                      inputs,      &output, rows,  tn_dim_constant(n)};
      const tn_gemm_epilogue epilogue = {sizeof epilogue, 0, &gemm, &site};
      PreparedCall call(device_);
      EXPECT_EQ(table->prepare(device_.device(), device_.services(), device_.errors(), &epilogue, &call.prepared),
                TN_OK);
      Guarded in_a = guarded(a.data() + first * k, m * k), in_b = guarded(b.data(), k * n),
              in_bias = guarded(bias.data(), n), c(static_cast<size_t>(m * n) * 4), out(static_cast<size_t>(m * n) * 4);
      EXPECT_EQ(call.run({&in_a, &in_b, &in_bias}, {&c, &out}, {TN_REQUEST_WRITE, TN_REQUEST_WRITE}, {0, m}, workers),
                TN_OK);
      check_packed(epilogue, {&in_a, &in_b, &in_bias}, c, out, m, workers);
      return out.bytes();
    };
    const std::vector<uint8_t> all = softmax(0, kRows, kRows, 1);
    for (int32_t workers = 2; workers <= 4; ++workers) ASSERT_EQ(softmax(0, kRows, kRows, workers), all);
    for (const int64_t bound : {int64_t{32}, kRows})
      for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 32})
        for (const int64_t first : {int64_t{0}, kRows - m}) {
          const std::vector<uint8_t> some = softmax(first, m, bound, static_cast<int32_t>(m % 4 + 1));
          ASSERT_EQ(std::memcmp(some.data(), all.data() + first * n * 4, some.size()), 0)
              << "n " << n << " k " << k << ": rows " << first << " to " << first + m - 1 << " of at most " << bound;
        }
  }
  EXPECT_GT(packed_, 10);
}

}  // namespace
}  // namespace tenon_tests
