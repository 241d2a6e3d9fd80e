# The tests of the device cuda beyond their two lines: what of the plugin they are linked with, and an emulated GPU on
# which the device's tests run again, so that they run everywhere. SPDX-License-Identifier: Apache-2.0
set(cuda_plugin $<TARGET_PROPERTY:tenon_devices_cuda_objects,INCLUDE_DIRECTORIES>)
target_include_directories(test_devices_cuda_source_test PRIVATE "${PROJECT_SOURCE_DIR}")
target_include_directories(test_devices_cuda_source_test SYSTEM PRIVATE ${cuda_plugin})
target_link_libraries(test_devices_cuda_source_test PRIVATE $<TARGET_OBJECTS:tenon_devices_cuda_objects>
                      tenon_device_pointwise ${CMAKE_DL_LIBS})
foreach(test source device)
  add_dependencies(test_devices_cuda_${test}_test tenon_devices_cuda)
endforeach()

set(emulator "${CMAKE_CURRENT_LIST_DIR}/cuda_emulator")
set(emulated "${CMAKE_CURRENT_BINARY_DIR}/cuda_emulator")
add_library(test_cuda_driver SHARED "${emulator}/driver.cpp")
add_library(test_cuda_nvrtc SHARED "${emulator}/nvrtc.cpp")
set_target_properties(test_cuda_driver PROPERTIES OUTPUT_NAME cuda SOVERSION 1)
set_target_properties(test_cuda_nvrtc PROPERTIES OUTPUT_NAME nvrtc SOVERSION 13)
foreach(library driver nvrtc)
  target_include_directories(test_cuda_${library} SYSTEM PRIVATE ${cuda_plugin})
  set_target_properties(test_cuda_${library} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${emulated}"
    CXX_VISIBILITY_PRESET default)
  add_dependencies(test_devices_cuda_device_test test_cuda_${library})
endforeach()
target_link_libraries(test_cuda_driver PRIVATE ${CMAKE_DL_LIBS})
target_compile_definitions(test_cuda_driver PRIVATE EMULATED_COMPILER="${CMAKE_CXX_COMPILER}"
  EMULATED_KERNEL_HEADER="${emulator}/kernel.h")
gtest_discover_tests(test_devices_cuda_device_test TEST_PREFIX "devices/cuda_emulated." DISCOVERY_MODE PRE_TEST
  PROPERTIES LABELS devices TIMEOUT 300 ENVIRONMENT_MODIFICATION "LD_LIBRARY_PATH=path_list_prepend:${emulated}")
