/* A plugin with every kind of entry of a manifest, and values that are hard to write. If compiled with
 * TENON_TEST_MUTATIONS, its descriptor has the one fault that the environment variable TENON_TEST_MUTATION names.
 * SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/draft/comm.h>
#include <tenon/draft/numbers.h>
#include <tenon/draft/records.h>
#include <tenon/plugin.h>

static const int64_t ints[] = {INT64_MIN, -1, 0, INT64_MAX};
static const double floats[] = {0.1, 1.0 / 3.0, -0.0, 1e300, DBL_MIN, DBL_MAX, 5e-324, 123456789.0};
static const char* texts[] = {"a", "b", "a"};
static const char* choices[] = {"a", "b", "c", NULL};

static tn_attribute flag = {.size = sizeof(tn_attribute),
                            .kind = TN_ATTR_BOOL,
                            .name = "flag",
                            .doc = "a bool",
                            .initial = {TN_ATTR_BOOL, 1, {.i = 1}}};
static tn_attribute count = {.size = sizeof(tn_attribute),
                             .kind = TN_ATTR_INT,
                             .name = "count",
                             .doc = "an int",
                             .has_range = 3,
                             .minimum = -7,
                             .maximum = 1e15,
                             .initial = {TN_ATTR_INT, 1, {.i = -7}}};
static tn_attribute rate = {.size = sizeof(tn_attribute),
                            .kind = TN_ATTR_FLOAT,
                            .name = "rate",
                            .doc = "a float",
                            .has_range = 1,
                            .minimum = 0,
                            .initial = {TN_ATTR_FLOAT, 1, {.f = 3}}};
static tn_attribute word = {.size = sizeof(tn_attribute),
                            .kind = TN_ATTR_STRING,
                            .name = "word",
                            .doc =
                                "quote \" backslash \\ newline \n tab \t omega \xce\xa9 ?"
                                "?/ %d",
                            .choices = choices,
                            .initial = {TN_ATTR_STRING, 1, {.s = "c"}}};
static tn_attribute whole = {.size = sizeof(tn_attribute),
                             .kind = TN_ATTR_INTS,
                             .name = "whole",
                             .doc = "ints",
                             .initial = {TN_ATTR_INTS, 4, {.ints = ints}}};
static tn_attribute real = {.size = sizeof(tn_attribute),
                            .kind = TN_ATTR_FLOATS,
                            .name = "real",
                            .doc = "floats",
                            .initial = {TN_ATTR_FLOATS, 8, {.floats = floats}}};
static tn_attribute words = {.size = sizeof(tn_attribute),
                             .kind = TN_ATTR_STRINGS,
                             .name = "words",
                             .doc = "strings",
                             .choices = choices,
                             .initial = {TN_ATTR_STRINGS, 3, {.strings = texts}}};
static tn_attribute needed = {
    .size = sizeof(tn_attribute), .kind = TN_ATTR_INT, .name = "needed", .doc = "required", .flags = TN_ATTR_REQUIRED};
static const tn_attribute* attributes[] = {&flag, &count, &rate, &word, &whole, &real, &words, &needed};

static tn_port first = {.size = sizeof(tn_port), .name = "first", .doc = "the first", .flags = TN_PORT_ANY};
static tn_port rest = {.size = sizeof(tn_port), .name = "rest", .doc = "all others", .flags = TN_PORT_VARIADIC};
static tn_port out = {.size = sizeof(tn_port), .name = "out", .doc = "the sum"};
static const tn_port* in_ports[] = {&first, &rest};
static const tn_port* out_ports[] = {&out};
static const char* suffixes[] = {"weight", "bias_2"};

static tn_status plan(const tn_planner* p) { return tn_fail(p->errors, TN_UNSUPPORTED, NULL, "for tests alone"); }
static tn_status lower(const tn_attributes* a, const tn_builder* b) {
  (void)a;
  return tn_fail(b->errors, TN_UNSUPPORTED, NULL, "for tests alone");
}
static tn_status finalize(const tn_finalizer* f) {
  f->result(f->self, "value", f->state[0]);
  return TN_OK;
}

static tn_layer_description layer_description = {.size = sizeof(tn_layer_description),
                                                 .role = TN_ROLE_COST,
                                                 .type = "test_rich",
                                                 .doc = "Every kind of attribute.",
                                                 .inputs_count = 2,
                                                 .outputs_count = 1,
                                                 .inputs = in_ports,
                                                 .outputs = out_ports,
                                                 .attributes_count = 8,
                                                 .parameters_count = 2,
                                                 .attributes = attributes,
                                                 .parameters = suffixes,
                                                 .state_version = 4000000000u};
static tn_layer_description metric_description = {.size = sizeof(tn_layer_description),
                                                  .state_version = 1,
                                                  .role = TN_ROLE_METRIC,
                                                  .type = "vendor.test_metric",
                                                  .doc = "A metric.",
                                                  .inputs_count = 1,
                                                  .inputs = in_ports};
static tn_layer_type layer = {
    .size = sizeof(tn_layer_type), .description = &layer_description, .plan = plan, .lower = lower};
static tn_layer_type metric = {.size = sizeof(tn_layer_type),
                               .description = &metric_description,
                               .plan = plan,
                               .lower = lower,
                               .finalize = finalize};
static const tn_layer_type* layers[] = {&layer, &metric};

static tn_status record(const tn_update_recorder* r) {
  return tn_fail(r->errors, TN_UNSUPPORTED, NULL, "for tests alone");
}
static tn_updater_description updater_description = {.size = sizeof(tn_updater_description),
                                                     .type = "test_updater",
                                                     .doc = "An updater.",
                                                     .attributes_count = 1,
                                                     .attributes = attributes,
                                                     .state_version = 2};
static tn_updater_type updater = {
    .size = sizeof(tn_updater_type), .description = &updater_description, .record = record};
static const tn_updater_type* updaters[] = {&updater};

static tn_status reader_open(const tn_reader_open* open, void** instance) {
  (void)instance;
  return tn_fail(open->errors, TN_UNSUPPORTED, NULL, "for tests alone");
}
static void reader_close(void* instance) { (void)instance; }
static const tn_reader_schema* schema(void* instance) {
  (void)instance;
  return NULL;
}
static int64_t samples(void* instance) {
  (void)instance;
  return -1;
}
static tn_status next(void* instance, const tn_reader_buffers* buffers, int64_t* got) {
  (void)instance;
  (void)buffers;
  *got = 0;
  return TN_END;
}
static tn_status seek(void* instance, int64_t position) {
  (void)instance;
  (void)position;
  return TN_OK;
}
static tn_reader_description reader_description = {.size = sizeof(tn_reader_description),
                                                   .type = "test_reader",
                                                   .doc = "A reader.",
                                                   .attributes_count = 1,
                                                   .attributes = attributes,
                                                   .traits = TN_TRAIT_OWN_THREADS};
static int64_t record_of(void* instance, int64_t index) {
  (void)instance;
  return index;
}
static tn_status text_of(void* instance, int64_t index, const char* column, tn_text* text) {
  (void)instance;
  (void)index;
  (void)column;
  (void)text;
  return TN_NOT_FOUND;
}
static tn_records records = {
    .size = sizeof(tn_records), .draft = TN_RECORDS_DRAFT, .count = samples, .record = record_of, .text = text_of};
static const void* reader_extension(void* user, const char* id) {
  (void)user;
  return strcmp(id, TN_RECORDS) == 0 ? &records : NULL;
}
static tn_reader_type reader = {.size = sizeof(tn_reader_type),
                                .description = &reader_description,
                                .open = reader_open,
                                .close = reader_close,
                                .schema = schema,
                                .samples = samples,
                                .next = next,
                                .position = samples,
                                .seek = seek,
                                .extension = reader_extension};
static const tn_reader_type* readers[] = {&reader};

static tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  (void)site;
  (void)needs;
  return TN_UNSUPPORTED;
}
static tn_status supports(const tn_kernel_site* site, int32_t* score) {
  (void)score;
  (void)site;
  return TN_UNSUPPORTED;
}
static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  (void)direction;
  (void)prepared;
  return tn_fail(site->errors, TN_UNSUPPORTED, NULL, "for tests alone");
}
static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
static const char* chain[] = {"fc", "relu"};
static tn_fusion_pattern fusion = {.size = sizeof(tn_fusion_pattern), .types_count = 2, .types = chain};
static tn_kernel kernel = {.size = sizeof(tn_kernel),
                           .score = -3,
                           .type = "relu",
                           .device = "cpu",
                           .name = "rich.relu-1",
                           .dtypes_count = 4,
                           .dtypes = dtypes,
                           .supports = supports,
                           .query = query,
                           .prepare = prepare,
                           .fusion = &fusion};
static tn_kernel twin;
static const tn_kernel* kernels[] = {&kernel, &twin};

static int32_t device_count(void* user, const tn_errors* errors) {
  (void)user;
  (void)errors;
  return 0;
}
static tn_status device_open(const tn_device_open* open, void** device) {
  (void)device;
  return tn_fail(open->errors, TN_NOT_FOUND, NULL, "for tests alone");
}
static void device_close(void* device) { (void)device; }
static tn_status device_properties(void* device, const tn_errors* errors, tn_device_properties* properties) {
  (void)device;
  (void)errors;
  (void)properties;
  return TN_UNSUPPORTED;
}
static void* device_allocate(void* device, const tn_errors* errors, uint64_t bytes) {
  (void)device;
  (void)errors;
  (void)bytes;
  return NULL;
}
static void device_release(void* device, void* memory, uint64_t bytes) {
  (void)device;
  (void)memory;
  (void)bytes;
}
static tn_status device_copy(void* device, const tn_errors* errors, const tn_copy* copy) {
  (void)device;
  (void)errors;
  (void)copy;
  return TN_UNSUPPORTED;
}
static tn_status device_fill(void* device, const tn_errors* errors, void* stream, void* memory, uint8_t value,
                             uint64_t bytes) {
  (void)device;
  (void)errors;
  (void)stream;
  (void)memory;
  (void)value;
  (void)bytes;
  return TN_UNSUPPORTED;
}
static tn_status device_create(void* device, const tn_errors* errors, void** handle) {
  (void)device;
  (void)errors;
  (void)handle;
  return TN_UNSUPPORTED;
}
static void device_destroy(void* device, void* handle) {
  (void)device;
  (void)handle;
}
static tn_status device_stream_wait(void* device, const tn_errors* errors, void* stream) {
  (void)device;
  (void)errors;
  (void)stream;
  return TN_UNSUPPORTED;
}
static tn_status device_event(void* device, const tn_errors* errors, void* event, void* stream) {
  (void)device;
  (void)errors;
  (void)event;
  (void)stream;
  return TN_UNSUPPORTED;
}
static tn_status device_prepare_move(void* device, const tn_services* services, const tn_errors* errors,
                                     const tn_move* move, tn_prepared* prepared) {
  (void)device;
  (void)services;
  (void)errors;
  (void)move;
  (void)prepared;
  return TN_UNSUPPORTED;
}
static tn_move_table device_moves = {.size = sizeof(tn_move_table), .prepare = device_prepare_move};
static const void* device_extension(void* user, const char* id) {
  (void)user;
  return strcmp(id, TN_MOVE) == 0 ? &device_moves : NULL;
}
static const char* device_tables[] = {TN_MOVE, NULL};
static tn_device_description device_description = {.size = sizeof(tn_device_description),
                                                   .dlpack_type = 12,
                                                   .kind = "test_device",
                                                   .doc = "A device that no machine has",
                                                   .tables = device_tables};
static tn_device_type device = {.size = sizeof(tn_device_type),
                                .description = &device_description,
                                .count = device_count,
                                .open = device_open,
                                .close = device_close,
                                .properties = device_properties,
                                .allocate = device_allocate,
                                .release = device_release,
                                .copy = device_copy,
                                .fill = device_fill,
                                .stream_create = device_create,
                                .stream_destroy = device_destroy,
                                .stream_wait = device_stream_wait,
                                .event_create = device_create,
                                .event_destroy = device_destroy,
                                .event_record = device_event,
                                .event_wait = device_event,
                                .extension = device_extension};
static const tn_device_type* devices[] = {&device};

static tn_status comm_open(const tn_comm_open* open, void** comm) {
  (void)comm;
  return tn_fail(open->errors, TN_UNSUPPORTED, NULL, "for tests alone");
}
static tn_status comm_world(void* comm, tn_comm_world* world) {
  (void)comm;
  (void)world;
  return TN_UNSUPPORTED;
}
static tn_status comm_transfer(void* comm, const tn_comm_message* message, uint64_t* request) {
  (void)comm;
  (void)message;
  (void)request;
  return TN_UNSUPPORTED;
}
static tn_status comm_progress(void* comm, int64_t timeout_us, tn_comm_event* events, uint32_t capacity,
                               uint32_t* got) {
  (void)comm;
  (void)timeout_us;
  (void)events;
  (void)capacity;
  (void)got;
  return TN_UNSUPPORTED;
}
static void comm_wake(void* comm) { (void)comm; }
static void comm_abort(void* comm, int32_t exit_code) {
  (void)comm;
  (void)exit_code;
}
static void comm_close(void* comm, int64_t timeout_us) {
  (void)comm;
  (void)timeout_us;
}
static tn_comm_description comm_description = {.size = sizeof(tn_comm_description),
                                               .attributes_count = 1,
                                               .type = "test_comm",
                                               .doc = "A communicator.",
                                               .attributes = attributes,
                                               .traits = TN_COMM_SURVIVES | TN_COMM_AUTHENTICATED};
static tn_comm_type comm = {.size = sizeof(tn_comm_type),
                            .draft = TN_COMM_DRAFT,
                            .description = &comm_description,
                            .open = comm_open,
                            .world = comm_world,
                            .send = comm_transfer,
                            .receive = comm_transfer,
                            .progress = comm_progress,
                            .wake = comm_wake,
                            .abort = comm_abort,
                            .close = comm_close};
static const tn_comm_type* comms[] = {&comm};

static tn_library library = {.size = sizeof(tn_library), .name = "libc.so.6", .hint = "it is there"};
static const tn_library* libraries[] = {&library};

static tn_status shared_open(const tn_services* services, const tn_errors* errors, const tn_device* on, void* user,
                             void** shared) {
  (void)services;
  (void)on;
  (void)user;
  (void)shared;
  return tn_fail(errors, TN_UNSUPPORTED, NULL, "for tests alone");
}
static void shared_close(void* shared) { (void)shared; }
static tn_shared shared = {.size = sizeof(tn_shared), .open = shared_open, .close = shared_close};
static tn_status provided_prepare(void* given, const tn_services* services, const tn_errors* errors,
                                  const tn_gemm* gemm, tn_prepared* prepared) {
  (void)given;
  (void)services;
  (void)errors;
  (void)gemm;
  (void)prepared;
  return TN_UNSUPPORTED;
}
static tn_gemm_table provided = {.size = sizeof(tn_gemm_table), .prepare = provided_prepare};
static tn_provider provider = {.size = sizeof(tn_provider),
                               .score = -5,
                               .device = "cpu",
                               .id = TN_GEMM,
                               .name = "rich.gemm-1",
                               .table = &provided,
                               .shared = &shared};
static tn_provider other_provider = {.size = sizeof(tn_provider),
                                     .score = 1,
                                     .device = "cpu",
                                     .id = TN_GATHER,
                                     .name = "rich.gemm-1",
                                     .table = &provided};
static const tn_provider* providers[] = {&provider, &other_provider};

static const char* const sizes[] = {"small", "large", NULL};
static tn_attribute size_option = {.size = sizeof(tn_attribute),
                                   .kind = TN_ATTR_STRING,
                                   .name = "size",
                                   .doc = "which buffers it has",
                                   .initial = {.kind = TN_ATTR_STRING, .count = 1, .as = {.s = "small"}},
                                   .choices = sizes};
static const tn_attribute limit_option = {.size = sizeof(tn_attribute),
                                          .kind = TN_ATTR_INT,
                                          .name = "limit",
                                          .doc = "bytes",
                                          .has_range = 1,
                                          .initial = {.kind = TN_ATTR_INT, .count = 1, .as = {.i = 64}}};
static const tn_attribute* options[] = {&size_option, &limit_option};

static tn_requirement requirement = {.size = sizeof(tn_requirement), .minor = TN_ABI_MINOR, .component = &reader};
static const tn_requirement* requirements[] = {&requirement};

static tn_plugin plugin = {.size = sizeof(tn_plugin),
                           .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0},
                           .id = "tenon.test.rich",
                           .version = "1.2.3-rc.1+5",
                           .doc = "One of everything",
                           .license = "MIT OR Apache-2.0",
                           .isa = "",
                           .layers_count = 2,
                           .kernels_count = 1,
                           .layers = layers,
                           .kernels = kernels,
                           .updaters_count = 1,
                           .readers_count = 1,
                           .updaters = updaters,
                           .readers = readers,
                           .devices_count = 1,
                           .libraries_count = 1,
                           .devices = devices,
                           .libraries = libraries,
                           .providers_count = 2,
                           .providers = providers,
                           .options_count = 2,
                           .options = options,
                           .requirements_count = 1,
                           .requirements = requirements,
                           .comms_count = 1,
                           .comms = comms};

#ifdef TENON_TEST_MUTATIONS
#include "mutations.h"
#else
static void mutate(void) {}
#endif

const tn_plugin* tenon_plugin(void) {
  twin = kernel;
  mutate();
  return &plugin;
}
