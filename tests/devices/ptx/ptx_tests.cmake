# The translator of PTX, and tests of primitives on what a real NVRTC makes of the kernels.
# SPDX-License-Identifier: Apache-2.0
separate_arguments(compiler UNIX_COMMAND "${CMAKE_CXX_COMPILER} ${flags}")
add_test(NAME ptx/translator COMMAND ${Python3_EXECUTABLE} -B "${CMAKE_CURRENT_LIST_DIR}/ptx_test.py" ${compiler})
set_tests_properties(ptx/translator PROPERTIES LABELS "cuda;emulated")

# tenon_ptx_test(<path> <filter> [long]): cases of a test of a primitive, as by tenon_cuda_test.
function(tenon_ptx_test path filter)
  if(NOT TENON_NVRTC_LIBRARY)
    return()
  endif()
  set(name "ptx/${path}")
  if(TEST "${name}")
    string(APPEND name "/more")
  endif()
  tenon_emulated_test("${name}" "${path}" "${filter}" "${emulated}" ${ARGN})
  set_tests_properties("${name}" PROPERTIES
    ENVIRONMENT "TENON_TEST_DEVICE=cuda;TENON_EMULATED_MOST_BLOCKS=3;XDG_CACHE_HOME=${emulated}/ptx_cache;TENON_EMULATED_PTX=${TENON_NVRTC_LIBRARY}")
endfunction()

# Left out: what tenon_cuda_test leaves out, and products that take long.
tenon_ptx_test(devices/argsort_test -*.Refuses)
tenon_ptx_test(devices/gather_test -*.RefusesOtherCalls)
tenon_ptx_test(devices/move_test -*.RefusesNegativeSizes:*.RefusesToAddWhatIsNoFloat)
tenon_ptx_test(devices/cuda_device_test *.BoundsDoNotMatter:*.ExtremesOfComputedValues)
tenon_ptx_test(devices/cuda_device_test *.ProgramsAgreeWithTheReference:*.OperandsBeginAtAnyElement long)
tenon_ptx_test(devices/gemm_test -*.Refuses*:*.ManyAtOnce:*.SmallOnesAtOnce:*.LargeProductsInTiles long)
tenon_ptx_test(devices/prefix_sum_test -*.Refuses long)
tenon_ptx_test(devices/rows_test -*.RefusesOther* long)
tenon_ptx_test(devices/rows_update_test -*.RefusesOtherOperands long)
tenon_ptx_test(devices/segment_test -*.Refuses:*.RefusesOtherCalls long)
tenon_ptx_test(devices/pointwise_test -*.ReusesRegisters:*.RefusesWhatItDoesNotOffer:*.RefusesOtherCalls long)
tenon_ptx_test(devices/pointwise_numbers_test * long)

# Mutants of what only threads that wait for each other show, and of accesses, in PTX as in the source.
if(TENON_NVRTC_LIBRARY)
  add_test(NAME ptx/mutants COMMAND ${Python3_EXECUTABLE} -B "${CMAKE_CURRENT_LIST_DIR}/../cuda_mutants.py"
           "${CMAKE_CURRENT_BINARY_DIR}" "${emulated}" __syncthreads __shfl "alignof" "threadIdx")
  set_tests_properties(ptx/mutants PROPERTIES LABELS "cuda;emulated;long" TIMEOUT 1800
    ENVIRONMENT "TENON_EMULATED_PTX=${TENON_NVRTC_LIBRARY}")
endif()
