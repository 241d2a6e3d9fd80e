// Every float32 through the functions of one argument: the kernels of the device cpu, with each width of vectors, and
// tenon/elementary.h, whose results are rounded once. The reference is the C library in float64, and MPFR where the
// nearest float32 is in doubt. Use:
//   every_float [--threads N] [--every N] [FUNCTION...]
// With --every only each N-th bit pattern is taken. Prints for each function the largest error in units in the last
// place, its argument, the number of results that are not the nearest, and a digest of all bits, the same on every
// processor. Ends with 1 if an error is above what docs/arithmetic.md states, or widths of vectors differ.
// SPDX-License-Identifier: Apache-2.0
#include <mpfr.h>
#include <tenon/elementary.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "pointwise/kernels.h"

namespace {

using tenon::cpu::Isa;
using tenon::cpu::Kernel;

struct Function {
  const char* name;
  uint16_t operation;        // kNoOperation: without a kernel
  double bound;              // of the kernel
  double (*header)(double);  // of tenon/elementary.h, or null
  double (*library)(double);
  int (*precise)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
};

constexpr uint16_t kNone = tenon::cpu::kNoOperation;
const Function kFunctions[] = {
    {"sqrt", TN_OP_SQRT, 0.5, nullptr, std::sqrt, mpfr_sqrt},
    {"exp", TN_OP_EXP, 1.04, tn_math_exp, std::exp, mpfr_exp},
    {"exp2", kNone, 0, tn_math_exp2, std::exp2, mpfr_exp2},
    {"expm1", TN_OP_EXPM1, 3.5, tn_math_expm1, std::expm1, mpfr_expm1},
    {"log", TN_OP_LOG, 0.9, tn_math_log, std::log, mpfr_log},
    {"log2", kNone, 0, tn_math_log2, std::log2, mpfr_log2},
    {"log1p", TN_OP_LOG1P, 2.4, tn_math_log1p, std::log1p, mpfr_log1p},
    {"tanh", TN_OP_TANH, 2.7, tn_math_tanh, std::tanh, mpfr_tanh},
    {"erf", TN_OP_ERF, 2.6, tn_math_erf, std::erf, mpfr_erf},
    {"sin", TN_OP_SIN, 2.5, tn_math_sin, std::sin, mpfr_sin},
    {"cos", TN_OP_COS, 2.4, tn_math_cos, std::cos, mpfr_cos},
};

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr uint64_t kPatterns = uint64_t{1} << 32;

// Of a float32 of this size.
double unit_of(double exact) { return std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23); }

bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

// In units in the last place; infinity where one of both is a NaN, has no end or is a zero of another sign.
double error_of(float result, double exact) {
  if (same(result, static_cast<float>(exact)) && (std::isnan(exact) || std::isinf(exact) || exact == 0)) return 0;
  if (std::isnan(result) || std::isnan(exact) || std::isinf(exact) || std::signbit(result) != std::signbit(exact))
    return kInf;
  const double number = std::isinf(result) ? std::copysign(0x1p128, result) : static_cast<double>(result);
  return exact == 0 ? kInf : std::abs(number - exact) / unit_of(exact);
}

// Whether the nearest float32 depends on the last two bits of `result`.
bool in_doubt(double result) {
  constexpr uint64_t kHalf = uint64_t{1} << 28;  // of a unit in the last place of float32
  constexpr double kUnitOfSubnormals = 0x1p-149;
  const double size = std::abs(result);
  if (size >= 0x1p-126) return (std::bit_cast<uint64_t>(size) & (2 * kHalf - 1)) - (kHalf - 4) <= 8;
  const double units = size / kUnitOfSubnormals;
  return std::abs(units - std::floor(units) - 0.5) < 0x1p-27;
}

float nearest(const Function& function, double x) {
  mpfr_t number, exact;
  mpfr_init2(number, 53), mpfr_init2(exact, 160);
  mpfr_set_d(number, x, MPFR_RNDN);
  function.precise(exact, number, MPFR_RNDN);
  const float result = mpfr_get_flt(exact, MPFR_RNDN);
  mpfr_clears(number, exact, static_cast<mpfr_ptr>(nullptr));
  return result;
}

// What results are, in any order of the arguments.
struct Results {
  double largest = 0;
  float at = 0;
  uint64_t not_nearest = 0, digest = 0;

  void add(float x, float result, float expected, double exact) {
    const uint32_t bits = std::isnan(result) ? 0x7fc00000 : std::bit_cast<uint32_t>(result);
    uint64_t mixed = (static_cast<uint64_t>(std::bit_cast<uint32_t>(x)) << 32 | bits) * 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9;
    digest += mixed ^ mixed >> 32;
    if (same(result, expected)) return;
    ++not_nearest;
    const double error = error_of(result, exact);
    if (error > largest) largest = error, at = x;
  }
  void add(const Results& other) {
    if (other.largest > largest) largest = other.largest, at = other.at;
    not_nearest += other.not_nearest;
    digest += other.digest;
  }
};

struct Outcome {
  Results kernel, header;
  uint64_t widths_differ = 0;
};

constexpr size_t kChunk = size_t{1} << 16;

// Of the arguments first, first + step, ...
Outcome of_chunk(const Function& function, const std::vector<Kernel>& kernels, uint64_t first, uint64_t step) {
  std::vector<float> x, results(kChunk), narrower(kChunk);
  for (uint64_t bits = first; bits < kPatterns && x.size() < kChunk; bits += step)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  const auto count = static_cast<int64_t>(x.size());
  Outcome outcome;
  for (size_t k = 0; k < kernels.size(); ++k) {
    float* const to = k == 0 ? results.data() : narrower.data();
    kernels[k](to, x.data(), nullptr, nullptr, count, 1);
    for (size_t i = 0; i < x.size(); ++i) outcome.widths_differ += same(results[i], to[i]) ? 0U : 1U;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = function.library(x[i]);
    float expected = static_cast<float>(exact);
    const bool unsure = in_doubt(exact);
    const double header = function.header != nullptr ? function.header(x[i]) : exact;
    if (unsure || !same(static_cast<float>(header), expected)) expected = nearest(function, x[i]);
    if (!kernels.empty()) outcome.kernel.add(x[i], results[i], expected, exact);
    if (function.header != nullptr) outcome.header.add(x[i], static_cast<float>(header), expected, exact);
  }
  return outcome;
}

// The kernels whose bits docs/arithmetic.md defines: those of processors with fused multiply-adds.
std::vector<Kernel> kernels_of(const Function& function) {
  std::vector<Kernel> kernels;
  if (function.operation == kNone) return kernels;
  const Isa best = tenon::cpu::detect_isa();
  for (const Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kBaseline})
    if (isa <= best && (isa != Isa::kBaseline || best == isa))
      kernels.push_back(tenon::cpu::math_kernel({.isa = isa,
                                                 .wide = false,
                                                 .operation = function.operation,
                                                 .kind = TN_FLOAT,
                                                 .to = TN_FLOAT,
                                                 .broadcast = 0}));
  return kernels;
}

Outcome of_all(const Function& function, unsigned threads, uint64_t every) {
  const std::vector<Kernel> kernels = kernels_of(function);
  std::atomic<uint64_t> next{0};
  std::vector<Outcome> outcomes(threads);
  {
    std::vector<std::jthread> workers;
    for (Outcome& outcome : outcomes)
      workers.emplace_back([&] {
        for (uint64_t first = next.fetch_add(kChunk * every); first < kPatterns;
             first = next.fetch_add(kChunk * every)) {
          const Outcome chunk = of_chunk(function, kernels, first, every);
          outcome.kernel.add(chunk.kernel);
          outcome.header.add(chunk.header);
          outcome.widths_differ += chunk.widths_differ;
        }
        mpfr_free_cache();
      });
  }
  Outcome all;
  for (const Outcome& outcome : outcomes) {
    all.kernel.add(outcome.kernel);
    all.header.add(outcome.header);
    all.widths_differ += outcome.widths_differ;
  }
  return all;
}

void print(const char* name, const char* what, const Results& results) {
  std::printf("%-6s %-7s %12.9f at %-14.9g %12" PRIu64 " not the nearest, digest %016" PRIx64 "\n", name, what,
              std::max(results.largest, 0.5), static_cast<double>(results.at), results.not_nearest, results.digest);
}

bool keeps_bounds(const Function& function, unsigned threads, uint64_t every) {
  constexpr double kRounding = 0.05;       // a bound is stated with one digit behind the point
  constexpr double kHeader = 0.500000001;  // the error of float64 is 2^-29 of a unit of float32
  const Outcome outcome = of_all(function, threads, every);
  if (function.operation != kNone) print(function.name, "kernel", outcome.kernel);
  if (function.header != nullptr) print(function.name, "header", outcome.header);
  if (outcome.widths_differ != 0)
    std::printf("%-6s %" PRIu64 " results differ with the width of vectors\n", function.name, outcome.widths_differ);
  std::fflush(stdout);
  return outcome.widths_differ == 0 && outcome.kernel.largest <= function.bound + kRounding &&
         outcome.header.largest <= kHeader;
}

}  // namespace

int main(int count, char** arguments) {
  unsigned threads = 2;
  uint64_t every = 1;
  std::vector<std::string> names;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if ((argument == "--threads" || argument == "--every") && i + 1 < count) {
      const unsigned long number = std::max(1UL, std::strtoul(arguments[++i], nullptr, 10));
      if (argument == "--threads") threads = static_cast<unsigned>(number);
      if (argument == "--every") every = number;
    } else {
      names.push_back(argument);
    }
  }
  bool keeps = true;
  for (const Function& function : kFunctions)
    if (names.empty() || std::find(names.begin(), names.end(), function.name) != names.end())
      keeps = keeps_bounds(function, threads, every) && keeps;
  return keeps ? 0 : 1;
}
