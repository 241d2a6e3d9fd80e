// Checks of calls while they run, for authors of plugins and for trainings that go wrong, and their times: they cost
// time, and are off by default. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "core/graph/graph.h"
#include "host/plugins/device.h"
#include "host/plugins/host_access.h"

namespace tenon::host {

using namespace core;

// What the calls of a machine check and measure.
struct Checks {
  bool operands = false;  // native kernels run on copies of their operands between guard lines
  bool finite = false;    // every float that a call writes is finite
  bool time = false;      // the time of each call is measured, for describe()
  bool portable = false;  // the bits of every call are known to be the same on every processor
};

// Runs a native kernel on copies of its operands and of its workspace, with guard lines around each, and copies the
// results back. Throws TN_PLUGIN_FAULT naming the operand if the kernel has written outside of one, changed an input,
// or left an element of a layer output or gradient unwritten, which only operands with elements of 4 bytes or more can
// show. Outputs whose memory may be that of an input, by the kernel's query, are computed a second time there, with the
// same result. The device's memory must be the host's.
tn_status run_checked(const Prepared& prepared, const NativeCall& native, bool backward, const tn_execution& execution,
                      const tn_call& call);

// Returns the first element of a dense or ragged tensor of floats that is not finite, "" if there is none:
// "nan at [2, 7]". Tensors of other types have none.
[[nodiscard]] std::string first_not_finite(const tn_tensor& tensor);
// The same of a tensor of a device. Waits for the work that `access` orders.
[[nodiscard]] std::string first_not_finite(const tn_tensor& tensor, HostAccess& access);

}  // namespace tenon::host
