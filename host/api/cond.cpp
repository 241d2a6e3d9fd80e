// The public C API: branches. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_cond.h>

#include "host/api/inner_layers.h"

namespace api = tenon::host::api;
using namespace tenon::host;

namespace {

// Divides the results into those of each branch.
std::vector<std::vector<LayerOutput>> by_branch(const std::vector<LayerOutput>& results, size_t branches) {
  if (results.size() % branches != 0)
    fail(TN_INVALID, SubjectName{"results_count"}, "results_count is ", results.size(), "; expected equally many for ",
         branches, " branches");
  const size_t each = results.size() / branches;
  std::vector<std::vector<LayerOutput>> divided(branches);
  for (size_t i = 0; i < results.size(); ++i) divided[i / each].push_back(results[i]);
  return divided;
}

}  // namespace

tn_status tn_cond_begin(tn_host* host, const tn_cond_options* options, tn_cond* cond, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const tn_cond_options request = api::sized(options, "options");
    api::required(cond, "cond");
    const SetupLock lock = owner.registry.setup();
    std::vector<LayerOutput> rows = api::outputs(owner, request.rows, request.rows_count, "options.rows");
    *cond = owner.conds.add<tn_cond>(
        owner.factory.begin_cond(api::name_or_none(request.name), owner.layers.at(request.over), std::move(rows)));
  });
}

tn_status tn_cond_input(tn_host* host, tn_cond cond, uint32_t branch, tn_layer value, tn_layer sequence_rows,
                        const char* name, tn_layer* layer, tn_error* error) {
  return api::make_layer(host, &Host::conds, cond, layer, error, [&](Host& owner, OpenCond& open) {
    const LayerOutput rows = sequence_rows.generation == 0 ? LayerOutput() : owner.layers.at(sequence_rows);
    return open.input(branch, api::name_or_none(name), owner.layers.at(value), rows);
  });
}

tn_status tn_cond_end(tn_host* host, tn_cond cond, const tn_layer* results, uint32_t results_count, tn_layer* layer,
                      tn_error* error) {
  const tn_status status = api::make_layer(host, &Host::conds, cond, layer, error, [&](Host& owner, OpenCond& open) {
    return open.end(by_branch(api::outputs(owner, results, results_count, "results"), open.branches()));
  });
  return status != TN_OK ? status : tn_cond_release(host, cond, error);
}

tn_status tn_cond_release(tn_host* host, tn_cond cond, tn_error* error) {
  return api::call(host, error, [&](Host& owner) { owner.conds.take(cond); });
}
