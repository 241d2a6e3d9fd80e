# tenon_add_plugin: builds one plugin. SPDX-License-Identifier: MIT
#
#   tenon_add_plugin(<kind> <name> <source>... [LIBRARIES <library>...] [INCLUDES <folder>...])
#
# kind: layers, updaters, readers, devices or comms. Makes lib/tenon/plugins/<kind>/<name>.so in three steps:
#   1. the sources are compiled to objects;
#   2. the objects and the manifest writer become a program that runs during the build, reads the descriptor behind
#      tenon_plugin(), refuses what no host would accept, and writes the manifest: <name>.manifest.json to look at,
#      and a C file that puts the same text into an ELF note;
#   3. the objects and the note are linked to the plugin.
# The plugin exports tenon_plugin and nothing else, and must leave nothing undefined but what its libraries have.
# INCLUDES are searched as system folders, without warnings.
#
# A single source in Rust, <name>.rs, is compiled by rustc with the binding of the SDK as the crate tenon_plugin, and
# sealed by the program (TENON_PROGRAM, that of this installation); with optimisation, unless CMAKE_BUILD_TYPE is Debug.
# LIBRARIES and INCLUDES are for C and C++.
#
# A build for another machine cannot run that program. With CMAKE_CROSSCOMPILING_EMULATOR it is run by that; without, the
# project is configured a second time, for this machine, in a folder of the build, and the plugins that are built there
# write the manifests. In Rust: build for both machines, then tenon plugins seal --manifest-of.
#
# Targets: tenon_<kind>_<name> is the plugin, tenon_<kind>_<name>_objects its objects, for properties of your own (not
# in Rust).
# The global property TENON_PLUGINS lists all plugins of the build.
#
# Variables, read at the call
#   TENON_STATIC_RUNTIME            ON (default): the C++ runtime is linked in, so that the plugin needs libc, libm if it
#                                   calls functions of it and, if it is in C++, libgcc_s.so.1
#   TENON_PLUGIN_OUTPUT_DIRECTORY   default: lib/tenon/plugins in the build folder
#   TENON_PLUGIN_INSTALL_DIRECTORY  default: <libdir>/tenon/plugins; empty: the plugin is not installed
#   TENON_RUSTC                     the compiler of plugins in Rust; default: the rustc that is found
#   TENON_NATIVE_BUILD              of builds for another machine: the folder of that for this machine; default: native in
#                                   the build folder
#   TENON_NATIVE_OPTIONS            arguments of its configuration, such as -DCMAKE_CXX_COMPILER=<compiler>

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH _tenon_sdk)
# tenon_manifest makes the text of a manifest; tenon_manifest_writer is the program of step 2 over it.
if(NOT TARGET tenon_manifest)
  add_library(tenon_manifest OBJECT EXCLUDE_FROM_ALL "${_tenon_sdk}/manifest/attributes.c"
              "${_tenon_sdk}/manifest/comms.c" "${_tenon_sdk}/manifest/manifest.c" "${_tenon_sdk}/manifest/offers.c"
              "${_tenon_sdk}/manifest/text.c")
  add_library(tenon_manifest_writer OBJECT EXCLUDE_FROM_ALL "${_tenon_sdk}/manifest/writer.c")
  foreach(target tenon_manifest tenon_manifest_writer)
    set_target_properties(${target} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON)
    target_link_libraries(${target} PRIVATE TenonSDK::sdk)
  endforeach()
endif()

function(_tenon_plugin_language result)
  set(language C)
  foreach(source IN LISTS ARGN)
    if(NOT source MATCHES "\\.[ch]$")
      set(language CXX)
    endif()
  endforeach()
  set(${result} ${language} PARENT_SCOPE)
endfunction()

# The binding of plugins in Rust, built once for all of them, and the command that compiles Rust.
function(_tenon_rust_binding command library)
  find_program(TENON_RUSTC rustc)
  if(NOT TENON_RUSTC)
    message(FATAL_ERROR "tenon_add_plugin: no rustc was found for a plugin in Rust; TENON_RUSTC names one")
  endif()
  set(rustc "${TENON_RUSTC}" --edition 2021 -C panic=unwind)
  if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    list(APPEND rustc -g)
  else()
    list(APPEND rustc -O -C strip=symbols)
  endif()
  set(file "${CMAKE_BINARY_DIR}/CMakeFiles/libtenon_plugin.rlib")
  if(NOT TARGET tenon_rust_binding)
    cmake_path(GET CMAKE_CURRENT_FUNCTION_LIST_DIR PARENT_PATH sdk)
    file(GLOB sources CONFIGURE_DEPENDS "${sdk}/rust/*.rs")
    add_custom_command(OUTPUT "${file}" COMMAND ${rustc} --crate-type rlib --crate-name tenon_plugin
      --remap-path-prefix "${sdk}/=" "${sdk}/rust/tenon_plugin.rs" -o "${file}"
      DEPENDS ${sources} VERBATIM COMMENT "Building the binding of plugins in Rust")
    add_custom_target(tenon_rust_binding DEPENDS "${file}")
  endif()
  set(${command} "${rustc}" PARENT_SCOPE)
  set(${library} "${file}" PARENT_SCOPE)
endfunction()

# The plugin of one source in Rust. Its file is made under another name, and gets its own once it is sealed.
function(_tenon_add_rust_plugin kind name source)
  _tenon_rust_binding(rustc binding)
  set(plugin "tenon_${kind}_${name}")
  set(made "${CMAKE_CURRENT_BINARY_DIR}/${plugin}.so")
  set(file "${TENON_PLUGIN_OUTPUT_DIRECTORY}/${kind}/${name}.so")
  cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  cmake_path(GET source PARENT_PATH folder)
  add_custom_command(OUTPUT "${file}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${TENON_PLUGIN_OUTPUT_DIRECTORY}/${kind}"
    COMMAND "${CMAKE_COMMAND}" "-DTENON_PROGRAM=${TENON_PROGRAM}" "-DPLUGIN=${made}"
      -P "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/rust_plugin.cmake" -- ${rustc} --crate-type cdylib --crate-name plugin
      --remap-path-prefix "${folder}/=" --extern "tenon_plugin=${binding}" "${source}" -o "${made}"
    COMMAND "${CMAKE_COMMAND}" -E rename "${made}" "${file}"
    DEPENDS "${source}" tenon_rust_binding VERBATIM COMMENT "Building ${kind}/${name} with rustc")
  add_custom_target(${plugin} ALL DEPENDS "${file}")
  if(TENON_PLUGIN_INSTALL_DIRECTORY)
    install(PROGRAMS "${file}" DESTINATION "${TENON_PLUGIN_INSTALL_DIRECTORY}/${kind}")
  endif()
endfunction()

# Configures the project for this machine, and adds the target that builds its plugins there. Called once, when all
# plugins are known.
function(_tenon_build_natively)
  get_property(plugins GLOBAL PROPERTY TENON_PLUGINS)
  get_property(manifests GLOBAL PROPERTY TENON_NATIVE_MANIFESTS)
  set(cmake "${CMAKE_COMMAND}" -E env) # compilers and flags of the environment are for the other machine
  foreach(variable AR CC CFLAGS CMAKE_TOOLCHAIN_FILE CPPFLAGS CXX CXXFLAGS LD LDFLAGS)
    list(APPEND cmake "--unset=${variable}")
  endforeach()
  list(APPEND cmake "${CMAKE_COMMAND}")
  execute_process(COMMAND ${cmake} -S "${CMAKE_SOURCE_DIR}" -B "${TENON_NATIVE_BUILD}" -G "${CMAKE_GENERATOR}"
    "-DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}" "-DCMAKE_PREFIX_PATH=${CMAKE_PREFIX_PATH}" "-DTenonSDK_DIR=${TenonSDK_DIR}"
    ${TENON_NATIVE_OPTIONS} RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(failed)
    message(FATAL_ERROR "tenon_add_plugin: the manifests of plugins for another machine come from a build for this one in "
      "${TENON_NATIVE_BUILD}, which cannot be configured; TENON_NATIVE_OPTIONS has arguments for it, and with "
      "CMAKE_CROSSCOMPILING_EMULATOR there is none:\n${said}")
  endif()
  add_custom_target(tenon_native COMMAND ${cmake} --build "${TENON_NATIVE_BUILD}" --target ${plugins}
    BYPRODUCTS ${manifests} VERBATIM COMMENT "Building the plugins for this machine, which writes their manifests")
endfunction()

# Takes the manifest "<manifest>.c" from the build for this machine.
function(_tenon_native_manifest manifest)
  set(TENON_NATIVE_BUILD "${CMAKE_BINARY_DIR}/native" CACHE PATH "Build of the plugins for this machine")
  cmake_path(RELATIVE_PATH manifest BASE_DIRECTORY "${CMAKE_BINARY_DIR}" OUTPUT_VARIABLE place)
  cmake_path(ABSOLUTE_PATH place BASE_DIRECTORY "${TENON_NATIVE_BUILD}" OUTPUT_VARIABLE native)
  get_property(begun GLOBAL PROPERTY TENON_NATIVE_MANIFESTS SET)
  if(NOT begun)
    cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL _tenon_build_natively)
  endif()
  set_property(GLOBAL APPEND PROPERTY TENON_NATIVE_MANIFESTS "${native}.c" "${native}.json")
  add_custom_command(OUTPUT "${manifest}.c" "${manifest}.json"
    COMMAND "${CMAKE_COMMAND}" -E copy "${native}.c" "${native}.json" "${CMAKE_CURRENT_BINARY_DIR}"
    DEPENDS tenon_native "${native}.c" VERBATIM)
endfunction()

function(tenon_add_plugin kind name)
  cmake_parse_arguments(PARSE_ARGV 2 plugin "" "" "LIBRARIES;INCLUDES")
  set(sources ${plugin_UNPARSED_ARGUMENTS})
  if(NOT kind MATCHES "^(layers|updaters|readers|devices|comms)$")
    message(FATAL_ERROR "tenon_add_plugin: the kind \"${kind}\" is not one of layers, updaters, readers, devices, comms")
  endif()
  if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
    message(FATAL_ERROR "tenon_add_plugin: the name \"${name}\" must be lower case letters, digits and _")
  endif()
  if(NOT sources)
    message(FATAL_ERROR "tenon_add_plugin(${kind} ${name}): no sources are given")
  endif()
  if(NOT DEFINED TENON_STATIC_RUNTIME)
    set(TENON_STATIC_RUNTIME ON)
  endif()
  if(NOT DEFINED TENON_PLUGIN_OUTPUT_DIRECTORY)
    set(TENON_PLUGIN_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/tenon/plugins")
  endif()
  if(NOT DEFINED TENON_PLUGIN_INSTALL_DIRECTORY)
    include(GNUInstallDirs)
    set(TENON_PLUGIN_INSTALL_DIRECTORY "${CMAKE_INSTALL_LIBDIR}/tenon/plugins")
  endif()
  set(foreign FALSE) # whether programs of the build cannot run
  if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
    set(foreign TRUE)
  endif()
  if(sources MATCHES "\\.rs$")
    if(foreign)
      message(FATAL_ERROR "tenon_add_plugin(${kind} ${name}): a plugin in Rust is not built for another machine; build it "
        "for both by rustc --target, seal the one for this machine, then the other by tenon plugins seal --manifest-of")
    endif()
    _tenon_add_rust_plugin(${kind} ${name} ${sources})
    set_property(GLOBAL APPEND PROPERTY TENON_PLUGINS tenon_${kind}_${name})
    return()
  endif()
  _tenon_plugin_language(language ${sources})
  set(map "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map")
  set(plugin "tenon_${kind}_${name}")
  set(manifest "${CMAKE_CURRENT_BINARY_DIR}/${kind}_${name}.manifest")

  add_library(${plugin}_objects OBJECT ${sources})
  target_compile_features(${plugin}_objects PRIVATE c_std_99)
  if(language STREQUAL "CXX")
    target_compile_features(${plugin}_objects PRIVATE cxx_std_17)
  endif()
  target_link_libraries(${plugin}_objects PRIVATE TenonSDK::sdk ${plugin_LIBRARIES})
  target_include_directories(${plugin}_objects SYSTEM PRIVATE ${plugin_INCLUDES})
  set_target_properties(${plugin}_objects PROPERTIES POSITION_INDEPENDENT_CODE ON VISIBILITY_INLINES_HIDDEN ON
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden)
  # A unique symbol would be shared between plugins and keep the file mapped for ever.
  target_compile_options(${plugin}_objects PRIVATE
    "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fno-gnu-unique>")

  if(foreign)
    _tenon_native_manifest("${manifest}")
  else()
    add_executable(${plugin}_writer $<TARGET_OBJECTS:${plugin}_objects> $<TARGET_OBJECTS:tenon_manifest>
                   $<TARGET_OBJECTS:tenon_manifest_writer>)
    target_link_libraries(${plugin}_writer PRIVATE ${plugin_LIBRARIES} m) # the manifest writer rounds numbers
    set_target_properties(${plugin}_writer PROPERTIES LINKER_LANGUAGE ${language}
      RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
    add_custom_command(OUTPUT "${manifest}.c" "${manifest}.json"
      COMMAND ${plugin}_writer "${manifest}.c" "${manifest}.json"
      DEPENDS ${plugin}_writer VERBATIM COMMENT "Writing the manifest of ${kind}/${name}")
  endif()

  # The note is one string of up to 5 MB; only compilers of long ago would mind.
  set_source_files_properties("${manifest}.c" PROPERTIES COMPILE_OPTIONS "-Wno-overlength-strings")
  add_library(${plugin} MODULE $<TARGET_OBJECTS:${plugin}_objects> "${manifest}.c")
  # Code in C++ gets the functions of libm with its runtime; code in C would have them undefined.
  target_link_libraries(${plugin} PRIVATE ${plugin_LIBRARIES} "-Wl,--push-state,--as-needed" m "-Wl,--pop-state")
  # An exception reaches the barrier of the host only if plugin and host have one unwinder, that of libgcc_s.so.1; a
  # host refuses a plugin that has exception tables and does not need it. Code in C has none.
  set(runtime "")
  if(language STREQUAL "CXX")
    set(runtime "LINKER:--push-state,--no-as-needed" -lgcc_s "LINKER:--pop-state" -shared-libgcc)
    if(TENON_STATIC_RUNTIME)
      list(APPEND runtime -static-libstdc++)
    endif()
  elseif(TENON_STATIC_RUNTIME)
    set(runtime -static-libgcc)
  endif()
  # Without --gc-sections functions of the C++ runtime that nothing calls would be linked in, and with them the need for
  # the newest C library: arc4random of GLIBC_2.36.
  target_link_options(${plugin} PRIVATE "LINKER:--version-script=${map}" "LINKER:--exclude-libs,ALL"
    "LINKER:-z,defs" "LINKER:--gc-sections" ${runtime})
  set_target_properties(${plugin} PROPERTIES OUTPUT_NAME "${name}" PREFIX "" SUFFIX ".so" LINKER_LANGUAGE ${language}
    LIBRARY_OUTPUT_DIRECTORY "${TENON_PLUGIN_OUTPUT_DIRECTORY}/${kind}" LINK_DEPENDS "${map}"
    INSTALL_RPATH "")
  if(TENON_PLUGIN_INSTALL_DIRECTORY)
    install(TARGETS ${plugin} LIBRARY DESTINATION "${TENON_PLUGIN_INSTALL_DIRECTORY}/${kind}")
  endif()
  set_property(GLOBAL APPEND PROPERTY TENON_PLUGINS ${plugin})
endfunction()
