# Settings that every target of this repository shares. SPDX-License-Identifier: Apache-2.0

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()
# The cache keys paths relative to the checkout, so that a clone at another place hits what this one compiled.
# A build folder keeps what its first configuration found: another launcher would compile everything again.
if(NOT DEFINED TENON_CCACHE)
  find_program(TENON_CCACHE ccache)
endif()
if(TENON_CCACHE)
  foreach(language C CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
        CCACHE_NOHASHDIR=true CCACHE_SLOPPINESS=pch_defines,time_macros "${TENON_CCACHE}")
    endif()
  endforeach()
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>")

# No a * b + c becomes a fused multiply-add, so that results follow the source on every processor.
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off>")
set(CMAKE_C_STANDARD 11)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/archive")
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

add_compile_options(
  "$<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Werror>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Werror>"
  # KiB from which GCC collects its garbage: a tenth of the time of most files.
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>")
set(TENON_SANITIZE_OPTIONS "")
if(TENON_SANITIZE)
  # What a sanitizer adds makes GCC see uninitialised memory where there is none; builds without it keep the warning.
  # Null pointers and the ends of objects are AddressSanitizer's; checked twice they cost a third of the build.
  set(TENON_SANITIZE_OPTIONS "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>")
  foreach(option -fsanitize=${TENON_SANITIZE} -fno-sanitize-recover=all -fno-sanitize=null,object-size
          -fno-omit-frame-pointer)
    list(APPEND TENON_SANITIZE_OPTIONS "$<$<COMPILE_LANGUAGE:C,CXX>:${option}>")
  endforeach()
  add_compile_options(${TENON_SANITIZE_OPTIONS})
  add_link_options("-fsanitize=${TENON_SANITIZE}")
  if(TENON_SANITIZE MATCHES address)
    # The checks of undefined behaviour describe every place that they are at. In a position-independent program these
    # are a million addresses to relocate at each start, and a quarter of the file.
    add_link_options("$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>")
  endif()
endif()
# tenon_seldom_runs(<target>): code that runs when a program starts, not in its loops. GCC takes half of the time for it
# with -O1 in place of -O2.
function(tenon_seldom_runs target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-O1>")
  endif()
endfunction()
# tenon_seldom_tested(<target>): code in which tests spend little time. Under AddressSanitizer GCC takes 40 % less time
# for it with -Og than with -O1.
function(tenon_seldom_tested target)
  if(TENON_SANITIZE MATCHES address)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Og>")
  endif()
endfunction()
# tenon_unity(<target>): compiles its sources together, a few at a time, because most of the work is in the headers that
# they share. So names of anonymous namespaces, aliases and macros of a target's sources must differ.
function(tenon_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD "${TENON_UNITY}" UNITY_BUILD_BATCH_SIZE 12)
  # GCC takes the members of a hidden struct for those of a header's, clang names of another source for shadowed ones.
  if(TENON_UNITY)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>"
                                             "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-shadow>")
  endif()
endfunction()
if(TENON_COVERAGE)
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:--coverage;-fprofile-update=atomic>")
  add_link_options(--coverage)
endif()

# The include law as include paths: a folder of links for each part of the tree, so that a target sees the parts that
# it may include and no other ("core/error.h" is <root of core>/core/error.h). Plugins get none of these.
function(tenon_include_root name path)
  set(root "${PROJECT_BINARY_DIR}/include/${name}")
  cmake_path(GET path PARENT_PATH parent)
  file(MAKE_DIRECTORY "${root}/${parent}")
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${path}" "${root}/${path}" SYMBOLIC)
  set(TENON_ROOT_${name} "${root}" PARENT_SCOPE)
endfunction()
# A room is a folder below host/ or check/, the tree that calls this. Its files see the headers of TENON_ROOMS_LINK, their
# own and those of the rooms that it names, which see what those name: tenon_room(<name> [SELDOM] [SEES <room>...] SOURCES
# <file>...) makes the objects tenon_<tree>_<name>. docs/architecture.md has the rooms as tables. SELDOM: it runs when
# something starts.
function(tenon_room name)
  cmake_parse_arguments(PARSE_ARGV 1 room "SELDOM" "" "SEES;SOURCES")
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME tree)
  set(target "tenon_${tree}_${name}")
  tenon_include_root("${tree}_${name}" "${tree}/${name}")
  set(roots "${TENON_ROOT_${tree}_${name}}")
  foreach(other ${room_SEES})
    get_target_property(others "tenon_${tree}_${other}" TENON_ROOTS)
    list(APPEND roots ${others})
  endforeach()
  list(REMOVE_DUPLICATES roots)
  list(TRANSFORM room_SOURCES PREPEND "${name}/")
  add_library("${target}" OBJECT ${room_SOURCES})
  set_target_properties("${target}" PROPERTIES TENON_ROOTS "${roots}" TENON_SEES "${room_SEES}")
  target_include_directories("${target}" PRIVATE ${roots})
  target_link_libraries("${target}" PRIVATE ${TENON_ROOMS_LINK})
  tenon_seldom_tested("${target}")
  if(room_SELDOM)
    tenon_seldom_runs("${target}")
  endif()
  tenon_unity("${target}")
  set_property(GLOBAL APPEND PROPERTY "TENON_ROOMS_${tree}" "${name}")
endfunction()
tenon_include_root(base base)
tenon_include_root(core core)
tenon_include_root(host host)
tenon_include_root(cli host/cli)
tenon_include_root(check check)
tenon_include_root(process process)
tenon_include_root(record record)
tenon_include_root(manifest sdk/manifest)
tenon_include_root(tests tests)
tenon_include_root(weights weights)
