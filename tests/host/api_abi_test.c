/* The public API: where every member lies on x86-64, in pure C. A plugin that was built
 * yesterday has these numbers in it: a line may be added at the end of a struct that grows, never changed.
 * SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stddef.h>
#include <tenon/tenon.h>

#define AT(type, member, offset) static_assert(offsetof(type, member) == (offset), #type "." #member)
/* A struct that may grow at its end, with the bytes that it has now: whoever appends adds lines here. */
#define GROWS(type, bytes) static_assert(offsetof(type, size) == 0 && sizeof(type) == (bytes), #type)
#define FROZEN(type, bytes) static_assert(sizeof(type) == (bytes), #type)

/* tenon/tenon.h */
GROWS(tn_error, 4096);
AT(tn_error, size, 0);
AT(tn_error, code, 4);
AT(tn_error, message, 8);
FROZEN(tn_layer, 8);
AT(tn_layer, index, 0);
AT(tn_layer, generation, 4);
FROZEN(tn_parameters, 8);
AT(tn_parameters, index, 0);
AT(tn_parameters, generation, 4);
FROZEN(tn_machine, 8);
AT(tn_machine, index, 0);
AT(tn_machine, generation, 4);
FROZEN(tn_updater, 8);
AT(tn_updater, index, 0);
AT(tn_updater, generation, 4);
FROZEN(tn_reader, 8);
AT(tn_reader, index, 0);
AT(tn_reader, generation, 4);
FROZEN(tn_named_value, 24);
AT(tn_named_value, name, 0);
AT(tn_named_value, value, 8);
FROZEN(tn_array, 120);
AT(tn_array, dtype, 0);
AT(tn_array, rank, 4);
AT(tn_array, shape, 8);
AT(tn_array, data, 72);
AT(tn_array, storage, 80);
AT(tn_array, levels, 84);
AT(tn_array, offsets, 88);
AT(tn_array, ids, 104);
AT(tn_array, samples, 112);
GROWS(tn_allocator, 32);
AT(tn_allocator, size, 0);
AT(tn_allocator, reserved, 4);
AT(tn_allocator, self, 8);
AT(tn_allocator, allocate, 16);
AT(tn_allocator, release, 24);
GROWS(tn_host_options, 48);
AT(tn_host_options, size, 0);
AT(tn_host_options, threads, 4);
AT(tn_host_options, plugin_paths, 8);
AT(tn_host_options, plugin_paths_count, 16);
AT(tn_host_options, check_threads, 20);
AT(tn_host_options, allocator, 24);
AT(tn_host_options, log, 32);
AT(tn_host_options, log_user, 40);
GROWS(tn_host_counters, 32);
AT(tn_host_counters, size, 0);
AT(tn_host_counters, threads, 4);
AT(tn_host_counters, bytes_now, 8);
AT(tn_host_counters, bytes_peak, 16);
AT(tn_host_counters, workers_computed, 24);
GROWS(tn_data_options, 72);
AT(tn_data_options, size, 0);
AT(tn_data_options, dtype, 4);
AT(tn_data_options, name, 8);
AT(tn_data_options, shape, 16);
AT(tn_data_options, rank, 24);
AT(tn_data_options, reserved, 28);
AT(tn_data_options, index_limit, 32);
AT(tn_data_options, scale, 40);
AT(tn_data_options, offset, 48);
AT(tn_data_options, storage, 56);
AT(tn_data_options, levels, 60);
AT(tn_data_options, sequence, 64);
GROWS(tn_layer_options, 48);
AT(tn_layer_options, size, 0);
AT(tn_layer_options, inputs_count, 4);
AT(tn_layer_options, type, 8);
AT(tn_layer_options, name, 16);
AT(tn_layer_options, inputs, 24);
AT(tn_layer_options, attributes, 32);
AT(tn_layer_options, attributes_count, 40);
AT(tn_layer_options, reserved, 44);
GROWS(tn_machine_options, 64);
AT(tn_machine_options, size, 0);
AT(tn_machine_options, compute, 4);
AT(tn_machine_options, max_samples, 8);
AT(tn_machine_options, training, 16);
AT(tn_machine_options, keep_all, 20);
AT(tn_machine_options, device, 24);
AT(tn_machine_options, seed, 32);
AT(tn_machine_options, immutable_parameters, 40);
AT(tn_machine_options, immutable_parameters_count, 48);
AT(tn_machine_options, reserved, 52);
AT(tn_machine_options, max_rows, 56);
FROZEN(tn_feed, 128);
AT(tn_feed, name, 0);
AT(tn_feed, values, 8);
GROWS(tn_reader_options, 40);
AT(tn_reader_options, size, 0);
AT(tn_reader_options, attributes_count, 4);
AT(tn_reader_options, type, 8);
AT(tn_reader_options, attributes, 16);
AT(tn_reader_options, directory, 24);
AT(tn_reader_options, shard, 32);
AT(tn_reader_options, shards, 36);
FROZEN(tn_metric, 16);
AT(tn_metric, name, 0);
AT(tn_metric, value, 8);
GROWS(tn_event, 80);
AT(tn_event, size, 0);
AT(tn_event, kind, 4);
AT(tn_event, pass, 8);
AT(tn_event, batch, 16);
AT(tn_event, samples, 24);
AT(tn_event, cost, 32);
AT(tn_event, metrics, 40);
AT(tn_event, metrics_count, 48);
AT(tn_event, stop, 52);
AT(tn_event, seconds, 56);
AT(tn_event, learning_rate, 64);
AT(tn_event, scheduled_rate, 72);
FROZEN(tn_feeding, 16);
AT(tn_feeding, slot, 0);
AT(tn_feeding, data_layer, 8);
GROWS(tn_train_options, 104);
AT(tn_train_options, size, 0);
AT(tn_train_options, outputs_count, 4);
AT(tn_train_options, outputs, 8);
AT(tn_train_options, parameters, 16);
AT(tn_train_options, updater, 24);
AT(tn_train_options, reader, 32);
AT(tn_train_options, feeding, 40);
AT(tn_train_options, feeding_count, 48);
AT(tn_train_options, immutable_parameters_count, 52);
AT(tn_train_options, passes, 56);
AT(tn_train_options, seed, 64);
AT(tn_train_options, handler, 72);
AT(tn_train_options, user, 80);
AT(tn_train_options, device, 88);
AT(tn_train_options, immutable_parameters, 96);
GROWS(tn_test_result, 40);
AT(tn_test_result, size, 0);
AT(tn_test_result, metrics_count, 4);
AT(tn_test_result, cost, 8);
AT(tn_test_result, samples, 16);
AT(tn_test_result, seconds, 24);
AT(tn_test_result, metrics, 32);

int main(void) { return 0; }
