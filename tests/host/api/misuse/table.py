"""What the generator cannot derive from the headers: valid arguments, exceptions, calls out of order.
SPDX-License-Identifier: Apache-2.0"""

# C++ expressions of valid values. Keys, the first that fits: "function.parameter" (members: "function.options.member"),
# "struct.member", the name of a parameter, a type. Members without a value are 0. "nullptr": none is given.
VALUES = {
    # types
    "tn_layer": "world.cost",
    "tn_parameters": "world.parameters",
    "tn_machine": "world.machine",
    "tn_updater": "world.updater",
    "tn_reader": "world.reader",
    "tn_write": "write_nothing",
    # names of parameters
    "name": '"score.weight"',
    "parameter": '"score.weight"',
    "path": "world.model.c_str()",
    "of": "world.samples",
    "shard": "0",
    # members
    "tn_allocator.allocate": "allocate",
    "tn_allocator.release": "release_memory",
    "tn_checkpoint_options.folder": "world.new_folder.c_str()",
    "tn_data_options.dtype": "TN_I64",
    "tn_data_options.index_limit": "2",
    "tn_data_options.name": '"new"',
    "tn_layer_options.attributes": '{integer("size", 2)}',
    "tn_layer_options.inputs": "{world.score}",
    "tn_layer_options.type": '"fc"',
    "tn_machine_options.max_samples": "4",
    "tn_map_options.map": "keep_values",
    "tn_map_options.slots": "slots()",
    "tn_reader_options.attributes": "world.csv",
    "tn_reader_options.type": '"csv"',
    "tn_source_options.read_at": "read_at",
    "tn_source_options.samples": "8",
    "tn_source_options.slots": "slots()",
    "tn_train_options.passes": "1",
    "tn_bucket_options.slot": '"words"',
    "tn_bucket_options.window": "8",
    "tn_bucket_options.samples": "4",
    # parameters of single functions
    "tn_host_add_plugin.plugin": "&test_layers()",
    "tn_layer_find.name": '"score"',
    "tn_layer_output.number": "0",
    "tn_machine_forward.feeds": "world.feeds",
    "tn_machine_sparse_gradient.parameter": '"table.weight"',
    "tn_model_load.outputs_count": "1",
    "tn_model_save.path": "world.new_model.c_str()",
    "tn_parameters_set.values": "world.weight",
    "tn_parameters_set_names.names": "{&names_of_words()}",
    "tn_reader_bucket.of": "world.sequences",
    "tn_reader_buffered.of": "world.reader",
    "tn_reader_chain.of": "{world.samples}",
    "tn_reader_compose.of": "{world.samples}",
    "tn_reader_interleave.of": "{world.samples}",
    "tn_reader_choose.slots": '{"label"}',
    "tn_reader_choose.names": "nullptr",
    "tn_reader_next.values": "std::vector<tn_array>(2)",
    "tn_type_describe.kind": '"layer"',
    "tn_type_describe.type": '"fc"',
    "tn_updater_create.type": '"adam"',
    "tn_infer.sink": "take_outputs",
}

# Headers that mention null at a member that must not be null.
REQUIRED = {
    "tn_allocator.allocate": "its result may be null",
}

# Checks that are left out, with the reason.
SKIPPED = {
    "tn_layer_options.inputs: zero": "a zeroed input is one that is absent",
    "tn_map_options.release": "may be null, as in tn_source_options",
    "tn_test.options.updater": "train only",
    "tn_test.options.immutable_parameters": "train only",
    "tn_test.options.checkpoint": "train only",
    "tn_infer.options.updater": "train only",
    "tn_infer.options.immutable_parameters": "train only",
    "tn_infer.options.checkpoint": "train only",
    "tn_host_add_plugin.plugin: size": "a table of the plugin interface, which has rules of its own",
    "tn_host_options.plugin_paths: list": "null is the default folder, whatever the count",
}

# Calls out of order: variable, its value, what is wrong, a part of the message; the status, if not TN_MISUSE.
ORDERS = {
    "tn_host_add_plugin": [("plugin", "&no_plugin()", "of zeros", "plugin", "TN_REFUSED")],
    "tn_data_create": [("options_room.rank", "1", "a rank without shape", "options.shape")],
    "tn_machine_backward": [("machine", "world.make<tn_machine>()", "a second time", "forward"),
                            ("machine", "world.fresh", "before a forward", "forward"),
                            ("machine", "world.inference", "not for training", "training")],
    "tn_layer_create": [("options_room_attributes_room[0]", 'without("size", TN_ATTR_STRING)', "a null text", "size"),
                        ("options_room_attributes_room[0]", 'without("size", TN_ATTR_INTS)', "a null list", "size"),
                        ("options_room_attributes_room[0]", 'without("size", TN_ATTR_STRINGS)', "null texts", "size"),
                        ("options_room_attributes_room[0]", 'without("size", 99)', "an unknown kind", "size", "TN_INVALID")],
    "tn_parameters_set_names": [("names_room[0]", "&names_without_texts()", "null texts", "word", "TN_INVALID"),
                                ("names_room[0]", "&names_without_size()", "without a size", "names")],
    "tn_machine_forward": [("feeds_room[0].values.data", "nullptr", "null data", "word"),
                           ("machine", "world.planned", "without values", "values")],
    "tn_machine_output": [("machine", "world.fresh", "before a forward", "forward")],
    "tn_machine_gradient": [("machine", "world.inference", "not for training", "no gradient", "TN_NOT_FOUND")],
    "tn_machine_sparse_gradient": [("machine", "world.inference", "not for training", "no gradient", "TN_NOT_FOUND")],
    "tn_updater_update": [("machine", "world.inference", "not for training", "training")],
    "tn_updater_update_model": [("machine", "world.inference", "not for training", "training")],
    "tn_parameters_get": [("parameters", "world.declared", "without values", "values")],
    "tn_parameters_set": [("values_room.data", "nullptr", "null data", "values.data"),
                          ("parameters", "world.declared", "without values", "values")],
    "tn_model_save": [("parameters", "world.declared", "without values", "values")],
    "tn_train": [("options_room.reader", "world.samples", "of samples", "reader"),
                 ("options_room.parameters", "world.declared", "without values", "values")],
    "tn_test": [("options_room.reader", "world.samples", "of samples", "reader"),
                ("options_room.parameters", "world.declared", "without values", "values")],
    "tn_infer": [("options_room.reader", "world.samples", "of samples", "reader"),
                 ("options_room.parameters", "world.declared", "without values", "values")],
    "tn_reader_shuffle": [("of", "world.started", "in the middle of a pass", "pass")],
    "tn_reader_first_n": [("of", "world.started", "in the middle of a pass", "pass")],
    "tn_reader_shard": [("of", "world.started", "in the middle of a pass", "pass")],
}

# Statements before the first call, and after the right one.
BEFORE = {
    "tn_machine_backward": "world.forward(world.machine);",
}
AFTER = {
    "tn_host_create": "tn_host_destroy(host_room);",
}

# Functions without a status.
OTHERS = {
    "tn_version": "EXPECT_STREQ(tn_version(), TENON_VERSION);",
    "tn_status_text": 'EXPECT_STREQ(tn_status_text(-1), "unknown status");',
    "tn_plugin_call": "EXPECT_EQ(tn_plugin_call(nullptr, 0), 0U);\nEXPECT_EQ(tn_plugin_call(nullptr, 9), 0U);",
    "tn_host_destroy": "tn_host_destroy(nullptr);",
}
