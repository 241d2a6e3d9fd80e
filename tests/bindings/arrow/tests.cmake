# What the tests of tables of Arrow need, and those in C. SPDX-License-Identifier: Apache-2.0
target_sources(test_bindings_arrow_arrow_memory_test PRIVATE support/failing_calls.cpp)
add_executable(test_bindings_arrow_c_test bindings/arrow/arrow_c_test.c)
target_link_libraries(test_bindings_arrow_c_test PRIVATE tenon_arrow)
set_target_properties(test_bindings_arrow_c_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}"
                      C_STANDARD 99)
add_dependencies(tests_bindings test_bindings_arrow_c_test)
add_test(NAME bindings/arrow/arrow_c_test COMMAND test_bindings_arrow_c_test "${CMAKE_BINARY_DIR}/lib/tenon/plugins")
set_tests_properties(bindings/arrow/arrow_c_test PROPERTIES LABELS bindings TIMEOUT 60)
