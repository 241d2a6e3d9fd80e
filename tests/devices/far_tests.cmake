# Tests of machines, trainings, updaters and layers on the device "far", whose memory the host cannot address, with streams
# that run late. SPDX-License-Identifier: Apache-2.0

# tenon_far_test(<path> [<label> [<filter>]]): the same program with its machines on the device "far" (devices/far), as
# one test. Label: "far", or "long" for those that would make a run too long. Filter: the cases that state what is
# different there, as --gtest_filter has them: with --gtest_filter=-<filter> they are left out.
function(tenon_far_test path)
  set(label far)
  if(ARGC GREATER 1)
    set(label "${ARGV1}")
  endif()
  string(REPLACE "/" "_" target "test_${path}")
  add_test(NAME "far/${path}" COMMAND ${target} "--gtest_brief=1" "--gtest_filter=-${ARGV2}")
  set_tests_properties("far/${path}" PROPERTIES LABELS "${label}" TIMEOUT 600 ENVIRONMENT TENON_TEST_DEVICE=far)
endfunction()

foreach(name argsort gather move prefix_sum rows rows_update segment)
  tenon_far_test(devices/${name}_test)
endforeach()
foreach(name conv conv_epilogue gemm gemm_epilogue gemm_rows pointwise pointwise_math pointwise_numbers pool resize)
  tenon_far_test(devices/${name}_test long)
endforeach()
foreach(name batch buffers carried_memories conds cost_coefficients declared derived_rows draws nested_scans
             scan_memories scans seen_sequences sequences shared_gradients tables)
  tenon_far_test(host/machine/${name}_test)
endforeach()
# A late failure of a backward names the device, not the component.
tenon_far_test(host/machine/machine_test far MachineRules.PrepareAndRunNameTheSameComponent:MachineRules.AFailedBackward*)
foreach(name added_parameters averages ranking step_count training_control training_loop updater_groups
             updater_programs updater)
  tenon_far_test(host/training/${name}_test)
endforeach()
foreach(name attention decoding generator whole_layers)
  tenon_far_test(host/generation/${name}_test)
endforeach()
foreach(name machine_calls predictor sharing updater_parts updater_state)
  tenon_far_test(host/api/${name}_test)
endforeach()
# Feeds are never read in place.
tenon_far_test(host/training/clock_test far Seams.LentMemoryThatIsNotAlignedIsCopied)
# Fails allocations of the host, which are not those of the device.
tenon_far_test(updaters/rows_test far RowsUpdate.BackwardWithoutMemoryCanBeRepeated:RowsUpdate.AMillionRows)
foreach(name multipliers updaters)
  tenon_far_test(updaters/${name}_test)
endforeach()
foreach(name chosen_rows formula metrics over_sequences padding recurrent sequence_attention)
  tenon_far_test(layers/${name}_test)
endforeach()
foreach(name activations agreement arithmetic attention convolution costs crf cross_entropy einsum embedding fc mixed
             norms pool positions reductions resize sampled)
  tenon_far_test(layers/${name}_test long)
endforeach()
