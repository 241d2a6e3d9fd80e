# What the test of the device cpu's calls of OpenBLAS is linked with beyond its line, and its runs for both sets of
# kernels that the device chooses; without OPENBLAS_CORETYPE OpenBLAS chooses. SPDX-License-Identifier: Apache-2.0
target_include_directories(test_devices_blas_test PRIVATE "${PROJECT_SOURCE_DIR}/plugins/devices/cpu")
target_include_directories(test_devices_blas_test SYSTEM PRIVATE "${TENON_OPENBLAS_INCLUDE}")
target_link_libraries(test_devices_blas_test PRIVATE
  "$<FILTER:$<TARGET_OBJECTS:tenon_devices_cpu_objects>,EXCLUDE,blas_core>" tenon_device_pointwise tenon_cpu_assembler "${TENON_OPENBLAS}" ${CMAKE_DL_LIBS}
  "-Wl,--wrap=blas_memory_alloc" "-Wl,--wrap=blas_memory_free" "-Wl,--wrap=mmap" "-Wl,--wrap=cblas_sgemm")
foreach(core SkylakeX Haswell)
  gtest_discover_tests(test_devices_blas_test TEST_PREFIX "devices/blas_${core}." DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS devices TIMEOUT 300 ENVIRONMENT OPENBLAS_CORETYPE=${core})
endforeach()

# The choice itself, with the environment that OpenBLAS sees.
target_include_directories(test_devices_blas_core_test PRIVATE "${PROJECT_SOURCE_DIR}/plugins/devices/cpu")
target_link_libraries(test_devices_blas_core_test PRIVATE
  "$<FILTER:$<TARGET_OBJECTS:tenon_devices_cpu_objects>,INCLUDE,blas_core>" "-Wl,--wrap=getenv")

# Each kind of kernels by itself.
target_link_libraries(test_devices_gemm_choice_test PRIVATE tenon_cpu_kernels)
# Debian's mold (1.10) does not end on some machines when it links this program.
get_target_property(options test_devices_gemm_choice_test LINK_OPTIONS)
list(REMOVE_ITEM options ${TENON_TEST_LINKER} "")
set_property(TARGET test_devices_gemm_choice_test PROPERTY LINK_OPTIONS ${options})
