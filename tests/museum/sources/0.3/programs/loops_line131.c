#include <tenon/tenon_updater.h>

tn_status keep(tn_host* host, tn_updater updater, tn_parameters parameters, const tn_layer* outputs, uint32_t count,
               tn_error* error) {
  return tn_updater_save(host, updater, parameters, outputs, count, "loop.safetensors", error);
}

tn_status go_on(tn_host* host, tn_updater updater, tn_parameters parameters, tn_error* error) {
  return tn_updater_load(host, updater, parameters, "loop.safetensors", error);
}

static void print(void* user, const tn_metrics_values* values) {
  *(double*)user = values->cost;
}

tn_status cost_of(tn_host* host, tn_metrics metrics, double* cost, tn_error* error) {
  return tn_metrics_read(host, metrics, print, cost, error);
}
