// SPDX-License-Identifier: Apache-2.0
#include "check/checks/other_hosts.h"

#include <utility>

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
  std::vector<OtherHost> others;
  if (newer)
    for (const uint8_t behind : {uint8_t{0}, uint8_t{0xFF}}) others.push_back({TN_ABI_MINOR + 1, behind});
  else if (plugin.abi.required < TN_ABI_MINOR)
    others.push_back({plugin.abi.required, 0});
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

}  // namespace tenon::check
