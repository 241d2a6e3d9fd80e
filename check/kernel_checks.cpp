// SPDX-License-Identifier: Apache-2.0
#include "check/kernel_checks.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "check/guard.h"
#include "check/layer_bench.h"
#include "check/layer_checks.h"
#include "check/layer_gradients.h"
#include "check/loaded.h"
#include "check/older_host.h"
#include "check/open_device.h"
#include "check/parts.h"
#include "check/refusing.h"
#include "check/watch.h"

namespace tenon::check {

namespace {

bool has_kernels(const Context& context) {
  for (const json& kernel : context.subject().manifest.value("kernels", json::array()))
    if (kernel.at("type") == context.subject().type) return true;
  return false;
}

// A host without the plugin's file, with this descriptor in its place.
Host host_of(const Context& context, const tn_plugin* plugin) {
  HostOptions options;
  options.threads = 1;
  options.plugin_paths = {context.subject().others};
  options.check = TN_CHECK_OFF;
  Host host(options);
  host.add_plugin(&parts());
  host.add_plugin(plugin);
  return host;
}

Bench bench_in(const Host& host, const Context& context, const LayerCase& of) {
  return {host, context.subject().type, of, context.subject().seed};
}

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
  each_case(context, CaseKind::kLarge, [&](const LayerCase& of) {
    const Bench by_body = bench_in(without, context, of);
    try {
      (void)by_body.machine(TN_F32, true);
    } catch (const Error& error) {
      throw Skip(std::string("without its kernels: ") + error.what());
    }
    const Bench bench = bench_of(context, of);
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

const tn_plugin* guarded_of(const Subject& subject, const tn_plugin& plugin) {
  if (subject.kind == "device") return guarded_device(plugin, subject.device);
  return subject.kind == "provider" ? guarded_provider(plugin, subject.shown) : guarded_plugin(plugin);
}

void check_draws(Context& context) {
  const Loaded loaded(context.subject().file);
  const Host guarded = host_of(context, guarded_of(context.subject(), *loaded.descriptor()));
  each_case(context, [&](const LayerCase& of) {
    const int64_t before = guarded_draws();
    const Bench asked = bench_in(guarded, context, of);
    if (!asked.can_go_back()) throw Skip("it has no derivative");
    (void)asked.machine(TN_F32, true);
    if (guarded_draws() == before) throw Skip("it asks for no draws");
    const Bench bench = bench_of(context, of);
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
    if (!of.chain.empty()) return;
    const auto [one, twin] = bench.of_twins();
    expect(false, one, twin, "a second layer in the same machine");
  });
}

void check_chosen(Context& context) {
  const std::string kernel = context.subject().shown;
  bool chosen = false;
  each_case(context, [&](const LayerCase& of) {
    const Bench bench = bench_of(context, of);
    for (const tn_dtype compute : {TN_F32, TN_F64}) {
      if (compute == TN_F64 && !offers_fp64(bench)) continue;
      context.count(1);
      chosen = chosen || is_called(bench.machine(compute, true), kernel);
    }
  });
  context.expect(chosen, "no case is computed by it; give one by --cases");
}

}  // namespace

Host older_host_of(const Context& context) {
  const Loaded loaded(context.subject().file);
  const tn_plugin& plugin = *loaded.descriptor();
  if (plugin.abi.required == TN_ABI_MINOR) throw Skip("it requires hosts of this version");
  return host_of(context, plugin_in_older_host(plugin, context.subject().type));
}

void check_older_host(Context& context) {
  const Host older = older_host_of(context);
  each_case(context, [&](const LayerCase& of) {
    std::string failure;
    try {
      (void)bench_in(older, context, of).step(TN_F32, Bench::all());
    } catch (const Error& error) {
      failure = error.what();
    }
    const std::string fault = older_host_fault();
    context.expect(fault.empty(), fault);
    context.expect(failure.empty(), failure);
  });
}

void check_guard_pages(Context& context) {
  if (context.subject().device.empty() && !has_kernels(context)) throw Skip("the plugin has no native kernel for it");
  const Subject& subject = context.subject();
  if (subject.kind == "device" && OpenDevice(subject.file, subject.device).properties().host_memory == 0)
    throw Skip("the guarded operands are memory of the host, which the device cannot read");
  const Loaded loaded(subject.file);
  const Host guarded = host_of(context, guarded_of(subject, *loaded.descriptor()));
  each_case(context, CaseKind::kLarge, [&](const LayerCase& of) {
    const Bench bench = bench_in(guarded, context, of);
    const Bench plain = bench_of(context, of);
    for (const tn_dtype compute : {TN_F32, TN_F64})
      for (const int64_t samples : {Bench::kSamples, int64_t{4}, int64_t{1}}) {  // 16 floats end at the page
        if (compute == TN_F64 && !offers_fp64(bench)) continue;
        const Step step = bench.step(compute, {0, samples}), expected = plain.step(compute, {0, samples});
        const std::string fault = guard_fault();
        context.expect(fault.empty(), fault);
        for (size_t k = 0; k < step.outputs.size(); ++k)
          context.expect(identical(step.outputs[k], expected.outputs[k]),
                         "output " + std::to_string(k) + " depends on memory outside of its operands");
        for (const auto& [name, gradient] : step.gradients)
          context.expect(identical(gradient, expected.gradients.at(name)),
                         "the gradient of " + name + " depends on memory outside of its operands");
      }
    // A second run of the same calls: the operands of the first are gone.
    const Machine machine = bench.machine(TN_F32, true);
    for (int times = 0; times < 2; ++times) {
      bench.forward(machine, TN_F32, Bench::all());
      if (bench.can_go_back()) bench.backward(machine, TN_F32);
    }
  });
  if (guarded_runs() == 0) throw Skip("no call of it has run");
}

void check_shared_operands(Context& context) {
  const Subject& subject = context.subject();
  if (subject.device.empty() && !has_kernels(context)) return;
  if (subject.kind == "device" && OpenDevice(subject.file, subject.device).properties().host_memory == 0) return;
  const Loaded loaded(subject.file);
  const Host guarded = host_of(context, guarded_of(subject, *loaded.descriptor()));
  const struct Sharing {
    Sharing() { share_memory(true); }
    ~Sharing() { share_memory(false); }
  } sharing;
  each_case(context, CaseKind::kLarge, [&](const LayerCase& of) {
    const Bench bench = bench_in(guarded, context, of);
    for (const tn_dtype compute : {TN_F32, TN_F64}) {
      if (compute == TN_F64 && !offers_fp64(bench)) continue;
      (void)bench.step(compute, Bench::all());
      const std::string fault = guard_fault();
      context.expect(fault.empty(), fault);
    }
  });
}

void check_run(Context& context) {
  if (!has_kernels(context)) throw Skip("the plugin has no native kernel for it");
  const Loaded loaded(context.subject().file);
  watch(loaded);
  each_case(context, CaseKind::kLarge, [&](const LayerCase& of) {
    const Bench bench = bench_of(context, of, {2});
    watch_again();
    (void)bench.step(TN_F32, Bench::all());
    const std::string seen = seen_in_run();
    context.expect(seen.empty(), "it " + seen + " in [run]");
    const bool own = bench.machine(TN_F32, true).plan().find("own_threads") != std::string::npos;
    context.expect(own || threads_seen() == 0, "it starts a thread or process outside of [run]");
  });
}

void refuse_own_allocations(Context& context, const std::function<std::string()>& work) {
  constexpr int64_t kMost = 40;
  const Loaded loaded(context.subject().file);
  watch(loaded);
  refuse_allocation(-1);
  const std::string expected = work();
  const int64_t count = allocations_seen();
  if (count == 0) throw Skip("it allocates nothing by malloc or new");
  std::set<int64_t> numbers;
  for (const int64_t number : large_allocations_seen()) numbers.insert(number);
  const int64_t stride = std::max<int64_t>(1, count / kMost);
  for (int64_t i = 0; i < count; i += stride) numbers.insert(i);
  for (const int64_t i : numbers) {
    refuse_allocation(i);
    std::string found = expected;
    try {
      found = work();
    } catch (const Error& error) {  // any status will do: a stream, for one, only knows that it has failed
      if (std::string(error.what()).find("threw an exception") != std::string::npos) throw;
    }
    refuse_allocation(-1);
    context.expect(found == expected, "allocation " + std::to_string(i) +
                                          " of the plugin is refused, and the call succeeds with another result");
  }
}

void check_own_memory(Context& context) {
  each_case(
      context,
      [&](const LayerCase& of) {
        refuse_own_allocations(context, [&] {
          const Step step = bench_of(context, of).step(TN_F32, Bench::all());
          std::string bytes;
          const auto add = [&](const Numbers& values) {
            bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
          };
          for (const Numbers& output : step.outputs) add(output);
          for (const auto& [name, gradient] : step.gradients) add(gradient);
          return bytes;
        });
      },
      1);
}

const std::vector<Check>& kernel_checks() {
  static const std::vector<Check> checks = [] {
    std::vector<Check> result = {
        {"chosen", "a case is computed by it", check_chosen},
        {"draws", "draws differ by seed, update and layer, and by nothing else", check_draws},
        {"body", "outputs and gradients are those of the recorded body, where there is one", check_body}};
    // What holds for a layer holds where the kernel computes it, also for a layer of another plugin.
    for (const Check& check : layer_checks())
      for (const char* name :
           {"step", "process", "operands", "guard pages", "run", "gradient", "request", "float32", "repeat", "threads",
            "hosts", "batch", "empty", "memory sharing", "memory", "own memory"})
        if (std::string(check.name) == name) result.push_back(check);
    return result;
  }();
  return checks;
}

}  // namespace tenon::check
