// The public C API: several steps of a machine in one call. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_machine.h>

#include <algorithm>

#include "host/api/api.h"
#include "host/machine/sample_range.h"

namespace api = tenon::host::api;
using namespace tenon::host;

tn_status tn_machine_steps(tn_host* host, tn_machine machine, const tn_steps_options* options, double* costs,
                           int64_t room, int64_t* done, tn_error* error) {
  return api::call_machine(host, machine, error, [&](Host& owner, HeldMachine& held) {
    int64_t& updated = api::required(done, "done");
    const tn_steps_options request = api::sized(options, "options");
    if (request.samples < 1)
      fail(TN_INVALID, SubjectName{"options.samples"}, "options.samples is ", request.samples, "; expected at least 1");
    const std::shared_ptr<HeldUpdater> with = owner.updaters.at(request.updater);
    if (with->updater->calls_application())
      fail(TN_UNSUPPORTED, SubjectName{"options.updater"}, "options.updater is one of the application, which ",
           "tn_machine_steps does not call; use tn_updater_update");
    Machine& trained = *held.machine;
    const std::vector<ArrayView> arrays =
        by_number(trained.feeds(), api::named_arrays(request.feeds, request.feeds_count, "options.feeds"),
                  api::unknown_feeds(request.flags));
    const Use use(with->mark, "updater", Reentry::kAllowed);
    trained.require_own();
    trained.require_updatable();
    held.require_unleased();
    trained.check_feeds(arrays);
    const int64_t samples = arrays.empty() ? 0 : samples_of(arrays.front());
    const int64_t count = samples / request.samples + (samples % request.samples != 0 ? 1 : 0);
    if (room < count)
      fail(TN_NEED_CAPACITY, SubjectName{"room"}, "there are ", count, " steps; there is room for ", room, " costs");
    if (count > 0) api::required(costs, "costs");
    SampleRange minibatch(arrays);
    const auto step = [&](int64_t first) {
      if (owner.ending) fail(TN_CANCELLED, "the host is being destroyed");
      minibatch.move(first, std::min(request.samples, samples - first));
      const SetWrite write(held.parameters->gate);
      trained.forward(minibatch.arrays());
      costs[updated] = trained.cost();
      trained.backward();
      api::end_step(*with->updater, trained, UsedNames());
    };
    try {
      for (updated = 0; updated < count; ++updated) step(updated * request.samples);
    } catch (const Error& failure) {
      throw failure.with_context(text("step ", updated + 1, " of ", count));
    }
  });
}
