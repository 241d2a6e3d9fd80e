# Debian packages, made by `cpack -G DEB` in the build folder: the components of the installation, of which each file is
# in one. Dependencies on libraries of the system are those that dpkg-shlibdeps finds. SPDX-License-Identifier: Apache-2.0
set(TENON_MAINTAINER "The Tenon authors <tenon@localhost>" CACHE STRING "Maintainer of the Debian packages")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tenon)
set(CPACK_PACKAGE_CONTACT "${TENON_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES OFF) # a stripped plugin keeps its note, but its build decides about debug information
set(CPACK_COMPONENTS_ALL library program documentation plugins development sdk)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")

# tenon_package(<component or group> <package> <short description> [<package that it needs in the same version>...])
macro(tenon_package component package description)
  string(TOUPPER ${component} tenon_package_upper)
  set(CPACK_DEBIAN_${tenon_package_upper}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${tenon_package_upper}_DESCRIPTION "${description}")
  set(tenon_package_needs ${ARGN})
  list(TRANSFORM tenon_package_needs REPLACE "^([a-z]*tenon[a-z0-9-]*)$" "\\1 (= ${PROJECT_VERSION})")
  list(JOIN tenon_package_needs ", " CPACK_DEBIAN_${tenon_package_upper}_PACKAGE_DEPENDS)
endmacro()
tenon_package(library libtenon0 "the library")
tenon_package(plugins tenon-plugins "layers, updaters, readers and devices" libtenon0)
tenon_package(tools tenon "the program, its pages and examples" libtenon0 tenon-plugins)
tenon_package(development libtenon-dev "headers for applications" libtenon0
              tenon-plugins tenon-sdk)
tenon_package(sdk tenon-sdk "headers, build files and templates for plugins" tenon
              libdlpack-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PLUGINS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
# Loaded at run time, where they are there: a provider of convolutions, formats of pictures, and MPI libraries.
set(CPACK_DEBIAN_PLUGINS_PACKAGE_RECOMMENDS "libgif7, libtiff6, libwebpdemux2")
set(CPACK_DEBIAN_PLUGINS_PACKAGE_SUGGESTS "libdnnl2, libmpich12, libopenmpi3")
# What other packages write into their dependencies. CPack would look for libraries among the plugins, too.
file(WRITE "${PROJECT_BINARY_DIR}/packages/shlibs" "libtenon ${PROJECT_VERSION_MAJOR} libtenon0 (>= ${PROJECT_VERSION})\n"
     "libtenon_arrow ${PROJECT_VERSION_MAJOR} libtenon0 (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/packages/shlibs")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_SDK_PACKAGE_SECTION libdevel)

include(CPack)
cpack_add_component_group(tools)
cpack_add_component(program GROUP tools)
cpack_add_component(documentation GROUP tools)
