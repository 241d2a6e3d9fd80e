# The wrong calls of every function of the public C API, from its headers and the descriptions of its options.
# SPDX-License-Identifier: Apache-2.0
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
set(folder "${CMAKE_CURRENT_LIST_DIR}")
set(calls "${CMAKE_CURRENT_BINARY_DIR}/misuse_calls.cpp")
file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/host/include/tenon/tenon*.h"
     "${PROJECT_SOURCE_DIR}/sdk/include/tenon/*.h" "${PROJECT_SOURCE_DIR}/host/api/spec/*")
add_custom_command(OUTPUT "${calls}"
  COMMAND "${Python3_EXECUTABLE}" -B "${folder}/generate.py" "${PROJECT_SOURCE_DIR}/host/include/tenon"
          "${PROJECT_SOURCE_DIR}/sdk/include/tenon" "${calls}"
  DEPENDS "${folder}/generate.py" "${folder}/declarations.py" "${folder}/table.py" ${headers} VERBATIM)
add_test(NAME host/api/misuse/generate_test COMMAND "${Python3_EXECUTABLE}" -B "${folder}/generate_test.py")
set_tests_properties(host/api/misuse/generate_test PROPERTIES LABELS host TIMEOUT 60)
add_test(NAME host/api/spec/generate_options_test
         COMMAND "${Python3_EXECUTABLE}" -B "${PROJECT_SOURCE_DIR}/tests/host/api/spec/generate_options_test.py")
set_tests_properties(host/api/spec/generate_options_test PROPERTIES LABELS host TIMEOUT 60)
target_sources(test_host_api_misuse_misuse_test PRIVATE "${calls}" host/api/misuse/world.cpp)
