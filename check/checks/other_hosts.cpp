// SPDX-License-Identifier: Apache-2.0
#include "check/checks/other_hosts.h"

#include <algorithm>
#include <utility>

#include "base/temporary.h"
#include "check/bench/generation.h"
#include "check/bench/older_model.h"
#include "check/checks/device_memory.h"
#include "check/checks/each_case.h"
#include "check/checks/native_checks.h"
#include "check/watch/loaded.h"

namespace tenon::check {

std::string bytes_of(const Numbers& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double)};
}
std::string bytes_of(const Step& step) {
  std::string bytes;
  for (const Numbers& output : step.outputs) bytes += bytes_of(output);
  for (const auto& [name, gradient] : step.gradients) bytes += bytes_of(gradient);
  return bytes;
}

OtherHosts::OtherHosts(Context& context, bool newer) : context_(context) {
  const Subject& subject = context.subject();
  const Loaded loaded(subject.file);
  const tn_plugin& plugin = *loaded.descriptor();
  const uint16_t required = std::max(plugin.abi.required, subject.described.value("required", uint16_t{0}));
  std::vector<OtherHost> others;
  if (newer)
    for (const uint8_t behind : {uint8_t{0}, uint8_t{0xFF}}) others.push_back({TN_ABI_MINOR + 1, behind});
  else if (required < TN_ABI_MINOR || plugin.abi.built > TN_ABI_MINOR)
    others.push_back({required, 0});
  else
    throw Skip("it requires hosts of this version");
  const std::string name = subject.kind == "device"     ? subject.device
                           : subject.kind == "provider" ? subject.shown
                                                        : subject.type;
  for (const OtherHost& other : others) {
    const Lending lending(other);  // devices that are opened get what it lends
    hosts_.emplace_back(other, host_of(context, plugin_in_other_host(plugin, subject.kind, name)));
  }
}

void OtherHosts::expect_work(const std::function<std::string(const Host&)>& work) const {
  const std::string expected = work(context_.host(1, false));
  for (const auto& [other, host] : hosts_) {
    std::string got, failure;
    try {
      const Lending lending(other);
      got = work(host);
    } catch (const Skip&) {
      throw;
    } catch (const std::exception& error) {
      failure = error.what();
    }
    const std::string fault = other_host_fault();
    context_.expect(fault.empty(), fault);
    context_.expect(failure.empty(), "in " + other.name() + ": " + failure);
    context_.expect(!other.is_newer() || got == expected,
                    "in " + other.name() +
                        " it gives other results, or does other work: it reads behind the members that it knows, "
                        "or wants structs of one size");
  }
}

namespace {

// The layer type of the plugin's code, null for kernels of other plugins and for what is no layer.
const tn_layer_type* layer_type(const Context& context) {
  const Loaded loaded(context.subject().file);
  const tn_plugin& plugin = *loaded.descriptor();
  for (uint32_t i = 0; i < plugin.layers_count; ++i)
    if (context.subject().type == plugin.layers[i]->description->type) return plugin.layers[i];
  return nullptr;
}
bool offers(const tn_layer_type* type, const char* id) {
  return type != nullptr && type->extension != nullptr && type->extension(type->user, id) != nullptr;
}

std::string step_in(const Host& host, const Context& context, const LayerCase& layer_case) {
  const Bench bench = bench_in(host, context, layer_case);
  const Machine machine = bench.machine(TN_F32, true);
  std::string bytes = bytes_of(bench.step_of(machine, TN_F32, Bench::all()));
  for (const std::string& kernel : kernels_of(machine)) bytes += kernel;
  return bytes;
}

void check_generation(Context& context, const OtherHosts& hosts, const LayerCase& layer_case) {
  const auto generate = [&](const Host& host) {
    return generated(host, context.subject().type, layer_case, context.subject().seed);
  };
  try {
    (void)generate(context.host(1, false));
  } catch (const std::exception&) {
    return;  // not row by row with these attributes and inputs
  }
  hosts.expect_work(generate);
}

// Loads a model of the version before; a refusal of its values is a result, too.
void check_migration(Context& context, const OtherHosts& hosts, const LayerCase& layer_case, uint32_t before) {
  const base::TemporaryFolder folder;
  const Bench bench = bench_of(context, layer_case);
  save_older(bench, context.subject().type, before, folder.file("model"));
  hosts.expect_work([&](const Host& host) {
    std::string bytes;
    try {
      for (const Numbers& output : bench.answers(host, host.load(folder.file("model")))) bytes += bytes_of(output);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return bytes;
  });
}

}  // namespace

void check_layer_in(Context& context, const OtherHosts& hosts) {
  const Subject& subject = context.subject();
  if (subject.kind == "device")
    hosts.expect_work([&](const Host&) {
      check_copies(context);
      check_streams(context);
      return std::string();
    });
  const tn_layer_type* const type = layer_type(context);
  const bool steps = offers(type, TN_STEP), migrates = offers(type, TN_MIGRATE);
  // Of a device each case is another primitive; which cases can generate is seen by trying.
  const size_t most = subject.device.empty() && !steps ? 2 : SIZE_MAX;
  each_case(
      context,
      [&](const LayerCase& layer_case) {
        hosts.expect_work([&](const Host& host) { return step_in(host, context, layer_case); });
        if (steps) check_generation(context, hosts, layer_case);
        const uint32_t version = migrates ? type->description->state_version : 1;
        if (version > 1) check_migration(context, hosts, layer_case, version - 1);
      },
      most);
}

}  // namespace tenon::check
