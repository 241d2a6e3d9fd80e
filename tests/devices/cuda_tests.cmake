# The tests of the device cuda beyond their two lines: what of the plugin they are linked with, and an emulated GPU on
# which the device's tests run again, so that they run everywhere. SPDX-License-Identifier: Apache-2.0
set(cuda_plugin $<TARGET_PROPERTY:tenon_devices_cuda_objects,INCLUDE_DIRECTORIES>)
foreach(test cache resources source)
  target_include_directories(test_devices_cuda_${test}_test PRIVATE "${PROJECT_SOURCE_DIR}")
  target_include_directories(test_devices_cuda_${test}_test SYSTEM PRIVATE ${cuda_plugin})
  target_link_libraries(test_devices_cuda_${test}_test PRIVATE $<TARGET_OBJECTS:tenon_devices_cuda_objects>
                        tenon_device_pointwise ${CMAKE_DL_LIBS})
endforeach()
foreach(test capture device machine source)
  add_dependencies(test_devices_cuda_${test}_test tenon_devices_cuda)
endforeach()

set(emulator "${CMAKE_CURRENT_LIST_DIR}/cuda_emulator")
set(emulated "${CMAKE_CURRENT_BINARY_DIR}/cuda_emulator")
add_library(test_cuda_driver SHARED "${emulator}/capture.cpp" "${emulator}/driver.cpp")
add_library(test_cuda_nvrtc SHARED "${emulator}/nvrtc.cpp")
add_library(test_cuda_no_blas SHARED "${emulator}/no_blas.cpp")
add_library(test_cuda_no_dnn SHARED "${emulator}/no_dnn.cpp")
set_target_properties(test_cuda_driver PROPERTIES OUTPUT_NAME cuda SOVERSION 1)
set_target_properties(test_cuda_nvrtc PROPERTIES OUTPUT_NAME nvrtc SOVERSION 13)
set_target_properties(test_cuda_no_blas PROPERTIES OUTPUT_NAME cublasLt SOVERSION 13)
set_target_properties(test_cuda_no_dnn PROPERTIES OUTPUT_NAME cudnn SOVERSION 9)
foreach(library driver no_blas no_dnn nvrtc)
  target_include_directories(test_cuda_${library} SYSTEM PRIVATE ${cuda_plugin})
  set_target_properties(test_cuda_${library} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${emulated}"
    CXX_VISIBILITY_PRESET default)
  foreach(test capture device kernel machine)
    add_dependencies(test_devices_cuda_${test}_test test_cuda_${library})
  endforeach()
endforeach()
target_link_libraries(test_cuda_driver PRIVATE ${CMAKE_DL_LIBS})
# The header is most of what the compiler reads for a kernel, so it is precompiled.
set(flags -std=c++17 -O1 -w -fPIC -fno-gnu-unique -fvisibility-inlines-hidden)
add_custom_command(OUTPUT "${emulated}/kernel.h.gch"
  DEPENDS "${emulator}/kernel.h" "${CMAKE_CURRENT_LIST_DIR}/ptx/ptx.h" "${CMAKE_CURRENT_LIST_DIR}/ptx/ptx.py"
  COMMAND ${CMAKE_COMMAND} -E copy "${emulator}/kernel.h" "${emulated}/kernel.h"
  COMMAND ${CMAKE_COMMAND} -E rm -rf "${emulated}/cache" "${emulated}/ptx_cache" # of kernels with what was before
  COMMAND ${CMAKE_CXX_COMPILER} ${flags} -x c++-header -o "${emulated}/kernel.h.gch" "${emulated}/kernel.h" VERBATIM)
add_custom_target(test_cuda_kernel_header DEPENDS "${emulated}/kernel.h.gch")
add_dependencies(test_cuda_nvrtc test_cuda_kernel_header)
list(JOIN flags " " flags)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
target_compile_definitions(test_cuda_nvrtc PRIVATE
  EMULATED_COMPILER="${CMAKE_CXX_COMPILER} ${flags} -shared ${TENON_TEST_LINKER}"
  EMULATED_KERNEL_HEADER="${emulated}/kernel.h"
  EMULATED_TRANSLATOR="'${Python3_EXECUTABLE}' -B '${CMAKE_CURRENT_LIST_DIR}/ptx/ptx.py'")

# The plugins of examples/gpu_kernel.
set(TENON_PLUGIN_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/tenon/test_gpu_kernel")
set(TENON_PLUGIN_INSTALL_DIRECTORY "")
tenon_add_plugin(layers mu_law "${PROJECT_SOURCE_DIR}/examples/plugins/mu_law.cpp")
tenon_add_plugin(layers mu_law_cuda "${PROJECT_SOURCE_DIR}/examples/gpu_kernel/mu_law_cuda.cpp"
                 LIBRARIES ${CMAKE_DL_LIBS})
target_compile_definitions(test_devices_cuda_kernel_test PRIVATE
  TENON_GPU_KERNEL_FOLDER="${TENON_PLUGIN_OUTPUT_DIRECTORY}")
add_dependencies(test_devices_cuda_kernel_test tenon_layers_mu_law tenon_layers_mu_law_cuda tenon_devices_cuda)

# The device's own tests on the emulated GPU.
foreach(test capture device kernel machine)
  gtest_discover_tests(test_devices_cuda_${test}_test TEST_PREFIX "devices/cuda_emulated." DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS cuda TIMEOUT 300 ENVIRONMENT "XDG_CACHE_HOME=${emulated}/cache"
    ENVIRONMENT_MODIFICATION "LD_LIBRARY_PATH=path_list_prepend:${emulated}")
endforeach()

# tenon_emulated_test(<name> <path> <filter> <folders> [label...]): a test with its device, or its machines, on the
# emulated GPU, as one test, labelled "cuda". Filter: that of GoogleTest. Folders: of libraries, the last one first.
# Kernels run on at most three blocks here, those of the device's own tests on as many as they ask for.
function(tenon_emulated_test name path filter folders)
  string(REPLACE "/" "_" target "test_${path}")
  add_test(NAME "${name}" COMMAND ${target} "--gtest_brief=1" "--gtest_filter=${filter}")
  list(TRANSFORM folders PREPEND "LD_LIBRARY_PATH=path_list_prepend:")
  set_tests_properties("${name}" PROPERTIES LABELS "cuda;emulated;${ARGN}" TIMEOUT 1800
    ENVIRONMENT "TENON_TEST_DEVICE=cuda;TENON_EMULATED_MOST_BLOCKS=3;XDG_CACHE_HOME=${emulated}/cache"
    ENVIRONMENT_MODIFICATION "${folders}")
  add_dependencies(${target} tenon_devices_cuda test_cuda_driver test_cuda_nvrtc)
endfunction()

# tenon_cuda_library_test(<library> <path> <filter> [long]): the same with a library "blas" or "dnn" that computes on the
# CPU. Filter: the cases that run, or after "-" those that do not.
set(fakes "${CMAKE_CURRENT_BINARY_DIR}/cuda_fakes")
function(tenon_cuda_library_test library path filter)
  tenon_emulated_test("cuda/${library}/${path}" "${path}" "${filter}" "${emulated};${fakes}" ${ARGN})
  string(REPLACE "/" "_" target "test_${path}")
  add_dependencies(${target} test_cuda_${library})
endfunction()

# tenon_cuda_test(<path> <filter> [long]): the same with neither library. Filter: the cases that are left out. Tests of
# devices are also for scripts/gpu-check, but those labelled "exact": they need functions that give whole numbers
# where the result is one, which a GPU does not promise (3 to the power of 1).
function(tenon_cuda_test path filter)
  string(REPLACE "/" "_" target "test_${path}")
  tenon_emulated_test("cuda/${path}" "${path}" "-${filter}" "${emulated}" ${ARGN})
  add_dependencies(${target} test_cuda_no_blas test_cuda_no_dnn)
  if(path MATCHES "^devices/" AND NOT "exact" IN_LIST ARGN)
    set_property(GLOBAL APPEND PROPERTY tenon_gpu_suite "${target} -${filter}")
  endif()
endfunction()

# The same with the PTX of a real NVRTC, where there is one.
find_package(CUDAToolkit QUIET)
unset(TENON_NVRTC_LIBRARY CACHE)
find_library(TENON_NVRTC_LIBRARY NAMES libnvrtc.so.13 nvrtc
  HINTS "${PROJECT_BINARY_DIR}/cuda/nvidia/cu13/lib" ${CUDAToolkit_LIBRARY_DIR})
include("${CMAKE_CURRENT_LIST_DIR}/ptx/ptx_tests.cmake")

# Primitives. Left out: refusals with the words of the cpu, or of sizes that only the GPU knows; products and
# convolutions that test the buffers and bands of the cpu, and its registers.
tenon_cuda_test(devices/argsort_test *.Refuses)
tenon_cuda_test(devices/conv_test *.Refuses:*.ManyBands)
tenon_cuda_test(devices/gather_test *.RefusesOtherCalls)
tenon_cuda_test(devices/gemm_test *.RefusesNegativeAndImmenseSizes:*.ManyAtOnce:*.SmallOnesAtOnce)
tenon_cuda_test(devices/move_test *.RefusesNegativeSizes:*.RefusesToAddWhatIsNoFloat)
tenon_cuda_test(devices/pool_test *.Refuses)
tenon_cuda_test(devices/prefix_sum_test *.Refuses)
tenon_cuda_test(devices/resize_test *.Refuses)
tenon_cuda_test(devices/rows_test *.RefusesOther*)
tenon_cuda_test(devices/rows_update_test *.RefusesOtherOperands)
tenon_cuda_test(devices/segment_test *.Refuses:*.RefusesOtherCalls)
tenon_cuda_test(devices/pointwise_test *.ReusesRegisters:*.RefusesWhatItDoesNotOffer:*.RefusesOtherCalls long)
tenon_cuda_test(devices/pointwise_fuzz_test "" long exact)
tenon_cuda_test(devices/pointwise_math_test "" long exact)
tenon_cuda_test(devices/pointwise_numbers_test "" long)

# GPUs beside that of the test without TENON_TEST_ARCHITECTURES.
add_test(NAME cuda/devices/cuda_resources_test COMMAND test_devices_cuda_resources_test)
set_tests_properties(cuda/devices/cuda_resources_test PROPERTIES LABELS "cuda;long" TIMEOUT 600
  ENVIRONMENT "TENON_TEST_ARCHITECTURES=sm_80 sm_100")

# Each mutant of a kernel makes a test of primitives fail.
add_test(NAME cuda/mutants COMMAND ${Python3_EXECUTABLE} -B "${CMAKE_CURRENT_LIST_DIR}/cuda_mutants.py"
         "${CMAKE_CURRENT_BINARY_DIR}" "${emulated}")
set_tests_properties(cuda/mutants PROPERTIES LABELS "cuda;emulated;long" TIMEOUT 1800)

# Layers of images. Left out: an epilogue, of which the device has none.
tenon_cuda_test(layers/convolution_test *.NormalisationIsAnEpilogue long)
tenon_cuda_test(layers/pool_test "" long)
tenon_cuda_test(layers/resize_test "" long)

# Machines. Left out: failures of allocations of the host, which are not those of the device.
tenon_cuda_test(host/machine/sequences_test "" long)
tenon_cuda_test(host/training/updater_test "" long)
tenon_cuda_test(updaters/rows_test RowsUpdate.BackwardWithoutMemoryCanBeRepeated:RowsUpdate.AMillionRows long)
tenon_cuda_test(updaters/updaters_test "" long)

add_test(NAME cuda/training COMMAND ${Python3_EXECUTABLE} -B "${CMAKE_CURRENT_LIST_DIR}/cuda_training.py"
         $<TARGET_FILE:tenon_cli> "${PROJECT_SOURCE_DIR}/examples/fashion_mnist/mlp.toml" "${emulated}")
set_tests_properties(cuda/training PROPERTIES LABELS "cuda;emulated;long" TIMEOUT 900
  ENVIRONMENT "XDG_CACHE_HOME=${emulated}/cache")

if(TENON_BLAS_INCLUDE)
  include("${CMAKE_CURRENT_LIST_DIR}/cuda_blas_tests.cmake")
endif()
include("${CMAKE_CURRENT_LIST_DIR}/gpu_check/gpu_check.cmake")
