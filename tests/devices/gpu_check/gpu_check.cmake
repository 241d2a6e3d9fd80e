# What scripts/gpu-check needs beside the tests of primitives. SPDX-License-Identifier: Apache-2.0
add_executable(test_gpu_measure "${CMAKE_CURRENT_LIST_DIR}/measure.cpp")
target_link_libraries(test_gpu_measure PRIVATE tenon_test_support GTest::gtest Threads::Threads)
target_link_options(test_gpu_measure PRIVATE ${TENON_TEST_LINKER})
add_library(test_gpu_count MODULE "${CMAKE_CURRENT_LIST_DIR}/count.c")
set_target_properties(test_gpu_count PROPERTIES PREFIX "" C_VISIBILITY_PRESET default)
add_library(test_gpu_fake_cublas SHARED "${CMAKE_CURRENT_LIST_DIR}/fake_cublas.c")
set_target_properties(test_gpu_fake_cublas PROPERTIES OUTPUT_NAME cublas SOVERSION 13 C_VISIBILITY_PRESET default
  LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/gpu_fakes")
set_target_properties(test_gpu_measure test_gpu_count PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}" LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")

# The tests of primitives that must hold on a GPU: a line for each with its program and what is left out.
set_property(GLOBAL APPEND PROPERTY tenon_gpu_suite "test_devices_cuda_device_test -")
get_property(suite GLOBAL PROPERTY tenon_gpu_suite)
list(JOIN suite "\n" lines)
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/gpu_suite" CONTENT "${lines}\n" @ONLY)
add_custom_target(gpu_check DEPENDS test_gpu_measure test_gpu_count test_gpu_fake_cublas tenon_cli ${plugins})
foreach(line ${suite})
  string(REGEX REPLACE " .*" "" program "${line}")
  add_dependencies(gpu_check ${program})
endforeach()

# The benchmarks of benchmarks/workloads.toml that name cuda.
set(benchmarks adam dlrm gpt_block lenet lstm mlp ranking resnet tiny wide_mlp)
list(JOIN benchmarks "\n" lines)
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/gpu_benchmarks" CONTENT "${lines}\n" @ONLY)
foreach(benchmark ${benchmarks})
  add_dependencies(gpu_check bench_${benchmark})
endforeach()

# Packed, in another folder, on the emulated GPU.
set(check "${PROJECT_SOURCE_DIR}/scripts/gpu-check")
set(packed "${CMAKE_CURRENT_BINARY_DIR}/gpu packed")
add_test(NAME gpu_check/emulated COMMAND bash -euc
  "rm -rf '${packed}'; mkdir '${packed}'; cd '${packed}'; '${check}' pack all.tar; tar -xf all.tar; \
LD_LIBRARY_PATH='${emulated}:${CMAKE_CURRENT_BINARY_DIR}/gpu_fakes' gpu-check/gpu-check; cat gpu-check.md; cd ..; \
rm -rf '${packed}'")
set_tests_properties(gpu_check/emulated PROPERTIES LABELS "cuda;emulated;long" TIMEOUT 1800
  ENVIRONMENT "TENON_BUILD=${PROJECT_BINARY_DIR};XDG_CACHE_HOME=${emulated}/cache;TENON_GPU_CHECK_LOCK=${packed} lock"
  PASS_REGULAR_EXPRESSION "emulated GPU.*of cuBLAS +ok.*[1-9][0-9.]* launches.*benchmark tiny +us: tenon [0-9].* rows, 0 rows failed.*[|] benchmark tiny [|] us: tenon"
  FAIL_REGULAR_EXPRESSION "FAILED")

# tenon_gpu_check_test(<name> <expected> <variable=value...>): a run in the build, in a folder of its own, with an
# environment.
function(tenon_gpu_check_test name expected)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/gpu_check_${name}")
  file(MAKE_DIRECTORY "${folder}")
  add_test(NAME gpu_check/${name} COMMAND bash -c "'${check}'; echo exit code $?" WORKING_DIRECTORY "${folder}")
  set_tests_properties(gpu_check/${name} PROPERTIES LABELS "cuda;emulated;long" TIMEOUT 1800
    ENVIRONMENT "TENON_BUILD=${PROJECT_BINARY_DIR};TENON_GPU_CHECK_LOCK=${folder}/lock;${ARGN}"
    PASS_REGULAR_EXPRESSION "${expected}")
endfunction()

# Without a driver, and with an NVRTC that is broken: files that are no libraries stand for them.
set(broken "${CMAKE_CURRENT_BINARY_DIR}/gpu_broken")
file(WRITE "${broken}/driver/libcuda.so.1" "")
file(WRITE "${broken}/nvrtc/libnvrtc.so.13" "")
tenon_gpu_check_test(no_driver "cannot be used: the CUDA driver cannot be loaded .*: install the NVIDIA driver.*exit code 2"
  "LD_LIBRARY_PATH=${broken}/driver")
tenon_gpu_check_test(broken_nvrtc "cannot be used: NVRTC cannot be loaded .*libnvrtc.so.13: file too short.*exit code 2"
  "LD_LIBRARY_PATH=${broken}/nvrtc:${emulated}")
tenon_gpu_check_test(no_device "cannot be used: cuInit: CUDA_ERROR.*100.*exit code 2"
  "LD_LIBRARY_PATH=${emulated}" TENON_EMULATED_INIT=100)
tenon_gpu_check_test(old_driver "the driver is of CUDA 13.0, and cannot load what NVRTC 13.0 compiles.*exit code 2"
  "LD_LIBRARY_PATH=${emulated}" TENON_EMULATED_LOAD=222)
tenon_gpu_check_test(old_gpu "compute capability 6.1, and NVRTC 13.0 compiles for 9.0 and newer.*exit code 2"
  "LD_LIBRARY_PATH=${emulated}" TENON_EMULATED_CAPABILITY=61)
# A kernel with an error is a row that fails, as is a finding of compute-sanitizer, and a program that crashes under it.
tenon_gpu_check_test(mutant
  "primitives: prefix_sum[^\n]*FAILED.*memcheck: gather +no finding +ok.*racecheck: gather +Error: Race reported[^\n]*FAILED.*memcheck: segment +exit code 139[^\n]*FAILED.* 3 rows failed.*exit code 1"
  "LD_LIBRARY_PATH=${emulated}" XDG_CACHE_HOME= HOME=
  "TENON_COMPUTE_SANITIZER=${CMAKE_CURRENT_LIST_DIR}/fake_sanitizer" "TENON_MUTANT_OLD=carry += all"
  "TENON_MUTANT_NEW=carry = all" "TENON_MUTANT_SEEN=${CMAKE_CURRENT_BINARY_DIR}/gpu_mutant")
# With programs that stand for Tenon's.
add_test(NAME gpu_check/script COMMAND ${Python3_EXECUTABLE} -B "${CMAKE_CURRENT_LIST_DIR}/gpu_check_test.py"
         "${PROJECT_SOURCE_DIR}")
set_tests_properties(gpu_check/script PROPERTIES LABELS "cuda;long" TIMEOUT 600)
# Replays, on a device that records.
add_test(NAME gpu_check/far COMMAND test_gpu_measure 12)
set_tests_properties(gpu_check/far PROPERTIES LABELS "cuda;far" ENVIRONMENT "TENON_TEST_DEVICE=far"
  PASS_REGULAR_EXPRESSION "two runs and a replay\tsame bits\tok" FAIL_REGULAR_EXPRESSION "FAILED")
