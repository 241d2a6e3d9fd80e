// SPDX-License-Identifier: Apache-2.0
#include "tests/support/paths.h"

namespace tenon_tests {

const std::string& program() {
  static const std::string path = TENON_PROGRAM;
  return path;
}

const std::string& plugin_folder() {
  static const std::string path = TENON_PLUGINS;
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
