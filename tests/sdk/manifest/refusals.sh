#!/usr/bin/env bash
# Checks that the manifest writer writes the same files as the build, and refuses each faulty descriptor with a message
# that names the fault: refusals.sh <program> <path of the build's files of the same plugin, without .c and .json>
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

program="$1"
built="$2"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
failed=0

# refused <mutation> <text of the message>
refused() {
  rm -f "$folder"/*
  if TENON_TEST_MUTATION="$1" "$program" "$folder/note.c" "$folder/note.json" 2>"$folder/error"; then
    echo "$1: not refused"
    failed=1
  elif [[ "$(wc -l <"$folder/error")" != 1 ]] || ! grep -qF -- "$2" "$folder/error"; then
    echo "$1: the message is not one line with: $2"
    cat "$folder/error"
    failed=1
  elif [[ -e "$folder/note.c" || -e "$folder/note.json" ]]; then
    echo "$1: refused, but something was written"
    failed=1
  fi
}

# Without a mutation the descriptor is valid, so each refusal has one cause.
"$program" "$folder/note.c" "$folder/note.json"
cmp "$folder/note.c" "$built.c"
cmp "$folder/note.json" "$built.json"
if "$program" "$folder/none/note.c" "$folder/note.json" 2>"$folder/error"; then
  echo "wrote into a folder that does not exist"
  failed=1
fi
grep -qxF "error: cannot write $folder/none/note.c" "$folder/error"
grep -qF '"initial":[0.1,0.3333333333333333,-0.0,1e+300,2.2250738585072014e-308,1.7976931348623157e+308,' "$folder/note.json"
grep -qF '"initial":[-9223372036854775808,-1,0,9223372036854775807]' "$folder/note.json"
grep -qF '"initial":-7,"minimum":-7,"maximum":1000000000000000,' "$folder/note.json"
grep -qF '"initial":3.0,"minimum":0.0,"maximum":null,' "$folder/note.json"
grep -qF 'quote \" backslash \\ newline \n tab \t omega Ω ??/ %d' "$folder/note.json"

TENON_TEST_MUTATION=long "$program" "$folder/note.c" "$folder/note.json"
[[ "$(stat -c %s "$folder/note.json")" -gt 1000000 ]] || {
  echo "long: a manifest of a million bytes is not written whole"
  failed=1
}

TENON_TEST_MUTATION=reader_seek "$program" "$folder/note.c" "$folder/note.json" # a stream
# Plugins of other versions that the host runs, whose structs are shorter or longer.
TENON_TEST_MUTATION=built_earlier "$program" "$folder/note.c" "$folder/note.json"
grep -qF '"built":2,"required":2}' "$folder/note.json"
grep -qF '"options":[]' "$folder/note.json"
TENON_TEST_MUTATION=built_with_3 "$program" "$folder/note.c" "$folder/note.json"
# What the reader offers and needs; a draft that these headers do not know is written as it is.
TENON_TEST_MUTATION=requirement_newer "$program" "$folder/note.c" "$folder/note.json"
grep -qF '"traits":1,"tables":["tenon.records/1"],"required":5}' "$folder/note.json"
digest='"digest":"[0-9a-f]{8}"'
grep -qE '"drafts":\[\{"id":"tenon.records/1",'"$digest"'\},\{"id":"tenon.comm/1",'"$digest"'\}\]\}$' "$folder/note.json"
TENON_TEST_MUTATION=draft_other "$program" "$folder/note.c" "$folder/note.json"
grep -qF '"drafts":[{"id":"tenon.records/1","digest":"00000007"},{"id":"tenon.comm/1"' "$folder/note.json"
TENON_TEST_MUTATION=comm_required "$program" "$folder/note.c" "$folder/note.json"
grep -qF '"traits":3,"required":5}],"drafts":[' "$folder/note.json"
TENON_TEST_MUTATION=shared_now "$program" "$folder/note.c" "$folder/note.json"
TENON_TEST_MUTATION=suffix_inner "$program" "$folder/note.c" "$folder/note.json"
TENON_TEST_MUTATION=built_later "$program" "$folder/note.c" "$folder/note.json"

layer='plugin "tenon.test.rich", layer type "test_rich": '
refused plugin_size 'the plugin: "size" of its descriptor'
refused plugin_id_null 'the plugin: "id" is null'
refused plugin_id_space '"id" is "tenon.a b"'
refused plugin_id_plain 'reverse domain'
refused plugin_id_other 'the layer type "test_rich" needs a "vendor." before its name, since the id "org.rich" does not'
refused plugin_version '"version" is empty'
refused plugin_doc 'it has no doc line'
refused plugin_license '"license" is null'
refused plugin_isa '"isa" is null'
refused plugin_abi 'built with 9.'
refused plugin_required 'newer than what it is built with'
refused plugin_required_newer 'requires 0.'
refused plugin_built_before 'for plugins built with 0.2 or later'
refused plugin_size_newer 'the plugin: "size" of its descriptor'
refused layers_null '"layers" is null, but counts 2'
refused layer_null 'entry 1 of "layers" is null'
refused layer_twice 'plugin "tenon.test.rich": duplicate layer type "test_rich"'
refused kernel_twice 'duplicate kernel "rich.relu-1"'
refused kernel_dtype 'kernel "rich.relu-1": 0x12000 is not a compute type'
refused kernel_dtypes '"dtypes" is empty'
refused kernel_name 'the name of a kernel'
refused kernel_prepare 'the function "prepare" is missing'
refused fusion_size 'fusion'
refused fusion_short 'it fuses a chain of 1 layers; 2 to 8 are possible'
refused fusion_end 'the chain that it fuses ends in another'
refused fusion_type 'layer type "Fc"'
refused fusion_null 'entry 0 of "fuses" is null'
refused library_hint 'library "libc.so.6" has no hint'
refused library_path 'the name of a library'
refused updater_record 'updater type "test_updater": the function "record" is missing'
refused updater_version 'updater type "test_updater": its state_version is 0; expected at least 1'
refused updater_type 'the updater type "Test" must be lower case'
refused reader_next 'reader type "test_reader": the function "next" is missing'
refused reader_size '"size" of its reader description is 0'
refused device_kind '"device kind" is null'
refused device_event 'device "test_device": the function "event_create" is missing'
refused device_table 'it lists the table "tenon.gemm/1", but its extension has none'
refused provider_null 'entry 1 of "providers" is null'
refused provider_size '"size" of its provider is 8'
refused provider_name 'the name of a provider'
refused provider_device 'provider "rich.gemm-1": the device kind "Cpu" must be lower case'
refused provider_id 'provider "rich.gemm-1": "the id of its table" is "tenon gemm"'
refused provider_table 'provider "rich.gemm-1": its table is null'
refused provider_twice 'duplicate provider "rich.gemm-1"'
refused provider_bytes 'its table "tenon.gemm/1" states a size of 8 bytes; expected a multiple of 8 from 16 to 65536'
refused provider_odd_bytes 'its table "tenon.gemm/1" states a size of 20 bytes; expected'
refused provider_many_bytes 'its table "tenon.gemm/1" states a size of 65544 bytes; expected'
refused provider_vendor_bytes 'its table "vendor.table/1" states a size of 4 bytes; expected a multiple of 8 from 8 to'
refused provider_function 'provider "rich.gemm-1": its table "tenon.gemm/1" has no function "prepare"'
refused provider_functions 'provider "rich.gemm-1": its table "tenon.row_sparse/1" has no function'
refused device_bytes 'device "test_device": its table "tenon.move/1" states a size of 12 bytes; expected'
refused device_function 'device "test_device": its table "tenon.move/1" has no function "prepare"'
refused shared_flags 'provider "rich.gemm-1": its shared has unknown flags 0x4'
refused shared_earlier 'provider "rich.gemm-1": "flags" of its shared came with version 0.4 of the plugin interface; its "abi" requires 0.3'
refused kernel_shared_earlier 'kernel "rich.relu-1": "flags" of its shared came with version 0.4'
refused suffix_earlier "${layer}a parameter of an inner layer came with version 0.3 of the plugin interface"
refused shared_close 'provider "rich.gemm-1": the function "close" is missing'
refused draft_absent 'reader type "test_reader": its table "tenon.records/1" is a draft, but its member "draft" is 0'
refused draft_two 'its components use two drafts of the table "tenon.numbers/1": '
refused draft_function 'reader type "test_reader": its table "tenon.records/1" has no function "record"'
refused table_reserved 'provider "rich.gemm-1": the reserved member of its table "tenon.gemm/1" is 7; expected 0'
refused comms_null 'plugin "tenon.test.rich": "comms" is null, but counts 1'
refused comm_null 'plugin "tenon.test.rich": entry 0 of "comms" is null'
refused comm_draft 'the member "draft" of a communicator is 00000007; the draft of these headers is '
refused comm_size '"size" of its communicator is 88, but the struct has 96 bytes'
refused comm_description 'the description of a communicator is null'
refused comm_description_size '"size" of its communicator description is 8'
refused comm_type 'the communicator "Test" must be lower case'
refused comm_traits 'communicator "test_comm": it has unknown traits 0x10'
refused comm_wake 'communicator "test_comm": the function "wake" is missing'
refused comm_earlier 'a communicator came with version 0.4 of the plugin interface; its "abi" requires 0.3'
refused requirements_null 'plugin "tenon.test.rich": "requirements" is null, but counts 1'
refused requirement_null 'entry 0 of "requirements" is null'
refused requirement_size '"size" of its requirement is 8'
refused requirement_other 'entry 0 of "requirements" is for none of its layers, updaters, readers, kernels and communicators'
refused requirement_older 'entry 0 of "requirements" states 0.3, which is older than what its "abi" requires'
refused requirements_earlier 'requirements of components came with version 0.4 of the plugin interface; its "abi" requires 0.3'
refused options_null 'plugin "tenon.test.rich": "options" is null, but counts 2'
refused option_null 'plugin "tenon.test.rich": entry 1 of "options" is null'
refused option_list 'entry 0 of "options" is a list; an option is a bool, int, float or string'
refused option_doc 'the options of plugin "tenon.test.rich": attribute "size": it has no doc line'
refused option_twice 'the options of plugin "tenon.test.rich": duplicate attribute "limit"'
refused kernel_shared 'kernel "rich.relu-1": "size" of its shared is 4'
refused too_long 'at most 1048576 fit the note'

refused layer_type_null '"layer type" is null'
refused layer_version 'layer type "test_rich": its state_version is 0; expected at least 1'
refused layer_type_case 'the layer type "Relu" must be lower case'
refused layer_type_dots 'the layer type "a.b.c" must be'
refused layer_type_empty 'the layer type "" must be'
refused layer_description 'the description of a layer type is null'
refused layer_plan "${layer}the function \"plan\" is missing"
refused layer_body "${layer}it has no body"
refused layer_finalize '"finalize" is for metrics alone'
refused layer_role 'its role 7 is unknown'
refused layer_outputs 'it has no output'
refused layer_doc_utf8 '"doc" is not UTF-8: byte 0xc3'
refused layer_doc_surrogate '"doc" is not UTF-8: byte 0xed'
refused layer_doc_long '"doc" is not UTF-8: byte 0xe0'
refused layer_doc_beyond '"doc" is not UTF-8: byte 0xf4'
refused layer_doc_escape '"doc" holds the control character 0x1b'
refused metric_finalize 'layer type "vendor.test_metric": the function "finalize" is missing'
refused metric_outputs 'a metric has no outputs, but 1 are declared'
refused port_name 'outputs: the name "the out" must be'
refused port_twice 'duplicate port "first"'
refused port_variadic 'port "first" is variadic, but not the last of its inputs'
refused port_flags 'port "first" has unknown flags 0x40'
refused port_doc 'port "first" has no doc line'
refused suffix_twice 'duplicate parameter "weight"'
refused suffix_dot 'parameters: the name "a..b" must be words'
refused suffix_null 'parameters is null'

refused attribute_null 'entry 3 of "attributes" is null'
refused attribute_name 'attribute: the name "1st" must be'
refused attribute_twice 'duplicate attribute "flag"'
refused attribute_of_layers "${layer}the attribute \"act\" is one of the host"
refused attribute_of_updaters 'updater type "test_updater": the attribute "l1" is one of the host'
refused attribute_kind 'attribute "rate": its kind 8 is unknown'
refused attribute_size '"size" of its attribute is 4'
refused attribute_doc 'attribute "rate": it has no doc line'
refused attribute_flags 'attribute "rate": it has unknown flags 0x2'
refused initial_kind 'attribute "rate": it has kind 3, its default kind 2'
refused initial_count 'attribute "rate": its default is one value, but counts 0'
refused initial_nan '"initial" is nan'
refused initial_low 'attribute "rate": its default -1 lies outside its own range'
refused initial_high 'attribute "count": its default -7 lies outside its own range'
refused initial_choice 'attribute "word": its default "d" is not one of its choices'
refused initial_text_null 'attribute "word": its default is a null text'
refused initial_list_null 'attribute "whole": its default is null, but counts 4'
refused initial_required 'attribute "count": it is required'
refused range_order 'attribute "rate": its minimum 0 is above its maximum -1'
refused range_infinite 'attribute "rate": its minimum is not finite'
refused range_fraction 'attribute "count": its maximum 0.5 is not a whole number'
refused range_text 'attribute "word": it has a range, but is not a number'
refused choices_number 'attribute "rate": choices are for texts'
refused choices_none 'attribute "word": its choices are empty'
exit $failed
