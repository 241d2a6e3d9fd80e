// SPDX-License-Identifier: Apache-2.0
#include "check/checks/native_checks.h"

#include "check/checks/each_case.h"
#include "check/checks/other_hosts.h"
#include "check/checks/refusing.h"
#include "check/definitions/parts.h"
#include "check/watch/guard.h"
#include "check/watch/loaded.h"
#include "check/watch/open_device.h"
#include "check/watch/watch.h"

namespace tenon::check {

namespace {

bool has_kernels(const Context& context) {
  for (const json& kernel : context.subject().manifest.value("kernels", json::array()))
    if (kernel.at("type") == context.subject().type) return true;
  return false;
}

}  // namespace

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

Bench bench_in(const Host& host, const Context& context, const LayerCase& layer_case) {
  return {host, context.subject().type, layer_case, context.subject().seed};
}

const tn_plugin* guarded_of(const Subject& subject, const tn_plugin& plugin) {
  if (subject.kind == "device") return guarded_device(plugin, subject.device);
  return subject.kind == "provider" ? guarded_provider(plugin, subject.shown) : guarded_plugin(plugin);
}

void check_guard_pages(Context& context) {
  if (context.subject().device.empty() && !has_kernels(context)) throw Skip("the plugin has no native kernel for it");
  const Subject& subject = context.subject();
  if (subject.kind == "device" && OpenDevice(subject.file, subject.device).properties().host_memory == 0)
    throw Skip("the guarded operands are memory of the host, which the device cannot read");
  const Loaded loaded(subject.file);
  const Host guarded = host_of(context, guarded_of(subject, *loaded.descriptor()));
  each_case(context, CaseKind::kLarge, [&](const LayerCase& layer_case) {
    const Bench bench = bench_in(guarded, context, layer_case);
    const Bench plain = bench_of(context, layer_case);
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
  each_case(context, CaseKind::kLarge, [&](const LayerCase& layer_case) {
    const Bench bench = bench_in(guarded, context, layer_case);
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
  each_case(context, CaseKind::kLarge, [&](const LayerCase& layer_case) {
    const Bench bench = bench_of(context, layer_case, {2});
    watch_again();
    (void)bench.step(TN_F32, Bench::all());
    const std::string seen = seen_in_run();
    context.expect(seen.empty(), "it " + seen + " in [run]");
    const bool own = bench.machine(TN_F32, true).plan().find("own_threads") != std::string::npos;
    context.expect(own || threads_seen() == 0, "it starts a thread or process outside of [run]");
  });
}

void check_own_memory(Context& context) {
  each_case(
      context,
      [&](const LayerCase& layer_case) {
        refuse_own_allocations(context,
                               [&] { return bytes_of(bench_of(context, layer_case).step(TN_F32, Bench::all())); });
      },
      1);
}

}  // namespace tenon::check
