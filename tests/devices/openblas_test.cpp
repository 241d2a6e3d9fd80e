// Calls of OpenBLAS by the provider "openblas": the number of simultaneous calls, the bytes that they pack, and
// failures of allocation. The plugin is linked without its choice of kernels, and its calls of cblas_sgemm and mmap are
// wrapped by this file. ctest runs the tests once more for each set of kernels (OPENBLAS_CORETYPE).
// SPDX-License-Identifier: Apache-2.0
#include <cblas.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>

#include "buffers.h"
#include "choice.h"
#include "core_type.h"
#include "products.h"
#include "tests/devices/prepared_call.h"

namespace {

std::string core() {
  const char* named = std::getenv("OPENBLAS_CORETYPE");
  return named == nullptr ? "" : named;
}

// The number of calls of OpenBLAS that run, and its maximum. If `gather` is not 0, the first calls wait until that many
// run, and then 50 ms longer, in which further calls might begin.
struct {
  std::atomic<int> running{0}, most{0}, gather{0};
  std::atomic<bool> gathered{false};
} calls;

class Running {
 public:
  Running() {
    const int now = ++calls.running;
    for (int most = calls.most; most < now && !calls.most.compare_exchange_weak(most, now);) continue;
    if (calls.gather == 0) return;
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::seconds(20);
    while (calls.running < calls.gather && !calls.gathered && Clock::now() < end) std::this_thread::yield();
    if (!calls.gathered) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    calls.gathered = true;
  }
  ~Running() { --calls.running; }
};

// The number of mappings of packing buffers that will succeed, and the buffers that were mapped.
std::atomic<int> mappings_left{1 << 20};
std::vector<uint8_t*> buffers;

uint64_t buffer_bytes() {
  return tenon::openblas::knows_core() ? tenon::openblas::kKnownCoreBytes : tenon::openblas::kAnyCoreBytes;
}

}  // namespace

bool tenon::openblas::has_small_kernels() { return core() == "SkylakeX"; }
bool tenon::openblas::knows_core() { return !core().empty(); }

extern "C" {  // names that the linker's --wrap prescribes
// NOLINTBEGIN
void* __real_mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset);
void* __wrap_mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (bytes < buffer_bytes()) return __real_mmap(at, bytes, protection, flags, file, offset);
  if (--mappings_left < 0) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  void* memory = __real_mmap(at, bytes, protection, flags, file, offset);
  buffers.push_back(static_cast<uint8_t*>(memory));
  return memory;
}
void __real_cblas_sgemm(CBLAS_ORDER, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, blasint, blasint, blasint, float, const float*,
                        blasint, const float*, blasint, float, float*, blasint);
void __wrap_cblas_sgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m, blasint n, blasint k,
                        float alpha, const float* a, blasint lda, const float* b, blasint ldb, float beta, float* c,
                        blasint ldc) {
  const Running here;
  __real_cblas_sgemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
// NOLINTEND
}

namespace tenon_tests {
namespace {

// Mapped zeros, which do not take memory as long as they are only read.
class Zeros {
 public:
  explicit Zeros(size_t bytes)
      : bytes_(bytes),
        memory_(
            __real_mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~Zeros() { munmap(memory_, bytes_); }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  [[nodiscard]] uint8_t* data() const { return static_cast<uint8_t*>(memory_); }

 private:
  size_t bytes_;
  void* memory_;
};

// Skips the tests if the processor cannot run the kernels.
class Kernels : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__x86_64__)
    if (core() == "SkylakeX" && !__builtin_cpu_supports("avx512dq")) GTEST_SKIP() << "no AVX-512 on this machine";
    if (core() == "Haswell" && !__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no AVX2 on this machine";
#endif
    calls.most = 0;
    calls.gather = 0;
    calls.gathered = false;
    mappings_left = 1 << 20;
  }
};

class OpenBlas : public Kernels {
 protected:
  // Computes `batch` products of ones of the form and sizes that the tables of both sets of kernels give to OpenBLAS.
  // Returns the status; *right: whether the results are right.
  tn_status multiply(int64_t batch, int32_t workers, bool* right) {
    tn_gemm gemm = {};
    gemm.size = sizeof gemm;
    gemm.dtype = TN_F32;
    gemm.batch = tn_dim_symbol(TN_SYMBOL_SAMPLES);
    gemm.m = tn_dim_constant(kRows);
    gemm.n = gemm.k = tn_dim_constant(kSide);
    gemm.flags = TN_TRANSPOSE_A | TN_TRANSPOSE_B;  // this form packs for every size
    gemm.alpha = 1;
    PreparedCall call(device_);
    EXPECT_EQ(tenon::openblas::gemm_table.prepare(nullptr, device_.services(), device_.errors(), &gemm, &call.prepared),
              TN_OK);
    EXPECT_EQ(call.prepared.traits & TN_TRAIT_PORTABLE, 0U);
    const std::vector<double> in_a(static_cast<size_t>(batch * kRows * kSide), 1);
    const std::vector<double> in_b(static_cast<size_t>(batch * kSide * kSide), 1);
    Guarded a = write_all(TN_F32, in_a), b = write_all(TN_F32, in_b), c = write_all(TN_F32, in_a);
    const tn_status status = call.run({&a, &b}, {&c}, {TN_REQUEST_WRITE}, {0, batch}, workers);
    *right = read_all(TN_F32, c) == std::vector<double>(in_a.size(), kSide);
    return status;
  }

  static constexpr int64_t kRows = 40, kSide = 40;
  DeviceUnderTest device_;
};

// The first three tests need this order: the first one starts without buffers, and buffers are never freed.
TEST_F(OpenBlas, NoMemoryAtAllIsAStatus) {
  mappings_left = 0;
  bool right = true;
  EXPECT_EQ(multiply(20, 4, &right), TN_OUT_OF_MEMORY);
  EXPECT_EQ(device_.code, TN_OUT_OF_MEMORY);
  EXPECT_EQ(device_.message, "no memory to pack the matrices of a product");
  EXPECT_EQ(calls.most, 0) << "OpenBLAS does not handle a failed allocation";
}

TEST_F(OpenBlas, OneBufferServesEverybody) {
  mappings_left = 1;
  bool right = false;
  EXPECT_EQ(multiply(200, 8, &right), TN_OK) << device_.message;
  EXPECT_TRUE(right);
  EXPECT_EQ(calls.most, 1);
  EXPECT_EQ(buffers.size(), 1U);
}

TEST_F(OpenBlas, NoMoreCallsAtOnceThanAreAllowed) {
  calls.gather = tenon::openblas::kMostBlasCalls;
  bool right = false;
  alarm(60);  // a call with one more buffer than that would wait forever to put it back
  EXPECT_EQ(multiply(300, 200, &right), TN_OK) << device_.message;
  alarm(0);
  EXPECT_TRUE(right);
  EXPECT_EQ(calls.most, tenon::openblas::kMostBlasCalls);
  EXPECT_EQ(buffers.size(), static_cast<size_t>(tenon::openblas::kMostBlasCalls));
}

using PackingBuffer = Kernels;

// Returns the number of bytes up to the end of the last page of a buffer that was written.
uint64_t touched(const uint8_t* buffer) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident(buffer_bytes() / page);
  EXPECT_EQ(mincore(const_cast<uint8_t*>(buffer), buffer_bytes(), resident.data()), 0);
  for (size_t i = resident.size(); i > 0; --i)
    if ((resident[i - 1] & 1) != 0) return i * page;
  return 0;
}

// Calls `multiply` for the tile with the most rows. n and k are near sizes at which OpenBLAS changes its packing.
template <class Multiply>
void multiply_tile(int64_t n, int64_t k, tn_dtype dtype, Multiply multiply) {
  constexpr int64_t kRows = 1 << 22;
  int64_t most = 0;
  for (int64_t m = kRows; m > 1; m -= m / 5 + 1)
    most = std::max(most, tenon::openblas::choose_tiles(tenon::openblas::Kernels::kPacked, m, n, k).rows);
  const auto element = static_cast<int64_t>(tn_dtype_bytes(dtype));
  const Zeros a(static_cast<size_t>(most * k * element)), b(static_cast<size_t>(k * n * element)),
      c(static_cast<size_t>(most * n * element));
  multiply(most, a.data(), b.data(), c.data());
}

TEST_F(PackingBuffer, HoldsWhatIsPacked) {
  const auto check = [](int64_t n, int64_t k, tn_dtype dtype) {
    multiply_tile(n, k, dtype, [&](int64_t m, uint8_t* a, uint8_t* b, uint8_t* c) {
      const tenon::openblas::BlasCall permit;
      ASSERT_TRUE(permit);
      const auto rows = static_cast<blasint>(m), columns = static_cast<blasint>(n), depth = static_cast<blasint>(k);
      if (dtype == TN_F32)
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasTrans, rows, columns, depth, 1, reinterpret_cast<float*>(a), rows,
                    reinterpret_cast<float*>(b), depth, 0, reinterpret_cast<float*>(c), columns);
      else
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasTrans, rows, columns, depth, 1, reinterpret_cast<double*>(a), rows,
                    reinterpret_cast<double*>(b), depth, 0, reinterpret_cast<double*>(c), columns);
    });
  };
  for (const tn_dtype dtype : {TN_F32, TN_F64})
    for (const int64_t n : {193, 449, 513, 769, 1025})
      for (const int64_t k : {64, 384, 448, 890}) check(n, k, dtype);
  uint64_t most = 0;
  for (const uint8_t* buffer : buffers) most = std::max(most, touched(buffer));
  RecordProperty("touched", std::to_string(most));
  EXPECT_GT(most, uint64_t{1} << 20) << "packing was not observed";
  EXPECT_LT(most, tenon::openblas::kKnownCoreBytes * 7 / 8) << "an eighth is reserved for sizes that are not tested";
}

// A product of a matrix and a vector copies pieces of the vector into a buffer; here for a long vector.
TEST_F(PackingBuffer, HoldsWhatAVectorNeeds) {
  constexpr blasint kLong = 3'000'000, kFew = 4;
  const Zeros matrix(size_t{kLong} * kFew * sizeof(double)), x(kLong * sizeof(double)), y(kLong * sizeof(double));
  const auto check = [&]<class T>(T, auto gemv) {
    const auto* a = reinterpret_cast<const T*>(matrix.data());
    for (const CBLAS_TRANSPOSE op : {CblasNoTrans, CblasTrans})
      for (const bool tall : {true, false}) {
        const tenon::openblas::BlasCall permit;
        ASSERT_TRUE(permit);
        const blasint rows = tall ? kLong : kFew, columns = tall ? kFew : kLong;
        gemv(CblasRowMajor, op, rows, columns, T{1}, a, columns, reinterpret_cast<const T*>(x.data()), 1, T{1},
             reinterpret_cast<T*>(y.data()), 1);
      }
  };
  check(float{}, &cblas_sgemv);
  check(double{}, &cblas_dgemv);
  for (const uint8_t* buffer : buffers) EXPECT_LT(touched(buffer), buffer_bytes() * 7 / 8);
}

}  // namespace
}  // namespace tenon_tests
