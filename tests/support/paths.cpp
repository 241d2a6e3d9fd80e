// SPDX-License-Identifier: Apache-2.0
#include "tests/support/paths.h"

#include <cstdlib>

namespace tenon_tests {

const std::string& program() {
  static const std::string path = TENON_PROGRAM;
  return path;
}

const std::string& plugin_folder() {
  const char* const moved = std::getenv("TENON_MOVED_PLUGINS");  // of scripts/gpu-check
  static const std::string path = moved == nullptr ? TENON_PLUGINS : moved;
  return path;
}

const std::string& test_plugin_folder() {
  static const std::string path = TENON_TEST_PLUGINS;
  return path;
}

const std::string& test_versions() {
  static const std::string path = TENON_TEST_VERSIONS;
  return path;
}

const std::string& source_folder() {
  static const std::string path = TENON_SOURCES;
  return path;
}

}  // namespace tenon_tests
