/* The plugin interface: the offset of every member on x86-64, in pure C. Built plugins contain these numbers: a line
 * may be added at the end of a struct that grows, but must not be changed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "abi.h"

/* tenon/base.h */
FROZEN(tn_abi, 8);
AT(tn_abi, major, 0);
AT(tn_abi, built, 2);
AT(tn_abi, required, 4);
AT(tn_abi, reserved, 6);

/* tenon/tensor.h */
FROZEN(tn_dim, 32);
AT(tn_dim, coefficient, 0);
AT(tn_dim, offset, 8);
AT(tn_dim, bound, 16);
AT(tn_dim, symbol, 24);
AT(tn_dim, reserved, 28);
GROWS(tn_spec, 40);
AT(tn_spec, size, 0);
AT(tn_spec, dtype, 4);
AT(tn_spec, storage, 8);
AT(tn_spec, rank, 12);
AT(tn_spec, dims, 16);
AT(tn_spec, layout, 24);
AT(tn_spec, levels, 28);
AT(tn_spec, outer, 32);
GROWS(tn_row_sparse, 32);
AT(tn_row_sparse, size, 0);
AT(tn_row_sparse, reserved, 4);
AT(tn_row_sparse, capacity, 8);
AT(tn_row_sparse, count, 16);
AT(tn_row_sparse, ids, 24);
GROWS(tn_ragged, 40);
AT(tn_ragged, size, 0);
AT(tn_ragged, levels, 4);
AT(tn_ragged, capacity, 8);
AT(tn_ragged, offsets, 24);
GROWS(tn_csr, 32);
AT(tn_csr, size, 0);
AT(tn_csr, has_values, 4);
AT(tn_csr, capacity, 8);
AT(tn_csr, indptr, 16);
AT(tn_csr, ids, 24);
GROWS(tn_tensor, 80);
AT(tn_tensor, size, 0);
AT(tn_tensor, storage, 4);
AT(tn_tensor, layout, 8);
AT(tn_tensor, alignment, 12);
AT(tn_tensor, flags, 16);
AT(tn_tensor, dl, 24);
AT(tn_tensor, part, 72);

/* tenon/attribute.h */
FROZEN(tn_value, 16);
AT(tn_value, kind, 0);
AT(tn_value, count, 4);
AT(tn_value, as, 8);
GROWS(tn_attribute, 72);
AT(tn_attribute, size, 0);
AT(tn_attribute, kind, 4);
AT(tn_attribute, name, 8);
AT(tn_attribute, doc, 16);
AT(tn_attribute, flags, 24);
AT(tn_attribute, has_range, 28);
AT(tn_attribute, initial, 32);
AT(tn_attribute, minimum, 48);
AT(tn_attribute, maximum, 56);
AT(tn_attribute, choices, 64);
GROWS(tn_attributes, 24);
AT(tn_attributes, size, 0);
AT(tn_attributes, count, 4);
AT(tn_attributes, declared, 8);
AT(tn_attributes, values, 16);

/* tenon/program.h */
FROZEN(tn_instruction, 24);
AT(tn_instruction, op, 0);
AT(tn_instruction, kind, 2);
AT(tn_instruction, extent, 3);
AT(tn_instruction, a, 4);
AT(tn_instruction, b, 8);
AT(tn_instruction, c, 12);
AT(tn_instruction, number, 16);
FROZEN(tn_program_input, 4);
AT(tn_program_input, extent, 0);
AT(tn_program_input, kind, 1);
AT(tn_program_input, reserved, 2);
FROZEN(tn_program_output, 8);
AT(tn_program_output, value, 0);
AT(tn_program_output, dtype, 4);
GROWS(tn_program, 40);
AT(tn_program, size, 0);
AT(tn_program, instructions_count, 4);
AT(tn_program, instructions, 8);
AT(tn_program, inputs_count, 16);
AT(tn_program, outputs_count, 20);
AT(tn_program, inputs, 24);
AT(tn_program, outputs, 32);

/* tenon/services.h */
GROWS(tn_error_report, 40);
AT(tn_error_report, size, 0);
AT(tn_error_report, code, 4);
AT(tn_error_report, message, 8);
AT(tn_error_report, port, 16);
AT(tn_error_report, expected, 24);
AT(tn_error_report, actual, 32);
GROWS(tn_errors, 24);
AT(tn_errors, size, 0);
AT(tn_errors, reserved, 4);
AT(tn_errors, self, 8);
AT(tn_errors, report, 16);
GROWS(tn_parallel, 32);
AT(tn_parallel, size, 0);
AT(tn_parallel, workers, 4);
AT(tn_parallel, self, 8);
AT(tn_parallel, for_each, 16);
AT(tn_parallel, phases, 24);
GROWS(tn_services, 24);
AT(tn_services, size, 0);
AT(tn_services, abi_major, 4);
AT(tn_services, abi_minor, 6);
AT(tn_services, self, 8);
AT(tn_services, extension, 16);
GROWS(tn_log, 24);
AT(tn_log, size, 0);
AT(tn_log, reserved, 4);
AT(tn_log, self, 8);
AT(tn_log, write, 16);
GROWS(tn_memory, 32);
AT(tn_memory, size, 0);
AT(tn_memory, reserved, 4);
AT(tn_memory, self, 8);
AT(tn_memory, allocate, 16);
AT(tn_memory, release, 24);
FROZEN(tn_random, 16);
AT(tn_random, seed, 0);
AT(tn_random, step, 8);
GROWS(tn_execution, 56);
AT(tn_execution, size, 0);
AT(tn_execution, reserved, 4);
AT(tn_execution, device, 8);
AT(tn_execution, stream, 16);
AT(tn_execution, symbols, 24);
AT(tn_execution, random, 32);
AT(tn_execution, parallel, 40);
AT(tn_execution, errors, 48);
GROWS(tn_call, 56);
AT(tn_call, size, 0);
AT(tn_call, inputs_count, 4);
AT(tn_call, outputs_count, 8);
AT(tn_call, reserved, 12);
AT(tn_call, inputs, 16);
AT(tn_call, outputs, 24);
AT(tn_call, requests, 32);
AT(tn_call, workspace, 40);
AT(tn_call, node, 48);
GROWS(tn_prepared, 40);
AT(tn_prepared, size, 0);
AT(tn_prepared, traits, 4);
AT(tn_prepared, binding, 8);
AT(tn_prepared, workspace_bytes, 16);
AT(tn_prepared, run, 24);
AT(tn_prepared, destroy, 32);

int main(void) { return 0; }
