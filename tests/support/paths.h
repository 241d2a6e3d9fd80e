// Paths of the program, the plugins and the checkout. They are values of functions, not macros, so that a test's object
// file does not depend on the folder of the checkout and the compiler cache serves every clone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tenon_tests {

const std::string& program();             // the program tenon
const std::string& plugin_folder();       // the plugins that come with Tenon
const std::string& test_plugin_folder();  // the plugins that only tests load
const std::string& test_versions();       // versions of one plugin, each in a folder
const std::string& source_folder();       // the checkout

}  // namespace tenon_tests
