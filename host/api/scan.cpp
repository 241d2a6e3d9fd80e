// The public C API: scans. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_scan.h>

#include "host/api/inner_layers.h"

namespace api = tenon::host::api;
using namespace tenon::host;

tn_status tn_scan_begin(tn_host* host, const tn_scan_options* options, tn_scan* scan, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const tn_scan_options request = api::sized(options, "options");
    api::required(scan, "scan");
    if (request.reverse > 1)
      fail(TN_INVALID, SubjectName{"options.reverse"}, "options.reverse is ", request.reverse, "; expected 0 or 1");
    const SetupLock lock = owner.registry.setup();
    *scan = owner.scans.add<tn_scan>(
        owner.factory.begin_scan(api::name_or_none(request.name), owner.layers.at(request.over), request.reverse == 1));
  });
}

tn_status tn_scan_input(tn_host* host, tn_scan scan, tn_layer sequences, const char* name, tn_layer* layer,
                        tn_error* error) {
  return api::make_layer(host, &Host::scans, scan, layer, error, [&](Host& owner, OpenScan& open) {
    return open.input(api::name_or_none(name), owner.layers.at(sequences));
  });
}

tn_status tn_scan_memory(tn_host* host, tn_scan scan, const tn_scan_memory_options* options, tn_layer* layer,
                         tn_error* error) {
  return api::make_layer(host, &Host::scans, scan, layer, error, [&](Host& owner, OpenScan& open) {
    const tn_scan_memory_options request = api::sized(options, "options");
    if (request.rank < 0 || request.rank >= TN_MAX_RANK)
      fail(TN_INVALID, SubjectName{"options.rank"}, "options.rank is ", request.rank);
    MemoryStart start;
    if (request.rank > 0)
      start.shape.assign(&api::required(request.shape, "options.shape"), request.shape + request.rank);
    if (request.initial.generation != 0) start.initial = owner.layers.at(request.initial);
    start.value = request.initial_value;
    if (request.carry > 1)
      fail(TN_INVALID, SubjectName{"options.carry"}, "options.carry is ", request.carry, "; expected 0 or 1");
    check_unused(request.reserved, "options.reserved");
    start.carry = request.carry == 1;
    return open.memory(api::name_or_none(request.name), std::move(start));
  });
}

tn_status tn_scan_next(tn_host* host, tn_scan scan, tn_layer memory, tn_layer value, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::shared_ptr<OpenScan> open = owner.scans.at(scan);
    const SetupLock lock = owner.registry.setup();
    open->next(owner.layers.at(memory), owner.layers.at(value));
  });
}

tn_status tn_scan_end(tn_host* host, tn_scan scan, const tn_layer* results, uint32_t results_count, tn_layer* layer,
                      tn_error* error) {
  const tn_status status = api::make_layer(host, &Host::scans, scan, layer, error, [&](Host& owner, OpenScan& open) {
    return open.end(api::outputs(owner, results, results_count, "results"));
  });
  return status != TN_OK ? status : tn_scan_release(host, scan, error);
}

tn_status tn_scan_release(tn_host* host, tn_scan scan, tn_error* error) {
  return api::call(host, error, [&](Host& owner) { owner.scans.take(scan); });
}
