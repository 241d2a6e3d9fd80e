# Compiles a plugin in Rust and seals it; a second time with a larger note if its manifest needs one. For tenon_add_plugin:
#   cmake -DTENON_PROGRAM=<program> -DPLUGIN=<file> -P rust_plugin.cmake -- <command that makes the file>
# SPDX-License-Identifier: MIT
set(command "")
set(begun FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(number RANGE ${last})
  if(begun)
    list(APPEND command "${CMAKE_ARGV${number}}")
  elseif(CMAKE_ARGV${number} STREQUAL "--")
    set(begun TRUE)
  endif()
endforeach()

foreach(attempt 1 2)
  execute_process(COMMAND ${command} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${TENON_PROGRAM}" plugins seal "${PLUGIN}" RESULT_VARIABLE code OUTPUT_VARIABLE said
                  ERROR_VARIABLE reason)
  if(code EQUAL 0)
    return()
  endif()
  if(NOT reason MATCHES "its manifest needs ([0-9]+)")
    break()
  endif()
  set(ENV{TENON_NOTE_BYTES} "${CMAKE_MATCH_1}")
endforeach()
message(FATAL_ERROR "${reason}")
