// The public C API: scans. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_scan.h>

#include "host/api/inner_layers.h"

namespace api = tenon::host::api;
using namespace tenon::host;

tn_status tn_scan_begin(tn_host* host, const tn_scan_options* options, tn_scan* scan, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const tn_scan_options given = api::sized(options, "options");
    api::required(scan, "scan");
    if (given.reverse > 1)
      fail(TN_INVALID, SubjectName{"options.reverse"}, "options.reverse is ", given.reverse, "; expected 0 or 1");
    const SetupLock lock = it.registry.setup();
    *scan = it.scans.add<tn_scan>(
        it.factory.begin_scan(api::name_or_none(given.name), it.layers.at(given.over), given.reverse == 1));
  });
}

tn_status tn_scan_input(tn_host* host, tn_scan scan, tn_layer sequences, const char* name, tn_layer* layer,
                        tn_error* error) {
  return api::make_layer(host, &Host::scans, scan, layer, error, [&](Host& it, OpenScan& open) {
    return open.input(api::name_or_none(name), it.layers.at(sequences));
  });
}

tn_status tn_scan_memory(tn_host* host, tn_scan scan, const tn_scan_memory_options* options, tn_layer* layer,
                         tn_error* error) {
  return api::make_layer(host, &Host::scans, scan, layer, error, [&](Host& it, OpenScan& open) {
    const tn_scan_memory_options given = api::sized(options, "options");
    if (given.rank < 0 || given.rank >= TN_MAX_RANK)
      fail(TN_INVALID, SubjectName{"options.rank"}, "options.rank is ", given.rank);
    MemoryStart start;
    if (given.rank > 0) start.shape.assign(&api::required(given.shape, "options.shape"), given.shape + given.rank);
    if (given.initial.generation != 0) start.initial = it.layers.at(given.initial);
    start.value = given.initial_value;
    if (given.carry > 1)
      fail(TN_INVALID, SubjectName{"options.carry"}, "options.carry is ", given.carry, "; expected 0 or 1");
    check_unused(given.reserved, "options.reserved");
    start.carry = given.carry == 1;
    return open.memory(api::name_or_none(given.name), std::move(start));
  });
}

tn_status tn_scan_next(tn_host* host, tn_scan scan, tn_layer memory, tn_layer value, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const std::shared_ptr<OpenScan> open = it.scans.at(scan);
    const SetupLock lock = it.registry.setup();
    open->next(it.layers.at(memory), it.layers.at(value));
  });
}

tn_status tn_scan_end(tn_host* host, tn_scan scan, const tn_layer* results, uint32_t results_count, tn_layer* layer,
                      tn_error* error) {
  const tn_status status = api::make_layer(host, &Host::scans, scan, layer, error, [&](Host& it, OpenScan& open) {
    return open.end(api::outputs(it, results, results_count, "results"));
  });
  return status != TN_OK ? status : tn_scan_release(host, scan, error);
}

tn_status tn_scan_release(tn_host* host, tn_scan scan, tn_error* error) {
  return api::call(host, error, [&](Host& it) { it.scans.take(scan); });
}
