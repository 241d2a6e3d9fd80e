# What the tests of the provider openblas are linked with beyond their lines, and their runs for both sets of kernels that
# it chooses; without OPENBLAS_CORETYPE OpenBLAS chooses. SPDX-License-Identifier: Apache-2.0
set(openblas "${PROJECT_SOURCE_DIR}/plugins/devices/openblas")
target_include_directories(test_devices_openblas_test PRIVATE "${openblas}")
target_include_directories(test_devices_openblas_test SYSTEM PRIVATE "${TENON_OPENBLAS_INCLUDE}")
target_link_libraries(test_devices_openblas_test PRIVATE
  "$<FILTER:$<TARGET_OBJECTS:tenon_devices_openblas_objects>,EXCLUDE,/core_type\\.cpp>"
  "${TENON_OPENBLAS}" ${CMAKE_DL_LIBS}
  "-Wl,--wrap=blas_memory_alloc" "-Wl,--wrap=blas_memory_free" "-Wl,--wrap=mmap" "-Wl,--wrap=cblas_sgemm")
foreach(core SkylakeX Haswell)
  gtest_discover_tests(test_devices_openblas_test TEST_PREFIX "devices/openblas_${core}." DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS devices TIMEOUT 300 ENVIRONMENT OPENBLAS_CORETYPE=${core})
endforeach()

# The choice of kernels itself, with the environment that OpenBLAS sees.
target_include_directories(test_devices_openblas_core_type_test PRIVATE "${openblas}")
target_link_libraries(test_devices_openblas_core_type_test PRIVATE
  "$<FILTER:$<TARGET_OBJECTS:tenon_devices_openblas_objects>,INCLUDE,/core_type\\.cpp>" "-Wl,--wrap=getenv")

target_include_directories(test_devices_openblas_choice_test PRIVATE "${openblas}")
target_link_libraries(test_devices_openblas_choice_test PRIVATE
  "$<FILTER:$<TARGET_OBJECTS:tenon_devices_openblas_objects>,INCLUDE,/(choice|core_type)\\.cpp>" "-Wl,--wrap=getenv")
