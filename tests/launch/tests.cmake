# Tests of tenon-launch, with a program in place of tenon. SPDX-License-Identifier: Apache-2.0
add_executable(launch_worker launch/worker.cpp $<TARGET_OBJECTS:tenon_process> $<TARGET_OBJECTS:tenon_base>
               $<TARGET_OBJECTS:tenon_json>)
target_include_directories(launch_worker PRIVATE "${TENON_ROOT_process}" "${TENON_ROOT_base}")
target_include_directories(launch_worker SYSTEM PRIVATE "${PROJECT_SOURCE_DIR}/core/json" "${TENON_JSON_INCLUDE}")
set_target_properties(launch_worker PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
tenon_test(launch/faults_test)
tenon_test(launch/lease_test)
tenon_test(launch/mistakes_test)
tenon_test(launch/nodes_test)
tenon_test(launch/srun_test)
tenon_test(launch/stop_test)
tenon_test(launch/trainings_test)
tenon_test(launch/watch_test)
tenon_test(launch/words_test)
if(NOT TENON_SANITIZE) # as comms/mpi_test
  tenon_test(launch/mpi_test)
endif()
add_dependencies(tests_launch tenon_launch launch_worker)
