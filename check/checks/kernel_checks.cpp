// SPDX-License-Identifier: Apache-2.0
#include "check/checks/kernel_checks.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "check/bench/layer_bench.h"
#include "check/checks/each_case.h"
#include "check/checks/layer_checks.h"
#include "check/checks/native_checks.h"
#include "check/watch/guard.h"
#include "check/watch/loaded.h"

namespace tenon::check {

namespace {

void expect_close(Context& context, const Numbers& kernel, const Numbers& body, double tolerance,
                  const std::string& what) {
  context.expect(kernel.size() == body.size(), what + " has another size than by the recorded body");
  const double scale = std::max(largest_of(body), 1e-3);
  for (size_t i = 0; i < body.size(); ++i)
    context.expect(std::abs(kernel[i] - body[i]) <= tolerance * scale || identical({kernel[i]}, {body[i]}),
                   "element " + std::to_string(i) + " of " + what + " is " + shown(kernel[i]) +
                       "; by the recorded body " + shown(body[i]));
}

void check_body(Context& context) {
  const Loaded loaded(context.subject().file);
  const Host without = host_of(context, plugin_without_kernels(*loaded.descriptor()));
  each_case(context, CaseKind::kLarge, [&](const LayerCase& layer_case) {
    const Bench by_body = bench_in(without, context, layer_case);
    try {
      (void)by_body.machine(TN_F32, true);
    } catch (const Error& error) {
      throw Skip(std::string("without its kernels: ") + error.what());
    }
    const Bench bench = bench_of(context, layer_case);
    for (const auto& [compute, tolerance] : {std::pair{TN_F32, 1e-4}, std::pair{TN_F64, 1e-10}}) {
      if (compute == TN_F64 && !offers_fp64(bench)) continue;
      const Step got = bench.step(compute, Bench::all()), expected = by_body.step(compute, Bench::all());
      for (size_t k = 0; k < got.outputs.size(); ++k)
        expect_close(context, got.outputs[k], expected.outputs[k], tolerance, "output " + std::to_string(k));
      for (const auto& [name, gradient] : got.gradients)
        expect_close(context, gradient, expected.gradients.at(name), tolerance, "the gradient of " + name);
    }
  });
}

void check_draws(Context& context) {
  const Loaded loaded(context.subject().file);
  const Host guarded = host_of(context, guarded_of(context.subject(), *loaded.descriptor()));
  each_case(context, [&](const LayerCase& layer_case) {
    const int64_t before = guarded_draws();
    const Bench asked = bench_in(guarded, context, layer_case);
    if (!asked.can_go_back()) throw Skip("it has no derivative");
    (void)asked.machine(TN_F32, true);
    if (guarded_draws() == before) throw Skip("it asks for no draws");
    const Bench bench = bench_of(context, layer_case);
    const auto expect = [&](bool equal, const std::vector<Numbers>& a, const std::vector<Numbers>& b,
                            const std::string& what) {
      bool same = true;
      for (size_t k = 0; k < a.size(); ++k) same = same && identical(a[k], b.at(k));
      context.expect(same == equal,
                     "it asks for draws, and " + what + " gives " + (same ? "equal" : "other") + " outputs");
    };
    const std::vector<Numbers> first = bench.drawn(Bench::kSeed, 0);
    expect(true, first, bench.drawn(Bench::kSeed, 0), "the same seed and update");
    expect(false, first, bench.drawn(Bench::kSeed + 1, 0), "another seed");
    expect(false, first, bench.drawn(Bench::kSeed, 1), "the next update");
    if (!layer_case.chain.empty()) return;
    const auto [one, twin] = bench.of_twins();
    expect(false, one, twin, "a second layer in the same machine");
  });
}

void check_chosen(Context& context) {
  const std::string kernel = context.subject().shown;
  bool chosen = false;
  each_case(context, [&](const LayerCase& layer_case) {
    const Bench bench = bench_of(context, layer_case);
    for (const tn_dtype compute : {TN_F32, TN_F64}) {
      if (compute == TN_F64 && !offers_fp64(bench)) continue;
      context.count(1);
      chosen = chosen || is_called(bench.machine(compute, true), kernel);
    }
  });
  context.expect(chosen, "no case is computed by it; give one by --cases");
}

}  // namespace

const std::vector<Check>& kernel_checks() {
  static const std::vector<Check> checks = [] {
    std::vector<Check> result = {
        {"chosen", "a case is computed by it", check_chosen},
        {"draws", "draws differ by seed, update and layer, and by nothing else", check_draws},
        {"body", "outputs and gradients are those of the recorded body, where there is one", check_body}};
    // What holds for a layer holds where the kernel computes it, also for a layer of another plugin.
    for (const Check& check : layer_checks())
      for (const char* name :
           {"step", "process", "operands", "guard pages", "newer host", "older host", "run", "gradient", "request",
            "float32", "repeat", "threads", "hosts", "batch", "empty", "memory sharing", "memory", "own memory"})
        if (std::string(check.name) == name) result.push_back(check);
    return result;
  }();
  return checks;
}

}  // namespace tenon::check
