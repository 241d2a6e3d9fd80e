// The checks "newer host" and "older host" of each kind: a component gets structs that are longer, or that end where
// those of the oldest host end that the plugin requires. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "check/bench/layer_bench.h"
#include "check/checks/check_list.h"
#include "check/watch/other_host.h"

namespace tenon::check {

[[nodiscard]] std::string bytes_of(const Numbers& numbers);
[[nodiscard]] std::string bytes_of(const Step& step);

class OtherHosts {
 public:
  // Two newer hosts, whose structs go on with other bytes; or an older one: throws Skip if it would be this version.
  OtherHosts(Context& context, bool newer);
  // Does the work in each of them. Throws Fault if it fails, or uses what the host does not have; or, in a newer host,
  // if it returns other bytes than in this one.
  void expect_work(const std::function<std::string(const Host&)>& work) const;

 private:
  Context& context_;
  std::vector<std::pair<OtherHost, Host>> hosts_;
};

// Gives a layer, or what computes layers, work: its steps, and what its tables by id are for.
void check_layer_in(Context& context, const OtherHosts& hosts);

// The checks by a function that gives work to the hosts.
template <void (*kCheck)(Context&, const OtherHosts&)>
Check newer_host_check() {
  return {"newer host", "the same bits in hosts whose structs are longer; what lies behind is not written",
          [](Context& context) { kCheck(context, OtherHosts(context, true)); }};
}
template <void (*kCheck)(Context&, const OtherHosts&)>
Check older_host_check() {
  return {"older host", "it needs no more than the oldest host that the plugin requires, whose structs end earlier",
          [](Context& context) { kCheck(context, OtherHosts(context, false)); }};
}

}  // namespace tenon::check
