/* Mutations with one fault each; included by rich.c. SPDX-License-Identifier: Apache-2.0 */
#ifndef TENON_TESTS_SDK_MUTATIONS_H
#define TENON_TESTS_SDK_MUTATIONS_H

static char long_doc[TN_NOTE_LIMIT];
static const tn_row_sparse_table of_rows = {.size = sizeof(tn_row_sparse_table)};
static const tn_dtype wrong_dtypes[] = {TN_F32, TN_F32, TN_F32, TN_I32};

#define MUTATION(name, ...)        \
  if (strcmp(wanted, name) == 0) { \
    __VA_ARGS__;                   \
    return;                        \
  }

static tn_status declare(const tn_number_declarer* declarer) {
  (void)declarer;
  return TN_OK;
}
static const void* numbers_extension(void* user, const char* id) {
  static const tn_layer_numbers numbers = {
      .size = sizeof(tn_layer_numbers), .draft = TN_NUMBERS_DRAFT, .declare = declare};
  (void)user;
  return strcmp(id, TN_LAYER_NUMBERS) == 0 ? &numbers : NULL;
}
static const void* other_extension(void* user, const char* id) {
  static const tn_layer_numbers numbers = {.size = sizeof(tn_layer_numbers), .draft = 7, .declare = declare};
  (void)user;
  return strcmp(id, TN_LAYER_NUMBERS) == 0 ? &numbers : NULL;
}

static void mutate_offers(const char* wanted) {
  MUTATION("draft_absent", records.draft = 0)
  MUTATION("draft_other", records.draft = 7, records.size = 8)
  MUTATION("draft_two", layer.extension = numbers_extension, metric.extension = other_extension)
  MUTATION("draft_function", records.record = NULL)
  MUTATION("table_reserved", provided.reserved = 7)
  MUTATION("requirements_null", plugin.requirements = NULL)
  MUTATION("requirement_null", requirements[0] = NULL)
  MUTATION("requirement_size", requirement.size = 8)
  MUTATION("requirement_other", requirement.component = &provider)
  MUTATION("requirement_older", requirement.minor = TN_ABI_MINOR - 1)
  MUTATION("requirement_newer", requirement.minor = TN_ABI_MINOR + 1)
  MUTATION("requirements_earlier", plugin.abi.required = 3)
}

static void mutate_comms(const char* wanted) {
  MUTATION("comms_null", plugin.comms = NULL)
  MUTATION("comm_null", comms[0] = NULL)
  MUTATION("comm_draft", comm.draft = 7)
  MUTATION("comm_size", comm.size = 88)
  MUTATION("comm_description", comm.description = NULL)
  MUTATION("comm_description_size", comm_description.size = 8)
  MUTATION("comm_type", comm_description.type = "Test")
  MUTATION("comm_traits", comm_description.traits = 16)
  MUTATION("comm_wake", comm.wake = NULL)
  MUTATION("comm_earlier", plugin.requirements_count = 0, plugin.abi.required = 3)
  MUTATION("comm_required", requirement.component = &comm, requirement.minor = TN_ABI_MINOR + 1)
}

static void mutate_plugin(const char* wanted) {
  MUTATION("plugin_size", plugin.size -= 8)
  MUTATION("plugin_id_null", plugin.id = NULL)
  MUTATION("plugin_id_space", plugin.id = "tenon.a b")
  MUTATION("plugin_id_plain", plugin.id = "rich")
  MUTATION("plugin_id_other", plugin.id = "org.rich")
  MUTATION("plugin_version", plugin.version = "")
  MUTATION("plugin_doc", plugin.doc = NULL)
  MUTATION("plugin_license", plugin.license = NULL)
  MUTATION("plugin_isa", plugin.isa = NULL)
  MUTATION("plugin_abi", plugin.abi.major = 9)
  MUTATION("plugin_required", plugin.abi.required = TN_ABI_MINOR + 1)
  MUTATION("plugin_required_newer", plugin.abi.built = plugin.abi.required = TN_ABI_MINOR + 1)
  MUTATION("plugin_built_before", plugin.abi.built = plugin.abi.required = TN_ABI_OLDEST - 1)
  MUTATION("plugin_size_newer", plugin.size += 8)
  MUTATION("built_earlier", plugin.abi.built = plugin.abi.required = TN_ABI_OLDEST,
           plugin.size = offsetof(tn_plugin, options_count), kernel.size = offsetof(tn_kernel, inputs_known))
  MUTATION("built_with_3", plugin.abi.built = plugin.abi.required = 3,
           plugin.size = offsetof(tn_plugin, requirements_count), kernel.size = offsetof(tn_kernel, inputs_known))
  MUTATION("built_later", plugin.abi.built = TN_ABI_MINOR + 1, plugin.size += 8, kernel.size += 16)
  MUTATION("layers_null", plugin.layers = NULL)
  MUTATION("layer_null", layers[1] = NULL)
  MUTATION("layer_twice", metric_description.type = "test_rich")
  MUTATION("kernel_twice", plugin.kernels_count = 2)
  MUTATION("kernel_dtype", kernel.dtypes = wrong_dtypes, twin = kernel)
  MUTATION("kernel_dtypes", kernel.dtypes_count = 0)
  MUTATION("kernel_name", kernel.name = "a b")
  MUTATION("kernel_prepare", kernel.prepare = NULL)
  MUTATION("fusion_size", fusion.size = 4)
  MUTATION("fusion_short", fusion.types_count = 1)
  MUTATION("fusion_end", chain[1] = "tanh")
  MUTATION("fusion_type", chain[0] = "Fc")
  MUTATION("fusion_null", chain[0] = NULL)
  MUTATION("library_hint", library.hint = NULL)
  MUTATION("library_path", library.name = "/usr/lib/libc.so.6")
  MUTATION("options_null", plugin.options = NULL)
  MUTATION("option_null", options[1] = NULL)
  MUTATION("option_list", size_option.kind = TN_ATTR_STRINGS)
  MUTATION("option_doc", size_option.doc = NULL)
  MUTATION("option_twice", size_option.name = "limit")
  MUTATION("updater_record", updater.record = NULL)
  MUTATION("updater_version", updater_description.state_version = 0)
  MUTATION("updater_type", updater_description.type = "Test")
  MUTATION("reader_next", reader.next = NULL)
  MUTATION("reader_seek", reader.seek = NULL)
  MUTATION("reader_size", reader_description.size = 0)
  MUTATION("device_kind", device_description.kind = NULL)
  MUTATION("device_event", device.event_create = NULL)
  MUTATION("device_table", device_tables[0] = TN_GEMM)
  MUTATION("long", memset(long_doc, 'x', 1000000), layer_description.doc = long_doc)
  MUTATION("too_long", memset(long_doc, 'x', sizeof long_doc - 1), layer_description.doc = long_doc)
}

static void mutate_tables(const char* wanted) {
  MUTATION("provider_null", providers[1] = NULL)
  MUTATION("provider_size", provider.size = 8)
  MUTATION("provider_name", provider.name = "a b")
  MUTATION("provider_device", provider.device = "Cpu")
  MUTATION("provider_id", provider.id = "tenon gemm")
  MUTATION("provider_table", provider.table = NULL)
  MUTATION("provider_bytes", provided.size = 8)
  MUTATION("provider_odd_bytes", provided.size = 20)
  MUTATION("provider_many_bytes", provided.size = 65544)
  MUTATION("provider_vendor_bytes", provider.id = "vendor.table/1", provided.size = 4)
  MUTATION("provider_function", provided.prepare = NULL)
  MUTATION("provider_functions", provider.id = TN_ROW_SPARSE_TABLE, provider.table = &of_rows)
  MUTATION("provider_twice", other_provider.id = TN_GEMM)
  MUTATION("device_bytes", device_moves.size = 12)
  MUTATION("device_function", device_moves.prepare = NULL)
  MUTATION("shared_close", shared.close = NULL)
  MUTATION("shared_flags", shared.flags = 4)
  MUTATION("shared_earlier", plugin.requirements_count = 0, shared.flags = TN_SHARED_PER_STREAM,
           plugin.abi.required = 3)
  MUTATION("shared_now", shared.flags = TN_SHARED_PER_STREAM)
  MUTATION("kernel_shared_earlier", (plugin.requirements_count = plugin.providers_count = 0, kernel.shared = &shared,
                                     shared.flags = 1, plugin.abi.required = 2))
  MUTATION("kernel_shared", (shared.size = 4, plugin.providers_count = 0, kernel.shared = &shared))
}

static void mutate_layer(const char* wanted) {
  MUTATION("layer_type_null", layer_description.type = NULL)
  MUTATION("layer_version", layer_description.state_version = 0)
  MUTATION("layer_type_case", layer_description.type = "Relu")
  MUTATION("layer_type_dots", layer_description.type = "a.b.c")
  MUTATION("layer_type_empty", layer_description.type = "")
  MUTATION("layer_description", layer.description = NULL)
  MUTATION("layer_plan", layer.plan = NULL)
  MUTATION("layer_body", layer.lower = NULL)
  MUTATION("layer_finalize", layer.finalize = finalize)
  MUTATION("layer_role", layer_description.role = 7)
  MUTATION("layer_outputs", layer_description.outputs_count = 0)
  MUTATION("layer_doc_utf8", layer_description.doc = "bad \xc3 byte")
  MUTATION("layer_doc_surrogate", layer_description.doc = "bad \xed\xa0\x80 surrogate")
  MUTATION("layer_doc_long", layer_description.doc = "bad \xe0\x80\x80 zero")
  MUTATION("layer_doc_beyond", layer_description.doc = "bad \xf4\x90\x80\x80 character")
  MUTATION("layer_doc_escape", layer_description.doc = "\x1b[31m")
  MUTATION("metric_finalize", metric.finalize = NULL)
  MUTATION("metric_outputs", (metric_description.outputs = out_ports, metric_description.outputs_count = 1))
  MUTATION("port_name", out.name = "the out")
  MUTATION("port_twice", rest.name = "first")
  MUTATION("port_variadic", first.flags = TN_PORT_VARIADIC)
  MUTATION("port_flags", first.flags = 64)
  MUTATION("port_doc", first.doc = "")
  MUTATION("suffix_twice", suffixes[1] = "weight")
  MUTATION("suffix_inner", suffixes[1] = "inner.weight", plugin.abi.required = 3,
           plugin.requirements_count = plugin.comms_count = 0)
  MUTATION("suffix_earlier", suffixes[1] = "inner.weight", plugin.abi.required = 2, plugin.requirements_count = 0)
  MUTATION("suffix_dot", suffixes[1] = "a..b")
  MUTATION("suffix_null", suffixes[1] = NULL)
}

static void mutate_attribute(const char* wanted) {
  MUTATION("attribute_null", attributes[3] = NULL)
  MUTATION("attribute_name", rate.name = "1st")
  MUTATION("attribute_twice", rate.name = "flag")
  MUTATION("attribute_of_layers", rate.name = "act")
  MUTATION("attribute_of_updaters", flag.name = "l1")
  MUTATION("attribute_kind", rate.kind = 8)
  MUTATION("attribute_size", rate.size = 4)
  MUTATION("attribute_doc", rate.doc = NULL)
  MUTATION("attribute_flags", rate.flags = 2)
  MUTATION("initial_kind", rate.initial.kind = TN_ATTR_INT)
  MUTATION("initial_count", rate.initial.count = 0)
  MUTATION("initial_nan", (rate.has_range = 0, rate.initial.as.f = NAN))
  MUTATION("initial_low", rate.initial.as.f = -1)
  MUTATION("initial_high", count.maximum = -8, count.minimum = -9)
  MUTATION("initial_choice", word.initial.as.s = "d")
  MUTATION("initial_text_null", word.initial.as.s = NULL)
  MUTATION("initial_list_null", whole.initial.as.ints = NULL)
  MUTATION("initial_required", count.flags = TN_ATTR_REQUIRED)
  MUTATION("range_order", rate.has_range = 3, rate.maximum = -1, rate.initial.kind = 0)
  MUTATION("range_infinite", rate.minimum = -INFINITY)
  MUTATION("range_fraction", count.maximum = 0.5)
  MUTATION("range_text", word.has_range = 1)
  MUTATION("choices_number", rate.choices = choices)
  MUTATION("choices_none", word.choices = choices + 3, word.initial.kind = 0)
}

static void mutate(void) {
  const char* wanted = getenv("TENON_TEST_MUTATION");
  if (wanted == NULL) return;
  mutate_plugin(wanted);
  mutate_offers(wanted);
  mutate_comms(wanted);
  mutate_tables(wanted);
  mutate_layer(wanted);
  mutate_attribute(wanted);
}

#endif
