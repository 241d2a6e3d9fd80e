# Tests of communicators. SPDX-License-Identifier: Apache-2.0
add_library(tenon_comms_contract STATIC comms/contract.cpp)
target_link_libraries(tenon_comms_contract PUBLIC tenon_sdk tenon_test_paths Threads::Threads)
add_executable(tenon_comm_rank comms/comm_rank.cpp)
target_link_libraries(tenon_comm_rank PRIVATE tenon_comms_contract ${CMAKE_DL_LIBS})
set_target_properties(tenon_comm_rank PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
tenon_test(comms/loop_test)
target_link_libraries(test_comms_loop_test PRIVATE tenon_comms_contract)
if(NOT TENON_SANITIZE MATCHES thread) # libzmq is not built with it, so what its threads hand over would be a race
  tenon_test(comms/zmq_test)
  target_link_libraries(test_comms_zmq_test PRIVATE tenon_comms_contract)
  if(TENON_ZMQ_INCLUDE AND TENON_ZMQ_LIBRARY)
    tenon_test(comms/zmq_sockets_test)
    target_sources(test_comms_zmq_sockets_test PRIVATE "${PROJECT_SOURCE_DIR}/plugins/comms/zmq/sockets.cpp")
    # In its folder zmq.h is another one.
    target_compile_options(test_comms_zmq_sockets_test PRIVATE -iquote "${PROJECT_SOURCE_DIR}/plugins/comms/zmq")
    target_include_directories(test_comms_zmq_sockets_test SYSTEM PRIVATE "${TENON_ZMQ_INCLUDE}")
    target_link_libraries(test_comms_zmq_sockets_test PRIVATE tenon_sdk "${TENON_ZMQ_LIBRARY}")
  endif()
endif()
if(NOT TENON_SANITIZE) # MPI libraries leak, and replace functions that sanitizers replace
  tenon_test(comms/mpi_test)
  add_dependencies(tests_comms tenon_comm_rank)
endif()
