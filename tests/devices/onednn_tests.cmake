# What the test of the provider onednn is linked with: the plugin without its choice, which the test replaces; it also
# loads the built plugin.
# SPDX-License-Identifier: Apache-2.0
target_include_directories(test_devices_onednn_test PRIVATE "${PROJECT_SOURCE_DIR}/plugins/devices/onednn")
target_include_directories(test_devices_onednn_test SYSTEM PRIVATE "${TENON_ONEDNN_INCLUDE}")
target_link_libraries(test_devices_onednn_test PRIVATE
  "$<FILTER:$<TARGET_OBJECTS:tenon_devices_onednn_objects>,EXCLUDE,choice>" ${CMAKE_DL_LIBS})
add_dependencies(test_devices_onednn_test tenon_devices_onednn)
