// What scripts/tune-gemm measures: products with a transposed A by the device cpu and by OpenBLAS, at the sizes of the
// table of the provider openblas. Prints lines of JSON: {"processor"}, {"limit"} in GFLOP/s, and for each product
// {"form", "k", "m", "n", "now"} with the GFLOP/s of each kind of kernels, named by the letters of the table. One
// thread, float32.
//
//   bench_tune_gemm ROUNDS
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "host/cli/bench/probe.h"
#include "openblas/choice.h"
#include "openblas/products.h"
#include "openblas/table.h"
#include "primitives/gemm.h"
#include "support/bench.h"

namespace {

using tenon::openblas::Kernels;

constexpr int64_t kMostElements = int64_t{4096} * 4096;

struct Operands {
  std::vector<float> a = std::vector<float>(kMostElements, 0.5F);
  std::vector<float> b = std::vector<float>(kMostElements, 0.5F);
  std::vector<float> c = std::vector<float>(kMostElements);
  std::vector<uint8_t> workspace;
};

tn_parallel one_thread() {
  tn_parallel parallel = {};
  parallel.size = sizeof parallel;
  parallel.workers = 1;
  parallel.for_each = [](void*, int64_t count, void (*task)(void*, int64_t, int32_t), void* argument) {
    for (int64_t i = 0; i < count; ++i) task(argument, i, 0);
  };
  return parallel;
}

// One product by the device cpu, copies of the factors included.
tn_status multiply_own(const tn_gemm& gemm, const tn_execution& execution, Operands* operands) {
  tenon::cpu::Product product = {};
  product.gemm = &gemm;
  product.batch = 1;
  product.m = gemm.m.bound;
  product.n = gemm.n.bound;
  product.k = gemm.k.bound;
  product.workers = 1;
  product.a = reinterpret_cast<const uint8_t*>(operands->a.data());
  product.b = reinterpret_cast<const uint8_t*>(operands->b.data());
  product.c = reinterpret_cast<uint8_t*>(operands->c.data());
  tenon::cpu::cut(&product);
  if (!operands->workspace.empty()) tenon::cpu::pack_factors(execution, operands->workspace.data(), &product);
  return tenon::cpu::multiply_all(execution, product);
}

// Returns the seconds of one product by these kernels.
double time_product(const tn_gemm& gemm, Kernels kernels, Operands* operands, int64_t repeats) {
  static const tn_parallel parallel = one_thread();
  tn_execution execution = {};
  execution.parallel = &parallel;
  operands->workspace.resize(
      kernels == Kernels::kOwn ? tenon::cpu::worthwhile_bytes(gemm, 1, gemm.m.bound, gemm.n.bound, gemm.k.bound) : 0);
  const tenon::openblas::Sizes sizes = {1, gemm.m.bound, gemm.n.bound, gemm.k.bound};
  const tenon::openblas::Operands given = {reinterpret_cast<const uint8_t*>(operands->a.data()),
                                           reinterpret_cast<const uint8_t*>(operands->b.data()),
                                           reinterpret_cast<uint8_t*>(operands->c.data()), false};
  const double start = bench::now();
  for (int64_t i = 0; i < repeats; ++i) {
    const tn_status status = kernels == Kernels::kOwn
                                 ? multiply_own(gemm, execution, operands)
                                 : tenon::openblas::multiply(gemm, kernels, sizes, given, execution);
    if (status != TN_OK) std::exit(1);
  }
  return (bench::now() - start) / static_cast<double>(repeats);
}

void measure(uint32_t flags, int64_t k, int64_t m, int64_t n, int rounds, Operands* operands) {
  tn_gemm gemm = {};
  gemm.size = sizeof gemm;
  gemm.dtype = TN_F32;
  gemm.batch = tn_dim_constant(1);
  gemm.m = tn_dim_constant(m);
  gemm.n = tn_dim_constant(n);
  gemm.k = tn_dim_constant(k);
  gemm.flags = flags;
  gemm.alpha = 1;
  const double operations = 2.0 * static_cast<double>(m * n * k);
  constexpr double kShortest = 4e7;  // operations that are timed at once
  const auto repeats = std::max<int64_t>(1, static_cast<int64_t>(kShortest / operations));
  std::vector<Kernels> kinds;
  for (const Kernels kernels : {Kernels::kOwn, Kernels::kPacked, Kernels::kUnpacked})
    if (tenon::openblas::can_compute(kernels, k)) kinds.push_back(kernels);
  std::vector<double> best(kinds.size(), 1e9);
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < kinds.size(); ++i)
      best[i] = std::min(best[i], time_product(gemm, kinds[i], operands, repeats));
  const auto letter = [](Kernels kernels) { return "obu"[static_cast<size_t>(kernels)]; };
  std::printf(R"({"form": %d, "k": %lld, "m": %lld, "n": %lld, "now": "%c")", (flags & TN_TRANSPOSE_B) != 0 ? 1 : 0,
              static_cast<long long>(k), static_cast<long long>(m), static_cast<long long>(n),
              letter(tenon::openblas::choose_kernels(m, n, k, flags)));
  for (size_t i = 0; i < kinds.size(); ++i)
    std::printf(R"(, "%c": %.1f)", letter(kinds[i]), 1e-9 * operations / best[i]);
  std::printf("}\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc == 2 ? std::atoi(argv[1]) : 0;
  if (rounds < 1) return std::fprintf(stderr, "usage: bench_tune_gemm ROUNDS\n"), 64;
  std::printf(R"({"processor": "%s"})"
              "\n",
              tenon::openblas::processor_class());
  std::printf(R"({"limit": %.1f})"
              "\n",
              1e-9 * tenon::cli::peak_operations(1));
  Operands operands;
  for (const uint32_t flags : {uint32_t{TN_TRANSPOSE_A}, uint32_t{TN_TRANSPOSE_A | TN_TRANSPOSE_B}})
    for (const int64_t k : tenon::openblas::kGemmTerms)
      for (const int64_t m : tenon::openblas::kGemmSides)
        for (const int64_t n : tenon::openblas::kGemmSides) measure(flags, k, m, n, rounds, &operands);
  return 0;
}
