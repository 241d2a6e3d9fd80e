// Compiled pointwise programs: the bits of the kernels, with each instruction set, and without executable memory.
// SPDX-License-Identifier: Apache-2.0
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <limits>
#include <memory>
#include <set>

#include "pointwise/run_passes.h"
#include "tests/devices/drawn_case.h"

namespace tenon_tests {
namespace {

using tenon::cpu::Binding;
using tenon::cpu::FunctionCache;
using tenon::cpu::Functions;
using tenon::cpu::Isa;

enum class Compiled : bool { kNo, kYes };

template <Isa isa, Compiled compiled>
tn_status prepare_with(DeviceUnderTest&, const tn_pointwise_site& site, tn_prepared* prepared) {
  tn_dtype missing = TN_COMPUTE;
  FunctionCache functions;
  auto* const used = compiled == Compiled::kYes ? &functions : nullptr;
  auto binding = std::make_unique<Binding>(tenon::cpu::generate(site, isa, used, &missing));
  prepared->workspace_bytes = tenon::cpu::workspace_bytes(*binding);
  prepared->run = [](void* self, const tn_execution* execution, const tn_call* call) {
    return tenon::cpu::run_pointwise(*static_cast<const Binding*>(self), *execution, *call);
  };
  prepared->destroy = [](void* self) { delete static_cast<Binding*>(self); };
  prepared->binding = binding.release();
  return TN_OK;
}

bool is_compiled(const tn_prepared& prepared) { return static_cast<Binding*>(prepared.binding)->functions != nullptr; }

// A random program on reals, with zeros of both signs, infinities and NaN among them.
PointwiseCase case_of_reals(uint64_t seed) {
  PointwiseCase c = DrawnCase(seed).make();
  std::mt19937_64 random(seed);
  constexpr double kSpecial[] = {0.0, -0.0, INFINITY, -INFINITY, NAN};
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (input_type(c, i) != TN_F32 && input_type(c, i) != TN_F64) continue;
    for (double& number : c.inputs[i])
      number = random() % 16 == 0 ? kSpecial[random() % 5] : std::uniform_real_distribution<>(-4, 4)(random);
  }
  return c;
}

// NaNs are equal: which of two operands' an instruction returns is not said.
void expect_same(const PointwiseOutcome& compiled, const PointwiseOutcome& kernels) {
  ASSERT_EQ(compiled.numbers.size(), kernels.numbers.size());
  for (size_t k = 0; k < kernels.numbers.size(); ++k)
    for (size_t i = 0; i < kernels.numbers[k].size(); ++i) {
      const double got = compiled.numbers[k][i], wanted = kernels.numbers[k][i];
      if (std::isnan(wanted) && std::isnan(got)) continue;
      ASSERT_EQ(got, wanted) << "output " << k << " element " << i;
      ASSERT_EQ(std::signbit(got), std::signbit(wanted)) << "output " << k << " element " << i;
    }
}

template <Isa isa>
void compare_with_kernels() {
  if (tenon::cpu::detect_isa() < isa)
    GTEST_SKIP() << "no " << (isa == tenon::cpu::Isa::kAvx512 ? "AVX-512" : "AVX2") << " on this machine";
  DeviceUnderTest device;
  int compiled = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    const PointwiseCase c = case_of_reals(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << c.rows << " rows, " << c.columns << " columns");
    expect_same(run_case(device, c, 2, seed, &prepare_with<isa, Compiled::kYes>),
                run_case(device, c, 1, seed, &prepare_with<isa, Compiled::kNo>));
    if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
    PreparedCall call(device);
    prepare(device, c, &call.prepared, &prepare_with<isa, Compiled::kYes>);
    compiled += is_compiled(call.prepared) ? 1 : 0;
  }
  EXPECT_GT(compiled, 300);
}

TEST(PointwiseCompile, HasTheBitsOfTheKernelsWithAvx2) { compare_with_kernels<Isa::kAvx2>(); }
TEST(PointwiseCompile, HasTheBitsOfTheKernelsWithAvx512) { compare_with_kernels<Isa::kAvx512>(); }

// Three values on the way are outputs, too, and later functions read them.
PointwiseCase long_case(size_t steps) {
  ProgramWriter w;
  const int32_t x = w.input(TN_FULL), y = w.input(TN_PER_COLUMN);
  int32_t sum = w.apply(TN_OP_MUL, x, y);
  for (size_t i = 1; i < steps; ++i) {
    sum = w.apply(i % 3 == 0 ? TN_OP_ADD : i % 3 == 1 ? TN_OP_MAX : TN_OP_MIN, sum, i % 2 == 0 ? x : y);
    if (i % (steps / 3) == 0) w.output(sum);
  }
  w.output(sum);
  PointwiseCase c{Program::from(w.finish().view()), 5, 7};
  std::mt19937_64 random(3);
  for (const size_t count : {35, 7})
    for (c.inputs.emplace_back(); c.inputs.back().size() < count;)
      c.inputs.back().push_back(std::uniform_real_distribution<>(-1, 1)(random));
  return c;
}

// The assembler's time grows with the square of a function's length.
TEST(PointwiseCompile, LongProgramsAreSeveralFunctions) {
  const Isa isa = tenon::cpu::detect_isa();
  if (isa < Isa::kAvx2) GTEST_SKIP() << "no AVX2 on this machine";
  DeviceUnderTest device;
  for (const size_t steps : {255, 256, 258, 2000}) {
    SCOPED_TRACE(steps);
    const PointwiseCase c = long_case(steps);
    FunctionCache functions;
    tn_dtype missing = TN_COMPUTE;
    const PointwiseSite site(c, -1);
    const Binding binding(tenon::cpu::generate(site.get(), isa, &functions, &missing));
    ASSERT_NE(binding.functions, nullptr);
    EXPECT_GE(binding.functions->offsets.size(), (steps + 255) / 256);
    EXPECT_LE(binding.functions->offsets.size(), steps / 256 + 4);
    expect_same(run_case(device, c, 2, 1, &prepare_with<Isa::kAvx2, Compiled::kYes>),
                run_case(device, c, 1, 1, &prepare_with<Isa::kAvx2, Compiled::kNo>));
  }
}

TEST(PointwiseCompile, LeavesProcessorsWithoutVectorsToTheKernels) {
  DeviceUnderTest device;
  PreparedCall call(device);
  prepare(device, case_of_reals(3), &call.prepared, &prepare_with<Isa::kBaseline, Compiled::kYes>);
  EXPECT_FALSE(is_compiled(call.prepared));
}

TEST(PointwiseCompile, ProgramsWithTheSameCallsShareFunctions) {
  FunctionCache cache;
  const auto made = std::make_shared<const Functions>();
  cache.add("a", made);
  EXPECT_EQ(cache.find("a"), made);
  EXPECT_EQ(cache.find("b"), nullptr);
  for (int i = 0; i < 1000; ++i) cache.add(std::to_string(i), std::make_shared<const Functions>());
  EXPECT_EQ(cache.find("0"), nullptr) << "kept although no program uses it";
  EXPECT_EQ(cache.find("a"), made);
}

// Equal sites share a binding; a difference in anything that the code depends on gives another one.
TEST(PointwiseCompile, EqualSitesShareTheirCode) {
  tenon::cpu::ProgramCaches caches;
  const auto binding_of = [&](const tn_pointwise_site& site, Isa isa = Isa::kBaseline,
                              const tenon::cpu::Chunks& chunks = {}) {
    tn_dtype missing = TN_F64;
    auto binding = tenon::cpu::binding_at(site, isa, &caches, &missing, chunks);
    EXPECT_EQ(missing, TN_COMPUTE);
    return binding;
  };
  PointwiseCase c;
  tenon::core::ProgramWriter writer;
  const int32_t x = writer.input(TN_FULL), y = writer.input(TN_PER_COLUMN);
  writer.output(writer.apply(TN_OP_ADD, writer.apply(TN_OP_MUL, x, writer.constant(2)), y));
  c.program = writer.finish();
  c.rows = 3, c.columns = 5;
  c.inputs = {std::vector<double>(15), std::vector<double>(5)};
  const PointwiseSite first(c, 0), second(c, 0);
  const auto shared = binding_of(first.get());
  EXPECT_EQ(binding_of(second.get()), shared);
  std::set<std::shared_ptr<const Binding>> others{shared, binding_of(first.get(), Isa::kAvx2),
                                                  binding_of(first.get(), Isa::kBaseline, {2, false}),
                                                  binding_of(first.get(), Isa::kBaseline, {2, true})};
  const auto add = [&](const auto& change) {
    PointwiseCase changed = c;
    change(changed);
    others.insert(binding_of(PointwiseSite(changed, 0).get()));
  };
  add([](PointwiseCase& changed) { changed.rows_vary = false; });
  add([](PointwiseCase& changed) { changed.columns = 6; });
  add([](PointwiseCase& changed) { changed.compute = TN_F64; });
  add([](PointwiseCase& changed) { changed.input_types = {TN_F16, TN_F32}; });
  add([](PointwiseCase& changed) { changed.program.outputs[0].dtype = TN_F16; });
  add([](PointwiseCase& changed) { changed.program.outputs[0].value = 0; });
  for (tn_instruction& in : c.program.instructions) {
    if (in.op == TN_OP_CONSTANT) in.number = 3;
    if (in.op == TN_OP_ADD) in.op = TN_OP_SUB;
    add([](PointwiseCase&) {});
  }
  EXPECT_EQ(others.size(), 12U);
}

// From here on no memory of the process becomes executable, as under a strict security policy.
bool forbid_executable_memory() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 13),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof filter / sizeof *filter, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(PointwiseCompile, RunsTheKernelsWithoutExecutableMemory) {
  const auto in_child = [] {
    if (!forbid_executable_memory()) std::_Exit(77);
    DeviceUnderTest device;
    const PointwiseCase c = DrawnCase(3).make();
    PreparedCall call(device);
    prepare(device, c, &call.prepared, &prepare_with<Isa::kAvx2, Compiled::kYes>);
    if (is_compiled(call.prepared)) std::_Exit(1);
    check_case(device, c, 0);
    std::_Exit(testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(
      in_child(), [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) % 77 == 0; }, "");
}

}  // namespace
}  // namespace tenon_tests
